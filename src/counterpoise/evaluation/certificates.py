"""Certificates from the private table itself, and what they bound: for the curator alone.

The same bound as `Release.certificate`, with the private moments as they are in the place of what
noisy counts say of them: what is left is the polynomial's part and the synthesizer's. Beside it the
excess risk itself, which a curator can simply measure, and the distance of marginals that the
published bounds are stated in. All three are exact and confidential.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from counterpoise.analysis.certificate import Certificate, Trained, certified, train
from counterpoise.analysis.certificate_moments import MomentBounds
from counterpoise.analysis.constrained_fit import constrained_fit
from counterpoise.arguments import whole_number
from counterpoise.errors import MethodError

if TYPE_CHECKING:
    from counterpoise.bundle.release import Release


def exact_certificate(
    release: Release,
    private: Any,
    target: str,
    loss: str = "logistic",
    norm: float = 1.0,
    features: Sequence[str] | None = None,
    weighted: bool = True,
) -> Certificate:
    """The certificate of a release by the true moments; it holds for certain, and is confidential.

    >>> import pandas as pd, counterpoise as cp
    >>> schema = cp.Schema([cp.Column.integer("dose", 0, 3), cp.Column.boolean("ill")])
    >>> dose = np.random.default_rng(0).integers(0, 4, 5000)
    >>> table = pd.DataFrame({"dose": dose, "ill": dose > 1})
    >>> release = cp.release(table, schema=schema, epsilon=2, delta=1e-6, seed=1, rows=5000,
    ...     synthesizer="marginals", weights="uniform", replicates=0, progress=False)
    >>> found = exact_certificate(release, table, "ill", norm=0.5)
    >>> found.confidential, excess_risk(release, table, "ill", norm=0.5) <= found.bound < 0.01
    (True, True)
    """
    trained = train(release, target, loss, norm, features, weighted)
    rows, labels = _private_rows(release, private, trained)
    both = np.column_stack([rows, labels])
    difference = both.T @ both / len(both) - trained.moments
    found = certified(trained, [MomentBounds.exactly(difference, len(both))], 0.0)
    return replace(found, confidential=True)


def excess_risk(
    release: Release,
    private: Any,
    target: str,
    loss: str = "logistic",
    norm: float = 1.0,
    features: Sequence[str] | None = None,
    weighted: bool = True,
) -> float:
    """What a certificate bounds: L_r(w_s) - min L_r, on the private rows as coded."""
    trained = train(release, target, loss, norm, features, weighted)
    rows, labels = _private_rows(release, private, trained)
    landscape = trained.landscape
    weights = np.full(len(rows), 1 / len(rows))
    best = constrained_fit(rows, labels, weights, landscape.loss, landscape.norm)
    own = landscape.loss.value(labels * (rows @ landscape.coefficients)).mean()
    return float(own) - best.risk


def marginal_distance(release: Release, private: Any, order: int = 2) -> float:
    """nu / n: the largest L1 distance of shares over all sets of up to `order` columns.

    >>> import pandas as pd, counterpoise as cp
    >>> schema = cp.Schema([cp.Column.boolean("a"), cp.Column.boolean("b")])
    >>> table = pd.DataFrame({"a": [True, False] * 500, "b": [True, True, False, False] * 250})
    >>> release = cp.release(table, schema=schema, epsilon=2, delta=1e-6, seed=1, rows=1000,
    ...     synthesizer="marginals", weights="uniform", replicates=0, progress=False)
    >>> marginal_distance(release, table) < 0.1
    True
    """
    order = whole_number("order", order)
    schema = release.schema.modelled
    ours = schema.encode(release.table[list(schema.names)]).codes
    theirs = _coded(release, private)
    weights = release.weights / release.weights.sum()
    size = min(order, len(schema))
    farthest = 0.0
    for places in itertools.combinations(range(len(schema)), size):
        shape = tuple(schema.sizes[place] for place in places)
        cells = math.prod(shape)
        shares = [
            np.bincount(np.ravel_multi_index(codes[:, places].T, shape), each, cells)
            for codes, each in ((ours, weights), (theirs, np.full(len(theirs), 1 / len(theirs))))
        ]
        # Smaller sets are sums of larger ones, and no further apart.
        farthest = max(farthest, float(np.abs(shares[0] - shares[1]).sum()))
    return farthest


def _private_rows(
    release: Release, private: Any, trained: Trained
) -> tuple[np.ndarray, np.ndarray]:
    return trained.coding(_coded(release, private))


def _coded(release: Release, private: Any) -> np.ndarray:
    codes = release.schema.modelled.encode(private).codes
    if len(codes) == 0:
        raise MethodError("private: expected at least one row")
    return codes
