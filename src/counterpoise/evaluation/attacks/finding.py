"""What an attack found: risks, each with its interval, its baseline, and a sentence that says it.

A risk by itself says little, because much about a person can be guessed by whoever knows people.
So every risk stands beside its baseline: the same attack on people who are not in the private
table, as a rule. What exceeds it is what the release gives away of those who are.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field

import pandas as pd

from counterpoise.evaluation.attacks.rates import UNKNOWN, Rate

# What the attacker looks at.
TABLE, WITH_WEIGHTS = "table", "table and weights"
KNOWLEDGE = (TABLE, WITH_WEIGHTS)

NEEDS_HOLDOUT = (
    "Not available: it takes people who are not in the private table to compare with, and no "
    "hold-out was given (the release has seen every private row, so none of them can serve)."
)
# What stands behind a figure where that is not so hard; see `briefly`.
NO_HOLDOUT = (
    " There is no hold-out: this baseline knows nothing of the person, so that an excess need not "
    "be a disclosure."
)
NO_BASELINE = " There is no hold-out to compare with."


@dataclass(frozen=True)
class Risk:
    """One measure of one attack; nan where it could not be had, and `says` then says why.

    >>> risk = Risk.of("presence", "sensitivity", TABLE, Rate(0.4, 0.3, 0.5), Rate(0.1, 0.0, 0.2),
    ...     "Two in five.")
    >>> risk.exceeds_baseline, Risk.missing("presence", "precision", TABLE, "No.").exceeds_baseline
    (True, False)
    """

    attack: str
    measure: str
    columns: str
    value: float
    low: float
    high: float
    baseline: float
    baseline_low: float
    baseline_high: float
    says: str

    @classmethod
    def of(
        cls, attack: str, measure: str, columns: str, risk: Rate, baseline: Rate, says: str
    ) -> Risk:
        """A risk from its rate and that of its baseline."""
        ends = (risk.value, risk.low, risk.high, baseline.value, baseline.low, baseline.high)
        return cls(attack, measure, columns, *ends, says)

    @classmethod
    def missing(cls, attack: str, measure: str, columns: str, says: str) -> Risk:
        """A risk that could not be had."""
        return cls.of(attack, measure, columns, UNKNOWN, UNKNOWN, says)

    @property
    def exceeds_baseline(self) -> bool:
        """Whether all of its interval is above all of its baseline's."""
        return self.low > self.baseline_high


@dataclass(frozen=True)
class Finding:
    """The risks of one attack; of a membership attack the ROC curves as well.

    `roc` has, for each of "table" and "table and weights", the false and the true positive rates
    at every threshold.
    """

    attack: str
    risks: tuple[Risk, ...]
    roc: dict[str, pd.DataFrame] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def missing(cls, attack: str, measures: tuple[str, ...], says: str) -> Finding:
        """An attack that could not be made."""
        risks = [
            Risk.missing(attack, measure, columns, says)
            for columns in KNOWLEDGE
            for measure in measures
        ]
        return cls(attack, tuple(risks))

    def to_frame(self) -> pd.DataFrame:
        """A line for every risk."""
        return pd.DataFrame([asdict(risk) for risk in self.risks])


def percent(share: float) -> str:
    """A share as a reader has it.

    >>> percent(0.1234), percent(0.0004), percent(0.0)
    ('12%', '0.04%', '0%')
    """
    if share != 0 and abs(share) < 0.0095:
        return f"{100 * share:.1g}%"
    return f"{100 * share:.0f}%"


def compared(risk: Rate, baseline: Rate) -> str:
    """A verdict in words on a risk and its baseline, whose intervals are compared.

    >>> compared(Rate(0.4, 0.3, 0.5), Rate(0.1, 0.0, 0.2))
    'more than by chance'
    """
    if math.isnan(risk.value) or math.isnan(baseline.value):
        return "not to be compared"
    if risk.low > baseline.high:
        return "more than by chance"
    if risk.high < baseline.low:
        return "less than the baseline"
    return "no more than chance explains"


def briefly(says: str) -> str:
    """What a figure says, where what a hold-out is needed for is said of all of them at once.

    >>> briefly(f"It is 2%.{NO_HOLDOUT}"), briefly(NEEDS_HOLDOUT)
    ('It is 2%.', 'Not available without a hold-out.')
    """
    if says == NEEDS_HOLDOUT:
        return "Not available without a hold-out."
    return says.removesuffix(NO_HOLDOUT).removesuffix(NO_BASELINE)
