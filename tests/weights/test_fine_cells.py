"""Shapes in the replicates: pieces move by their errors, bins keep their totals."""

import numpy as np
import pandas as pd
import pytest

import counterpoise as cp
from counterpoise.schema import Column, Grouping, Schema, Shape
from counterpoise.vault import Budget, Vault
from counterpoise.weights import Moments, Uniform, moments
from counterpoise.weights.features import Linear, Squares
from counterpoise.weights.fine_cells import FineCells, RedrawnShape
from counterpoise.weights.knowledge import plausible_variances
from counterpoise.weights.replicates import replicate_weights
from counterpoise.weights.standardise import Standardised

SHAPE = Shape(
    (0.0, 10.0, 20.0, 50.0, 100.0),
    (0.4, 0.2, 0.3, 0.1),
    pieces=(0, 1, 2, 2),
    errors=(0.04, 0.02, 0.0),
    slopes=(0.0, 0.0, 0.3),
)
SCHEMA = Schema([Column.continuous("x", 0, 100, bins=(0, 20, 100), shape=SHAPE)])


def rows(count=4000):
    codes = np.repeat([0, 1], [int(0.6 * count), count - int(0.6 * count)])[:, None]
    return SCHEMA.decode(codes, np.random.default_rng(0))


def redrawn(table, count=400, resample=None):
    base = np.ones((len(table), count))
    fine = FineCells.of(SCHEMA, table)
    fresh = base if resample is None else resample
    return fine.redraw(base, fresh, base[:, 0], np.random.default_rng(1))


def test_pieces_move_by_their_errors_and_bins_keep_their_totals():
    table = rows()
    made, x = redrawn(table), table["x"].to_numpy()
    np.testing.assert_allclose(made[x < 20].sum(axis=0), (x < 20).sum())
    shares = made[x < 10].sum(axis=0) / (x < 20).sum()
    # d(p0 / (p0 + p1)) = (p1 dp0 - p0 dp1) / (p0 + p1)^2
    expected = np.hypot(0.2 * 0.04, 0.4 * 0.02) / 0.6**2
    assert shares.mean() == pytest.approx(2 / 3, abs=0.01)
    assert shares.std() == pytest.approx(expected, rel=0.15)


def test_a_piece_leans_to_one_side_or_the_other():
    table = rows()
    made, x = redrawn(table), table["x"].to_numpy()
    means = (made[x >= 20] * x[x >= 20, None]).sum(axis=0) / made[x >= 20].sum(axis=0)
    assert means.std() > 1.5
    assert means.mean() == pytest.approx(x[x >= 20].mean(), abs=0.7)


def test_a_piece_that_leans_far_keeps_its_rows_and_has_most_of_them_at_one_end():
    shape = Shape((0.0, 50.0, 100.0), (0.5, 0.5), 0.0, (0, 1), (0.0, 0.0), (2.0, 0.0))
    schema = Schema([Column.continuous("x", 0, 100, bins=(0, 100), shape=shape)])
    table = schema.decode(np.zeros((4000, 1), dtype=int), np.random.default_rng(0))
    base = np.ones((len(table), 400))
    fine = FineCells.of(schema, table)
    made = fine.redraw(base, base.copy(), np.ones(len(table)), np.random.default_rng(1))
    x = table["x"].to_numpy()
    inside = made[x < 50]
    # t / sinh(t) e^(t (2u - 1)) has the integral one, whatever t is.
    np.testing.assert_allclose(inside.sum(axis=0), (x < 50).sum(), rtol=0.1)
    below = inside[x[x < 50] < 25].sum(axis=0) / inside.sum(axis=0)
    # e^t / (1 + e^t) of the rows lie below the middle, of t ~ N(0, 2^2); a line has three quarters.
    leaning = np.random.default_rng(2).normal(0, 2, 100_000)
    assert below.std() == pytest.approx(np.std(1 / (1 + np.exp(-leaning))), rel=0.1)
    assert below.max() > 0.9


def test_a_fresh_private_sample_moves_the_shape():
    table = rows()
    x = table["x"].to_numpy()
    exact = Schema(
        [
            Column.continuous(
                "x",
                0,
                100,
                bins=(0, 20, 100),
                shape=Shape(SHAPE.edges, SHAPE.shares, 0.0, SHAPE.pieces, (0.0,) * 3, (0.0,) * 3),
            )
        ]
    )
    fine = FineCells.of(exact, table)
    base = np.ones((len(table), 1))
    fresh = np.where(x < 10, 1.2, 1.0)[:, None]
    made = fine.redraw(base, fresh, base[:, 0], np.random.default_rng(1))
    assert made[x < 10].mean() > 1.03
    assert made[(x >= 10) & (x < 20)].mean() < 0.97


def test_categories_of_a_group_move_by_their_deviations():
    grouping = Grouping((0, 1, 1), (0.5, 0.3, 0.2), (0.01, 0.03, 0.02))
    schema = Schema([Column.categorical("job", ["cook", "baker", "smith"], grouping=grouping)])
    table = pd.DataFrame({"job": np.repeat(["cook", "baker", "smith"], [500, 300, 200])})
    base = np.ones((1000, 400))
    made = FineCells.of(schema, table).redraw(base, base, base[:, 0], np.random.default_rng(0))
    np.testing.assert_allclose(made[:500], 1)
    shares = made[500:800].sum(axis=0) / 500
    assert shares.mean() == pytest.approx(0.6, abs=0.01)
    expected = np.hypot(0.2 * 0.03, 0.3 * 0.02) / 0.5**2
    assert shares.std() == pytest.approx(expected, rel=0.15)


@pytest.mark.parametrize("left", [0.0, 1e-42])
def test_a_bin_of_which_nothing_is_left_stays_as_it_was(left):
    """In single precision next to nothing cannot be scaled up again."""
    fine = FineCells.of(SCHEMA, rows())
    factors = np.array([[1.0], [1.0], [left], [1.0]])
    base = np.ones((4000, 1), dtype=np.float32)
    made = fine.weights(base, (RedrawnShape(factors, None),))
    assert made == pytest.approx(np.ones((4000, 1)))


class Steady:
    """A synthesizer's model that would come out the same again."""

    schema, measured_columns = SCHEMA, (("x",),)

    def redrawn_tables(self, codes, resample, weights, generator):
        return self

    def weights(self, codes, base):
        return base


def test_replicates_draw_shapes_again():
    """Without them only the rows of the synthetic table would move a share within a bin."""
    table = rows()
    inside = table["x"].to_numpy() < 10
    model = Uniform().fit(None, table, None)
    with_shapes, without = (
        replicate_weights(model, table, 200, population=4000, synthesizer=synthesizer, seed=1)[
            inside
        ]
        .mean(axis=0)
        .std()
        for synthesizer in (Steady(), None)
    )
    assert with_shapes > 2 * without


def test_weights_know_a_column_to_its_fine_cells(monkeypatch):
    told = []

    def spied(*arguments):
        told.append(arguments[-1])
        return plausible_variances(*arguments)

    monkeypatch.setattr(moments, "plausible_variances", spied)
    table = rows()
    with Vault(table, SCHEMA, Budget(1.0, 1e-6), seed=1) as vault:
        Moments().fit(vault, table, vault.budget.whole, Steady())
    [fine] = told
    assert [column.name for column in fine.columns] == ["x"]
    coded = SCHEMA.encode(table)
    features = Standardised.over(Linear().over(coded), coded)
    known, to_bins = (
        plausible_variances(features, np.eye(1), coded, Steady(), each)[0]
        for each in (fine, FineCells())
    )
    assert known < to_bins


def test_rows_that_are_coded_or_have_no_shape_stay():
    table = rows(100)
    assert FineCells.of(SCHEMA, SCHEMA.encode(table)).columns == ()
    plain = Schema([Column.continuous("x", 0, 100)])
    assert FineCells.of(plain, table).columns == ()


def test_features_of_a_number_are_spread_over_its_rows_whatever_the_bounds():
    pay = np.random.default_rng(0).lognormal(9, 0.5, 5000)
    spreads = []
    for wide in (1, 1000):
        schema = cp.Schema([cp.Column.continuous("pay", 0, 1e5 * wide)])
        made = cp.release(pd.DataFrame({"pay": pay}), schema, 2.0, 1e-9, replicates=0, seed=1)
        features = (Linear() + Squares()).over(made.schema.encode(made.table))
        values = features(made.schema.encode(pd.DataFrame({"pay": pay})))
        assert values.min() >= 0 and values.max() <= 1
        spreads.append(values[:, 0].std())
    assert min(spreads) > 0.08


@pytest.mark.parametrize("scale", [1.0, 50.0])
def test_intervals_of_a_skewed_mean_hold_it(scale):
    held = []
    for seed in range(8):
        pay = np.random.default_rng(seed).lognormal(8, 1, 4000)
        schema = cp.Schema([cp.Column.continuous("pay", 0, 2e5 * scale), cp.Column.boolean("ill")])
        table = pd.DataFrame({"pay": pay, "ill": pay > 4000})
        made = cp.release(table, schema, 1.0, 1e-9, replicates=30, seed=seed, progress=False)
        low, high = made.mean("pay").interval()
        held.append(low <= pay.mean() <= high)
        assert high - low < 1.2 * pay.mean()
    assert np.mean(held) >= 0.75
