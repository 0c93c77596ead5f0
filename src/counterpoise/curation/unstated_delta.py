"""What a delta would bring, said where nobody states one, and what one means that is too large.

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
# One over the number of rows of a small table: a mechanism that publishes each row with this chance
# has it as its delta.
LARGE_DELTA = 1e-3


def tell_of_delta(plan: Plan, account: Account | None, stated: float | None) -> None:
    """Warn of a budget that is pure only because nobody stated a delta, if one would help.

    And of a stated one that protects nobody.
    """
    if stated is not None:
        said = what_delta_risks(stated)
    else:
        # A pure account takes no other releases.
        is_pure = account is not None and account.budget.is_pure
        said = "" if is_pure else what_delta_brings(plan)
    if said:
        warnings.warn(said, CounterpoiseWarning, stacklevel=3)


def what_delta_risks(delta: float) -> str:
    """What a delta allows that is larger than any in use, in a sentence.

    >>> what_delta_risks(0.9)
    'delta is 0.9: whoever publishes each row with that chance keeps to it; state one far below ...'
    >>> what_delta_risks(1e-6)
    ''
    """
    if delta < LARGE_DELTA:
        return ""
    return (
        f"delta is {delta:g}: whoever publishes each row with that chance keeps to it; state one "
        f"far below one over the number of rows, such as {USUAL_DELTA:g}"
    )


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
