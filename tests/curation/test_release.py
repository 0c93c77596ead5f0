import json
import math
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import counterpoise as cp
from counterpoise.curation.best_synthesizer import best_synthesizer
from counterpoise.curation.plan import WEIGHTS_FRACTION, plan_release
from counterpoise.errors import BudgetError, BundleError, MethodError, SchemaError
from counterpoise.synthesizers import Aim
from counterpoise.vault import Budget
from counterpoise.weights import Moments, Uniform
from counterpoise.weights.features import Linear, Products, Squares


def test_a_release_spends_its_budget_and_says_so(table, schema):
    release = cp.release(table, schema, epsilon=1.0, delta=1e-6)
    assert 0.99 <= release.ledger.epsilon_spent <= 1.0
    assert release.private
    assert release.card["synthesizer"]["method"] == "aim"
    assert release.card["weights"]["method"] == "moments"
    stages = [spend.stage for spend in release.ledger.spends]
    assert stages == sorted(stages, key=["domain", "synthesizer", "weights"].index)
    assert set(stages) == {"domain", "synthesizer", "weights"}


def test_the_card_says_how_the_release_was_made(table, schema):
    release = cp.release(table, schema, 1.0, 1e-6, rows=50, target="age", replicates=4, seed=1)
    card = json.loads(json.dumps(release.card, allow_nan=False))
    assert card["synthesizer"]["parameters"]["target"] == "age"
    expected = {"target": "age", "blocks": None, "questions": []}
    assert card["weights"]["parameters"] == expected
    assert card["weights"]["verdict"]["level"] in ("fine", "caution", "do not use")
    assert card["population"] == pytest.approx(len(table), abs=150)
    assert not card["population_is_public"]
    assert card["rows"] == 50
    assert card["replicates"]["count"] == 4
    assert card["replicates"]["scale"] == pytest.approx(0.25 / release.replicate_part**2)
    assert card["seeded"]
    assert card["model"] == {"saved": True, "reason": None}
    assert card["versions"]["numpy"] == np.__version__
    assert {"python", "scipy", "duckdb", "opendp", "dp-accounting"} < set(card["versions"])


def test_the_parameters_of_recipes_are_told_with_their_class(table, schema):
    weights = Moments(blocks=(Linear() + Squares(), Products("age")))
    release = cp.release(table, schema, 1.0, 1e-6, weights=weights, rows=30, replicates=0)
    blocks = release.card["weights"]["parameters"]["blocks"]
    assert [block["class"] for block in blocks] == ["Sum", "Products"]
    assert [part["class"] for part in blocks[0]["recipes"]] == ["Linear", "Squares"]
    assert "age" in json.dumps(blocks[1])


def test_the_number_of_rows_is_public_when_records_are_replaced(table, schema):
    release = cp.release(table, schema, 1.0, 1e-6, neighbours="replace", rows=30, replicates=2)
    assert release.card["population"] == len(table)
    assert release.card["population_is_public"]


def test_replicates_average_to_one_and_scatter_around_the_weights(table, schema):
    release = cp.release(table, schema, 1.0, 1e-6, rows=300, replicates=7, seed=3)
    assert release.replicates.shape == (300, 7)
    assert release.replicates.mean(axis=0) == pytest.approx(np.ones(7), abs=1e-4)
    # A row is left out of all seven with a chance of exp(-7).
    assert (release.replicates.std(axis=1) > 0).mean() > 0.95
    assert release.mean("age").standard_error > 0


def test_no_replicates_on_request(table, schema):
    release = cp.release(table, schema, 1.0, 1e-6, rows=30, replicates=0)
    assert release.replicates is None
    assert release.card["replicates"] is None


@pytest.mark.parametrize("replicates", [-1, 2.0, True])
def test_an_impossible_number_of_replicates_is_refused(schema, replicates):
    with pytest.raises(MethodError, match="replicates"):
        cp.release("nowhere.csv", schema, 1.0, 1e-6, replicates=replicates)


def test_a_relation_comes_back_that_the_synthesizer_leaves_out_with_weights_and_without():
    generator = np.random.default_rng(0)
    x = generator.uniform(size=4000)
    private = pd.DataFrame({"x": x, "y": generator.uniform(size=4000) < x})
    schema = cp.Schema([cp.Column.continuous("x", 0, 1), cp.Column.boolean("y")])
    made = cp.release(
        private, schema, 2.0, 1e-6, synthesizer="independent", target="y", replicates=0, seed=0
    )
    truth = np.corrcoef(private["x"], private["y"])[0, 1]
    plain = np.corrcoef(made.table["x"], made.table["y"])[0, 1]
    covariance = np.cov(made.table["x"], made.table["y"], aweights=made.weights)
    weighted = covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1])
    drawn = made.models.synthesizer.sample(4000, seed=1)
    assert abs(np.corrcoef(drawn["x"], drawn["y"])[0, 1]) < 0.1 < truth
    assert weighted == pytest.approx(truth, abs=0.1)
    assert plain == pytest.approx(weighted, abs=0.03)


def test_a_target_goes_to_every_method_that_takes_one(schema):
    plan = plan_release(schema, Budget(1.0, 1e-6), target="age")
    assert plan.synthesizer.target == plan.weighter.target == "age"
    plan = plan_release(schema, Budget(1.0, 1e-6), Aim(target="age"), target="age")
    assert plan.synthesizer.target == plan.weighter.target == "age"
    plan = plan_release(schema, Budget(1.0, 1e-6), Aim(target="sex"), Moments(target="age"))
    assert (plan.synthesizer.target, plan.weighter.target) == ("sex", "age")
    with pytest.raises(SchemaError, match="agee"):
        plan_release(schema, Budget(1.0, 1e-6), target="agee")
    with pytest.raises(MethodError, match="target"):
        plan_release(schema, Budget(1.0, 1e-6), "mst", "uniform", target="age")
    with pytest.raises(MethodError, match="expected the name of a column"):
        plan_release(schema, Budget(1.0, 1e-6), target=["age"])


def test_a_second_target_that_differs_is_refused_and_not_forgotten(schema):
    for synthesizer in ("aim", "mst"):
        with pytest.raises(MethodError, match=r"Moments has a target of its own, 'sex'"):
            plan_release(
                schema, Budget(1.0, 1e-6), synthesizer, Moments(target="sex"), target="age"
            )
    with pytest.raises(MethodError, match=r"Aim has a target of its own, 'sex'"):
        plan_release(schema, Budget(1.0, 1e-6), Aim(target="sex"), "moments", target="age")


def test_a_method_that_is_more_than_its_name_is_not_had_by_name(schema):
    with pytest.raises(MethodError, match=r"log density ratio.*Oracle\(log_ratio\)"):
        plan_release(schema, Budget(1.0, 1e-6), weights="oracle")
    with pytest.raises(MethodError, match="did you mean") as refused:
        plan_release(schema, Budget(1.0, 1e-6), weights="oracel")
    assert "'oracle'" not in str(refused.value)
    assert "'moments'" in str(refused.value)


def test_a_class_in_the_place_of_a_method_is_refused(schema):
    with pytest.raises(MethodError, match=r"write Moments\(\)"):
        plan_release(schema, Budget(1.0, 1e-6), weights=Moments)
    with pytest.raises(MethodError, match=r"write Aim\(\)"):
        plan_release(schema, Budget(1.0, 1e-6), Aim)


@pytest.mark.parametrize("seed", [1.5, "1", -1, True])
def test_a_seed_that_is_none_is_refused_before_anything_is_read(schema, seed):
    with pytest.raises(MethodError, match="seed: expected a whole number from 0"):
        cp.release("nowhere.csv", schema, 1.0, 1e-6, seed=seed)


def test_new_rows_are_not_drawn_with_a_seed_that_is_none(table, schema):
    made = cp.release(table, schema, 1.0, synthesizer="independent", rows=20, replicates=0)
    with pytest.raises(MethodError, match="seed"):
        made.sample(5, seed=1.5)


def test_other_weights_come_with_a_verdict_of_their_own(table, schema, tmp_path):
    made = cp.release(table, schema, 2.0, 1e-6, rows=300, replicates=5, seed=1)
    halved = np.where(np.arange(300) < 150, 0.0, made.weights)
    redrawn = np.where(np.arange(300)[:, None] < 150, 0.0, made.replicates)
    other = made.reweighted(halved, redrawn)
    assert other.weights.mean() == pytest.approx(1.0)
    assert other.replicates.mean(axis=0) == pytest.approx(np.ones(5), abs=1e-5)
    assert other.weights[150:] / made.weights[150:] == pytest.approx(
        np.full(150, other.weights[150] / made.weights[150])
    )
    kept = other.table.iloc[150:]
    mean = other.use_weights().mean("age")
    assert mean.value == pytest.approx(np.average(kept["age"], weights=halved[150:]))
    assert mean.standard_error > 0
    # They are made of replicates that go a part of the way, unless somebody says otherwise.
    part = made.replicate_part
    assert 0 < part <= 1 and other.replicate_part == part
    whole = made.reweighted(halved, redrawn, part=1).use_weights()
    assert whole.mean("age").standard_error == pytest.approx(part * mean.standard_error)
    assert made.reweighted(halved, redrawn[:, :4]).replicate_part == 1
    with pytest.raises(MethodError, match=r"part: expected a number from 0\.001 to 1"):
        made.reweighted(halved, redrawn, part=0)
    size = halved.sum() ** 2 / (halved**2).sum()
    assert other.card["weights"]["effective_sample_size"] == pytest.approx(size)
    assert other.card["weights"]["reweighted"]
    assert other.card["ledger"] == made.card["ledger"]
    heavy = made.reweighted(np.where(np.arange(300) == 0, 1e6, 1.0))
    assert heavy.card["weights"]["verdict"]["level"] == "do not use"
    assert heavy.replicates is None
    assert heavy.card["replicates"] is None
    loaded = cp.load(other.save(tmp_path / "out"))
    assert loaded.weights == pytest.approx(other.weights)
    with pytest.raises(MethodError, match="weights were replaced"):
        loaded.sample(5)


@pytest.mark.parametrize(
    ("weights", "replicates", "words"),
    [
        (np.ones(7), None, "weights: expected a weight for every row"),
        (np.ones((20, 2)), None, "weights: expected a weight for every row"),
        (np.full(20, np.nan), None, "weights: expected weights .not their logarithms"),
        (np.full(20, -1.0), None, "weights: expected weights .not their logarithms"),
        (np.zeros(20), None, "some above zero"),
        (["many"] * 20, None, "weights: expected an array of numbers"),
        (np.ones(20), np.ones((7, 3)), "replicates: expected a line of weights"),
        (np.ones(20), np.ones(20), "replicates: expected a line of weights"),
        (np.ones(20), np.eye(20)[:, :3] * 0, "replicates: .*some above zero"),
    ],
)
def test_weights_that_are_none_are_refused(table, schema, weights, replicates, words):
    rows = schema.restore(table.iloc[:20]).assign(weight=1.0)
    made = cp.Release(rows, schema, card={})
    with pytest.raises(MethodError, match=words):
        made.reweighted(weights, replicates)


def test_the_split_is_the_weights_part_of_what_is_shared(schema):
    plan = plan_release(schema, Budget(1.0, 1e-6), split=0.5)
    assert plan.weights_share.amount == pytest.approx(plan.synthesizer_share.amount)
    default = plan_release(schema, Budget(1.0, 1e-6))
    assert default.split == WEIGHTS_FRACTION
    for split in (0, 1, -0.1, True):
        with pytest.raises(MethodError, match="split"):
            plan_release(schema, Budget(1.0, 1e-6), split=split)


@pytest.mark.parametrize("weights", ["logistic", "logistic-outputs"])
def test_weights_that_need_delta_are_refused_before_the_table_is_opened(schema, weights):
    with pytest.raises(BudgetError, match=r"delta > 0: state a delta.* or choose 'moments'; in Py"):
        cp.release("nowhere.csv", schema, 1.0, weights=weights)


def test_a_release_looks_like_the_private_table(table, schema):
    release = cp.release(table, schema, 100.0, 1e-6, rows=20_000, replicates=0, seed=0)
    made = release.table
    assert list(made.columns) == [*schema.names, "weight"]
    assert (made["sex"] == "F").mean() == pytest.approx((table["sex"] == "F").mean(), abs=0.02)
    assert made["age"].mean() == pytest.approx(table["age"].mean(), abs=1.5)
    assert made["grade"].isna().mean() == pytest.approx(table["grade"].isna().mean(), abs=0.02)
    assert release.weights.mean() == pytest.approx(1.0)


def test_the_default_number_of_rows_is_about_that_of_the_private_table(table, schema):
    release = cp.release(table, schema, epsilon=20.0, delta=1e-6)
    assert len(release.table) == pytest.approx(len(table), abs=40)


def test_a_seed_repeats_a_release_and_stamps_it(table, schema):
    first, second = (cp.release(table, schema, 1.0, 1e-6, seed=4) for _ in range(2))
    pd.testing.assert_frame_equal(first.table, second.table)
    assert not first.private
    assert "NOT PRIVATE" in repr(first)
    assert not cp.release(table, schema, 1.0, 1e-6).table.equals(first.table)


def test_a_pure_budget_makes_a_pure_release(table, schema):
    release = cp.release(table, schema, epsilon=1.0)
    assert release.ledger.budget.is_pure
    assert 0.99 <= release.ledger.epsilon_spent <= 1.0


def test_a_draft_is_refused_until_its_values_are_accepted(table, schema, tmp_path):
    path = tmp_path / "table.csv"
    table.to_csv(path, index=False)
    draft = cp.draft_schema(path)
    with pytest.raises(SchemaError, match=r"sex\.enum"):
        cp.release(path, draft, 1.0, 1e-6)
    for column in draft.names:
        draft = draft.accept(column)
    assert len(cp.release(path, draft, 1.0, 1e-6, rows=30).table) == 30


def test_what_is_missing_is_refused_unless_it_is_marked_as_paid(table, schema):
    open_schema = schema.replace(cp.Column.integer("age"))
    with pytest.raises(SchemaError, match="age"):
        cp.release(table, open_schema, 1.0, 1e-6)
    release = cp.release(table, open_schema.pay("age"), 8.0, 1e-6, rows=30)
    assert release.schema["age"].is_complete
    assert release.ledger.spends[0].stage == "domain"
    assert release.schema["age"].bins is not None or release.schema["age"].cells <= 64
    assert 0.99 * 8 <= release.ledger.epsilon_spent <= 8


def test_paid_categories_keep_the_whole_within_the_budget(table, schema):
    paid = schema.replace(cp.Column.categorical("sex")).pay("sex")
    release = cp.release(table, paid, 8.0, 1e-6, rows=30)
    assert set(release.schema["sex"].categories) == {"F", "M", "other"}
    ledger = release.ledger
    assert ledger.delta_set_aside == pytest.approx(1e-7)
    assert 0.99 * 8 <= ledger.epsilon_spent <= 8
    with pytest.raises(BudgetError, match="delta > 0"):
        cp.release(table, paid, 8.0)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("rows", [1, 4])
def test_both_neighbouring_relations_and_persons(table, schema, neighbours, rows):
    release = cp.release(
        table, schema, 2.0, 1e-6, neighbours=neighbours, max_rows_per_person=rows, rows=10
    )
    budget = release.ledger.budget
    assert budget == Budget(2.0, 1e-6, neighbours, rows)


def test_schemas_are_taken_as_path_dict_or_value(table, schema, tmp_path):
    schema.write(tmp_path / "schema.json")
    for given in (schema, schema.to_dict(), str(tmp_path / "schema.json")):
        assert cp.release(table, given, 1.0, 1e-6, rows=10).schema.names == schema.names


def test_progress_is_told_in_order(table, schema):
    told = []
    cp.release(table, schema, 1.0, 1e-6, rows=10, progress=lambda *step: told.append(step))
    assert [part for _, part in told] == sorted(part for _, part in told)
    assert told[-1] == ("done", 1.0)


@pytest.mark.parametrize("name", ["weight", "Weight", "weight_12"])
def test_a_column_called_weight_is_refused(name):
    schema = cp.Schema([cp.Column.continuous(name, 0, 1)])
    with pytest.raises(MethodError, match="rename"):
        cp.release(pd.DataFrame({name: [0.5]}), schema, 1.0)
    fine = cp.Schema([cp.Column.continuous("weight_kg", 0, 1)])
    cp.release(pd.DataFrame({"weight_kg": [0.5]}), fine, 1.0)


@pytest.mark.parametrize("rows", [0, -1, 2.5, True])
def test_an_impossible_number_of_rows_is_refused(table, schema, rows):
    with pytest.raises(MethodError, match="rows"):
        cp.release(table, schema, 1.0, rows=rows)


def test_an_unknown_method_is_refused_with_the_nearest(table, schema):
    with pytest.raises(MethodError, match="independent"):
        cp.release(table, schema, 1.0, synthesizer="independant")
    with pytest.raises(MethodError, match="uniform"):
        cp.release(table, schema, 1.0, weights="unifrom")


class Costly(Uniform):
    """Uniform weights that claim a share."""

    is_free = False


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("weighter", [Uniform(), Costly()], ids=["free", "costly"])
def test_shares_of_the_stages_add_up_to_the_whole(schema, delta, weighter):
    plan = plan_release(schema, Budget(1.0, delta), "independent", weighter)
    shares = [
        plan.domain_share,
        plan.cells_share,
        plan.rows_share,
        plan.synthesizer_share,
        plan.weights_share,
    ]
    spent = math.fsum(share.amount for share in shares if share is not None)
    assert spent == pytest.approx(Budget(1.0, delta).whole.amount)
    assert (plan.weights_share is None) == weighter.is_free


def test_small_numbers_between_generous_bounds_have_no_rows_where_nobody_is():
    children = np.random.default_rng(3).poisson(1.2, 6000).clip(0, 8)
    table = pd.DataFrame({"children": children, "owner": children > 1})
    schema = cp.Schema([cp.Column.integer("children", 0, 30), cp.Column.boolean("owner")])
    drawn = [
        cp.release(table, schema, 0.5, 1e-9, synthesizer="aim", replicates=0, seed=seed).table
        for seed in range(3)
    ]
    assert np.mean([each["children"].var() for each in drawn]) < 2 * children.var()


def test_small_numbers_keep_a_code_each_where_rows_outweigh_the_noise():
    values = np.tile(np.arange(12), 40_000)
    schema = cp.Schema([cp.Column.integer("month", 0, 11)])
    release = cp.release(pd.DataFrame({"month": values}), schema, 4.0, 1e-6, rows=10)
    assert release.schema["month"].cells == 12
    assert release.schema["month"].shape is None


def test_bins_follow_the_number_of_rows_where_none_are_stated():
    schema = cp.Schema(
        [
            cp.Column.continuous("open", 0, 1),
            cp.Column.continuous("stated", 0, 1, bins=7),
            cp.Column.integer("few", 0, 7),
        ]
    )
    sizes = []
    for rows in (200, 50_000):
        table = pd.DataFrame({name: np.linspace(0, 1, rows) for name in schema.names})
        release = cp.release(table, schema, 1.0, 1e-6, rows=10)
        assert release.schema["stated"].cells == 7
        assert release.schema["few"].cells == 8
        assert release.ledger.spends[0].query == "number of rows"
        sizes.append(release.schema["open"].cells)
    assert sizes[0] < 10 < sizes[1] <= 32


def test_quantiles_of_skewed_money_survive_bounds_a_hundred_times_too_wide():
    generator = np.random.default_rng(0)
    table = pd.DataFrame({"pay": generator.lognormal(9.5, 1, 20_000), "ill": True})
    schema = cp.Schema([cp.Column.continuous("pay", 0, 5e7), cp.Column.boolean("ill")])
    made = cp.release(table, schema, 1.0, 1e-9, replicates=0, fine=True, seed=1)
    truth, found = (
        frame["pay"].quantile([0.1, 0.5, 0.9]).to_numpy() for frame in (table, made.table)
    )
    assert np.abs(found - truth).max() / (truth[2] - truth[0]) < 0.03
    assert made.table["pay"].mean() == pytest.approx(table["pay"].mean(), rel=0.15)
    assert [spend.query for spend in made.ledger.spends][:3] == [
        "number of rows",
        "rough cells of pay",
        "fine cells of pay",
    ]


def test_few_rows_get_equal_bins_and_the_synthesizer_what_fine_cells_would_cost():
    table = pd.DataFrame({"x": np.linspace(0, 1, 40), "y": np.linspace(0, 1, 40)})
    schema = cp.Schema([cp.Column.continuous("x", 0, 1), cp.Column.continuous("y", 0, 1)])
    made = cp.release(
        table, schema, 1.0, 1e-6, rows=10, replicates=0, fine=True, neighbours="replace"
    )
    assert not any("fine cells" in spend.query for spend in made.ledger.spends)
    assert isinstance(made.schema["x"].bins, int)
    assert made.schema["x"].shape is None
    assert 0.99 <= made.ledger.epsilon_spent <= 1.0


def test_the_number_of_rows_is_free_when_it_is_public():
    schema = cp.Schema([cp.Column.continuous("x", 0, 1)])
    table = pd.DataFrame({"x": np.linspace(0, 1, 5000)})
    release = cp.release(table, schema, 1.0, 1e-6, neighbours="replace", rows=10)
    assert "number of rows" not in [spend.query for spend in release.ledger.spends]
    assert release.schema["x"].cells > 10
    assert 0.99 <= release.ledger.epsilon_spent <= 1.0


def test_auto_takes_a_method_that_the_budget_allows(schema):
    assert best_synthesizer(schema, Budget(1.0, 1e-6)) == "aim"
    assert best_synthesizer(schema, Budget(1.0)) == "privbayes"
    assert best_synthesizer(schema.select(["sex", "grade"]), Budget(1.0)) == "histogram"


def _booleans(columns):
    return cp.Schema([cp.Column.boolean(f"c{place}") for place in range(columns)])


def test_auto_counts_the_full_table_where_rows_outweigh_its_noise():
    schema, budget = _booleans(8), Budget(1.0, 1e-6)
    assert best_synthesizer(schema, budget, 10_000) == "histogram"
    assert best_synthesizer(schema, budget, 500) == "aim"
    assert best_synthesizer(schema, Budget(0.05, 1e-6), 10_000) == "aim"
    assert best_synthesizer(schema, Budget(1.0), 10_000) == "histogram"


def test_auto_leaves_a_full_table_that_its_parts_would_be_quieter_than():
    """Of ten binary columns a three-way table sums 128 cells; there are 120 such tables."""
    many, budget = 10_000_000, Budget(1.0, 1e-6)
    assert best_synthesizer(_booleans(9), budget, many) == "histogram"
    assert best_synthesizer(_booleans(10), budget, many) == "aim"


def test_auto_assumes_few_rows_where_their_number_is_not_known():
    schema = _booleans(8)
    assert best_synthesizer(schema, Budget(1.0, 1e-6)) == "aim"
    assert best_synthesizer(schema, Budget(10.0, 1e-6)) == "histogram"


def test_auto_counts_few_cells_at_any_noise():
    assert best_synthesizer(_booleans(6), Budget(0.01)) == "histogram"
    assert best_synthesizer(_booleans(7), Budget(0.01)) == "privbayes"


def test_auto_counts_more_cells_at_any_noise_where_it_counts_their_parts_too():
    """Gaussian noise, and four columns or more."""
    noisy = Budget(0.01, 1e-6)
    assert best_synthesizer(_booleans(7), noisy) == "histogram"
    assert best_synthesizer(_booleans(8), noisy) == "aim"
    three = cp.Schema([cp.Column.integer(name, 0, 4, bins=5) for name in "abc"])
    assert best_synthesizer(three, noisy) == "aim"


def test_auto_counts_no_more_cells_than_replicates_move():
    wide = cp.Schema([cp.Column.integer(name, 0, 63, bins=64) for name in "ab"])
    wider = cp.Schema([*wide, cp.Column.boolean("c")])
    assert best_synthesizer(wide.select(["a"]), Budget(1.0, 1e-6), 10_000_000) == "histogram"
    assert best_synthesizer(wider, Budget(1.0, 1e-6), 10_000_000) == "aim"


def test_a_method_that_needs_delta_is_refused_before_the_table_is_opened(schema):
    with pytest.raises(BudgetError, match="delta > 0"):
        cp.release("nowhere.csv", schema, 1.0, synthesizer="aim")


def test_importing_the_package_imports_nothing_heavy():
    heavy = "{'numpy', 'pandas', 'scipy', 'duckdb', 'opendp', 'sklearn'}"
    check = f"import counterpoise, sys; print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True)
    assert done.stdout.strip() == "set()", done.stdout + done.stderr


def test_a_release_is_a_value(table, schema):
    release = cp.release(table, schema, 1.0, 1e-6, rows=10)
    with pytest.raises(AttributeError):
        release.table = None
    assert np.isfinite(release.weights).all()


def test_a_release_made_by_hand_claims_nothing_that_no_ledger_says(table, schema):
    made = cp.Release(schema.restore(table).assign(weight=1.0), schema, card={})
    assert repr(made) == "<Release: 400 rows x 4 columns, no ledger>"
    assert not made.private
    with pytest.raises(BundleError, match="no ledger"):
        made.ledger  # noqa: B018


def test_a_narrow_column_is_found_between_bounds_that_are_far_away():
    generator = np.random.default_rng(1)
    table = pd.DataFrame({"born": generator.normal(1975, 15, 20_000).astype(int)})
    schema = cp.Schema([cp.Column.integer("born", -30_000, 70_000)])
    made = cp.release(table, schema, 1.0, 1e-9, replicates=0, seed=1)
    truth, found = (
        frame["born"].quantile([0.1, 0.5, 0.9]).to_numpy() for frame in (table, made.table)
    )
    assert np.abs(found - truth).max() / (truth[2] - truth[0]) < 0.05


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"synthesizer": "dpgan", "neighbours": "replace"}, "add-remove"),
        ({"synthesizer": "dpcgan"}, "no column of categories"),
        ({"weights": "dp-mlp", "neighbours": "replace"}, "add-remove"),
    ],
)
def test_what_does_not_suit_a_method_is_refused_before_anything_is_read(options, reason):
    """No table is there to be read: the refusal comes first."""
    schema = cp.Schema([cp.Column.continuous("x", 0, 1)])
    with pytest.raises(cp.CounterpoiseError, match=reason):
        cp.release("nowhere.csv", schema, 1.0, 1e-6, **options)
