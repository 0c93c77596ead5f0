"""What was asked in advance: bounded features that move a weighted estimate to the private one."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import counterpoise as cp
from counterpoise.errors import MethodError
from counterpoise.formulas.questions import Question
from counterpoise.schema import Coded
from counterpoise.vault import Budget, Vault
from counterpoise.weights import Moments
from counterpoise.weights.asked import ask, asked_pairs
from counterpoise.weights.calibration import calibrate
from counterpoise.weights.features import (
    Features,
    OneHot,
    PrincipalComponents,
    RandomFourier,
    Squares,
)
from counterpoise.weights.moment_model import MomentModel
from counterpoise.weights.moments import ASKED
from counterpoise.weights.replicates import replicate_weights
from counterpoise.weights.standardise import PRIORITY, Standardised
from tests.company import depends_on_company

SCHEMA = cp.Schema(
    [
        cp.Column.boolean("ill"),
        cp.Column.continuous("age", 0, 100, bins=10),
        cp.Column.categorical("ward", ["a", "b", "c"], nullable=True),
        cp.Column.boolean("treated"),
        cp.Column.continuous("cost", 0, 1000, bins=10, nullable=True),
    ]
)
MODEL = "ill ~ age + ward"
QUESTIONS = (
    MODEL,
    "cost ~ age * treated",
    "mean(cost) by ward",
    "ward x ill",
    "effect(treated) on ill given age",
)


def table(rows: int, seed: int, slope: float = 0.05, dear: float = 1.0) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    age = np.clip(generator.normal(50, 15, rows), 0, 100)
    ward = generator.choice(["a", "b", "c", None], rows, p=[0.5, 0.3, 0.15, 0.05])
    treated = generator.random(rows) < 0.3 + 0.004 * age
    cost = np.clip(generator.gamma(9, 15 + 0.3 * dear * age + 10 * (ward == "b"), rows), 0, 1000)
    logit = slope * (age - 50) + 0.7 * (ward == "b") + 0.4 * treated - 0.5
    ill = generator.random(rows) < 1 / (1 + np.exp(-logit))
    cost = np.where(generator.random(rows) < 0.05, np.nan, cost)
    return pd.DataFrame({"ill": ill, "age": age, "ward": ward, "treated": treated, "cost": cost})


SYNTHETIC = table(3000, 1, slope=0.01, dear=0.7)
PROBE = table(200, 2).dropna()
ROWS = SCHEMA.encode(SYNTHETIC)


CURVED = (
    "ill ~ poly(age, 3) + cr(cost, df=4) + ward",
    "ward ~ age + treated",
    "cost ~ bs(age, df=5)",
)


@pytest.mark.parametrize(
    "recipe", [None, OneHot(), PrincipalComponents(6), RandomFourier(9)], ids=str
)
def test_a_row_has_the_same_features_to_the_last_bit_in_every_company(recipe):
    asked = ask((*QUESTIONS, *CURVED), ROWS).features
    # Short enough that rows are cut, which is where their lengths tell.
    features = asked if recipe is None else recipe.over(ROWS)
    standardised = replace(Standardised.over(features, ROWS), bound=1.5)
    assert depends_on_company(standardised, ROWS) == 0


def every_kind_of_row() -> Coded:
    """Rows at all ends of all columns, with nulls."""
    ends = [[False, True], [0, 100], ["a", "b", "c", None], [False, True], [0, 1000, None]]
    grid = pd.MultiIndex.from_product(ends).to_frame(index=False)
    return SCHEMA.encode(grid.set_axis(SCHEMA.names, axis=1))


@pytest.mark.parametrize("question", QUESTIONS)
def test_no_row_is_longer_than_the_bound(question):
    features = ask([question], ROWS).features
    for rows in (ROWS, every_kind_of_row(), SCHEMA.encode(table(500, 2))):
        norms = np.linalg.norm(features(rows), axis=1)
        assert norms.max() <= features.bound * (1 + 1e-12)
    if question != "ward x ill":
        # The bound is where rows are cut, and some are: it is not larger than it has to be.
        assert norms.max() > 0.99 * features.bound


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_row_has_the_same_features_whatever_the_others(question):
    features = ask([question], ROWS).features
    whole = features(ROWS)
    for row in (0, 11, 2999):
        alone = features(ROWS.take(np.array([row])))[0]
        np.testing.assert_allclose(alone, whole[row], rtol=1e-12, atol=1e-12)


def test_scores_are_white_but_for_the_cut():
    values = ask([MODEL], ROWS).features(ROWS)
    covariance = np.cov(values, rowvar=False)
    assert np.abs(np.diag(covariance) - 1).max() < 0.15
    assert np.abs(covariance - np.diag(np.diag(covariance))).max() < 0.1


@pytest.mark.parametrize("question", QUESTIONS)
def test_features_are_kept_as_json(question):
    features = ask([question], ROWS).features
    read = Features.from_dict(SCHEMA, json.loads(json.dumps(features.to_dict())))
    np.testing.assert_array_equal(read(ROWS), features(ROWS))
    assert (read.names, read.columns) == (features.names, features.columns)
    assert set(read.columns[0]) <= set(Question.read(question).joined(SCHEMA))


def answer(question: str, rows: pd.DataFrame, weights: np.ndarray) -> np.ndarray:
    release = cp.Release(rows.assign(weight=weights), SCHEMA, card={})
    match question.split()[0]:
        case "mean(cost)":
            found = release.mean("cost", by="ward")
        case "ward":
            found = release.crosstab("ward", "ill")
        case "effect(treated)":
            found = [release.effect("treated", "ill", "age")]
        case _:
            # Coefficients in one unit: what they say of the same rows.
            return release.glm(question).predict(PROBE)
    return np.array([each.value for each in found])


@pytest.mark.parametrize("question", QUESTIONS)
def test_matching_the_means_moves_the_weighted_answer_to_the_private_one(question):
    """By one step: without noise, most of the way."""
    private = table(20_000, 3)
    features = ask([question], ROWS).features
    ours, theirs = features(ROWS), features(SCHEMA.encode(private))
    # With the margins beside it, which are asked for always; a table is its products and those.
    margins = (OneHot() + Squares()).over(ROWS)
    ours = np.hstack([ours, margins(ROWS)])
    theirs = np.hstack([theirs, margins(SCHEMA.encode(private))])
    centred = ours - ours.mean(axis=0)
    target = theirs.mean(axis=0) - ours.mean(axis=0)
    theta = calibrate(centred, target, np.full(len(target), 1e-6), np.zeros(len(target)))
    weights = np.exp(centred @ theta)
    wanted = answer(question, private, np.ones(len(private)))
    before = answer(question, SYNTHETIC, np.ones(len(SYNTHETIC)))
    after = answer(question, SYNTHETIC, weights / weights.mean())
    assert np.linalg.norm(after - wanted) < 0.4 * np.linalg.norm(before - wanted)


def test_what_was_asked_is_cut_by_itself_and_has_most_of_the_vector():
    asked = ask(QUESTIONS, ROWS).features
    rest = (OneHot() + Squares()).over(ROWS)
    size = len(asked.names)
    whole = Standardised.over(Features((*asked.blocks, *rest.blocks)), ROWS, size)
    for rows in (ROWS, every_kind_of_row()):
        values = whole(rows)
        assert np.linalg.norm(values, axis=1).max() <= whole.bound * (1 + 1e-9)
        front = np.linalg.norm(values[:, :size], axis=1)
        assert front.max() <= whole.asked_bound * (1 + 1e-9)
    assert whole.asked_bound**2 / whole.bound**2 == pytest.approx(PRIORITY / (1 + PRIORITY))
    # The rest of a row does not touch what was asked: the same front, whatever stands behind it.
    alone = Standardised.over(asked, ROWS, size)
    ratio = whole.asked_bound / alone.asked_bound
    np.testing.assert_allclose(whole(ROWS)[:, :size], ratio * alone(ROWS), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("budget", [(1.0, 1e-6), (1.0, 0.0)])
def test_a_record_moves_the_exact_sums_by_no_more_than_is_charged(neighbours, budget):
    """Every record that the schema allows, against the sensitivity in the ledger."""
    spent = Budget(*budget, neighbours)
    with Vault(table(300, 4), SCHEMA, spent, seed=1) as vault:
        model = Moments(questions=QUESTIONS).fit(vault, SYNTHETIC, vault.budget.whole)
        event = vault.ledger.spends[-1].event
        answer = model.noise_scale * model.population
    records = model.standardised(every_kind_of_row())
    moved = np.linalg.norm(records, axis=1).max()
    if neighbours == "replace":
        moved = max(np.linalg.norm(records - record, axis=1).max() for record in records)
    if budget[1]:
        charged = answer / event.noise_multiplier
    else:
        charged = event.epsilon * answer / np.sqrt(len(model.standardised.names) + 1)
    assert 0.5 * charged < moved <= charged


def test_both_storages_give_the_same_answer(tmp_path):
    private = table(2000, 5)
    private.to_parquet(tmp_path / "private.parquet")
    found = []
    for storage in ("memory", "duckdb"):
        file = tmp_path / "private.parquet"
        with Vault(file, SCHEMA, Budget(1.0, 1e-6), storage=storage, seed=1) as vault:
            model = Moments(questions=QUESTIONS).fit(vault, SYNTHETIC, vault.budget.whole)
        found.append(model)
    np.testing.assert_array_equal(found[0].differences, found[1].differences)
    np.testing.assert_array_equal(found[0].theta, found[1].theta)


def weighed(private: pd.DataFrame, epsilon: float = 2.0, **options) -> MomentModel:
    with Vault(private, SCHEMA, Budget(epsilon, 1e-6), seed=1) as vault:
        return Moments(**options).fit(vault, SYNTHETIC, vault.budget.whole)


def test_asking_brings_the_answer_nearer_and_its_noise_is_known():
    private = table(5000, 6)
    wanted = answer(MODEL, private, np.ones(len(private)))
    before = answer(MODEL, SYNTHETIC, np.ones(len(SYNTHETIC)))
    model = weighed(private, questions=[MODEL])
    after = answer(MODEL, SYNTHETIC, model.weigh(SYNTHETIC).normalised)
    assert np.linalg.norm(after - wanted) < 0.25 * np.linalg.norm(before - wanted)
    # The noise of what was asked does not grow with all that is asked beside it.
    alone = weighed(private, questions=[MODEL], blocks=(OneHot(),))
    size = model.standardised.asked
    noise = [each.noise_scale / each.standardised.asked_bound for each in (model, alone)]
    assert noise[0] == pytest.approx(noise[1], rel=0.02)
    assert size == alone.standardised.asked == len(ask([MODEL], ROWS).features.names)


def test_what_was_asked_is_believed_unless_the_noise_hides_it():
    model = weighed(table(5000, 6), questions=[MODEL])
    asked = model.whitening.blocks == ASKED
    assert asked.sum() == model.standardised.asked
    assert np.diag(model.trust)[asked].min() > 0.95
    assert np.diag(model.trust)[asked].min() > np.median(np.diag(model.trust)[~asked])


def test_what_was_asked_gives_way_last_where_rows_have_to_stay_effective():
    """A column that nobody asked about is far off, and would take most of the rows."""
    private = table(3000, 6, dear=2.5)
    model = weighed(private, 20.0, questions=[MODEL])
    asked = model.whitening.blocks == ASKED
    assert np.median(model.softness[~asked]) > 0.2
    assert model.softness[asked].max() < 0.05 * np.median(model.softness[~asked])


def test_the_replicates_spread_by_the_noise_of_what_was_asked():
    """The noise is of a known law, and the private rows are drawn again: both are there."""
    private = table(2000, 7)
    model = weighed(private, 0.5, questions=[MODEL])
    weights = replicate_weights(model, SYNTHETIC, 60, population=len(private), seed=1)
    means = weights.T @ ask([MODEL], ROWS).features(ROWS) / len(SYNTHETIC)
    noise = model.noise_scale * model.standardised.scale[: model.standardised.asked]
    sampled = 1 / np.sqrt(len(private))
    ratio = means.std(axis=0) / model.replicate_part / np.hypot(noise, sampled)
    assert ((ratio > 0.7) & (ratio < 1.6)).all()
    assert noise.min() > 0.3 * sampled


def test_a_question_that_the_synthetic_rows_cannot_answer_is_left_out_with_its_reason():
    flat = SYNTHETIC.assign(ill=False)
    with Vault(table(500, 8), SCHEMA, Budget(1.0, 1e-6), seed=1) as vault:
        model = Moments(questions=(MODEL, "mean(cost)", "ward x ill")).fit(
            vault, flat, vault.budget.whole
        )
    assert set(model.not_asked) == {MODEL, "ward x ill"}
    assert model.not_asked[MODEL] == "its target has one value in the synthetic rows"
    assert model.standardised.asked == 1
    read = MomentModel.from_arrays(SCHEMA, model.to_arrays())
    assert read.not_asked == model.not_asked
    np.testing.assert_array_equal(read.weigh(flat).normalised, model.weigh(flat).normalised)


def test_questions_with_too_many_numbers_are_left_out():
    wide = cp.Schema([cp.Column.categorical(name, list(range(30))) for name in "ab"])
    rows = wide.encode(pd.DataFrame({"a": np.arange(900) % 30, "b": np.arange(900) // 30}))
    assert "at most 200" in ask(["a x b"], rows).reasons["a x b"]


def test_every_two_columns_of_a_question_are_asked_for():
    assert asked_pairs([MODEL, "ward x treated"], SCHEMA) == {
        ("ill", "age"),
        ("ill", "ward"),
        ("age", "ward"),
        ("ward", "treated"),
    }


def test_a_question_of_no_column_is_refused_before_anything_is_paid():
    with Vault(table(50, 9), SCHEMA, Budget(1.0, 1e-6), seed=1) as vault:
        with pytest.raises(MethodError, match="no column 'shoe'"):
            Moments(questions=["ill ~ shoe"]).fit(vault, SYNTHETIC, vault.budget.whole)
        assert vault.ledger.spends == ()


def test_a_model_is_of_values_where_a_column_has_a_shape():
    """Other features have places spread by the shape; a model is the analyst's, of the numbers."""
    private = table(2000, 10).assign(cost=lambda rows: rows["cost"].fillna(1.0) ** 1.2)
    columns = [cp.Column.continuous("cost", 0, 1e6), cp.Column.boolean("ill")]
    made = cp.release(private[["cost", "ill"]], cp.Schema(columns), 9.0, 1e-6, replicates=0, seed=1)
    assert made.schema["cost"].shape is not None
    rows = made.schema.encode(made.table)
    features = ask(["ill ~ cost"], rows).features
    np.testing.assert_array_equal(features(rows), features.blocks[0](rows))
    fitted = features.blocks[0].fitted
    own = cp.Release(made.table.assign(weight=1.0), made.schema, card={}).glm("ill ~ cost")
    assert fitted.beta == pytest.approx([each.value for each in own], rel=1e-4)
