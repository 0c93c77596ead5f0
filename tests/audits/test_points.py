"""What chosen points and bandwidths reveal on their worst pairs, against what they are charged.

The law of a choice is known without sampling (see `exact`): the worst pair of each query reveals
all of its charge, but for rounding. Of a chain the law that it tends to is held against its charge
in the same way, and many short chains on a space of two places, which is as good as forgotten after
a few moves, are counted.
"""

import itertools

import numpy as np
import pandas as pd
import pytest

from counterpoise.schema import Column, Schema
from counterpoise.vault import Budget, PointDistance, Share, Vault, points
from counterpoise.vault.events import MetropolisDpEvent
from counterpoise.vault.metropolis import full_score
from tests.audits.audit import range_lower_bound
from tests.audits.exact import (
    BOTH,
    EVERY,
    GAUSSIAN,
    Listening,
    assert_charged,
    audit,
    budgets,
    claim,
    listen,
    loss,
    named,
    pair,
)

MIXED = Schema(
    [
        Column.continuous("x", 0, 1, nullable=True),
        Column.categorical("c", ["u", "v", "w"]),
        Column.integer("i", 0, 9),
    ]
)
# Two opposite corners of the space, where the person and another are, and something between.
CORNERS = pd.DataFrame({"x": [0.0, 1.0, None, 0.4], "c": list("uvwu"), "i": [0, 9, 4, 7]})
POOL = MIXED.encode(CORNERS)
REST = CORNERS.iloc[[2, 3, 3, 0]].reset_index(drop=True)
PERSON, OTHER = CORNERS.iloc[0].to_dict(), CORNERS.iloc[1].to_dict()
ROWS = 7.0
# Every budget in one norm, and both relations in the other and with a kernel.
CASES = [
    *((share, budget, PointDistance(2)) for share, budget in BOTH),
    *((GAUSSIAN, budget, PointDistance(1)) for budget in (budgets()[0], budgets()[3])),
    *((GAUSSIAN, budget, PointDistance(2, 0.7)) for budget in (budgets()[0], budgets()[3])),
]
EVERY_CASE = pytest.mark.parametrize(("share", "budget", "distance"), CASES, ids=named)


@EVERY_CASE
def test_every_choice_of_a_point_reveals_all_that_it_is_charged(share, budget, distance):
    tables = pair(REST, PERSON, OTHER, budget)

    def ask(vault):
        return vault.select_points(
            3, share, candidates=POOL, rows=ROWS, distance=distance, repeats=2
        )

    # The same points come out of both; what comes later is chosen in the light of them.
    for chosen in ([0, 0, 1, 3, 2, 0], [1, 0, 2, 1, 1, 3]):
        before, after = (
            listen(ask, table, MIXED, budget, Listening(choices=chosen)) for table in tables
        )
        assert before.spends == after.spends
        assert len(before.draws) == len(before.spends) == 6
        for first, second, spend in zip(before.draws, after.draws, before.spends, strict=True):
            assert_charged(loss(first, second) / claim("choice", spend), 1 - 1e-5)


@EVERY_CASE
def test_the_limit_of_a_chain_reveals_all_that_it_is_charged(share, budget, distance, monkeypatch):
    tables = pair(REST, PERSON, OTHER, budget)
    heard = []
    run = points.run_chains

    def listening(space, rows, **options):
        heard.append((rows, options["weight"], options["theta"]))
        return run(space, rows, **options)

    monkeypatch.setattr(points, "run_chains", listening)
    for table in tables:
        with Vault(table, MIXED, budget, seed=1) as vault:
            vault.select_points(
                2, share, sampler="metropolis", rows=ROWS, distance=distance, moves=4
            )
            [spend] = vault.ledger.spends
    assert type(spend.event) is MetropolisDpEvent
    assert heard[0][1:] == heard[1][1:], "the law depends on the rows by more than their scores"
    places = distance.places(POOL)
    scores = np.array(
        [
            [theta * full_score(distance, places.take(np.array(chosen)), rows, weight)
             for chosen in itertools.product(range(4), repeat=2)]
            for rows, weight, theta in heard
        ]
    )  # fmt: skip
    # The range of the log-ratio over all sets that one could look at
    assert_charged(float(np.ptp(scores[1] - scores[0])) / spend.event.epsilon, 1 - 1e-5)


TWO = Schema([Column.boolean("a")])


def chained(table: pd.DataFrame, chains: int, epsilon: float) -> np.ndarray:
    with Vault(table, TWO, Budget(10_000.0), seed=len(table)) as vault:
        share = Share(chains * epsilon, pure=True)
        answer = vault.select_points(
            1, share, sampler="metropolis", rows=5, repeats=chains, moves=30
        )
    return answer.points.codes[:, 0]


@pytest.mark.parametrize("is_halved", [False, True], ids=["as it is", "halved"])
def test_chains_are_seen_to_reveal_what_they_are_charged(is_halved, monkeypatch):
    if is_halved:
        whole = Budget.row_sensitivity
        monkeypatch.setattr(
            Budget, "row_sensitivity", lambda budget, bound: whole(budget, bound) / 2
        )
    rows = pd.DataFrame({"a": [True, False, False]})
    more = pd.concat([rows, rows[:1]], ignore_index=True)
    without, having = (chained(table, 8000, 1.0) for table in (rows, more))
    bound = range_lower_bound(without, having)
    assert bound > 1.2 if is_halved else 0.6 < bound <= 1


LINE = Schema([Column.continuous("x", 0, 1)])
# One point by itself, where a narrow density is high and a wide one is not, and a crowd, beside
# which a wide density is high and a narrow one is not.
CROWD = LINE.encode(pd.DataFrame({"x": [0.9] + [0.1] * 9_999}))
WIDTHS = (1e-7, 1e-4, 0.003)
ALONE, BESIDE = {"x": 0.9}, {"x": 0.103}


@EVERY
def test_a_selected_bandwidth_reveals_all_that_it_is_charged(share, budget):
    tables = pair(pd.DataFrame({"x": [0.5, 0.1]}), ALONE, BESIDE, budget)
    part = audit(lambda vault: vault.select_bandwidth(CROWD, WIDTHS, share), tables, LINE, budget)
    assert_charged(part, 1 - 1e-5)


@EVERY
def test_the_likeliest_bandwidth_reveals_all_that_it_is_charged(share, budget):
    tables = pair(pd.DataFrame({"x": []}, dtype=float), BESIDE, ALONE, budget)
    part = audit(
        lambda vault: vault.select_bandwidth(CROWD, WIDTHS, share, "laplace"),
        tables,
        LINE,
        budget,
    )
    assert_charged(part, 1 - 1e-9)
