"""Private support points: distances, scores, what is charged, and the law of what is chosen."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chisquare

from counterpoise.errors import BudgetError, VaultError
from counterpoise.schema import Column, Schema
from counterpoise.vault import Budget, Journal, PointDistance, Share, Vault, points
from counterpoise.vault.bandwidth import _parts
from counterpoise.vault.events import (
    DiscreteLaplaceDpEvent,
    ExponentialDpEvent,
    MetropolisDpEvent,
    SelfComposedDpEvent,
)
from counterpoise.vault.metropolis import GRID_PLACES, PointSets, PointSpace, full_score, run_chains
from counterpoise.vault.point_scores import Places

MIXED = Schema(
    [
        Column.continuous("x", 0, 10, nullable=True, bins=5),
        Column.categorical("c", ["u", "v", "w"], nullable=True),
        Column.ordinal("o", ["low", "middle", "high"]),
        Column.integer("i", 0, 4),
    ]
)
DISTANCES = [PointDistance(1), PointDistance(2), PointDistance(2, width=0.5), PointDistance(1, 2.0)]


def mixed_rows(rows: int, seed: int = 0) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    x = generator.uniform(0, 10, rows)
    return pd.DataFrame(
        {
            "x": np.where(generator.random(rows) < 0.2, np.nan, x),
            "c": generator.choice(np.array(["u", "v", "w", None]), rows),
            "o": generator.choice(["low", "middle", "high"], rows),
            "i": generator.integers(0, 5, rows),
        }
    )


@pytest.mark.parametrize("distance", DISTANCES, ids=str)
def test_a_distance_is_none_to_itself_the_same_back_and_one_at_the_farthest(distance):
    rows = distance.places(MIXED.encode(mixed_rows(200)))
    found = distance.between(rows, rows)
    assert np.all(np.diag(found) == 0) and np.array_equal(found, found.T)
    assert found.max() <= 1
    ends = pd.DataFrame({"x": [0.0, 10.0], "c": ["u", "v"], "o": ["low", "high"], "i": [0, 4]})
    corners = distance.places(MIXED.encode(ends))
    assert distance.between(corners, corners)[0, 1] == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("distance", DISTANCES, ids=str)
def test_what_is_no_number_is_as_far_as_can_be(distance):
    rows = distance.places(MIXED.encode(mixed_rows(3)))
    rows.coordinates[0] = math.nan
    assert (distance.between(rows, rows)[0] == 1).all()


def test_what_is_no_number_says_as_much_against_a_width_as_a_row_can():
    rows = Places(np.array([[math.nan]]), np.empty((1, 0), dtype=int), 1)
    assert _parts(rows, rows, (), (0.1, 0.2)).tolist() == [0, 0]


@pytest.mark.parametrize("distance", DISTANCES, ids=str)
def test_fast_distances_are_the_others_for_rows_that_are_the_same_too(distance):
    rows = distance.places(MIXED.encode(mixed_rows(200)))
    near = Places(rows.coordinates + 1e-7, rows.codes, rows.columns)
    for left, right in ((rows, rows), (near, rows), (rows.in_sets(5), near.in_sets(5))):
        apart = distance.nearly_between(left, right) - distance.between(left, right)
        assert np.abs(apart).max() < 2.0**-40
    assert np.all(np.diag(distance.nearly_between(rows, rows)) == 0)


@pytest.mark.parametrize("distance", DISTANCES, ids=str)
def test_what_a_row_adds_does_not_depend_on_the_rows_around_it(distance):
    """Bit for bit, or the sums of neighbouring tables would differ by more than one row's part."""
    points = distance.places(MIXED.encode(mixed_rows(37, seed=1)))
    rows = distance.places(MIXED.encode(mixed_rows(101)))
    together = distance.between(rows, points)
    widths, sizes = (0.02, 0.08, 0.32), (MIXED["c"].size,)
    alone = np.array(
        [_parts(rows.take(slice(i, i + 1)), points, sizes, widths) for i in range(101)]
    )
    for start, stop in ((0, 101), (1, 101), (3, 20), (50, 57), (100, 101)):
        part = rows.take(slice(start, stop))
        assert np.array_equal(distance.between(part, points), together[start:stop])
        assert np.array_equal(_parts(part, points, sizes, widths), alone[start:stop].sum(axis=0))


def test_distances_are_those_of_the_norms_and_the_kernel():
    ends = pd.DataFrame(
        {"x": [1.0, 4.0, None], "c": ["u", "v", None], "o": ["low"] * 3, "i": [0, 2, 0]}
    )
    coded = MIXED.encode(ends)

    def first_to(place, distance):
        places = distance.places(coded)
        return distance.between(places, places)[0, place] * distance.diameter(MIXED)

    assert first_to(1, PointDistance(1)) == pytest.approx(0.3 + 1 + 0.5)
    assert first_to(1, PointDistance(2)) == pytest.approx(math.sqrt(0.09 + 1 + 0.25))
    # Null lies in the middle, 0.5, and aside: |0.1 - 0.5| + 1/2; and 0.16 + 3/4 squared.
    assert first_to(2, PointDistance(1)) == pytest.approx(0.4 + 0.5 + 1)
    assert first_to(2, PointDistance(2)) == pytest.approx(math.sqrt(0.16 + 0.75 + 1))
    kernel = 1 / (1 + (0.09 + 1 + 0.25) / 0.5**2)
    assert first_to(1, PointDistance(2, width=0.5)) == pytest.approx(1 - kernel)
    assert PointDistance(1).diameter(MIXED) == 4
    assert PointDistance(2).diameter(MIXED) == 2


@pytest.mark.parametrize("distance", DISTANCES, ids=str)
def test_the_score_of_a_chain_that_moved_point_by_point_is_that_of_all_distances(distance):
    rows = distance.places(MIXED.encode(mixed_rows(60)))
    space = PointSpace(MIXED, distance)
    generator = np.random.default_rng(1)
    found = run_chains(
        space, rows, chains=3, points=7, weight=1 / 55, theta=40.0, sweeps=30,
        uniforms=generator.random,
    )  # fmt: skip
    places = space.places(found.sets)
    for chain in range(3):
        own = places.take(slice(7 * chain, 7 * chain + 7))
        expected = full_score(distance, own, rows, 1 / 55)
        assert found.scores[chain, -1] == pytest.approx(expected, abs=1e-12)
    assert np.all(found.accepted > 0)


def test_choosing_one_after_the_other_gains_what_the_energy_of_the_set_gains():
    """The score of a choice is the score of the set with it, up to a factor and a constant."""
    distance, rows = PointDistance(2), MIXED.encode(mixed_rows(40))
    pool = distance.places(MIXED.encode(mixed_rows(15, seed=1)))
    private = distance.places(rows)
    before = [3, 8, 8]
    sets = [pool.take(np.array([*before, place])) for place in range(15)]
    whole = np.array([full_score(distance, chosen, private, 1 / 37) for chosen in sets])
    attraction = distance.between(pool, private).sum(axis=1) / 37
    repulsion = distance.between(pool.take(np.array(before)), pool).sum(axis=0)
    # 2/(t + 1) times g, as the opening paragraph of the query has it
    ours = 2 / 4 * (repulsion / 4 - attraction)
    assert np.ptp(whole - ours) == pytest.approx(0, abs=1e-12)


LINE = Schema([Column.ordinal("a", ["0", "1", "2"])])
LINE_ROWS = pd.DataFrame({"a": ["0"] * 6 + ["1"] * 2 + ["2"] * 3})


def test_the_exact_sampler_has_the_law_of_its_exponential_mechanisms():
    """Two choices out of three candidates, 4000 times, against the enumerated law."""
    candidates = LINE.encode(pd.DataFrame({"a": ["0", "1", "2"]}))
    draws, m, epsilon = 4000, 11, 6.0
    budget = Budget(10_000.0, 0.0, "replace")
    with Vault(LINE_ROWS, LINE, budget, seed=3) as vault:
        # All pairs are repeats of a set of two, each choice with its own part of the share.
        share = Share(2 * draws * epsilon / 10, pure=True)
        answer = vault.select_points(2, share, candidates=candidates, repeats=draws)
    each = epsilon / 10
    pairs = answer.places.reshape(draws, 2)
    distances = np.abs(np.subtract.outer(np.arange(3), np.arange(3))) / 2
    attraction = distances @ np.array([6, 2, 3]) / m
    rate = each / (2 * (2 * 0.5 / m))  # epsilon / (2 D), D = r/m under replacement

    def law(scores):
        weights = np.exp(rate * (scores - scores.max()))
        return weights / weights.sum()

    first = law(-attraction)
    expected = [
        first[one] * law(distances[one] / 2 - attraction)[two]
        for one, two in itertools.product(range(3), repeat=2)
    ]
    counts = np.bincount(3 * pairs[:, 0] + pairs[:, 1], minlength=9)
    assert chisquare(counts, np.array(expected) * draws).pvalue > 0.01
    # The test would see a rate that is half or twice as large.
    assert chisquare(counts, np.full(9, draws / 9)).pvalue < 1e-6


def test_every_choice_is_pushed_away_by_all_before_it_and_pulled_by_all_rows(monkeypatch):
    """With next to no noise: the best place, set after set, by distances in whole parts."""
    # So few distances at a time that the rows come in many blocks.
    monkeypatch.setattr(points, "_BLOCK_CELLS", 100)
    private, pool = mixed_rows(60), MIXED.encode(mixed_rows(15, seed=1))
    with Vault(private, MIXED, Budget(10_000.0, 0.0, "replace"), seed=3) as vault:
        answer = vault.select_points(6, vault.budget.whole, candidates=pool, repeats=2)
    distance = PointDistance()
    places = distance.places(pool)
    attraction = distance.between(places, distance.places(MIXED.encode(private))).mean(axis=1)
    between, expected = distance.between(places, places), []
    for _ in range(6):
        repulsion = between[expected].sum(axis=0) / (len(expected) + 1)
        expected.append(int(np.argmax(repulsion - attraction)))
    assert answer.places.tolist() == expected * 2


CODES = Schema([Column.categorical("a", ["0", "1", "2"]), Column.boolean("b")])
CODE_ROWS = pd.DataFrame({"a": ["0"] * 7 + ["1"] * 2 + ["2"], "b": [True] * 6 + [False] * 4})


def test_chains_end_with_the_law_of_the_exponential_mechanism():
    """Pairs of points out of six places, 4000 chains, against the enumerated law."""
    chains, m = 4000, 10.0
    with Vault(CODE_ROWS, CODES, Budget(9_999.0), seed=5) as vault:
        share = Share(9_000.0, pure=True)
        each = share.amount / chains
        answer = vault.select_points(
            2, share, sampler="metropolis", rows=m, repeats=chains, moves=200
        )
    codes = answer.points.codes.reshape(chains, 2, 2)
    found = codes[:, 0, 0] * 2 + codes[:, 0, 1] + 6 * (codes[:, 1, 0] * 2 + codes[:, 1, 1])
    distance = PointDistance()
    every = pd.DataFrame(list(itertools.product("012", [False, True])), columns=["a", "b"])
    places, rows = (distance.places(CODES.encode(table)) for table in (every, CODE_ROWS))
    theta = each / (2 / m)  # epsilon / (2 D), D = r/m for a row more
    scores = np.array(
        [
            full_score(distance, places.take(np.array([one, two])), rows, 1 / m)
            for two, one in itertools.product(range(6), repeat=2)
        ]
    )
    expected = np.exp(theta * scores)
    expected *= chains / expected.sum()
    counts = np.bincount(found, minlength=36)
    assert chisquare(counts, expected).pvalue > 0.01
    wrong = np.exp(2 * theta * scores)
    assert chisquare(counts, wrong * chains / wrong.sum()).pvalue < 1e-4


def test_chains_on_a_grid_have_their_law_at_the_bounds_too():
    """One point on a line, with nulls: how often it is null, and at either end of the line."""
    schema = Schema([Column.continuous("x", 0, 1, nullable=True)])
    rows = pd.DataFrame({"x": [0.0] * 8 + [None] * 3})
    distance = PointDistance(1)
    private, chains, theta = distance.places(schema.encode(rows)), 4000, 4.0
    space = PointSpace(schema, distance)
    generator = np.random.default_rng(2)
    found = run_chains(
        space, private, chains=chains, points=1, weight=1 / 11, theta=theta, sweeps=300,
        uniforms=generator.random,
    )  # fmt: skip
    grid = np.arange(GRID_PLACES) / (GRID_PLACES - 1)
    values = Places(np.column_stack([grid, 0 * grid]), np.empty((len(grid), 0)), 1)
    null = Places(np.array([[0.5, 0.5]]), np.empty((1, 0)), 1)
    weigh = [
        np.exp(-2 * theta * distance.between(place, private).mean(axis=1))
        for place in (values, null)
    ]
    cells = [part.sum() * 0.9 / GRID_PLACES for part in np.array_split(weigh[0], 8)]
    expected = np.append(cells, 0.1 * weigh[1][0])
    starts = np.cumsum([0, *map(len, np.array_split(grid, 8))])
    place = np.searchsorted(starts, found.sets.grid[:, 0, 0], side="right") - 1
    counts = np.bincount(np.where(found.sets.null[:, 0, 0], 8, place), minlength=9)
    assert chisquare(counts, expected * chains / expected.sum()).pvalue > 0.01


@pytest.mark.parametrize("budget", [Budget(2000.0, 1e-6), Budget(2000.0, 0.0, "replace")], ids=str)
@pytest.mark.parametrize("sampler", ["exact", "metropolis"])
def test_points_follow_the_rows_when_the_budget_is_large(sampler, budget):
    generator = np.random.default_rng(0)
    table = pd.DataFrame(generator.normal([0.3, 0.7], 0.05, (400, 2)), columns=["x", "y"])
    schema = Schema([Column.continuous("x", 0, 1), Column.continuous("y", 0, 1)])
    pool = schema.encode(pd.DataFrame(generator.random((900, 2)), columns=["x", "y"]))
    with Vault(table, schema, budget, seed=1) as vault:
        found = vault.select_points(
            12,
            vault.budget.whole,
            sampler=sampler,
            rows=400,
            candidates=pool if sampler == "exact" else None,
            moves=6000,
        )
    assert len(found.points) == 12 and found.private is False
    assert found.points.units.mean(axis=0) == pytest.approx([0.3, 0.7], abs=0.03)
    assert found.is_asymptotic == (sampler == "metropolis")
    if sampler == "exact":
        assert np.array_equal(found.points.units, pool.units[found.places])


def test_points_are_charged_as_they_say():
    pool = LINE.encode(LINE_ROWS)
    with Vault(LINE_ROWS, LINE, Budget(1.0, 1e-6, "replace"), seed=1) as vault:
        share = vault.budget.whole.part(0.5)
        vault.select_points(2, share, candidates=pool, repeats=2)
        vault.select_points(4, share, sampler="metropolis", repeats=2, moves=40)
        exact, chain = (spend.event for spend in vault.ledger.spends)
    each = math.sqrt(8 * share.amount / 4)
    assert exact == SelfComposedDpEvent(ExponentialDpEvent(pytest.approx(each)), 4)
    each = math.sqrt(8 * share.amount / 2)
    assert chain == SelfComposedDpEvent(MetropolisDpEvent(pytest.approx(each), 40), 2)
    assert vault.ledger.epsilon_spent == pytest.approx(1.0, rel=1e-6)


def test_a_bandwidth_is_charged_as_it_says():
    with Vault(LINE_ROWS, LINE, Budget(1.0, 1e-6), seed=1) as vault:
        share = vault.budget.whole.part(0.5)
        for law in ("exponential", "laplace"):
            vault.select_bandwidth(POOL, (0.1, 0.2, 0.4, 0.8), share, law)
        chosen, noised = (spend.event for spend in vault.ledger.spends)
    assert chosen == ExponentialDpEvent(pytest.approx(math.sqrt(8 * share.amount)))
    # epsilon = D1 / b, with D1 = 3 for four widths
    each = math.sqrt(2 * share.amount)
    assert noised == DiscreteLaplaceDpEvent(pytest.approx(each / 3), 3)


def test_a_large_share_is_charged_by_its_epsilon_where_that_is_less():
    with Vault(LINE_ROWS, LINE, Budget(100.0, 1e-6, "replace"), seed=1) as vault:
        vault.select_points(1, vault.budget.whole, candidates=LINE.encode(LINE_ROWS))
        [spend] = vault.ledger.spends
    # rho times the order, not the square root of 8 rho
    assert spend.event.event.epsilon == pytest.approx(75.3, abs=0.1)
    assert 75 < vault.ledger.epsilon_spent <= 100


def test_a_ledger_with_a_chain_says_that_its_figure_is_of_the_limit():
    with Vault(LINE_ROWS, LINE, Budget(1.0, 1e-6, "replace"), seed=1) as vault:
        vault.select_points(2, vault.budget.whole.part(0.4), candidates=LINE.encode(LINE_ROWS))
        assert not vault.ledger.is_asymptotic and "ASYMPTOTIC" not in str(vault.ledger)
        vault.select_points(2, vault.budget.whole.part(0.4), sampler="metropolis", moves=10)
        assert vault.ledger.is_asymptotic and "ASYMPTOTIC" in str(vault.ledger)
        again = type(vault.ledger).from_dict(vault.ledger.to_dict())
    assert again.is_asymptotic


def test_files_are_read_in_batches_to_the_same_sums(tmp_path):
    table = mixed_rows(500)
    table.to_parquet(tmp_path / "rows.parquet")
    pool = MIXED.encode(mixed_rows(30, seed=4))
    places = []
    for storage in ("memory", "duckdb"):
        path = tmp_path / "rows.parquet"
        with Vault(path, MIXED, Budget(50.0, 1e-6), seed=1, storage=storage) as vault:
            share = vault.budget.whole
            places.append(vault.select_points(10, share, candidates=pool, rows=500).places)
    assert np.array_equal(*places)


@pytest.mark.parametrize("sampler", ["exact", "metropolis"])
def test_points_that_were_paid_for_are_given_again(tmp_path, sampler):
    budget = Budget(1.0, 1e-6, "replace")
    pool = LINE.encode(LINE_ROWS) if sampler == "exact" else None
    found = []
    for _ in range(2):
        journal = Journal(tmp_path / "journal", budget)
        with Vault(LINE_ROWS, LINE, budget, journal=journal) as vault:
            answer = vault.select_points(
                5, vault.budget.whole, candidates=pool, sampler=sampler, moves=50
            )
            found.append(answer.points.codes)
            assert len(vault.ledger.spends) == 1
    assert np.array_equal(*found)


def test_points_of_another_pool_are_another_question(tmp_path):
    budget = Budget(1.0, 1e-6, "replace")
    for spends, pool in enumerate((LINE_ROWS, LINE_ROWS[::-1]), start=1):
        journal = Journal(tmp_path / "journal", budget)
        with Vault(LINE_ROWS, LINE, budget, journal=journal) as vault:
            vault.select_points(2, vault.budget.whole.part(0.4), candidates=LINE.encode(pool))
            assert len(vault.ledger.spends) == spends


def test_points_of_a_chain_are_rows_with_the_values_and_nulls_of_their_columns():
    schema = Schema(
        [
            Column.continuous("x", 0, 10, bins=5),
            Column.categorical("c", ["u", "v", "w"]),
            Column.continuous("y", 0, 10, nullable=True, bins=5),
            Column.categorical("d", ["u", "v", "w"]),
        ]
    )
    last = GRID_PLACES - 1
    sets = PointSets(
        np.array([[[0, last], [last, 0]]]),
        np.array([[[False, False], [False, True]]]),
        np.array([[[0, 2], [1, 1]]]),
    )
    with Vault(pd.DataFrame(columns=schema.names), schema, Budget(1.0)) as vault:
        found = points._coded(vault, sets)
    assert found.units[:, 0].tolist() == [0.0, 1.0]
    assert found.units[0, 2] == 1.0
    assert found.codes.tolist() == [[0, 0, 4, 2], [4, 1, 5, 1]]


def test_only_columns_that_may_be_null_start_there():
    drawn = PointSpace(MIXED, PointDistance()).draw(50, 40, np.random.default_rng(0).random)
    assert drawn.null.any(axis=(0, 1)).tolist() == [True, False, False]


def test_a_chain_makes_no_fewer_moves_than_it_is_asked_for(monkeypatch):
    asked = []

    def watched(*arguments, **options):
        asked.append(options["sweeps"])
        return run_chains(*arguments, **options)

    monkeypatch.setattr(points, "run_chains", watched)
    with Vault(LINE_ROWS, LINE, Budget(1.0, 1e-6, "replace"), seed=1) as vault:
        vault.select_points(5, vault.budget.whole, sampler="metropolis", moves=12)
    assert asked == [3]


@pytest.mark.parametrize("sampler", ["exact", "metropolis"])
def test_a_table_without_rows_has_points_too(sampler):
    pool = MIXED.encode(mixed_rows(20)) if sampler == "exact" else None
    with Vault(mixed_rows(0), MIXED, Budget(1.0, 1e-6), seed=1) as vault:
        answer = vault.select_points(
            3, vault.budget.whole, candidates=pool, sampler=sampler, rows=1, moves=9
        )
    assert len(answer.points) == 3


POOL = LINE.encode(LINE_ROWS)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"count": 0}, "count"),
        ({"candidates": None}, "candidates"),
        ({"candidates": LINE_ROWS}, "candidates"),
        ({"candidates": CODES.encode(CODE_ROWS)}, "the vault's own schema"),
        ({"candidates": POOL.take(np.arange(0))}, "number of candidates"),
        ({"sampler": "metropolis"}, "leave them out"),
        ({"sampler": "gibbs"}, "'exact' or 'metropolis'"),
        ({"rows": None}, "rows: the number of rows is private"),
        ({"rows": 0.0}, "rows"),
        ({"rows": 1e-306}, "rows: expected a number of rows from 1 to"),
        ({"rows": 1e12}, "rows: expected a number of rows from 1 to"),
        ({"repeats": 0}, "repeats"),
        ({"moves": 1, "sampler": "metropolis", "candidates": None}, "moves"),
        ({"rows": 1e9, "sampler": "metropolis", "candidates": None}, "use 'exact'"),
        ({"distance": "euclidean"}, "PointDistance"),
    ],
    ids=str,
)
def test_what_is_wrong_with_a_question_is_said_before_it_is_charged(options, words):
    options = {"count": 4, "candidates": POOL, "rows": 11.0} | options
    with Vault(LINE_ROWS, LINE, Budget(1.0, 1e-6), seed=1) as vault:
        with pytest.raises(VaultError, match=words):
            vault.select_points(options.pop("count"), vault.budget.whole, **options)
        assert vault.ledger.spends == ()


def test_an_overspend_reads_nothing():
    with Vault(LINE_ROWS, LINE, Budget(1.0, 1e-6), seed=1) as vault:
        vault.select_points(2, vault.budget.whole, candidates=POOL, rows=11)
        with pytest.raises(BudgetError, match="overspend"):
            vault.select_points(2, vault.budget.whole, candidates=POOL, rows=11)
        assert len(vault.ledger.spends) == 1
