"""What a delta would bring, said where nobody states one.

Without a delta the budget is pure, and m tables of counts that are asked for together have noise
that grows with m; with one it grows with sqrt(m). The tables of all pairs of columns stand for what
a release needs to know: the more columns there are, the more a pure budget costs. Where there are
so few that it costs nothing, nothing is said.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING

from counterpoise.errors import BudgetError, CounterpoiseWarning
from counterpoise.vault import Account, count_noise

if TYPE_CHECKING:
    from counterpoise.curation.plan import Plan

# Well below one over the number of people of any table (docs/curator.md).
USUAL_DELTA = 1e-9


def tell_of_delta(plan: Plan, account: Account | None) -> None:
    """Warn of a budget that is pure only because nobody stated a delta, if one would help."""
    # A pure account takes no other releases.
    if said := "" if account is not None and account.budget.is_pure else what_delta_brings(plan):
        warnings.warn(said, CounterpoiseWarning, stacklevel=3)


def what_delta_brings(plan: Plan) -> str:
    """What the usual delta would do for the noise of a pure budget, in a sentence, if it helps.

    >>> from counterpoise.curation.plan import plan_release
    >>> from counterpoise.schema import Column, Schema
    >>> from counterpoise.vault import Budget
    >>> columns = [Column.boolean(f"answer {number}") for number in range(20)]
    >>> what_delta_brings(plan_release(Schema(columns), Budget(1.0)))
    'delta is 0, as none is stated: ... ± 269, and at delta 1e-09 of ± 80; state ...'
    >>> what_delta_brings(plan_release(Schema(columns[:3]), Budget(1.0)))
    ''
    """
    pairs = max(1, math.comb(len(plan.schema), 2))
    # b = m / epsilon for Laplace noise, s = sqrt(m / (2 rho)) for Gaussian noise
    try:
        pure, with_delta = (
            count_noise(budget, budget.whole, pairs).deviation
            for budget in (plan.budget, replace(plan.budget, delta=USUAL_DELTA))
        )
    except BudgetError:  # noise beyond what any count can be
        return ""
    if with_delta >= pure:
        return ""
    return (
        "delta is 0, as none is stated: all pairs of columns could be counted with noise of "
        f"± {_shown(pure)}, and at delta {USUAL_DELTA:g} of ± {_shown(with_delta)}; state a delta, "
        "or 0 to leave it so"
    )


def _shown(noise: float) -> str:
    return f"{noise:,.0f}" if noise >= 10 else f"{noise:.2g}"
