"""Bayesian updating from a release: the posterior of a regression, as the weights correct it.

The posterior is the prior times the likelihood of the synthetic rows, each to the power of its
weight (Ghalebikesabi et al. 2022, equation 3). With exact weights it has the limit of the private
table's own posterior, of as many rows as the weights add up to (theorem 1 there). Two things are
decided here that the paper leaves open. How much the rows count in all: by default as the private
table and the synthetic one are informative together, not as many rows as were synthesized. And
the noise in the weights, which equation 3 knows nothing of: where a release has replicate weights,
the draws are spread by what they move the posterior's mode beyond its own width. What the
synthesizer never measured and the weights do not correct is in neither: coefficients that nothing
measured are spread as widely as those of `glm`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import linalg
from scipy.special import expit

from counterpoise.analysis.asked import was_asked
from counterpoise.analysis.coefficients import (
    DEVIATION,
    OF_LOGIT,
    ignorant_draws,
    steps_of,
    supports_of,
)
from counterpoise.analysis.posterior_density import Mode, Task, find_mode, row_gradients
from counterpoise.analysis.posterior_model import Prior, Regression, check_positive
from counterpoise.analysis.posterior_sampler import (
    Convergence,
    Sampled,
    check_convergence,
    sample,
)
from counterpoise.analysis.replication import Design, checked_level, truth
from counterpoise.analysis.result import LEVEL, joined
from counterpoise.analysis.support import FOOTNOTES, MARKS, Measured, worst
from counterpoise.analysis.text import aligned, show
from counterpoise.analysis.verdict import warn
from counterpoise.arguments import seed_or_none, shown, whole_number
from counterpoise.bundle.card import private_rows, rows_counted
from counterpoise.errors import AnalysisError
from counterpoise.formulas.families import usual_family
from counterpoise.formulas.likelihood import probabilities
from counterpoise.formulas.matrices import Recipe, read_formula

if TYPE_CHECKING:
    from counterpoise.bundle.release import Release

__all__ = ["Posterior", "Prior", "Sizes", "posterior", "spread"]

SIZES = ("combined", "population", "effective", "rows")

# More draws than this a chain are a slip, and would not fit in memory.
MOST_DRAWS = 1_000_000

# Rows whose predictions are averaged over all draws at once.
_ROWS_AT_ONCE = 1000


@dataclass(frozen=True, eq=False)
class Sizes:
    """How many rows a posterior counts as (`used`), and what that comes from.

    `effective` is the number of rows from the private table's law that would fit the model as
    precisely as the weighted synthetic rows do; `population` is the number of private rows (as many
    of the target's as they count for, once retargeted), and None where the card states none.
    """

    used: float
    population: float | None
    effective: float
    rows: int


@dataclass(frozen=True, eq=False)
class Posterior:
    """Draws from a posterior, with what is needed to judge them.

    `draws` are chains x draws x parameters. They include the noise of the weights when
    `replicates`, the number of replicate weights that were used, is not zero; `convergence` is of
    the draws before that. It is indexed by parameter and iterated over the draws of each, with
    the parameters in `keys()`, as the estimates of a model are.
    """

    formula: str
    family: str
    parameters: tuple[str, ...]
    draws: np.ndarray
    sizes: Sizes
    convergence: Convergence
    sampled: Sampled = field(repr=False)
    replicates: int
    left_out: int
    categories: tuple[Any, ...]  # of a multinomial target, the first being compared with
    recipe: Recipe = field(repr=False)
    supports: tuple[str, ...] = ()  # of the parameters: whether what they depend on was measured
    counted: str = ""  # of which private rows they are, where not of all of them

    def __getitem__(self, parameter: str) -> np.ndarray:
        """The draws of a parameter: chains x draws."""
        if parameter not in self:
            listed = ", ".join(map(repr, self.parameters[:8]))
            raise AnalysisError(f"there is no parameter {shown(parameter)}; they are {listed}")
        return np.asarray(self.draws[:, :, self.parameters.index(parameter)])

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self[name] for name in self.parameters)

    def __len__(self) -> int:
        return len(self.parameters)

    def __contains__(self, parameter: object) -> bool:
        return isinstance(parameter, str) and parameter in self.parameters

    def keys(self) -> list[str]:
        """The names of the parameters."""
        return list(self.parameters)

    def items(self) -> list[tuple[str, np.ndarray]]:
        """The parameters with their draws."""
        return [(name, self[name]) for name in self.parameters]

    def to_frame(self, level: float = LEVEL) -> pd.DataFrame:
        """Means, deviations, central intervals and diagnostics, by parameter."""
        level = checked_level(level)
        flat = self._flat()
        low, high = np.quantile(flat, [(1 - level) / 2, (1 + level) / 2], axis=0)
        return pd.DataFrame(
            {
                "mean": flat.mean(axis=0),
                "deviation": flat.std(axis=0, ddof=1),
                "low": low,
                "high": high,
                "r_hat": self.convergence.r_hat,
                "effective_draws": self.convergence.bulk,
                "support": list(self.supports),
            },
            index=pd.Index(self.parameters, name="parameter"),
        )

    @property
    def covariance(self) -> pd.DataFrame:
        """The covariance of the parameters."""
        names = list(self.parameters)
        found = np.atleast_2d(np.cov(self._flat(), rowvar=False))
        return pd.DataFrame(found, index=names, columns=names)

    def predict(self, table: Any) -> np.ndarray:
        """The mean of the posterior predictive for the rows of a raw table; NaN where null.

        Of a multinomial model, the probability of each of `categories`: rows x categories.
        """
        matrix, known = self.recipe.features(table)
        shape = (len(known), len(self.categories)) if self.family == "multinomial" else len(known)
        means = np.full(shape, np.nan)
        flat = self._flat()
        flat = flat[:, :-1] if self.family == "linear" else flat
        for start in range(0, len(matrix), _ROWS_AT_ONCE):
            rows = np.flatnonzero(known)[start : start + _ROWS_AT_ONCE]
            means[rows] = self._means(matrix[start : start + _ROWS_AT_ONCE], flat)
        return means

    def to_dict(self) -> dict[str, dict[str, np.ndarray]]:
        """The groups that `arviz.from_dict` takes: draws by parameter, and the sampler's own."""
        return {
            "posterior": {name: self[name] for name in self.parameters},
            "sample_stats": {
                "diverging": self.sampled.diverging,
                "acceptance_rate": self.sampled.acceptance_rate,
                "n_steps": self.sampled.steps,
                "step_size": self.sampled.step_size,
            },
        }

    def to_datatree(self) -> Any:
        """The draws as an xarray DataTree, which every function of arviz takes."""
        _require_extra()
        import arviz_base

        return arviz_base.from_dict(self.to_dict())

    def __str__(self) -> str:
        lines: list[tuple[str, ...]] = [
            ("parameter", "mean", "deviation", "low", "high", "R-hat", "draws count as", "")
        ]
        for name, line in self.to_frame().iterrows():
            digits = line["deviation"] / 10
            cells = (show(line[part], digits) for part in ("mean", "deviation", "low", "high"))
            judged = (
                f"{line['r_hat']:.3f}",
                f"{line['effective_draws']:,.0f}",
                MARKS[line["support"]],
            )
            lines.append((str(name), *cells, *judged))
        sizes = self.sizes
        head = f"{self.formula}, {self.family}, {sizes.rows:,} rows"
        if self.left_out:
            head += f" ({self.left_out:,} left out for nulls)"
        private = "number unknown" if sizes.population is None else f"{sizes.population:,.0f}"
        count = (
            f"counted as {sizes.used:,.0f} rows (private table: {private}; the weighted rows are "
            f"worth {sizes.effective:,.0f})"
        )
        noise = (
            f"privacy noise included, by {self.replicates} replicate weights"
            if self.replicates
            else "given the weights: their privacy noise is not included"
        )
        wrong = self.convergence.complaint
        notes = [f"intervals of {LEVEL:.0%}", noise, wrong, self.counted]
        marked = [f"{MARKS[each]} {FOOTNOTES[each]}" for each in FOOTNOTES if each in self.supports]
        return "\n".join([head, count, aligned(lines, 1), f"({joined(*notes)})", *marked])

    __repr__ = __str__

    def _flat(self) -> np.ndarray:
        return self.draws.reshape(-1, self.draws.shape[2])

    def _means(self, matrix: np.ndarray, flat: np.ndarray) -> np.ndarray:
        if self.family == "linear":
            return np.asarray(matrix @ flat.mean(axis=0))
        if self.family == "logistic":
            return np.asarray(expit(matrix @ flat.T).mean(axis=1))
        total = np.zeros((len(matrix), len(self.categories)))
        for theta in flat.reshape(len(flat), -1, matrix.shape[1]):
            total += probabilities(matrix @ theta.T)
        return total / len(flat)


def posterior(
    release: Release,
    formula: str,
    family: str = "auto",
    prior: Prior | float | None = None,
    size: str | float = "combined",
    replicates: bool | None = None,
    chains: int = 4,
    draws: int = 1000,
    warmup: int = 300,
    seed: int | None = None,
) -> Posterior:
    """Draw from the importance-weighted posterior of a regression given by a formula.

    The families are "linear", "logistic" and "multinomial"; "auto" follows the target. `prior` is
    a `Prior`, or the deviation of all coefficients as they stand. `size` says how many rows the
    weights add up to:

    - "population": n, the private table's rows as the card states them. The width is that of the
      private table's own posterior.
    - "effective": N_e, what the weighted rows are worth to the model.
    - "combined": 1 / (1/n + 1/N_e), because the private rows are a sample, and the synthetic rows
      a sample again; without a stated n it is N_e.
    - "rows": the synthetic rows, which is equation 3 to the letter.
    - or a number.

    `replicates` says whether to include the noise of the weights, by default where the release
    has replicate weights. Needs the extra `bayes`.
    """
    _require_extra()
    chains = whole_number("chains", chains, 2, 1000, AnalysisError)
    draws = whole_number("draws", draws, 4, MOST_DRAWS, AnalysisError)
    warmup = whole_number("warmup", warmup, 0, MOST_DRAWS, AnalysisError)
    seed = seed_or_none(seed)
    if replicates is not None:
        replicates = truth("replicates", replicates)
    stated = private_rows(release.card)
    _check_size(size, stated)
    design = Design.of(release)
    if replicates and not design.count:
        raise AnalysisError(
            "replicates: the release has no replicate weights; leave the option out to go on "
            "without the noise of the weights"
        )
    read = read_formula(formula, release.schema)
    model = Regression.of(release, read, family, design)
    task = model.task(prior)
    # Of all rows, so that rows which are left out for nulls take their weight with them.
    in_all = float(design.weights.sum())
    sizes = _sizes(model, task, in_all, stated, size, len(release.table))
    task = _scaled(task, design.weights[model.made.rows], sizes.used / in_all)
    mode = find_mode(model.family, task)
    generator = np.random.default_rng(seed)
    sampled = sample(
        model.family, task, mode, chains, draws, warmup, int(generator.integers(2**32))
    )
    convergence = check_convergence(sampled)
    internal, count = sampled.draws, 0
    if replicates is not False and isinstance(design.replicates, np.ndarray):
        count = design.count
        modes = _replicate_modes(model, task, mode, design.replicates, sizes.used)
        # As if the replicates went the whole way.
        modes = mode.theta + (modes - mode.theta) / design.part
        internal = internal + spread(internal, mode.theta, modes, generator)
    if convergence.complaint:
        warn(
            f"posterior: the draws are not to be trusted: {convergence.complaint}; take more draws "
            "and a longer warmup, or a narrower prior"
        )
    usual = usual_family(release.schema, read.targets)
    family = {"linear": "gaussian", "logistic": "binomial"}.get(model.family, model.family)
    asked = was_asked(release, read, family, usual)
    supports = supports_of(Measured.of_release(release), read, model.made.recipe.layout, asked)
    supports = supports.tiled(model.blocks)
    steps = np.tile(steps_of(model.made.features, model.weights), model.blocks)
    if model.family == "linear":
        steps = steps / (steps_of(model.target[:, None], model.weights)[0] / 2 * OF_LOGIT)
    stated_draws = model.as_stated(internal)
    more = ignorant_draws(stated_draws, supports, steps, DEVIATION, generator)
    return Posterior(
        formula=formula,
        family=model.family,
        parameters=model.parameters,
        draws=stated_draws + more,
        sizes=sizes,
        convergence=convergence,
        sampled=sampled,
        replicates=count,
        left_out=len(release.table) - len(model.made.rows),
        categories=model.categories,
        recipe=model.made.recipe,
        supports=(
            *supports.supports,
            *([worst(supports.supports)] if model.family == "linear" else []),
        ),
        counted=rows_counted(release.card),
    )


def spread(
    draws: np.ndarray, mode: np.ndarray, modes: np.ndarray, generator: np.random.Generator
) -> np.ndarray:
    """What to add to draws so that they vary no less than the modes of the replicates do.

    With W the covariance of the draws and B the mean square of the modes (parameters in columns)
    around the full one, the draws move by A (mode_r - mode) for a replicate r each, with
    A B A' = (B - W)+. The replicates know the private sample, the synthetic sample and the noise;
    the draws know the samples already, so that only the excess is added.

    >>> generator = np.random.default_rng(0)
    >>> draws = generator.normal(size=(4, 1000, 1))
    >>> wide, narrow = np.array([[-3.0], [3.0]]), np.array([[-0.5], [0.5]])
    >>> float((draws + spread(draws, np.zeros(1), wide, generator)).std().round(1))
    3.0
    >>> float(np.abs(spread(draws, np.zeros(1), narrow, generator)).max())
    0.0
    """
    shape = draws.shape
    within = np.atleast_2d(np.cov(draws.reshape(-1, shape[2]), rowvar=False))
    apart = modes - mode
    # W = L L', L^-1 B L^-T = Q diag(b) Q':  A = L Q diag(sqrt((b - 1)+ / b)) Q' L^-1
    lower = linalg.cholesky(within, lower=True)
    whitened = linalg.solve_triangular(lower, apart.T, lower=True)
    values, vectors = np.linalg.eigh(whitened @ whitened.T / len(apart))
    kept = np.sqrt(np.maximum(values - 1, 0) / np.maximum(values, 1))
    moves = (lower @ (vectors * kept) @ vectors.T @ whitened).T
    # Every replicate as often as the others, and to both sides: a shift of the replicates counts
    # as error, not as a correction, as in their variance.
    total = shape[0] * shape[1]
    chosen = generator.permutation(np.arange(total) % (2 * len(moves)))
    signed = np.vstack([moves, -moves])
    return np.asarray(signed[chosen].reshape(shape))


def _scaled(task: Task, weights: np.ndarray, factor: float) -> Task:
    return task._replace(weights=np.asarray(weights, dtype=float) * factor)


def _check_size(size: Any, population: float | None) -> None:
    if not isinstance(size, str):
        check_positive("size", size)
    elif size not in SIZES:
        raise AnalysisError(f"size: expected {', '.join(SIZES)} or a number, not {shown(size)}")
    elif size == "population" and population is None:
        raise AnalysisError(
            "size: the card states no population; take size='effective', or state the number of "
            "private rows"
        )


def _sizes(
    model: Regression,
    task: Task,
    in_all: float,
    stated: float | None,
    size: str | float,
    rows: int,
) -> Sizes:
    from counterpoise.weights.diagnostics import fitted_sample_size
    from counterpoise.weights.weights import Weights

    population = None if stated is None else float(stated)
    # At the mode that the private table's own number of rows would give.
    first = _scaled(task, task.weights, (population or rows) / in_all)
    mode = find_mode(model.family, first)
    positive = task.weights > 0
    kept = task._replace(features=task.features[positive], target=task.target[positive])
    curvature = mode.curvature[: task.size, : task.size] / first.weights.sum()
    worth = fitted_sample_size(
        Weights(np.log(task.weights[positive])),
        row_gradients(model.family, mode.theta, kept),
        curvature,
    )
    # What the rows of the model are worth, with those left out for nulls worth as much.
    effective = worth.overall * in_all / float(task.weights.sum())
    if isinstance(size, str):
        known = math.inf if population is None else population
        used = {
            "combined": 1 / (1 / known + 1 / effective),
            "population": known,
            "effective": effective,
            "rows": float(rows),
        }[size]
    else:
        used = float(size)
    return Sizes(used, population, effective, len(model.made.rows))


def _replicate_modes(
    model: Regression, task: Task, mode: Mode, replicates: np.ndarray, used: float
) -> np.ndarray:
    """The mode with every replicate in the place of the weight."""
    found = []
    for replicate in range(replicates.shape[1]):
        weights = replicates[:, replicate].astype(float)
        moved = _scaled(task, weights[model.made.rows], used / weights.sum())
        found.append(find_mode(model.family, moved, mode.theta).theta)
    return np.array(found)


def _require_extra() -> None:
    try:
        import arviz_base  # noqa: F401
        import arviz_stats  # noqa: F401
    except ImportError:
        raise AnalysisError(
            "posteriors need packages that are not installed; install them by "
            "pip install 'counterpoise[bayes]'"
        ) from None
