"""Paid bounds: what one noisy histogram says of the range of a column, whatever its shape."""

import datetime
import warnings

import numpy as np
import pandas as pd
import pytest

from counterpoise.errors import CounterpoiseWarning
from counterpoise.schema import Column, Schema, Spelling
from counterpoise.vault import Budget, Vault
from counterpoise.vault.bounds import _provisional_column, clear_cells
from counterpoise.vault.counting import CountNoise, count_noise
from counterpoise.vault.events import DiscreteLaplaceDpEvent, GaussianDpEvent

GAUSSIAN = CountNoise("gaussian", 20.0, GaussianDpEvent(20.0))
LAPLACE = CountNoise("laplace", 12.0, DiscreteLaplaceDpEvent(1 / 12, 1))
CONTINUOUS = _provisional_column(Column.continuous("x"))


def histogram(values):
    coded = Schema([CONTINUOUS]).encode(pd.DataFrame({"x": values}))
    return np.bincount(coded.codes[:, 0], minlength=CONTINUOUS.size)[: CONTINUOUS.cells]


def found(values, noise=GAUSSIAN, draws=100):
    """The ranges that are found, over many draws of the noise."""
    exact, generator = histogram(values), np.random.default_rng(0)
    edges = CONTINUOUS.bins
    ranges = []
    for _ in range(draws):
        draw = generator.normal if noise.law == "gaussian" else generator.laplace
        noised = exact + np.round(draw(0, noise.scale, len(exact))).astype(np.int64)
        cells = clear_cells(noised, noise)
        ranges.append(cells and (edges[cells[0]], edges[cells[1] + 1]))
    return ranges


def mostly_zero(rows=5000, part=0.1):
    generator = np.random.default_rng(1)
    amounts = generator.lognormal(8, 1.6, rows)
    return np.where(generator.random(rows) < part, amounts, 0.0)


@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE], ids=["gaussian", "laplace"])
def test_amounts_beside_a_spike_of_zeros_are_found_in_sum(noise):
    values = mostly_zero()
    amounts, exact = values[values > 0], histogram(values)
    # Zeros are clear of the noise by far, and no cell of the amounts is.
    alone = noise.exceeded_by_chance(len(exact), 0.01)
    assert np.sum(exact > 1.1 * alone) == 1
    ranges = found(values, noise)
    kept = np.array([np.mean(amounts <= high) for _, high in ranges])
    assert np.mean(kept > 0.7) >= 0.95
    assert np.mean([high <= 2.0**20 for _, high in ranges]) >= 0.97


def test_nulls_count_towards_no_bound_and_the_last_cells_do():
    top = 2.0**40 - 1
    table = pd.DataFrame({"x": [None] * 4000 + [-top] * 2000 + [5.0] * 2000})
    for sign in (1, -1):
        with Vault(table * sign, Schema([Column.continuous("x")]), Budget(5.0, 1e-6)) as vault:
            answer = vault.bounds("x", vault.budget.whole)
        assert [answer.minimum, answer.maximum][::sign] == [-(2.0**40) * sign, 8.0 * sign]
    nulls = pd.DataFrame({"x": [None] * 4000 + [5.0] * 2000})
    with Vault(nulls, Schema([Column.continuous("x")]), Budget(5.0, 1e-6)) as vault:
        answer = vault.bounds("x", vault.budget.whole)
    assert (answer.minimum, answer.maximum) == (4.0, 8.0)


def test_noise_alone_is_taken_for_rows_as_seldom_as_stated():
    assert sum(each is not None for each in found([], draws=1000)) <= 20
    assert sum(each is not None for each in found([], LAPLACE, draws=1000)) <= 20


def test_a_spike_alone_does_not_reach_beyond_its_own_cell():
    for values, bounds in (
        ([0.0] * 5000, (-(2.0**-20), 2.0**-20)),
        ([5.0] * 5000, (4.0, 8.0)),
        ([-3.0] * 5000, (-4.0, -2.0)),
    ):
        ranges = found(values, draws=300)
        # An empty cell next to the spike is taken for rows now and then; one octave is no harm.
        assert np.mean([each == bounds for each in ranges]) >= 0.93


def test_a_lognormal_keeps_nearly_all_of_its_rows():
    values = np.random.default_rng(2).lognormal(10, 1, 5000)
    for low, high in found(values):
        assert np.mean((values >= low) & (values <= high)) > 0.97
        assert high <= 2**20


def test_both_sides_of_zero_are_found():
    values = np.random.default_rng(3).normal(0, 100, 5000)
    for low, high in found(values):
        assert low in (-256.0, -512.0)
        assert high in (256.0, 512.0)


def asked(values, column):
    """The bounds that a vault finds, and its ledger."""
    schema = Schema([column]).pay("x")
    with Vault(pd.DataFrame({"x": values}), schema, Budget(1.0, 1e-6), seed=1) as vault:
        share = vault.budget.whole.part(0.2)
        found = vault.bounds("x", share)
        return found, vault.ledger, count_noise(vault.budget, share).event


def test_bounds_cost_one_contingency_table_whatever_is_made_of_it():
    for values in (mostly_zero(), [5.0] * 3000):
        _, ledger, event = asked(values, Column.continuous("x"))
        assert [(spend.query, spend.event) for spend in ledger.spends] == [("bounds of x", event)]


def test_a_range_from_zero_begins_at_zero():
    bounds, _, _ = asked(mostly_zero(20_000), Column.continuous("x"))
    assert bounds.minimum == 0.0
    assert 2.0**12 <= bounds.maximum <= 2.0**18
    bounds, _, _ = asked(-mostly_zero(20_000), Column.continuous("x"))
    assert bounds.maximum == 0.0


@pytest.mark.parametrize("column", [Column.continuous("x"), Column.integer("x")])
def test_nothing_but_zeros_is_warned_of_and_leaves_some_room(column):
    with pytest.warns(CounterpoiseWarning, match="nothing but zeros"):
        bounds, _, _ = asked([0] * 5000, column)
    assert (bounds.minimum, bounds.maximum) == (-1, 1)


def test_ordinary_columns_are_not_warned_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bounds, _, _ = asked([0, 1] * 2500, Column.integer("x"))
        assert (bounds.minimum, bounds.maximum) == (0, 2)
        bounds, _, _ = asked(["2023-05-05"] * 5000, Column.date("x"))
        assert bounds.minimum == datetime.date(2023, 1, 1)
        bounds, _, _ = asked([170.0] * 5000, Column.continuous("x"))
        assert (bounds.minimum, bounds.maximum) == (128.0, 256.0)


def test_bounds_are_paid_for_in_the_spelling_of_the_table(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x\n" + "05/12/2023\n" * 3000 + "31/12/2021\n" * 3000)
    column = Column.date("x", spelling=Spelling("%d/%m/%Y"))
    for storage in ("memory", "duckdb"):
        schema = Schema([column]).pay("x")
        with Vault(path, schema, Budget(1.0, 1e-6), seed=1, storage=storage) as vault:
            learnt = vault.learn_domain(vault.budget.whole.part(0.2))
            assert learnt["x"] == Column.date(
                "x", "2021-01-01", "2024-01-01", sources=learnt["x"].sources
            )
            counted = vault.counts([("x",)], vault.budget.whole.part(0.5))[0]
            assert (counted.values > 2000).sum() == 2
