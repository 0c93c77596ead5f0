"""A tilt leaves the tables alone that the synthesizer counted, within their noise."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from counterpoise import Budget, Column, Schema, Vault
from counterpoise.synthesizers import Marginals
from counterpoise.synthesizers.graphical import Measurement
from counterpoise.weights import Moments
from counterpoise.weights.held_tables import DEVIATIONS, HeldTables
from counterpoise.weights.moment_model import MomentModel

SCHEMA = Schema([Column.continuous("x", 0, 1, bins=4), Column.boolean("y")])


def rows(count=4000, seed=0):
    generator = np.random.default_rng(seed)
    return SCHEMA.encode(
        pd.DataFrame({"x": generator.random(count), "y": generator.random(count) < 0.5})
    )


def counted(scale, columns=("x",), population=4000):
    """A synthesizer that says what it counted; what it found does not matter here."""
    measurement = Measurement(columns, np.zeros(SCHEMA.shape(columns)), scale)
    return SimpleNamespace(measured=(measurement,), rows=population)


def tilted(coded):
    weights = np.exp(1.5 * coded.units[:, 0])
    return weights / weights.mean()


def moves(coded, weights):
    cells = coded.codes[:, 0]
    return np.bincount(cells, weights, minlength=4) - np.bincount(cells, minlength=4)


def test_no_counted_cell_moves_by_more_than_its_noise():
    coded = rows()
    weights = tilted(coded)
    held = HeldTables.of(SCHEMA, coded.codes, weights, counted(scale=10.0))
    found = weights * np.exp(held.log_factors(coded.codes))
    assert np.abs(moves(coded, weights)).max() > 300
    assert np.abs(moves(coded, found)).max() == pytest.approx(DEVIATIONS * 10.0)
    # Within the cells the tilt stays as it was.
    inside = coded.codes[:, 0] == 3
    assert np.allclose(found[inside] / weights[inside], (found / weights)[inside][0])


def test_two_counts_of_a_table_know_it_better_than_one():
    coded = rows()
    one = counted(scale=10.0)
    two = SimpleNamespace(measured=one.measured * 4, rows=one.rows)
    held = HeldTables.of(SCHEMA, coded.codes, tilted(coded), two)
    assert held.tables[0].most * one.rows == pytest.approx(DEVIATIONS * 5.0)


def test_a_larger_table_knows_its_sums_too_less_well_the_more_cells_they_have():
    coded = rows()
    one, both = (
        counted(scale=10.0, columns=columns).measured[0] for columns in (("x",), ("x", "y"))
    )
    pair = SimpleNamespace(measured=(one, both), rows=4000)
    held = HeldTables.of(SCHEMA, coded.codes, tilted(coded), pair)
    most = {table.columns: table.most * 4000 for table in held.tables}
    # A cell of x is a sum of two cells of the pair: 1/100 + 1/200
    assert most["x",] == pytest.approx(DEVIATIONS * (1 / 100 + 1 / 200) ** -0.5)
    assert most["x", "y"] == pytest.approx(DEVIATIONS * 10.0)


def test_no_other_table_undoes_that_of_a_column():
    coded = rows()
    x, y = coded.codes.T
    one, both = (
        counted(scale, columns).measured[0]
        for scale, columns in ((10.0, ("y",)), (30.0, ("x", "y")))
    )
    pair = SimpleNamespace(measured=(one, both), rows=4000)
    # One cell of four gains much, and the others lose what it gains: cut off, they do not add up.
    weights = np.where((x == 3) & (y == 1), 2.0, 1.0)
    weights /= weights.mean()
    held = HeldTables.of(SCHEMA, coded.codes, weights, pair)
    found = weights * np.exp(held.log_factors(coded.codes))
    moved = np.bincount(y, found) - np.bincount(y)
    assert np.abs(moved).max() < 1.01 * DEVIATIONS * 10.0


@pytest.mark.parametrize("synthesizer", [counted(scale=1e4), SimpleNamespace(rows=4000)])
def test_nothing_is_held_where_the_noise_is_large_or_nothing_was_counted(synthesizer):
    coded = rows()
    assert not HeldTables.of(SCHEMA, coded.codes, tilted(coded), synthesizer).tables


def test_replicates_are_held_at_the_tables_of_their_own_base_weights():
    coded = rows()
    held = HeldTables.of(SCHEMA, coded.codes, tilted(coded), counted(scale=10.0))
    generator = np.random.default_rng(1)
    base = generator.gamma(4, 0.25, (len(coded), 3)).astype(np.float32)
    base /= base.mean(axis=0)
    columns = held.hold(coded.codes, base, base * tilted(coded)[:, None].astype(np.float32))
    assert np.allclose(columns.mean(axis=0), 1, atol=1e-4)
    for column in range(3):
        cells = coded.codes[:, 0]
        before = np.bincount(cells, base[:, column])
        moved = np.bincount(cells, columns[:, column]) - before
        assert np.abs(moved).max() < 1.1 * DEVIATIONS * 10.0


def test_a_relation_within_cells_is_mended_without_spoiling_the_table():
    """Two numbers that rise together within wide bins: the tilt alone moves rows between bins."""
    schema = Schema([Column.continuous(name, 0, 1, bins=2) for name in "ab"])
    generator = np.random.default_rng(0)
    a = generator.random(20_000)
    private = pd.DataFrame({"a": a, "b": np.clip(a + generator.normal(0, 0.05, 20_000), 0, 1)})
    with Vault(private, schema, Budget(20.0, 1e-6), seed=1) as vault:
        first, second = vault.budget.whole.split(0.5, 0.5)
        model = Marginals(degree=2).fit(vault, first)
        synthetic = model.sample(20_000, seed=1)
        made = Moments().fit(vault, synthetic, second, model)
    coded = schema.encode(synthetic)

    def relation(weights):
        return np.cov(synthetic.to_numpy().T, aweights=weights)[0, 1]

    def off_the_diagonal(weights):
        return float(weights[coded.codes[:, 0] != coded.codes[:, 1]].mean())

    tilt = MomentModel.from_arrays(
        schema, {name: v for name, v in made.to_arrays().items() if not name.startswith("held")}
    )
    alone, held = (m.weigh(synthetic).normalised for m in (tilt, made))
    truth = np.cov(private.to_numpy().T)[0, 1]
    assert abs(relation(held) - truth) < 0.7 * abs(relation(np.ones(len(coded))) - truth)
    assert abs(off_the_diagonal(held) - 1) < 0.3 * abs(off_the_diagonal(alone) - 1)


def test_a_model_with_held_tables_is_kept_as_arrays():
    coded = rows()
    held = HeldTables.of(SCHEMA, coded.codes, tilted(coded), counted(scale=10.0))
    again = HeldTables.from_arrays(SCHEMA, held.to_arrays())
    other = rows(seed=3).codes
    assert np.array_equal(again.log_factors(other), held.log_factors(other))


def test_a_cell_that_the_tilt_emptied_is_not_blown_up():
    coded = rows()
    weights = np.where(coded.codes[:, 0] == 0, 1e-40, 1.0)
    held = HeldTables.of(SCHEMA, coded.codes, weights / weights.mean(), counted(scale=1.0))
    assert np.isfinite(held.log_factors(coded.codes)).all()
    base = np.ones((len(coded), 2), dtype=np.float32)
    with np.errstate(all="raise", under="ignore"):
        found = held.hold(coded.codes, base, base * weights[:, None].astype(np.float32))
    assert np.isfinite(found).all()
