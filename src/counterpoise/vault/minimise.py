"""Perturbed minimisers: a classifier of private and synthetic rows, with noise on what it learnt.

    J(b) = (1/m) [ sum over private x of loss(f(x).b) + sum over synthetic z of loss(-f(z).b) ]
           + (lambda/2) norm(b - c)^2

with public m, lambda and centre c, and features clipped to norm R. J is lambda-strongly convex,
and a row more or less changes its gradient, at any b, by at most slope R / m, where slope bounds
|loss'|. If b minimises J and b' its neighbour J', then lambda norm(b - b') <= norm(grad J(b')) =
norm(grad J(b') - grad J'(b')), so D2(b) = slope R / (m lambda) when a row is added or removed,
2 slope R / (m lambda) when one is replaced, and k times that for a person of k rows (Chaudhuri,
Monteleoni and Sarwate 2011). The bound is for exact minimisers: a point where the gradient has
norm g lies within g / lambda of one, so two neighbours' answers may differ by 2 g / lambda more,
which is charged. Newton's method here reaches g for every table, in a number of steps that is
bounded in advance up to 2^31 rows, private and public (`newton`), so there is no failure to report;
half of g is left for floating-point error, which for ordinary margins stays below it
up to a thousand million rows. It solves for b - c, and that is what is noised, so no lambda is too
large for the precision of c. A public linear map of b is as sensitive as its operator norm says.
Only the noised answer leaves; the number of passes over the rows does not. The law of the noise
and its charge are in `perturbation`. [PRIVACY: importance weights]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from scipy.special import expit

from counterpoise.arguments import instance_of, number_array, one_of
from counterpoise.errors import VaultError
from counterpoise.schema import Coded
from counterpoise.vault.asked import feature_names, require_methods, share_of
from counterpoise.vault.budget import Share
from counterpoise.vault.newton import newton
from counterpoise.vault.noise import Grid, Noise
from counterpoise.vault.perturbation import (
    INEXACTNESS,
    LARGEST_MOVE,
    LAWS,
    NoiseLaw,
    in_range,
    operator_norm,
    perturbation_for,
)
from counterpoise.vault.storage import Storage
from counterpoise.vault.sums import FeatureMap, clip

if TYPE_CHECKING:
    from counterpoise.vault.vault import Vault

_BATCH_CELLS = 4_000_000


class Loss(Protocol):
    """A convex function of a margin, with the two bounds that privacy and Newton rest on."""

    @property
    def slope(self) -> float:
        """A bound on the first derivative."""
        ...

    @property
    def steepening(self) -> float:
        """A bound on the third derivative, relative to the second."""
        ...

    def derivatives(self, margins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The first and second derivative at each margin."""
        ...


@dataclass(frozen=True)
class LogisticLoss:
    """log(1 + exp(-t)): its first derivative is within [-1, 0], its third below its second.

    >>> LogisticLoss().derivatives(np.zeros(1))
    (array([-0.5]), array([0.25]))
    """

    slope = 1.0
    steepening = 1.0

    def derivatives(self, margins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """-1 / (1 + exp(t)), and its derivative."""
        wrong = expit(-margins)
        return -wrong, wrong * expit(margins)


@dataclass(frozen=True)
class NoisyMinimiser:
    """A minimiser, or a public linear map of one, with the law of the noise on it."""

    values: np.ndarray
    scale: float  # Gaussian: standard deviation a number; Laplace laws: the scale b
    law: NoiseLaw
    sensitivity: float  # D2 of what was noised; public
    private: bool = True


def minimise(
    vault: Vault,
    features: FeatureMap,
    bound: float,
    synthetic: Coded,
    share: Share,
    *,
    rows: float,
    regularisation: float,
    noise: NoiseLaw = "gaussian",
    scale: float | None = None,
    centre: np.ndarray | None = None,
    outputs: np.ndarray | None = None,
    loss: Loss | None = None,
) -> NoisyMinimiser:
    """Tell private rows from synthetic ones, each row clipped to `bound`; charges one event.

    `rows` is m, `regularisation` lambda and `centre` c above. With `outputs`, a public matrix,
    that matrix times the minimiser is noised instead. `noise` is "gaussian", "l2-laplace" (pure),
    "laplace" (pure) or "none", which only a vault gives whose answers are not private anyway. A
    stated `scale` is charged for what it is, and refused when the share cannot pay for it.
    """
    loss = LogisticLoss() if loss is None else loss
    noise = one_of("noise", noise, LAWS, VaultError)
    require_methods("loss", loss, "a Loss", "slope", "steepening", "derivatives")
    instance_of("synthetic", synthetic, Coded, "rows that the schema has coded", VaultError)
    names, bound, share = feature_names(features), in_range("bound", bound), share_of(share)
    rows, regularisation = in_range("rows", rows), in_range("regularisation", regularisation)
    steepening = in_range("steepening", loss.steepening)
    size = len(names)
    start = checked_centre(centre, size, bound)
    matrix = _checked_outputs(outputs, size)
    if noise == "none" and vault.private:
        raise VaultError(
            "noise: 'none' is for probes on a vault with a seed, whose answers are stamped as not "
            "private; choose 'gaussian', 'l2-laplace' or 'laplace'"
        )
    vault.require_rows("minimise")
    law = perturbation_for(
        vault.budget,
        share,
        size=size if matrix is None else len(matrix),
        bound=bound,
        rows=rows,
        regularisation=regularisation,
        noise=noise,
        scale=scale,
        reach=1.0 if matrix is None else operator_norm(matrix),
        slope=loss.slope,
    )
    against = clipped_features(features, synthetic, bound, size)
    what = f"minimiser of {size} features"
    if matrix is not None:
        what = f"{len(matrix)} outputs of a {what}"
    # Half of g = INEXACTNESS slope R / m; the other half is for rounding.
    gradient_norm = INEXACTNESS / 2 * loss.slope * bound / rows

    def look(storage: Storage, source: Noise) -> np.ndarray:
        private = ClippedRows(storage, features, bound, size)

        # In u = b - c: the pull lambda u is then exact to the last bit of u, however small it is
        # beside c. All private rows together move u by no more than their number times D2.
        def derivatives(moved: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            point = start + moved
            gradient, hessian = regularisation * moved, regularisation * np.eye(size)
            for label, batches in ((1.0, private), (-1.0, (against,))):
                for values in batches:
                    first, second = loss.derivatives(label * (values @ point))
                    gradient += values.T @ (label * first) / rows
                    hessian += (values * second[:, None]).T @ values / rows
            return gradient, hessian

        solved = newton(
            derivatives, np.zeros(size), steepening * bound, gradient_norm, regularisation
        )
        exact = solved if matrix is None else matrix @ solved
        if law.law == "none":
            return exact
        draw = {
            "gaussian": source.gaussian,
            "l2-laplace": source.l2_laplace,
            "laplace": source.laplace,
        }[law.law]
        grid = Grid(law.step)
        return grid.values(draw(grid.round(exact), law.scale / grid.step))

    asked = {
        "features": names,
        "bound": bound,
        "rows": rows,
        "regularisation": regularisation,
        "law": law.law,
        "centre": start.tolist(),
        "outputs": None if matrix is None else matrix.shape,
    }
    query = what if noise != "none" else f"{what}, WITHOUT NOISE"
    values = vault._ask(query, law.event, look, asked)
    # The centre is public and comes back after the noise.
    values = values + (start if matrix is None else matrix @ start)
    return NoisyMinimiser(values, law.scale, law.law, law.sensitivity, vault.private)


class ClippedRows:
    """The private rows' features, in batches, as often as one asks; for one query."""

    def __init__(self, storage: Storage, features: FeatureMap, bound: float, size: int):
        self._storage, self._features, self._bound, self._size = storage, features, bound, size
        self._only: np.ndarray | None = None

    def __iter__(self) -> Iterator[np.ndarray]:
        if self._only is not None:
            yield self._only
            return
        batches = 0
        for rows in self._storage.batches(max(1, _BATCH_CELLS // self._size)):
            batches += 1
            last = clipped_features(self._features, rows, self._bound, self._size)
            yield last
        if batches == 1:
            # Newton comes back for them: what fits one batch is worked out once.
            self._only = last


def clipped_features(features: FeatureMap, rows: Coded, bound: float, size: int) -> np.ndarray:
    """The features of each row, none longer than `bound`."""
    values = np.asarray(features(rows), dtype=float)
    if values.shape != (len(rows), size):
        # One record more must be one vector more, or the bound does not hold.
        raise VaultError(f"minimise: the features have to be one vector of {size} a row")
    return clip(values, bound)


def checked_centre(centre: np.ndarray | None, size: int, bound: float) -> np.ndarray:
    """A public centre of `size` numbers, zero unless it is stated, or a refusal."""
    found = np.zeros(size) if centre is None else number_array("centre", centre, error=VaultError)
    # Margins beyond any use would only cost precision; of what is far too long no square is taken.
    longest = float(np.max(np.abs(found), initial=0.0)) * bound
    is_short = longest <= LARGEST_MOVE and np.linalg.norm(found) * bound <= LARGEST_MOVE
    if found.shape != (size,) or not is_short:
        raise VaultError(
            f"centre: expected {size} numbers of norm at most {LARGEST_MOVE:g} / bound"
        )
    return found


def _checked_outputs(outputs: np.ndarray | None, size: int) -> np.ndarray | None:
    if outputs is None:
        return None
    found = number_array("outputs", outputs, "a matrix of numbers", VaultError)
    if found.ndim != 2 or found.shape[1] != size or not np.isfinite(found).all() or not found.any():
        raise VaultError(f"outputs: expected a finite matrix of {size} columns that is not zero")
    return found
