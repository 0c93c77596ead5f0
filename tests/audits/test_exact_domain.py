"""What the domain is paid for, by its exact law: bounds, categories and their threshold, bins.

The same as `test_exact` for the queries that complete a schema. What their noise cannot hide, a
value that one person alone has, is held against the delta that is charged, by adding up the tail
of the noise; and what they publish has to follow from the noised numbers alone.
"""

import datetime
import math

import numpy as np
import pandas as pd
import pytest

from counterpoise.errors import BudgetError, VaultError
from counterpoise.schema import Column, Schema
from counterpoise.vault import ADD_REMOVE, Budget, Share, Vault
from counterpoise.vault.categories import _threshold
from tests.audits.exact import (
    EVERY,
    EVERY_BUDGET,
    GAUSSIAN,
    PURE,
    Listening,
    Saying,
    assert_charged,
    audit,
    claim,
    is_replace,
    listen,
    loss,
    named,
    pair,
)

ALL = 1 - 1e-9


@EVERY
def test_bounds_reveal_all_that_they_are_charged(share, budget):
    part = audit(
        lambda vault: vault.bounds("x", share),
        pair(pd.DataFrame({"x": [3] * 500}), {"x": 100}, {"x": -7}, budget),
        Schema([Column.integer("x")]).pay("x"),
        budget,
    )
    assert_charged(part, ALL)


OPEN = Schema([Column.categorical("x")]).pay("x")


@EVERY_BUDGET
def test_categories_that_both_tables_have_reveal_all_that_they_are_charged(budget):
    part = audit(
        lambda vault: vault.categories("x", GAUSSIAN, 1e-7),
        pair(pd.DataFrame({"x": ["a"] * 50 + ["b"] * 50}), {"x": "a"}, {"x": "b"}, budget),
        OPEN,
        budget,
    )
    assert_charged(part, ALL)


def passing(scale: float, rows: int, threshold: int) -> float:
    """P(rows + Z >= threshold) for discrete Gaussian Z, by adding it up."""
    reach = np.arange(-math.ceil(40 * scale), math.ceil(40 * scale) + 1)
    weights = np.exp(-(reach**2) / (2 * scale**2))
    return float(weights[rows + reach >= threshold].sum() / weights.sum())


@EVERY_BUDGET
@pytest.mark.parametrize("delta", [1e-7, 1e-3, 0.04])
@pytest.mark.parametrize("rho", [0.005, 0.5])
def test_values_of_one_person_alone_pass_as_rarely_as_delta_says(budget, delta, rho):
    budget = Budget(50.0, 0.5, budget.neighbours, budget.max_rows_per_person)
    share = Share(rho, pure=False)
    heard = listen(
        lambda vault: vault.categories("x", share, delta),
        pd.DataFrame({"x": ["a"] * 50}),
        OPEN,
        budget,
    )
    [spend], [draw], threshold = heard.spends, heard.draws, heard.answer.threshold
    assert spend.delta == delta
    rows = budget.max_rows_per_person
    sides = 2 if is_replace(budget) else 1  # a replaced person has values on both sides

    def failing(threshold: int) -> float:
        """The chance that any of them is listed; each of the person's rows may be a value."""
        together = passing(draw.scale, rows, threshold)
        apart = 1 - (1 - passing(draw.scale, 1, threshold)) ** rows
        return sides * max(together, apart)

    assert failing(threshold) <= delta
    # And hardly less: a person of several rows is charged as if each could pass with all of them.
    spare = 2 if rows == 1 else 2 + math.ceil(draw.scale * 1.1)
    assert failing(threshold - spare) > delta


@pytest.mark.parametrize("delta", [math.nextafter(1e-200, 1), 1e-100, 0.5, 0.9, 1 - 1e-9])
@pytest.mark.parametrize("scale", [0.01, 3.0])
def test_thresholds_are_above_one_person_whatever_the_delta(scale, delta):
    """The tails of the discrete Gaussian are bounded by those of the continuous one from 1 on."""
    threshold = _threshold(scale, delta, 1, ADD_REMOVE)
    assert 2 <= threshold <= 2 + math.ceil(31 * scale)
    assert passing(scale, 1, threshold) <= delta


def test_a_list_that_noise_would_drown_is_refused_before_it_is_charged():
    with Vault(pd.DataFrame({"x": ["a"]}), OPEN, Budget(1.0, 1e-6), seed=1) as vault:
        with pytest.raises(BudgetError, match="too small"):
            vault.categories("x", Share(1e-40, pure=False), 1e-9)
        assert vault.ledger.spends == ()


@pytest.mark.parametrize("delta", [0.0, -1e-9, 5e-324, 1e-200, 1.0, 2.0, math.nan])
def test_a_delta_that_is_none_is_refused_before_it_is_charged(delta):
    with Vault(pd.DataFrame({"x": ["a"]}), OPEN, Budget(1.0, 1e-6), seed=1) as vault:
        with pytest.raises(VaultError, match="a delta between"):
            vault.categories("x", vault.budget.whole.part(0.5), delta)
        assert vault.ledger.spends == ()


@EVERY_BUDGET
def test_a_category_is_listed_by_its_noisy_count_alone(budget):
    table = pd.DataFrame({"x": ["a"] * 50 + ["b"] * 60})

    def found(noise: Listening):
        def ask(vault):
            return vault.categories("x", GAUSSIAN, 1e-7)

        return listen(ask, table, OPEN, budget, noise).answer

    threshold = found(Listening()).threshold
    for high, low, listed in ((-1, -2, ()), (0, -1, ("a",)), (1, 0, ("a", "b"))):
        heights = threshold + np.array([high, low])
        assert found(Saying(lambda size, heights=heights: heights)).values == listed


@pytest.mark.parametrize("share", [GAUSSIAN.part(0.01), PURE.part(0.1)], ids=named)
def test_a_bound_stands_where_chance_hardly_ever_does(share):
    """A noisy count has to exceed what the largest of all empty cells does in 1 of 100 tables."""
    schema = Schema([Column.integer("x")]).pay("x")
    budget = Budget(50.0, 0.0 if share.pure else 1e-6)

    def heard(noise: Listening):
        table = pd.DataFrame({"x": [3] * 1000})
        return listen(lambda vault: vault.bounds("x", share), table, schema, budget, noise)

    [draw] = heard(Listening()).draws
    heights = np.arange(0, math.ceil(60 * draw.scale))
    exponents = heights / draw.scale if share.pure else (heights / draw.scale) ** 2 / 2
    weights = np.exp(-exponents)
    tails = weights[::-1].cumsum()[::-1] / (2 * weights.sum() - weights[0])
    needed = int(np.flatnonzero(draw.exact.size * tails <= 0.01)[0])

    def largest(height: int):
        """The upper bound when one cell is surely occupied, and a later one has `height`."""
        counts = np.zeros(draw.exact.size, dtype=int)
        counts[50], counts[70] = 10**6, height
        return heard(Saying(lambda size: counts)).answer.maximum

    assert largest(0) < largest(10**6)
    assert largest(math.floor(0.9 * needed) - 1) == largest(0)
    assert largest(math.ceil(1.4 * needed) + 1) == largest(10**6)


def test_the_domain_costs_its_share_and_its_delta_whatever_is_open():
    open_columns = [Column.categorical("a"), Column.categorical("b"), Column.integer("c")]
    schema = Schema([*open_columns, Column.boolean("d")]).pay("a").pay("b").pay("c")
    table = pd.DataFrame({"a": ["x"] * 900, "b": ["y"] * 900, "c": [5] * 900, "d": [True] * 900})
    heard = listen(
        lambda vault: vault.learn_domain(GAUSSIAN, 1e-7), table, schema, Budget(50.0, 1e-6)
    )
    assert len(heard.spends) == len(heard.draws) == 3
    # rho = mu^2 / 2, in equal parts
    rhos = [claim("gaussian", spend) ** 2 / 2 for spend in heard.spends]
    assert rhos == pytest.approx([GAUSSIAN.amount / 3] * 3)
    assert [spend.delta for spend in heard.spends] == pytest.approx([5e-8, 5e-8, 0.0])


@EVERY
def test_fine_cells_reveal_all_that_they_are_charged(share, budget):
    """One record is one count in each open column, and one more in a group where it has a number.

    A number that is null is in no group, so it reveals less.
    """
    columns = [
        Column.continuous("x", -1, 1),
        Column.integer("y", 0, 900, nullable=True),
        Column.integer("few", 0, 9),
        Column.date("z", datetime.date(2000, 1, 1), datetime.date(2020, 1, 1)),
        Column.categorical("city", [f"c{place}" for place in range(300)], other="c0"),
        Column.ordinal("grade", range(200), nullable=True),
    ]
    days = [datetime.date(2010, 1, 1) + datetime.timedelta(days) for days in range(400)]
    days = pd.to_datetime(days * 50)
    rest = pd.DataFrame({"x": 0.5, "y": 7, "few": 1, "z": days, "city": "c1", "grade": 100})
    person = {"x": -0.3, "y": 300, "few": 2, "z": pd.Timestamp(2001, 1, 1)}
    other = {"x": 0.9, "y": 800, "few": 3, "z": pd.Timestamp(2019, 1, 1)}
    person |= {"city": "not listed", "grade": None}
    other |= {"city": "c299", "grade": 3}
    before, after = (
        listen(
            lambda vault: vault.choose_cells(share.part(0.9), share.part(0.1)),
            table,
            Schema(columns),
            budget,
        )
        for table in pair(rest, person, other, budget)
    )
    assert before.spends == after.spends
    assert len(before.spends) == len(before.draws) == (2 if is_replace(budget) else 3)
    for spend, first, second in zip(before.spends, before.draws, after.draws, strict=True):
        assert_charged(loss(first, second) / claim(first.law, spend), ALL)


@pytest.mark.parametrize("said", [20, 300, 30_000])
def test_cells_are_chosen_by_noised_numbers_alone(said):
    """The noise says how many rows there are and where; the table is another."""

    def chosen(rows: int, value: float):
        says = Saying(lambda size: np.full(size, said))
        names = [f"c{place}" for place in range(300)]
        schema = Schema([Column.continuous("x", 0, 1000), Column.categorical("c", names)])
        table = pd.DataFrame({"x": np.full(rows, value), "c": names[int(value) % 300]})
        budget = Budget(1.0, 1e-6)
        shares = budget.whole.part(0.9), budget.whole.part(0.1)
        return listen(lambda vault: vault.choose_cells(*shares), table, schema, budget, says)

    first, second = chosen(40, 3.0), chosen(5000, 700.0)
    assert first.answer == second.answer
    assert first.spends == second.spends
    assert len(first.spends) == (1 if said == 20 else 3)


@pytest.mark.parametrize("said", [10, 300, 30_000])
def test_bins_are_chosen_by_the_noisy_number_of_rows(said):
    """The noise says how many rows there are, and the table has another number."""

    def bins(rows: int, noise: Listening) -> int:
        schema = Schema([Column.continuous("x", 0, 1)])
        table = pd.DataFrame({"x": [0.5] * rows})
        share = Share(0.01, pure=False)
        heard = listen(
            lambda vault: vault.choose_bins(share), table, schema, Budget(1.0, 1e-6), noise
        )
        return heard.answer["x"].cells

    says = [Saying(lambda size: np.full(size, said)) for _ in range(2)]
    assert bins(3000, says[0]) == bins(20, says[1]) == bins(said, Listening())
    assert bins(10, Listening()) < bins(300, Listening()) < bins(30_000, Listening())
