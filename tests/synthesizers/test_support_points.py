"""Support points as a synthesizer: what it asks, what its rows are, and what a release makes of it.

That every rule for synthesizers holds is tested in `tests/conformance`, its query in `tests/vault`.
"""

import numpy as np
import pandas as pd
import pytest

import counterpoise as cp
from counterpoise.bundle.card import guarantee
from counterpoise.curation.plan import plan_release
from counterpoise.errors import MethodError, VaultError
from counterpoise.schema import Column, Schema
from counterpoise.synthesizers import SupportPoints, SupportPointsModel
from counterpoise.vault import Budget, Vault
from counterpoise.vault.bandwidth import select_bandwidth

SCHEMA = Schema(
    [
        Column.continuous("x", 0, 1, bins=10),
        Column.continuous("y", 0, 1, nullable=True, bins=10),
        Column.categorical("c", ["u", "v"]),
        Column.integer("i", 0, 9),
    ]
)


def rows(count: int, seed: int = 0) -> pd.DataFrame:
    """x and y go together, and so do x and c."""
    generator = np.random.default_rng(seed)
    x = generator.beta(2, 4, count)
    y = np.clip(0.8 * x + 0.1 + generator.normal(0, 0.03, count), 0, 1)
    return pd.DataFrame(
        {
            "x": x,
            "y": np.where(generator.random(count) < 0.05, np.nan, y),
            "c": np.where(generator.random(count) < x, "u", "v"),
            "i": generator.integers(0, 10, count),
        }
    )


PRIVATE = rows(1000)


def fitted(method, budget=None, table=PRIVATE) -> SupportPointsModel:
    with Vault(table, SCHEMA, budget or Budget(20.0, 1e-6), seed=2) as vault:
        return method.fit(vault, vault.budget.whole)


def test_points_tell_how_columns_go_together_which_their_pool_does_not():
    model = fitted(SupportPoints(points=60, candidates=2000))
    table = model.sample(60)
    pairs = table.dropna()
    assert np.corrcoef(pairs["x"], pairs["y"])[0, 1] > 0.5
    assert table["x"].mean() == pytest.approx(PRIVATE["x"].mean(), abs=0.05)
    assert model.rows == pytest.approx(1000, rel=0.05)


def test_asked_for_as_many_rows_as_points_it_gives_each_point_once():
    model = fitted(SupportPoints(points=40, candidates=400))
    table = model.sample(40, seed=5)
    assert table.equals(model.sample(40, seed=6))
    coded = SCHEMA.encode(table)
    assert np.array_equal(coded.codes, model.codes)
    assert coded.units == pytest.approx(model.units, abs=1e-12)
    few = SCHEMA.encode(model.sample(7, seed=1)).units
    known = {tuple(units.round(9)) for units in model.units}
    assert {tuple(units.round(9)) for units in few} <= known


def test_asked_for_more_it_draws_around_the_points_within_the_bounds():
    wide, narrow = (
        fitted(SupportPoints(points=30, candidates=400, bandwidth=width)) for width in (0.3, 1e-6)
    )
    near = SCHEMA.encode(narrow.sample(300, seed=0)).units[:, 0]
    assert np.abs(near[:, None] - narrow.units[:, 0]).min(axis=1).max() < 1e-4
    far = SCHEMA.encode(wide.sample(300, seed=0)).units[:, 0]
    assert np.abs(far[:, None] - wide.units[:, 0]).min(axis=1).max() > 0.02
    assert wide.sample(3000, seed=0)["x"].between(0, 1).all()


@pytest.mark.parametrize(
    ("options", "queries"),
    [
        ({}, ["counts", "points out of 400"]),
        ({"bandwidth": "selected"}, ["counts", "points out of", "bandwidth out of 6"]),
        ({"bandwidth": "likelihood"}, ["counts", "points out of", "bandwidth out of 6"]),
        ({"repeats": 3}, ["counts", "60 points out of"]),
        ({"sampler": "metropolis"}, ["number of rows", "by a chain"]),
        ({"norm": 1}, ["counts", "points out of"]),
        ({"width": 0.5}, ["counts", "points out of"]),
    ],
    ids=str,
)
def test_all_of_the_share_is_spent_on_what_was_asked_for(options, queries):
    method = SupportPoints(points=20, candidates=400, moves=200, **options)
    for budget in (Budget(1.0, 1e-6), Budget(1.0, 0.0, "replace")):
        with Vault(PRIVATE, SCHEMA, budget, seed=2) as vault:
            model = method.fit(vault, vault.budget.whole)
            spent = vault.ledger.epsilon_spent
            asked = [spend.query for spend in vault.ledger.spends]
        # Of one mechanism alone, epsilon by itself is the figure, and is less than it cost.
        is_alone = method.sampler == "metropolis" and budget.delta
        assert 0.5 < spent <= 1 if is_alone else spent == pytest.approx(1.0, rel=0.01)
        if method.sampler == "metropolis" and not budget.delta:
            # The number of rows is public when records are replaced.
            assert len(asked) == 1
        else:
            assert len(asked) == len(queries)
            assert all(part in query for part, query in zip(queries, asked, strict=True))
        assert model.coreset == 20 * method.repeats


def test_a_bandwidth_is_found_that_fits_the_rows():
    """Rows around points at a known distance: with a large budget the width is that distance."""
    generator = np.random.default_rng(0)
    schema = Schema([Column.continuous("x", 0, 1), Column.continuous("y", 0, 1)])
    centres = generator.uniform(0.3, 0.7, (5, 2))
    around = centres[generator.integers(0, 5, 2000)] + generator.normal(0, 0.04, (2000, 2))
    points = schema.encode(pd.DataFrame(centres, columns=["x", "y"]))
    for law in ("exponential", "laplace"):
        table = pd.DataFrame(around, columns=["x", "y"])
        with Vault(table, schema, Budget(100.0), seed=1) as vault:
            found = vault.select_bandwidth(
                points, (0.005, 0.01, 0.02, 0.04, 0.08, 0.16), vault.budget.whole, law
            )
        assert found == 0.04


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"widths": (0.1,)}, "widths"),
        ({"widths": (0.2, 0.1)}, "widths"),
        ({"widths": (0.0, 0.1)}, "widths"),
        ({"law": "gumbel"}, "law"),
        ({"points": PRIVATE}, "points"),
        ({"points": SCHEMA.encode(PRIVATE[:0])}, "some rows"),
    ],
    ids=str,
)
def test_a_bandwidth_is_not_charged_before_the_question_is_sound(change, words):
    with Vault(PRIVATE, SCHEMA, Budget(1.0, 1e-6), seed=1) as vault:
        asked = {"points": SCHEMA.encode(rows(5)), "widths": (0.1, 0.2)} | change
        with pytest.raises(VaultError, match=words):
            select_bandwidth(vault, share=vault.budget.whole, **asked)
        assert vault.ledger.spends == ()


@pytest.mark.parametrize(
    "options",
    [
        {"points": 0},
        {"sampler": "gibbs"},
        {"norm": 3},
        {"width": 0},
        {"bandwidth": "best"},
        {"bandwidth": 0.0},
        {"pool_part": 0.95},
        {"sampler": "metropolis", "moves": 10},
    ],
    ids=str,
)
def test_parameters_that_make_no_sense_are_refused(options):
    with pytest.raises(MethodError):
        SupportPoints(**options)


def test_a_release_of_fifty_rows_is_fifty_points_that_carry_their_weights():
    made = cp.release(
        PRIVATE,
        SCHEMA,
        8.0,
        1e-6,
        synthesizer="support-points",
        rows=50,
        replicates=20,
        seed=1,
        progress=False,
    )
    assert made.card["synthesizer"]["parameters"]["points"] == 50
    assert len(made.table) == 50 and "chosen_from" not in made.card
    points = made.models.synthesizer
    assert np.array_equal(made.schema.encode(made.table).codes, points.codes)
    # The weights are not forgotten: they move the points' mean to that of the rows.
    assert made.weights.std() > 0.05
    for column in ("x", "i"):
        estimate = made.mean(column)
        error = abs(estimate.value - PRIVATE[column].mean())
        plain = abs(made.table[column].mean() - PRIVATE[column].mean())
        assert error < max(plain, 0.02 * (10 if column == "i" else 1))
        low, high = estimate.interval()
        assert low < PRIVATE[column].mean() < high


def test_more_rows_than_points_are_drawn_weighed_and_chosen_as_ever():
    plan = plan_release(SCHEMA, Budget(1.0, 1e-6), "support-points", rows=5000)
    assert plan.synthesizer.points == 100
    made = cp.release(
        PRIVATE,
        SCHEMA,
        8.0,
        1e-6,
        synthesizer=SupportPoints(points=30, candidates=400),
        rows=200,
        replicates=0,
        seed=1,
        progress=False,
    )
    assert made.card["chosen_from"] == 800


def test_a_chain_is_taken_only_when_named_and_the_card_says_what_it_promises():
    options = {"rows": 20, "replicates": 0, "weights": "uniform", "progress": False}
    exact = SupportPoints(candidates=400)
    exact = cp.release(PRIVATE, SCHEMA, 1.0, 1e-6, synthesizer=exact, **options)
    assert "chain" not in guarantee(exact.card) and not exact.ledger.is_asymptotic
    method = SupportPoints(sampler="metropolis", moves=200)
    chain = cp.release(PRIVATE, SCHEMA, 1.0, 1e-6, synthesizer=method, **options)
    assert chain.ledger.is_asymptotic
    assert guarantee(chain.card).startswith("private: epsilon 1")
    assert "in the limit of a chain without end" in guarantee(chain.card)
