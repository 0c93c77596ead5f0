"""What the marginal methods keep of a table, and what they say of it."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest

from counterpoise.errors import MethodError
from counterpoise.schema import Column, Schema
from counterpoise.synthesizers import (
    Aim,
    AimModel,
    Histogram,
    Independent,
    MarginalModel,
    Marginals,
    Mst,
    PrivBayes,
)
from counterpoise.synthesizers.graphical import Domain, fit
from counterpoise.synthesizers.workload import all_cliques, candidate_weights
from counterpoise.vault import Budget, Journal, Vault

SCHEMA = Schema(
    [
        Column.categorical("a", list("xyz")),
        Column.categorical("b", list("uvw")),
        Column.categorical("c", [0, 1, 2, 3]),
        Column.boolean("d"),
        Column.boolean("e"),
    ]
)
RICH = Budget(400.0, 1e-6)


def chain(rows=6000, seed=0) -> pd.DataFrame:
    """a drives b, b drives c, c drives d; e is by itself."""
    generator = np.random.default_rng(seed)

    def follow(parent, size, strength=0.85):
        noise = generator.integers(0, size, len(parent))
        return np.where(generator.random(len(parent)) < strength, parent % size, noise)

    a = generator.choice(3, rows, p=[0.5, 0.3, 0.2])
    b, e = follow(a, 3), generator.integers(0, 2, rows)
    c = follow(b, 4)
    codes = np.column_stack([a, b, c, follow(c, 2), e])
    return SCHEMA.decode(codes, generator)


def pair_error(left: np.ndarray, right: np.ndarray) -> float:
    """Mean total variation over all two-way marginals."""
    errors = []
    for i, j in itertools.combinations(range(len(SCHEMA)), 2):
        shape = (SCHEMA.sizes[i], SCHEMA.sizes[j])
        tables = [
            np.bincount(np.ravel_multi_index((c[:, i], c[:, j]), shape), minlength=np.prod(shape))
            for c in (left, right)
        ]
        errors.append(np.abs(tables[0] / len(left) - tables[1] / len(right)).sum() / 2)
    return float(np.mean(errors))


def fitted(method, budget=RICH, table=None, seed=1):
    with Vault(chain() if table is None else table, SCHEMA, budget, seed=seed) as vault:
        return method.fit(vault, vault.budget.whole), vault.ledger


@pytest.mark.parametrize(
    "method", [Histogram(), PrivBayes(), Mst(), Aim(), Marginals()], ids=lambda m: type(m).__name__
)
def test_relations_between_columns_are_kept_when_the_budget_is_large(method):
    model, _ = fitted(method)
    made = SCHEMA.encode(model.sample(6000, seed=1)).codes
    truth = SCHEMA.encode(chain()).codes
    independent, _ = fitted(Independent())
    loose = pair_error(SCHEMA.encode(independent.sample(6000, seed=1)).codes, truth)
    assert pair_error(made, truth) < 0.02
    assert loose > 0.1


def test_a_tree_is_found_by_mst():
    model, _ = fitted(Mst(), Budget(3.0, 1e-6))
    pairs = {part.columns for part in model.measured if len(part.columns) == 2}
    assert len(pairs) == 4
    assert {("a", "b"), ("b", "c"), ("c", "d")} <= pairs


def test_marginals_are_exact_in_the_limit_and_know_their_error():
    model, _ = fitted(Marginals(degree=2), Budget(3.0, 1e-6))
    truth = pd.crosstab(chain()["a"], chain()["b"]).to_numpy()
    answer = model.marginal(("a", "b"))
    assert answer.values == pytest.approx(truth, abs=5 * answer.standard_error)
    turned = model.marginal(("b", "a"))
    assert turned.values == pytest.approx(answer.values.T)
    assert turned.standard_error == answer.standard_error
    # A margin of a measured table is a sum of its cells; several tables are pooled.
    assert model.marginal(("a",)).standard_error < 2 * answer.standard_error
    assert model.marginal(("a", "b", "c")).standard_error is None


@pytest.mark.parametrize("method", [Mst(), Aim()], ids=["mst", "aim"])
def test_rows_are_drawn_given_the_values_of_columns(method):
    model, _ = fitted(method)
    made = model.sample(3000, seed=0, given={"a": "z", "e": True})
    assert set(made["a"]) == {"z"}
    assert made["e"].all()
    truth = chain()
    wanted = (truth.loc[truth["a"] == "z", "b"] == "w").mean()
    assert (made["b"] == "w").mean() == pytest.approx(wanted, abs=0.03)
    for wrong in ({"a": "q"}, {"a": None}, {"c": "many"}):
        with pytest.raises(MethodError, match="has no value"):
            model.sample(3, given=wrong)


def test_rounding_keeps_the_counts_closer_than_plain_sampling():
    model, _ = fitted(Mst())
    expected = model.graph.marginal(("a", "b"))
    distance = {}
    for method in ("rounding", "plain"):
        made = model.sample(model.rows, seed=3, method=method)
        found = pd.crosstab(made["a"], made["b"]).to_numpy()
        distance[method] = np.abs(found - expected).sum()
    assert distance["rounding"] < 0.2 * distance["plain"]


def test_a_model_survives_as_arrays(tmp_path):
    model, _ = fitted(Aim(), Budget(1.0, 1e-6))
    np.savez(tmp_path / "model.npz", **model.to_arrays())
    with np.load(tmp_path / "model.npz", allow_pickle=False) as arrays:
        again = MarginalModel.from_arrays(SCHEMA, arrays, model.private)
    pd.testing.assert_frame_equal(again.sample(50, seed=2), model.sample(50, seed=2))
    assert again.marginal(("a", "b")).standard_error == model.marginal(("a", "b")).standard_error


def test_the_error_bounds_of_aim_hold():
    """At 95%, over 20 runs and 20 marginals; the bounds are loose, so none may fail."""
    truth = SCHEMA.encode(chain()).codes
    cliques = [c for k in (1, 2, 3) for c in itertools.combinations(SCHEMA.names, k)][:20]
    bounded = 0
    for seed in range(20):
        model, _ = fitted(Aim(), Budget(1.0, 1e-6), seed=seed)
        for clique in cliques:
            bound = model.error_bound(clique)
            if bound is None:
                continue
            bounded += 1
            exact = np.zeros(SCHEMA.shape(clique))
            np.add.at(exact, tuple(truth[:, SCHEMA.index(name)] for name in clique), 1)
            assert np.abs(model.marginal(clique).values - exact).sum() <= bound
    assert bounded > 200


@pytest.mark.parametrize("confidence", [0.0, 1.0])
def test_a_bound_is_never_certain(confidence):
    model, _ = fitted(Aim(), Budget(1.0, 1e-6))
    with pytest.raises(MethodError, match="confidence"):
        model.error_bound(("a",), confidence)


def test_a_target_draws_attention():
    weights = candidate_weights(Domain(tuple("abc"), (2, 2, 2)), [("a", "b"), ("b", "c")], "c")
    assert weights[("b", "c")] > weights[("a", "b")]
    assert weights[("c",)] == 3.0
    with pytest.raises(Exception, match="nowhere"):
        fitted(Aim(target="nowhere"))


@pytest.mark.parametrize(
    "parameters", [{"degree": 0}, {"rounds": 0}, {"rounds": -3}, {"first_part": 1.0}]
)
def test_impossible_parameters_are_refused_when_they_are_stated(parameters):
    with pytest.raises(MethodError, match=next(iter(parameters))):
        Aim(**parameters)


@pytest.mark.parametrize("method", [Aim(workload=()), Marginals(workload=((),))])
def test_an_empty_workload_is_refused_before_anything_is_spent(method):
    with Vault(chain(), SCHEMA, RICH) as vault:
        with pytest.raises(MethodError, match="workload"):
            method.fit(vault, vault.budget.whole)
        assert vault.ledger.spends == ()


def test_a_workload_is_measured_once_each():
    model, _ = fitted(Marginals(workload=(("a", "b"), ("b", "a"), ("c",))))
    assert [part.columns for part in model.measured] == [("a", "b"), ("c",)]


def test_what_was_left_out_of_a_model_claims_no_standard_error():
    model, _ = fitted(Marginals(degree=2, most_cells=20), Budget(3.0, 1e-6))
    truth = SCHEMA.encode(chain()).codes
    for clique in itertools.combinations(SCHEMA.names, 2):
        answer = model.marginal(clique)
        if answer.standard_error is not None:
            exact = np.zeros(SCHEMA.shape(clique))
            np.add.at(exact, tuple(truth[:, SCHEMA.index(name)] for name in clique), 1)
            assert answer.values == pytest.approx(exact, abs=6 * answer.standard_error)


def test_privbayes_lets_a_column_join_alone_when_parents_would_be_too_large():
    model, _ = fitted(PrivBayes(most_cells=12))
    assert model.graph.tree.cells <= 20


def test_large_cliques_are_replaced_by_their_parts():
    domain = Domain(tuple("abcd"), (10, 10, 10, 1000))
    assert all_cliques(domain, 3, 2000) == [("a", "b", "c"), ("d",)]
    assert ("a", "d") in all_cliques(domain, 3, 20_000)


def test_a_histogram_of_too_many_cells_is_refused_before_anything_is_spent():
    with Vault(chain(), SCHEMA, RICH) as vault:
        with pytest.raises(MethodError, match="cells"):
            Histogram(most_cells=10).fit(vault, vault.budget.whole)
        assert vault.ledger.spends == ()


def _coins(columns=6, rows=5000):
    """Columns of which each leans on the one before."""
    generator = np.random.default_rng(3)
    codes = [generator.random(rows) < 0.5]
    for _ in range(columns - 1):
        codes.append(generator.random(rows) < np.where(codes[-1], 0.7, 0.4))
    schema = Schema([Column.boolean(f"c{place}") for place in range(columns)])
    return pd.DataFrame(dict(zip(schema.names, codes, strict=True))), schema


def _three_way_error(method, seed):
    """The mean absolute error of all three-way counts."""
    table, schema = _coins()
    with Vault(table, schema, Budget(0.5, 1e-6), seed=seed) as vault:
        model = method.fit(vault, vault.budget.whole)
    errors = []
    for columns in itertools.combinations(schema.names, 3):
        exact = np.zeros((2, 2, 2))
        np.add.at(exact, tuple(table[name].astype(int) for name in columns), 1)
        errors.append(np.abs(model.marginal(columns).values - exact).mean())
    return np.mean(errors)


def test_a_histogram_spends_half_on_the_tables_of_three_columns():
    table, schema = _coins()
    with Vault(table, schema, Budget(1.0, 1e-6), seed=1) as vault:
        model = Histogram().fit(vault, vault.budget.whole)
        spends = vault.ledger.spends
        assert vault.ledger.epsilon_spent <= 1.0
    assert len(model.measured_columns) == 1 + math.comb(6, 3)
    assert model.measured_columns[0] == schema.names
    whole, part = (model.measured[place].scale for place in (0, 1))
    # As much for 20 tables as for one: sqrt(20) times the noise.
    assert part / whole == pytest.approx(math.sqrt(20), rel=0.01)
    assert len(spends) == 2


def test_a_histogram_counts_no_parts_where_they_would_not_pay():
    _, schema = _coins()
    assert Histogram(parts=False).parts_of(schema, is_pure=False) == ()
    assert Histogram().parts_of(schema, is_pure=True) == ()
    assert Histogram().parts_of(schema.select(schema.names[:3]), is_pure=False) == ()
    assert Histogram().parts_of(_coins(9, 10)[1], is_pure=False) == ()
    wide = Schema([*schema, Column.integer("many", 0, 15, bins=16)])
    assert Histogram().parts_of(wide, is_pure=False) == ()  # 1,024 cells


def test_parts_make_the_small_tables_of_a_histogram_better():
    """Seeded: eight runs each; of 64 cells a three-way count sums eight."""
    with_parts, without = (
        np.mean([_three_way_error(Histogram(parts=parts), seed) for seed in range(8)])
        for parts in (True, False)
    )
    assert with_parts < 0.95 * without


def test_aim_stays_within_its_memory():
    model, _ = fitted(Aim(most_cells=60))
    assert model.graph.tree.cells <= 60


def test_a_small_table_is_measured_rarely_and_well():
    few, many = (fitted(Aim(), Budget(1.0, 1e-6), chain(rows))[1] for rows in (60, 20_000))
    assert len(few.spends) < len(many.spends)


def test_aim_measures_no_table_that_noise_would_drown():
    rows = 2000
    for seed in range(3):
        model, _ = fitted(Aim(), Budget(1.0, 1e-6), chain(rows), seed=seed)
        chosen = model.measured[len(SCHEMA) :]
        # Half the mean L1 norm of the noise, sqrt(2 / pi) a cell, in rows.
        misplaced = [answer.scale * answer.values.size / np.sqrt(2 * np.pi) for answer in chosen]
        assert len(chosen) > len(SCHEMA)
        assert max(misplaced) <= 0.26 * rows  # the number of rows it knows is a noisy one


def test_rounds_of_a_small_table_leave_budget_for_one_a_column():
    budget = Budget(1.0, 1e-6)
    model, _ = fitted(Aim(), budget, chain(60))
    chosen = model.measured[len(SCHEMA)]
    assert chosen.values.size <= 4  # the cells of the smallest pair
    a_round = (1 - Aim().first_part) * budget.whole.amount / len(SCHEMA)
    assert 1 / (2 * chosen.scale**2) == pytest.approx(0.9 * a_round, rel=1e-3)


@pytest.mark.parametrize("rows", [1, 20, 60])
def test_aim_spends_its_share_and_no_more_on_a_table_of_few_rows(rows):
    for method in (Aim(), Aim(first_part=0.9), Aim(degree=1)):
        _, ledger = fitted(method, Budget(1.0, 1e-6), chain(rows))
        assert 0.999 <= ledger.epsilon_spent <= 1.0


def test_the_last_fit_of_aim_is_pulled_towards_likely_columns():
    """Also when it is read back: what its replicates are pulled towards must be the fit's."""
    model, _ = fitted(Aim(), Budget(1.0, 1e-6), chain(200))
    again = AimModel.from_arrays(SCHEMA, model.to_arrays())
    assert again.prior == model.prior == "columns"
    fits = {
        prior: fit(model.graph.domain, model.measured, total=model.graph.total, prior=prior)
        for prior in ("columns", "uniform")
    }
    apart = {
        prior: sum(
            np.abs(fits[prior].marginal(columns) - model.graph.marginal(columns)).sum()
            for columns in model.measured_columns
        )
        for prior in fits
    }
    assert apart["columns"] < 0.5 * apart["uniform"]


def test_a_stated_first_part_is_kept():
    budget = Budget(1.0, 1e-6)
    model, _ = fitted(Aim(first_part=0.5), budget, chain(60))
    spent = sum(1 / (2 * answer.scale**2) for answer in model.measured[: len(SCHEMA)])
    assert spent == pytest.approx(0.5 * budget.whole.amount, rel=1e-3)


class Interrupted(Exception):
    pass


@pytest.mark.parametrize("after", [1, 4])
def test_an_interrupted_aim_goes_on_with_the_answers_that_were_paid_for(
    tmp_path, monkeypatch, after
):
    budget, file = Budget(2.0, 1e-6), tmp_path / "journal"
    with Vault(chain(), SCHEMA, budget, journal=Journal(file, budget)) as vault:
        ask, asked = vault.counts, []

        def counts(*arguments):
            if len(asked) > after:
                raise Interrupted
            asked.append(1)
            return ask(*arguments)

        monkeypatch.setattr(vault, "counts", counts)
        with pytest.raises(Interrupted):
            Aim().fit(vault, budget.whole)
        paid = vault.ledger.spends
    assert 0 < Journal(file, budget).ledger().epsilon_spent < 2.0
    with Vault(chain(), SCHEMA, budget, journal=Journal(file, budget)) as vault:
        model = Aim().fit(vault, budget.whole)
        assert vault.ledger.spends[: len(paid)] == paid
    assert 0.99 * 2.0 <= vault.ledger.epsilon_spent <= 2.0
    assert len(model.measured) > after
    # Finished work is not paid for again, and comes out the same.
    with Vault(chain(), SCHEMA, budget, journal=Journal(file, budget)) as vault:
        spent = vault.ledger.spends
        again = Aim().fit(vault, budget.whole)
        assert vault.ledger.spends == spent
    for one, other in zip(model.measured, again.measured, strict=True):
        assert one.columns == other.columns
        np.testing.assert_array_equal(one.values, other.values)


def test_a_wide_table_of_many_values_fits_into_memory():
    """Sixty columns of a hundred values: pairs have 10^4 cells, triples 10^6."""
    generator = np.random.default_rng(0)
    schema = Schema([Column.categorical(f"x{i}", list(range(100))) for i in range(60)])
    base = generator.integers(0, 100, 2000)
    table = pd.DataFrame(
        {f"x{i}": (base + generator.integers(0, 5, 2000)) % 100 for i in range(60)}
    )
    with Vault(table, schema, Budget(1.0, 1e-6)) as vault:
        model = Aim().fit(vault, vault.budget.whole)
    assert len(model.sample(100, seed=0)) == 100
