"""DP-MMD: two charged looks, an embedding of relations, and a network that has it."""

import numpy as np
import pandas as pd
import pytest

from counterpoise.errors import BudgetError, MethodError
from counterpoise.networks.mixture import CodeMixture
from counterpoise.schema import Column, Schema
from counterpoise.synthesizers import DpMmd, matching
from counterpoise.synthesizers.dp_mmd import DpMmdModel
from counterpoise.synthesizers.embedding import Embedding, shrink
from counterpoise.synthesizers.shares import nearest_chances
from counterpoise.vault import Budget, Vault

SCHEMA = Schema(
    [
        Column.categorical("group", ["a", "b", "c"]),
        Column.continuous("x", 0, 10, bins=8),
        Column.continuous("y", 0, 10, bins=8, nullable=True),
        Column.boolean("ill"),
    ]
)
BUDGET = Budget(3.0, 1e-6)


def table(rows, seed=0):
    generator = np.random.default_rng(seed)
    group = generator.integers(0, 3, rows)
    x = np.clip(generator.normal(2 + 3 * group, 1.0), 0, 10)
    y = np.clip(10 - x + generator.normal(0, 1, rows), 0, 10)
    y[generator.random(rows) < 0.1] = np.nan
    ill = generator.random(rows) < 1 / (1 + np.exp(5 - x))
    return pd.DataFrame({"group": np.array(["a", "b", "c"])[group], "x": x, "y": y, "ill": ill})


def fitted(rows=3000, budget=BUDGET):
    with Vault(table(rows), SCHEMA, budget, seed=1) as vault:
        return DpMmd().fit(vault, budget.whole), vault.ledger


def chances():
    return [np.full(size, 1 / size) for size in SCHEMA.sizes]


def test_it_asks_twice():
    _, ledger = fitted(300)
    queries = [spend.query for spend in ledger.spends]
    assert len(queries) == 2
    assert queries[0].startswith("counts of") and queries[1].startswith("sums of")


def test_relations_of_numbers_categories_and_nulls_come_back():
    model, _ = fitted()
    made, truth = model.sample(20_000, seed=1), table(20_000, seed=1)
    for left, right in (("x", "y"), ("x", "ill")):
        ours, theirs = made[left].corr(made[right]), truth[left].corr(truth[right])
        assert abs(ours - theirs) < 0.2, (left, right, ours, theirs)
    ours, theirs = (each.groupby("group", observed=True)["x"].mean() for each in (made, truth))
    assert (abs(ours - theirs) < 0.7).all()
    assert abs(made["y"].isna().mean() - 0.1) < 0.03


def test_where_nothing_stands_out_columns_are_independent():
    model, _ = fitted(300, Budget(0.1, 1e-9))
    made = model.sample(20_000, seed=1)
    assert abs(made["x"].corr(made["ill"])) < 0.03


def test_in_a_wide_table_only_what_is_given_has_all_its_categories():
    many = [Column.categorical(f"c{place}", list("abcdefgh")) for place in range(60)]
    schema, chances = Schema(many), [np.full(8, 1 / 8)] * 60
    sizes = [part.shape[1] for part in Embedding.over(schema, chances, given="c3").tables]
    assert sizes[3] == 8 and max(sizes[:3] + sizes[4:]) == 1


def test_an_embedding_has_the_products_of_different_columns_and_no_others():
    embedding = Embedding.over(SCHEMA, chances())
    rows = SCHEMA.encode(table(100))
    values = np.concatenate(
        [part[rows.codes[:, place]] for place, part in enumerate(embedding.tables)], axis=1
    )
    sums = embedding(rows).sum(axis=0)
    expected = values.T @ values / 100 * embedding.is_across
    np.testing.assert_allclose(embedding.moments(sums, 100), expected, atol=1e-12)
    assert len(embedding.names) == np.triu(embedding.is_across).sum()


def test_functions_are_centred_and_of_one_size():
    embedding = Embedding.over(SCHEMA, chances())
    for chance, part in zip(chances(), embedding.tables, strict=True):
        np.testing.assert_allclose(chance @ part, 0, atol=1e-12)
        assert chance @ (part**2).sum(axis=1) == pytest.approx(1)


def test_a_column_of_one_value_is_left_out():
    schema = Schema([Column.categorical("a", ["only"]), Column.boolean("b")])
    embedding = Embedding.over(schema, [np.ones(1), np.array([0.5, 0.5])])
    assert not embedding.tables[0].any()
    assert embedding.bound(1.0) == 1


def test_rows_are_clipped_less_where_there_is_less_noise():
    embedding = Embedding.over(SCHEMA, chances())
    noisy, clear = embedding.bound(1.0), embedding.bound(1e-6)
    assert noisy == pytest.approx(np.sqrt(4 * 3))
    assert clear > 1.1 * noisy
    norms = np.linalg.norm(embedding(SCHEMA.encode(table(2000))), axis=1)
    assert norms.max() <= clear * (1 + 1e-9)


def test_many_categories_share_a_few_directions():
    schema = Schema([Column.categorical("a", list(range(500))), Column.boolean("b")])
    embedding = Embedding.over(schema, [np.full(500, 1 / 500), np.array([0.5, 0.5])])
    assert embedding.tables[0].shape[1] < 100


def test_shrinking_takes_noise_out_and_leaves_what_is_clear_of_it():
    generator = np.random.default_rng(0)
    noise = generator.normal(size=(60, 60))
    noise = 0.1 * np.triu(noise, 1)
    noise += noise.T
    direction = generator.normal(size=60)
    direction /= np.linalg.norm(direction)
    truth = 4 * np.outer(direction, direction)
    cleared = shrink(truth + noise, 0.1)
    assert np.linalg.norm(cleared - truth) < 0.5 * np.linalg.norm(noise)
    assert np.linalg.norm(shrink(noise, 0.1)) < 0.3 * np.linalg.norm(noise)


def test_nearest_chances_are_a_distribution_whatever_the_noise():
    generator = np.random.default_rng(0)
    for shares in (generator.normal(size=20), np.zeros(3), np.full(2, -5.0)):
        found = nearest_chances(shares)
        assert found.sum() == pytest.approx(1) and (found >= 0).all()


def test_marginals_are_those_of_the_rows():
    model, _ = fitted(1000)
    made = SCHEMA.encode(model.sample(50_000, seed=1)).codes
    answer = model.marginal(["ill", "group"])
    counted = np.zeros((2, 3))
    np.add.at(counted, (made[:, 3], made[:, 0]), model.rows / len(made))
    assert answer.values.shape == (2, 3)
    np.testing.assert_allclose(answer.values, counted, atol=0.02 * model.rows)


def test_a_redrawn_model_weighs_rows_by_its_single_columns():
    model, _ = fitted(1000)
    codes = SCHEMA.encode(model.sample(4000, seed=1)).codes
    same = np.ones((4000, 20))
    tables = model.redrawn_tables(codes, same, same[:, 0], np.random.default_rng(0))
    weights = tables.weights(codes, same)
    ill = (weights * (codes[:, 3] == 1)[:, None]).mean(axis=0)
    # The noise of one count, as a share of the rows, up to what a sample of twenty tells.
    assert ill.std() == pytest.approx(model.deviation / np.sqrt(2) / model.rows, rel=0.6)


def test_arrays_of_another_method_are_no_model():
    with pytest.raises(KeyError):
        DpMmdModel.from_arrays(SCHEMA, {"rows": np.array(3)})


def test_a_pure_budget_is_refused_unasked():
    budget = Budget(1.0)
    with Vault(table(50), SCHEMA, budget, seed=1) as vault:
        with pytest.raises(BudgetError, match="delta"):
            DpMmd().fit(vault, budget.whole)
        assert vault.ledger.spends == ()


@pytest.mark.parametrize("wrong", [{"counts_part": 0}, {"steps": 0}, {"rows": 1}, {"rate": -1.0}])
def test_odd_parameters_are_refused(wrong):
    with pytest.raises(MethodError, match=next(iter(wrong))):
        DpMmd(**wrong)


def wide(rows=2000, columns=40):
    """Columns that all follow one factor, and of which a label moves a few."""
    generator = np.random.default_rng(0)
    label, factor = generator.integers(0, 4, rows), generator.random((rows, 1)) < 0.5
    flipped = generator.random((rows, columns)) < 0.15
    values = factor ^ flipped
    for place in range(4):
        values[:, place] = generator.random(rows) < np.where(label == place, 0.9, 0.1)
    found = pd.DataFrame(values, columns=[f"c{place}" for place in range(columns)])
    return found.assign(label=np.array(list("abcd"))[label])


def measured_wide(given):
    table = wide()
    columns = [Column.boolean(name) for name in table.columns[:-1]]
    schema = Schema([*columns, Column.categorical("label", list("abcd"))])
    budget = Budget(100.0, 1e-6)
    with Vault(table, schema, budget, seed=1) as vault:
        return schema, matching.measure(vault, budget.whole, given=given)


def test_in_a_wide_table_a_network_heeds_what_it_is_told():
    schema, measured = measured_wide("label")
    mixture = CodeMixture(schema.sizes, 8, (32, 32), len(schema) - 1)
    generator = np.random.default_rng(0)
    parameters = matching.match(
        measured, mixture, steps=100, rows=256, rate=0.01, generator=generator
    )
    noise = matching.draw_noise(mixture, measured.chances, 2000, generator)
    codes = mixture.draw_codes(mixture.chances(parameters, noise), generator)
    is_true, is_own = codes[:, :4].astype(bool), codes[:, -1:] == np.arange(4)
    # It is 0.8 in the table; without a say of its own the label had 0.002, after so few steps.
    assert is_true[is_own].mean() - is_true[~is_own].mean() > 0.2


def test_relations_with_what_is_given_count_as_much_as_all_others():
    for given, factor in (("label", 39 / 2), (None, 1.0)):
        _, measured = measured_wide(given)
        importance, owners = measured.loss.importance, measured.embedding.owners
        of_label = owners == 40
        assert np.all(importance[np.ix_(of_label, ~of_label)] == np.float32(factor))
        assert np.all(importance[owners[:, None] == owners[None, :]] == 0)
        assert np.all(importance[np.ix_(owners == 0, owners == 1)] == 1)
        # Single columns of a wide table count no more than those of a narrower one.
        assert measured.loss.counted == 32
