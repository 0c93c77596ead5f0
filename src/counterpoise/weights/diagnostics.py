"""Diagnosing weights: how many rows they leave, what their tail is like, and a plain verdict.

All is computed from the released weights alone, so it is free and may be published. It tells how
far weighting spreads or concentrates the rows; it cannot tell whether the weights are right, nor
how much privacy noise is in them. The numbers are Kish's effective sample size, its version for a
fitted model (Ghalebikesabi, Doucet, Wilde, Vollmer, Jewson and Holmes, "Bias Mitigated Learning
from Differentially Private Synthetic Data: A Cautionary Tale", 2021, appendix A.6.1), the
heaviest row's share, the shape of the tail (Vehtari et al., 2024) and the test of a finite
variance (Koopman et al., 2009).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from counterpoise.arguments import instance_of, number_array
from counterpoise.errors import MethodError
from counterpoise.weights.finite_variance import FiniteVarianceTest, exceedance_test
from counterpoise.weights.refine import log_weights_of
from counterpoise.weights.tail import find_tail, fit_tail
from counterpoise.weights.weights import Weights

Level = Literal["fine", "caution", "do not use"]
LEVELS: tuple[Level, ...] = get_args(Level)  # from good to bad

_LIGHTER = (
    "refine the weights (truncate, smooth or temper), draw more rows, or weigh by fewer features"
)
_OTHER_ROWS = "use the rows unweighted, or a synthesizer that is closer to the private table"
_SHORTER_TAIL = (
    "refine the weights (truncate or temper) and diagnose them again, or weigh by fewer features"
)
_CLOSER = (
    "draw more rows, weigh by fewer features, or take a synthesizer that is closer to the private "
    "table"
)

# Less than this of a known difference is worth a word.
LEAST_REACHED = 2 / 3

# A tail with less of the weight does not decide an estimate, whatever its shape.
LEAST_TAIL = 0.05


@dataclass(frozen=True)
class Verdict:
    """Whether to use the weights, why, and what to do about it."""

    level: Level
    reason: str
    way_out: str

    def __str__(self) -> str:
        return f"{self.level}: {self.reason}" + (f"; {self.way_out}" if self.way_out else "")


@dataclass(frozen=True)
class Diagnosis:
    """The numbers that a verdict on weights rests on.

    `tail_shape` is k-hat: minus infinity for equal weights, not a number when too few rows lie
    apart. `tail_share` is the part of the total weight that lies above the tail's threshold: what
    cutting the tail off would remove. `finite_variance` is None when there is no tail to test.
    `reached` is the part of the known difference between the tables that the weights make up for.
    """

    rows: int
    effective_sample_size: float
    largest_share: float
    tail_shape: float
    tail_share: float
    finite_variance: FiniteVarianceTest | None
    reached: float = 1.0

    @property
    def effective_fraction(self) -> float:
        """The effective sample size as a part of the rows."""
        return self.effective_sample_size / self.rows if self.rows else 0.0

    @property
    def yardstick(self) -> float:
        """What a change in an estimate is measured by: the standard error of a share of one half.

        1/(2 sqrt(effective sample size)); a shift below it drowns in the sampling error.
        """
        size = self.effective_sample_size
        return 0.5 / math.sqrt(size) if size else math.inf

    @property
    def verdict(self) -> Verdict:
        """The verdict, by these rules; the first that holds gives the reason.

        Equal weights are fine. Otherwise, not to be used:

        - the effective sample size is below 30, and below half of the rows;
        - one row has more than 10% of the weight, and more than ten times its equal part;
        - the tail counts, and its shape is above 0.7, and above 0.5 by its standard error.

        With caution:

        - the effective sample size is below a tenth of the rows, or below 200 and half of them;
        - one row has more of the weight than the yardstick 1/(2 sqrt(effective sample size));
        - the tail counts, and its shape is above 0.5, or above 1 - 1/log10(N) for fewer than 100
          rows, or the score test finds an infinite variance at the 1% level;
        - too few weights differ to see a tail at all, and the effective sample size is below
          nine tenths of the rows;
        - the weights make up for less than two thirds of the difference that is known to be there.

        A small effective sample size says that estimates are imprecise, a small fraction of the
        rows that the weights have much to correct. The tail counts when its share of the weight
        is above the yardstick, and above 5%: otherwise cutting it off would move no share by a
        standard error, or by more than that.
        """
        return _verdict(self)

    def to_dict(self) -> dict[str, Any]:
        """The diagnosis as JSON values; what is not a finite number is None."""
        test, verdict = self.finite_variance, self.verdict
        return {
            "effective_sample_size": self.effective_sample_size,
            "effective_fraction": self.effective_fraction,
            "largest_share": self.largest_share,
            "tail_shape": self.tail_shape if math.isfinite(self.tail_shape) else None,
            "tail_share": self.tail_share,
            "infinite_variance_p_value": test.score_p_value if test else None,
            "reached": self.reached,
            "verdict": {
                "level": verdict.level,
                "reason": verdict.reason,
                "way_out": verdict.way_out,
            },
        }

    def __str__(self) -> str:
        test = self.finite_variance
        size = f"{self.effective_sample_size:,.0f} of {self.rows:,} rows"
        lines = {
            "effective sample size": f"{size} ({self.effective_fraction:.1%})",
            "largest share": f"{self.largest_share:.2%}",
            "tail shape (k-hat)": _shape_in_words(self.tail_shape),
            "tail share": f"{self.tail_share:.2%}",
            "infinite variance": f"p = {test.score_p_value:.2g}" if test else "not tested",
            "verdict": str(self.verdict),
        }
        width = max(map(len, lines))
        return "\n".join(f"{name:<{width}}  {value}" for name, value in lines.items())


def diagnose(weights: Weights) -> Diagnosis:
    """What one should know of weights before using them.

    >>> generator = np.random.default_rng(0)
    >>> print(diagnose(Weights(0.3 * generator.normal(size=10_000))))
    effective sample size  9,153 of 10,000 rows (91.5%)
    largest share          0.03%
    tail shape (k-hat)     -0.08 (below 0.5 is fine)
    tail share             0.60%
    infinite variance      p = 1
    verdict                fine: the weights rest on enough rows
    >>> diagnose(Weights(5 * generator.normal(size=10_000))).verdict.level
    'do not use'
    """
    instance_of("weights", weights, Weights, "Weights; write Weights(log_weights)")
    log_weights = log_weights_of(weights)
    equal = len(log_weights) == 0 or float(np.ptp(log_weights)) <= 1e-12
    tail = None if equal else find_tail(log_weights)
    no_shape = -math.inf if equal else math.nan
    return Diagnosis(
        rows=len(weights),
        effective_sample_size=weights.effective_sample_size,
        largest_share=weights.largest_share,
        tail_shape=no_shape if tail is None else fit_tail(tail.exceedances).shape,
        tail_share=0.0 if tail is None else tail.share,
        finite_variance=None if tail is None else exceedance_test(tail.exceedances),
        reached=weights.reached,
    )


@dataclass(frozen=True, eq=False)
class FittedSize:
    """The effective sample size of a weighted fit: in all, and for each parameter."""

    overall: float
    by_parameter: np.ndarray


def fitted_sample_size(
    weights: Weights, gradients: np.ndarray, curvature: np.ndarray | None = None
) -> FittedSize:
    """How many rows from the target would fit a model as precisely as the weighted rows do.

    `gradients` has, for each row, the gradient of its unweighted loss at the fitted parameters.
    `curvature` is the weighted mean of the rows' Hessians there; without it the gradients' own
    covariance stands in, as is right for the likelihood of a model that holds.

    For a mean, the gradient being the distance from it, rows far away count more:

    >>> weights = Weights(np.log([1.0, 1.0, 2.0]))
    >>> values = np.array([0.0, 2.0, 5.0])
    >>> distances = (np.average(values, weights=weights.normalised) - values)[:, None]
    >>> round(fitted_sample_size(weights, distances, np.eye(1)).overall, 2)
    2.77
    """
    instance_of("weights", weights, Weights, "Weights; write Weights(log_weights)")
    log_weights_of(weights)
    slopes = number_array("gradients", gradients)
    if slopes.ndim != 2 or len(slopes) != len(weights) or not len(weights):
        raise MethodError("gradients: expected one row of derivatives for each weight")
    normalised = weights.normalised
    # Fitted to N weighted rows the covariance is V_w / N, to n rows of the target V_0 / n:
    #   V_w = H^-1 E_G[w^2 g g'] H^-1,   V_0 = H^-1 E_G[w g g'] H^-1,
    # so that the two are equal in trace at n = N tr V_0 / tr V_w. (The paper's equation 17 squares
    # the ratio, which holds for standard errors and not for variances.)
    target = (slopes * normalised[:, None]).T @ slopes / len(weights)
    weighted = (slopes * (normalised**2)[:, None]).T @ slopes / len(weights)
    curved = target if curvature is None else number_array("curvature", curvature)
    if curved.shape != target.shape:
        raise MethodError("curvature: expected one row and one column for each parameter")
    try:
        inverse = np.linalg.inv(curved)
    except np.linalg.LinAlgError:
        raise MethodError(
            "curvature: expected a matrix that can be inverted; leave out parameters that others "
            "determine"
        ) from None
    of_target = np.diag(inverse @ target @ inverse.T)
    of_weighted = np.diag(inverse @ weighted @ inverse.T)
    # Of a parameter that no row moves there is nothing to be worth.
    ratios = np.divide(of_target, of_weighted, out=np.zeros(len(of_target)), where=of_weighted > 0)
    return FittedSize(
        overall=float(len(weights) * of_target.sum() / of_weighted.sum()),
        by_parameter=len(weights) * ratios,
    )


def _verdict(found: Diagnosis) -> Verdict:
    if found.rows == 0:
        return Verdict("fine", "there are no rows to weigh", "")
    if found.tail_shape == -math.inf:
        return Verdict("fine", "all weights are equal", "")
    size, fraction = found.effective_sample_size, found.effective_fraction
    counted = f"weighted, the {found.rows:,} rows tell no more than {size:,.0f} equal ones would"
    heaviest = f"a single row carries {found.largest_share:.1%} of all the weight"
    shape = found.tail_shape
    heavy = f"a few very large weights decide the estimates (tail shape k-hat {shape:.2f})"
    tail_counts = found.tail_share > max(found.yardstick, LEAST_TAIL)
    if size < 30 and fraction < 0.5:
        return Verdict("do not use", counted, _OTHER_ROWS)
    if found.largest_share > max(0.1, 10 / found.rows):
        return Verdict("do not use", heaviest, _LIGHTER)
    if tail_counts and shape > 0.7 and shape - _shape_error(found) > 0.5:
        return Verdict("do not use", heavy, _SHORTER_TAIL)
    if fraction < 0.1 or (size < 200 and fraction < 0.5):
        return Verdict("caution", counted, _LIGHTER)
    if found.largest_share > found.yardstick:
        return Verdict("caution", heaviest, _LIGHTER)
    if tail_counts and shape > min(0.5, 1 - 1 / math.log10(found.rows)):
        return Verdict("caution", heavy, _SHORTER_TAIL)
    test = found.finite_variance
    if tail_counts and test is not None and test.score_p_value < 0.01:
        wild = "the largest weights differ so much that no error can be stated (infinite variance)"
        return Verdict("caution", wild, _SHORTER_TAIL)
    if math.isnan(shape) and fraction < 0.9:
        few = "too few weights differ to tell whether the largest of them are too large"
        return Verdict("caution", few, "draw more rows")
    if found.reached < LEAST_REACHED:
        short = (
            f"the weights make up for only {found.reached:.0%} of the difference that was measured "
            "between the synthetic and the private table"
        )
        return Verdict("caution", short, _CLOSER)
    return Verdict("fine", "the weights rest on enough rows", "")


def _shape_error(found: Diagnosis) -> float:
    """The standard error of k-hat: (1 + k)/sqrt(M + 10), the prior counting as ten of M rows.

    That of the largest likelihood (R. L. Smith, 1987), for the tail's usual number of rows. Of a
    hundred rows in all it is 0.3, and a shape of 0.7 may well be one with a finite variance.
    """
    size = min(found.rows / 5, 3 * math.sqrt(found.rows))
    return (1 + found.tail_shape) / math.sqrt(size + 10)


def _shape_in_words(shape: float) -> str:
    if shape == -math.inf:
        return "none, all weights are equal"
    if math.isnan(shape):
        return "not known, too few weights differ"
    return f"{shape:.2f} (below 0.5 is fine)"
