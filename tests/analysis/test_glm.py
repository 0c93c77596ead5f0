import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor

import counterpoise as cp
from counterpoise.errors import AnalysisError, SchemaError
from counterpoise.formulas import row_sums
from tests.analysis.releases import SCHEMA, make_release, repeated

ORACLES = {
    "gaussian": ("age ~ children + C(ward)", LinearRegression()),
    "binomial": ("ill ~ children + C(ward)", LogisticRegression(C=np.inf, tol=1e-10)),
    "poisson": (
        "age ~ children + C(ward)",
        PoissonRegressor(alpha=0, tol=1e-12, max_iter=10_000),
    ),
}


def oracle(family, table, weights):
    formula, model = ORACLES[family]
    target = formula.split(" ~ ")[0]
    ward = (table["ward"] == "medicine").to_numpy(float)
    x = np.column_stack([table["children"].to_numpy(float), ward])
    model.fit(x, table[target].to_numpy(), sample_weight=weights)
    return np.append(model.intercept_, model.coef_)


@pytest.mark.parametrize("family", ORACLES)
def test_coefficients_and_their_errors_are_those_of_refits_with_every_replicate(family):
    release = make_release(replicates=6)
    model = release.glm(ORACLES[family][0], family)
    # The ward that is the reference is the first of the schema that has rows.
    terms = ["Intercept", "children", "C(ward)[T.medicine]"]
    full = oracle(family, release.table, release.weights)
    refits = np.array([oracle(family, release.table, each) for each in release.replicates.T])
    frame = model.to_frame().loc[terms]
    assert frame["value"].to_numpy() == pytest.approx(full, rel=1e-3, abs=1e-4)
    plain = oracle(family, release.table, np.ones(300))
    assert frame["unweighted"].to_numpy() == pytest.approx(plain, rel=1e-3, abs=1e-4)
    # svrepdesign(type = "other", scale = 1/R, rscales = 1, mse = TRUE)
    expected = (refits - full).T @ (refits - full) / 6
    found = model.covariance.loc[terms, terms].to_numpy()
    assert found == pytest.approx(expected, rel=5e-3, abs=1e-6)
    assert frame["standard_error"].to_numpy() == pytest.approx(np.sqrt(np.diag(found)))


def test_gaussian_coefficients_have_a_closed_form():
    release = make_release()
    x = np.column_stack([np.ones(300), release.table["children"], release.table["ill"]])
    y, w = release.table["age"].to_numpy(float), release.weights
    inverse = np.linalg.inv((x * w[:, None]).T @ x)
    beta = inverse @ x.T @ (w * y)
    model = release.glm("age ~ children + ill")
    assert [each.value for each in model.coefficients] == pytest.approx(beta, rel=1e-9)
    phi = (w * (y - x @ beta) ** 2).sum() / (w.sum() - 3)
    assert model.naive_errors.to_numpy() == pytest.approx(np.sqrt(phi * np.diag(inverse)))


def test_the_naive_errors_of_a_logistic_model_are_those_of_its_information():
    release = make_release()
    model = release.glm("ill ~ children")
    x = np.column_stack([np.ones(300), release.table["children"]])
    mu = 1 / (1 + np.exp(-x @ [each.value for each in model.coefficients]))
    information = (x * (release.weights * mu * (1 - mu))[:, None]).T @ x
    expected = np.sqrt(np.diag(np.linalg.inv(information)))
    assert model.naive_errors.to_numpy() == pytest.approx(expected)
    # At the maximum the weighted residuals are orthogonal to the terms.
    slope = x.T @ (release.weights * (release.table["ill"] - mu))
    assert slope == pytest.approx([0, 0], abs=1e-8)


def pain_oracle(table, weights):
    """Coefficients of `pain ~ dose + ill` on rows without nulls, none compared with."""
    x = table[["dose", "ill"]].to_numpy(float)
    model = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000)
    model.fit(x, table["pain"].cat.codes, sample_weight=weights)
    whole = np.column_stack([model.intercept_, model.coef_])
    return (whole[1:] - whole[0]).ravel()


def test_a_multinomial_model_and_its_errors_are_those_of_refits_with_every_replicate():
    release = make_release(replicates=6)
    model = release.glm("pain ~ dose + ill")
    assert (model.family, model.categories) == ("multinomial", ("none", "some", "much"))
    known = release.table[["pain", "dose"]].notna().all(axis=1).to_numpy()
    assert model.left_out == (~known).sum() > 0
    rows = release.table[known]
    full = pain_oracle(rows, release.weights[known])
    refits = np.array([pain_oracle(rows, each[known]) for each in release.replicates.T])
    frame = model.to_frame()
    assert list(frame.index) == [
        f"{category}: {term}"
        for category in ("some", "much")
        for term in ("Intercept", "dose", "ill")
    ]
    assert frame["value"].to_numpy() == pytest.approx(full, abs=1e-5)
    assert frame["unweighted"].to_numpy() == pytest.approx(
        pain_oracle(rows, np.ones(len(rows))), abs=1e-5
    )
    expected = (refits - full).T @ (refits - full) / 6
    assert model.covariance.to_numpy() == pytest.approx(expected, rel=1e-3, abs=1e-6)
    assert frame["standard_error"].to_numpy() == pytest.approx(np.sqrt(np.diag(expected)), rel=1e-3)


def test_the_naive_errors_of_a_multinomial_model_are_those_of_its_curvature():
    release = make_release()
    model = release.glm("pain ~ dose")
    known = release.table[["pain", "dose"]].notna().all(axis=1).to_numpy()
    x = np.column_stack([np.ones(known.sum()), release.table["dose"][known]])
    chosen, weights = release.table["pain"][known].cat.codes, release.weights[known]

    def likelihood(beta):
        eta = np.column_stack([np.zeros(len(x)), x @ beta[:2], x @ beta[2:]])
        logs = eta - np.log(np.exp(eta).sum(axis=1, keepdims=True))
        return weights @ logs[np.arange(len(x)), chosen]

    beta, small, units = model.to_frame()["value"].to_numpy(), 1e-3, np.eye(4)
    slope = [likelihood(beta + small * e) - likelihood(beta - small * e) for e in units]
    assert slope == pytest.approx(np.zeros(4), abs=1e-5)
    curvature = [
        [
            sum(
                one * two * likelihood(beta + small * (one * e + two * d))
                for one in (1, -1)
                for two in (1, -1)
            )
            for e in units
        ]
        for d in units
    ]
    information = -np.array(curvature) / (2 * small) ** 2
    expected = np.sqrt(np.diag(np.linalg.inv(information)))
    assert model.naive_errors.to_numpy() == pytest.approx(expected, rel=1e-4)


def test_a_multinomial_model_of_two_categories_is_the_binomial_one():
    release = make_release()
    # Nobody is in the third ward, so it has no coefficients.
    two = release.glm("ward ~ age + ill", "multinomial")
    assert two.categories == ("surgery", "medicine")
    schema = release.schema.replace(cp.Column.categorical("ward", ["surgery", "medicine"]))
    again = cp.Release(schema.restore(release.table), schema, release.card, release.replicates)
    binomial = again.glm("ward ~ age + ill")
    assert binomial.family == "binomial"
    pd.testing.assert_frame_equal(
        two.to_frame().reset_index(drop=True), binomial.to_frame().reset_index(drop=True), rtol=1e-6
    )
    assert "rows, compared with surgery" in str(two)
    # Which of the two is modelled is said, unless they are no and yes.
    assert "rows, medicine compared with surgery" in str(binomial)
    assert "compared" not in str(release.glm("ill ~ age"))


def test_rows_that_are_alike_are_added_up_and_the_model_is_that_of_all():
    release = make_release()
    few, other = release.table.assign(age=release.table["age"] // 25), np.arange(300) / 300
    model = cp.Release(few, SCHEMA, {}, release.replicates).glm("ill ~ age + ward")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("counterpoise.analysis.glm.alike", lambda y, x: None)
        whole = cp.Release(few, SCHEMA, {}, release.replicates).glm("ill ~ age + ward")
    pd.testing.assert_frame_equal(model.to_frame(), whole.to_frame(), rtol=1e-6)
    pd.testing.assert_frame_equal(model.covariance, whole.covariance, rtol=1e-6)
    # Where next to no rows are, it is not tried.
    assert row_sums.alike(other, np.ones((300, 1))) is None
    first, of_row = row_sums.alike(few["age"].to_numpy(float), np.ones((300, 1)))
    assert len(first) == 4 and (few["age"].to_numpy()[first][of_row] == few["age"]).all()


def test_a_multinomial_model_predicts_the_probability_of_every_category():
    release = make_release()
    alone = release.glm("pain ~ 1").predict(release.table.head(2))
    shares = [each.value for each in release.proportion("pain")]
    assert alone == pytest.approx(np.array([shares, shares]))
    model = release.glm("pain ~ dose")
    found = model.predict(pd.DataFrame({"dose": [1.0, np.nan, 9.0]}))
    assert found.shape == (3, 3)
    assert found[[0, 2]].sum(axis=1) == pytest.approx([1, 1])
    odds = np.log(found[2, 1] / found[2, 0]) - np.log(found[0, 1] / found[0, 0])
    assert odds == pytest.approx(8 * model["some: dose"].value)
    assert np.isnan(found[1]).all()


def test_a_target_of_one_of_many_categories_is_refused_and_of_separate_ones_is_held():
    release = make_release()
    pain = pd.Series(np.where(release.table["age"] > 50, "much", "none"))
    pain[release.table["age"] > 80] = "some"
    table = release.schema.restore(release.table.assign(pain=pain))
    model = cp.Release(table, release.schema, {}, release.replicates).glm("pain ~ age")
    assert "hardly any rows tell 'some: age'" in str(model)
    assert model["much: age"].standard_error > 2.5 / (2 * 30)  # a step is two deviations of age
    constant = release.schema.restore(release.table.assign(pain="none"))
    with pytest.raises(AnalysisError, match="has one category in the synthetic rows"):
        cp.Release(constant, release.schema, {}).glm("pain ~ age")


def test_the_size_of_a_column_does_not_matter():
    generator = np.random.default_rng(0)
    table = pd.DataFrame({"x": generator.uniform(1e6, 1e6 + 1, 500), "weight": 1.0})
    table["y"] = generator.random(500) < 0.5 + 0.4 * (table["x"] - 1e6 - 0.5)
    schema = cp.Schema([cp.Column.continuous("x", 1e6, 1e6 + 1), cp.Column.boolean("y")])
    model = cp.Release(table, schema, {}).glm("y ~ x")
    moved = table.assign(x=table["x"] - 1e6)
    near = cp.Schema([cp.Column.continuous("x", 0, 1), cp.Column.boolean("y")])
    assert model["x"].value == pytest.approx(
        cp.Release(moved, near, {}).glm("y ~ x")["x"].value, rel=1e-3
    )


def test_rows_with_a_null_are_left_out_and_counted():
    release = make_release()
    model = release.glm("age ~ dose + pain")
    known = release.table[["dose", "pain"]].notna().all(axis=1)
    assert model.rows == known.sum()
    assert model.left_out == (~known).sum()
    rows = repeated(release)[["age", "dose", "pain"]].dropna()
    x = np.column_stack([rows["dose"], rows["pain"] == "some", rows["pain"] == "much"])
    expected = LinearRegression().fit(x.astype(float), rows["age"])
    terms = ["dose", "pain[T.some]", "pain[T.much]"]
    assert [model[term].value for term in terms] == pytest.approx(expected.coef_)


def test_the_family_follows_the_target_unless_it_is_stated():
    release = make_release()
    assert release.glm("ill ~ age").family == "binomial"
    assert release.glm("age ~ ill").family == "gaussian"
    assert release.glm("ill ~ age", family="gaussian").family == "gaussian"


def test_the_second_of_two_categories_counts_as_one():
    release = make_release()
    schema = release.schema.replace(cp.Column.categorical("ward", ["surgery", "medicine"]))
    two = cp.Release(schema.restore(release.table), schema, {}, release.replicates)
    found = two.glm("ward ~ 1")["Intercept"]
    share = release.proportion("ward", "medicine").value
    assert found.value == pytest.approx(np.log(share / (1 - share)))


def test_formulas_may_transform_and_use_dates_and_all_columns():
    release = make_release()
    logged = release.glm("np.log(age + 1) ~ seen")
    days = (release.table["seen"] - pd.Timestamp(0)).dt.days.to_numpy(float)
    slope = np.polyfit(days, np.log(release.table["age"] + 1), 1, w=np.sqrt(release.weights))[0]
    assert logged["seen"].value == pytest.approx(slope, rel=1e-6)
    small = cp.Release(
        release.table[["age", "ill", "children", "weight"]],
        release.schema.select(["age", "ill", "children"]),
        {},
    )
    assert [term for term, _ in small.glm("ill ~ .").coefficients.items()] == [
        "Intercept",
        "age",
        "children",
    ]


def test_a_spline_is_kept_for_prediction():
    release = make_release()
    model = release.glm("age ~ bs(dose, df=4) + center(children)")
    assert model.left_out == release.table["dose"].isna().sum()
    whole = model.predict(release.table)
    assert np.isnan(whole).sum() == model.left_out
    # Of a few rows alone the knots and the centre would be others.
    known = np.flatnonzero(~np.isnan(whole))[:5]
    assert model.predict(release.table.iloc[known]) == pytest.approx(whole[known])


def test_a_column_with_spaces_in_its_name_is_quoted():
    release = make_release()
    schema = cp.Schema([cp.Column.integer("age at visit", 0, 99), cp.Column.boolean("ill")])
    table = release.table.rename(columns={"age": "age at visit"})
    model = cp.Release(table[["age at visit", "ill", "weight"]], schema, {}).glm(
        "ill ~ `age at visit`"
    )
    assert model["age at visit"].value == pytest.approx(release.glm("ill ~ age")["age"].value)


def test_a_model_predicts_on_raw_tables():
    release = make_release()
    model = release.glm("ill ~ age + ward + pain")
    raw = pd.DataFrame(
        {
            "age": [30, 60, 30],
            "ward": ["surgery", "medicine", "closed"],
            "pain": ["none", "much", "none"],
        }
    )
    found = model.predict(raw)
    value = {term: each.value for term, each in model.coefficients.items()}
    eta = [
        value["Intercept"] + 30 * value["age"],
        value["Intercept"] + 60 * value["age"] + value["ward[T.medicine]"] + value["pain[T.much]"],
    ]
    assert found[:2] == pytest.approx(1 / (1 + np.exp(-np.array(eta))))
    assert np.isnan(found[2])  # nothing was learnt of a ward without rows
    again = pickle.loads(pickle.dumps(model))
    assert again.predict(raw)[:2] == pytest.approx(found[:2])


def test_a_null_where_the_schema_allows_none_has_no_prediction():
    model = make_release().glm("ill ~ age + ward")
    raw = pd.DataFrame({"age": [30, None, 30], "ward": ["surgery", "surgery", None]})
    assert np.isnan(model.predict(raw)).tolist() == [False, True, True]


def test_a_model_without_features_predicts_the_weighted_mean():
    release = make_release()
    found = release.glm("ill ~ 1").predict(release.table.head(4))
    assert found == pytest.approx([release.mean("ill").value] * 4)


def test_a_model_prints_both_errors():
    text = str(make_release().glm("ill ~ age + dose")).splitlines()
    assert text[0].startswith("ill ~ age + dose, binomial, ")
    assert "left out for nulls" in text[0]
    for word in ("standard error", "naive error", "unweighted"):
        assert word in text[1]
    assert text[2].startswith("Intercept")


def test_without_replicates_there_are_only_naive_errors():
    model = make_release(replicates=0).glm("ill ~ age")
    assert model.covariance is None
    assert model["age"].standard_error is None
    assert (model.naive_errors > 0).all()
    assert "no replicate weights" in str(model)


def test_a_replicate_of_one_outcome_is_held_and_told():
    release = make_release(replicates=6)
    # In one replicate only the healthy count, so that the odds have no maximum.
    broken = release.replicates.copy()
    broken[:, 2] *= np.where(release.table["ill"], 0.0, 1.0)
    model = cp.Release(release.table, release.schema, {}, broken).glm("ill ~ age")
    assert "1 of 6 replicates nearly separate" in model["age"].note
    plain = release.glm("ill ~ age")["age"].standard_error
    # One of six, some deviations of the prior away: of 2.5 for two deviations of age.
    assert plain < model["age"].standard_error < 2.5 / (2 * 25)


@pytest.mark.parametrize("healthy", [True, False])
def test_a_replicate_that_runs_away_is_held_by_a_weak_prior_and_told(healthy: bool):
    release = make_release(replicates=20)
    # In three replicates nobody, or nobody who is ill, is left in medicine.
    gone = (release.table["ward"] == "medicine") & (release.table["ill"] | (not healthy))
    broken = release.replicates.copy()
    broken[:, :3] *= np.where(gone, 0.0, 1.0)[:, None]
    model = cp.Release(release.table, release.schema, {}, broken).glm("ill ~ age + ward")
    plain = release.glm("ill ~ age + ward")
    term = "ward[T.medicine]"
    assert "3 of 20 replicates nearly separate" in model[term].note
    assert "nearly separate" not in plain[term].note
    # Three of twenty at most some deviations of the prior away, where they had no bound.
    assert plain[term].standard_error < model[term].standard_error < 2.5
    assert model["age"].standard_error == pytest.approx(plain["age"].standard_error, rel=0.5)


def test_separated_values_are_held_by_a_prior_that_names_the_term():
    release = make_release()
    table = release.table.assign(ill=release.table["age"] > 50)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = cp.Release(table, release.schema, {}, release.replicates).glm("ill ~ age")
    assert "hardly any rows tell 'age', held by a prior of deviation 2.5 a step" in str(model)
    low, high = model["age"].interval()
    assert low > 0 and high - low > 4 * 2.5 / (2 * 30)


def with_ward(release, places, ill=None, weight=None):
    """The release with some rows in the closed ward, with outcomes or weights of their own."""
    table = release.table.copy()
    table.loc[places, "ward"] = "closed"
    if ill is not None:
        table.loc[places, "ill"] = ill
    if weight is not None:
        table.loc[places, "weight"] = weight
    return cp.Release(table, release.schema, {}, release.replicates)


CASES = [
    ({"ill": False}, "ill ~ age + ward", "auto"),  # nobody is ill there
    ({"weight": 0.0}, "ill ~ age + ward", "auto"),  # nobody counts
    ({"weight": 0.0}, "dose ~ age + ward", "auto"),
    ({"weight": 0.0}, "children ~ age + ward", "poisson"),
    ({"ill": False}, "dose ~ age + ill * ward", "auto"),  # no combination of the two
]


@pytest.mark.parametrize(("change", "formula", "family"), CASES)
def test_a_rare_category_is_held_by_a_weak_prior_and_the_rest_is_as_it_was(change, formula, family):
    release = make_release(600, replicates=30)
    places = np.arange(600) % 97 == 3
    model = with_ward(release, places, **change).glm(formula, family)
    # That of the other rows alone, with the same weights.
    others = cp.Release(
        release.table[~places].reset_index(drop=True), SCHEMA, {}, release.replicates[~places]
    ).glm(formula, family)
    term = "ill:ward[T.closed]" if "*" in formula else "ward[T.closed]"
    assert f"hardly any rows tell '{term}'" in model[term].note
    low, high = model[term].interval()
    step = 2.5 * (model_unit(release) if "dose" in formula else 1.0)
    assert low < 0 < high and 3.9 * step < high - low < 6 * step
    for each in others.naive_errors.index:
        assert model[each].note == others[each].note
        # Nearly: where the rows of the ward count, they have an age and outcomes of their own.
        error = others[each].standard_error
        assert model[each].value == pytest.approx(others[each].value, abs=0.5 * error)
        assert model[each].standard_error == pytest.approx(error, rel=0.2)
    assert np.isfinite(model.covariance.to_numpy()).all() and np.isfinite(model.naive_errors).all()


def test_next_to_no_weight_on_an_outcome_is_none():
    release = make_release(600, replicates=30)
    places = np.arange(600) % 97 == 3
    table = with_ward(release, places, ill=False).table
    # One row there is ill, and hardly counts.
    table.loc[3, "ill"], table.loc[3, "weight"] = True, 1e-9
    replicates = np.where((np.arange(600) == 3)[:, None], 1e-9, release.replicates)
    model = cp.Release(table, SCHEMA, {}, replicates).glm("ill ~ age + ward")
    low, high = model["ward[T.closed]"].interval()
    assert low < 0 < high and high - low > 3.9 * 2.5


@pytest.mark.parametrize(
    ("formula", "family", "value"),
    [
        ("ill ~ age + ward", "auto", False),
        ("ill ~ age + ward", "auto", True),
        ("children ~ age + ward", "poisson", 0),
    ],
)
def test_a_target_of_which_the_rows_have_one_value_is_held_and_told(formula, family, value):
    release = make_release(600, replicates=30)
    target = formula.partition(" ~")[0]
    table = release.table.assign(**{target: value})
    model = cp.Release(table, SCHEMA, dict(release.card), release.replicates).glm(formula, family)
    low, high = model["Intercept"].interval()
    assert (high < 1 if not value else low > -1) and 3.9 * 2.5 < high - low < 6 * 2.5
    for term, step in (("age", 2 * release.table["age"].std()), ("ward[T.medicine]", 1.0)):
        low, high = model[term].interval()
        assert low < 0 < high and 3.5 * 2.5 < (high - low) * step < 6 * 2.5
        assert "hardly any rows tell 'age', 'ward[T.medicine]'" in model[term].note


@pytest.mark.parametrize("wards", [("closed", "surgery", "medicine"), ("surgery", "closed")])
@pytest.mark.parametrize(
    ("formula", "family"), [("age ~ children + ward", "auto"), ("children ~ ward", "poisson")]
)
def test_what_a_row_alone_tells_is_as_wide_as_a_row_is_off(formula, family, wards):
    release = make_release(600, replicates=30)
    wards = tuple(dict.fromkeys([*wards, "medicine"]))
    schema = SCHEMA.replace(cp.Column.categorical("ward", list(wards)))
    made = with_ward(release, [7], weight=1.0)
    made.table.loc[7, "children"] = 1  # of none a count is separated, and held
    table = schema.restore(made.table).assign(weight=made.weights)
    model = cp.Release(table, schema, dict(release.card), release.replicates).glm(formula, family)
    plain = release.glm(formula, family)
    alone = "Intercept" if wards[0] == "closed" else "ward[T.closed]"
    for term in (alone, *[f"ward[T.{ward}]" for ward in wards[1:] if wards[0] == "closed"]):
        # All of it is the row's, as if the rows were people: the replicates vary nothing there.
        assert model[term].standard_error == pytest.approx(model.naive_errors[term], rel=0.05)
        assert f"one row, or rows all alike, tell '{alone}'" in model[term].note
    if wards[0] != "closed":
        both = "ward[T.medicine]"
        assert model[both].note == ""
        assert model[both].standard_error == pytest.approx(plain[both].standard_error, rel=0.05)
    errors = [each.standard_error for each in model]
    assert np.sqrt(np.diag(model.covariance)) == pytest.approx(errors, rel=1e-9)


def test_a_category_of_rows_all_alike_is_as_wide_as_their_number_tells():
    release = make_release(600, replicates=30)
    made = with_ward(release, np.arange(600) % 20 == 0, weight=1.0)
    made.table.loc[made.table["ward"] == "closed", "children"] = 0
    model = made.glm("children ~ ward", "gaussian")
    found, others = model["ward[T.closed]"], model["ward[T.medicine]"]
    assert "rows all alike, tell 'ward[T.closed]'" in found.note and others.note == ""
    # Thirty rows, of which each is off as numbers of children from 0 to 3 are.
    assert found.standard_error == pytest.approx(np.sqrt(5 / 4 / 30), rel=0.1)
    assert others.standard_error < found.standard_error / 2


@pytest.mark.parametrize("formula", ["age ~ children + ill", "age ~ children * ill"])
def test_true_and_false_of_which_the_rows_have_one_is_held_and_told(formula):
    release = make_release(600, replicates=30)
    unit = np.sqrt(np.cov(release.table["age"], aweights=release.weights))
    plain = release.glm("age ~ children")["children"]
    for ill in (False, True):
        table = release.table.assign(ill=ill)
        model = cp.Release(table, SCHEMA, dict(release.card), release.replicates).glm(formula)
        low, high = model["ill"].interval()
        assert low < 0 < high and 3.9 * 2.5 * unit < high - low < 4.5 * 2.5 * unit
        assert "'ill'" in model["ill"].note and "hardly any rows tell" in model["ill"].note
        if not ill or "*" not in formula:
            assert model["children"].value == pytest.approx(plain.value, abs=plain.standard_error)
            assert model["children"].standard_error == pytest.approx(plain.standard_error, rel=0.2)


def test_two_truths_that_no_row_has_both_of_are_held():
    release = make_release(600, replicates=30)
    place = np.arange(600) % 20
    table = release.table.assign(ill=place == 0, rare=place == 1)
    schema = cp.Schema([*SCHEMA, cp.Column.boolean("rare")])
    model = cp.Release(table, schema, {}, release.replicates).glm("age ~ ill * rare")
    assert "hardly any rows tell 'ill:rare'" in model["ill:rare"].note
    assert model["ill"].note == model["rare"].note == ""


def test_powers_of_a_number_are_not_held():
    powers = make_release().glm("ill ~ age + I(age**2) + I(age**3) + I(age**4)")
    assert "hardly any" not in str(powers)


def model_unit(release):
    """The deviation of a dose, in which a step of a linear model counts."""
    known = release.table["dose"].notna()
    dose, weight = release.table["dose"][known], release.weights[known]
    return np.sqrt(np.cov(dose, aweights=weight))


def test_where_the_first_category_is_rare_all_are_as_wide_and_it_is_named():
    release = make_release(600, replicates=30)
    places = np.arange(600) % 97 == 3
    schema = SCHEMA.replace(cp.Column.categorical("ward", ["closed", "surgery", "medicine"]))
    made = with_ward(release, places, ill=False)
    table = schema.restore(made.table).assign(weight=made.weights)
    model = cp.Release(table, schema, {}, made.replicates).glm("ill ~ age + ward")
    for ward in ("surgery", "medicine"):
        low, high = model[f"ward[T.{ward}]"].interval()
        assert low < 0 < high and high - low > 3.9 * 2.5
    assert "compare with others than 'closed' of 'ward'" in model["ward[T.surgery]"].note
    # What tells the other two apart is told as well as ever.
    tellers = np.array([0.0, 0.0, 1.0, -1.0])
    names = ["Intercept", "age", "ward[T.medicine]", "ward[T.surgery]"]
    variance = tellers @ model.covariance.loc[names, names].to_numpy() @ tellers
    plain = made.glm("ill ~ age + ward")["ward[T.medicine]"].standard_error
    assert np.sqrt(variance) == pytest.approx(plain, rel=0.2)


def test_a_rare_category_of_the_target_is_held():
    release = make_release(600, replicates=20)
    places = np.flatnonzero(release.table["ill"])[:4]
    model = with_ward(release, places).glm("ward ~ age + ill")
    assert "hardly any rows tell 'closed: ill'" in model["closed: ill"].note
    assert "hardly any" not in model["medicine: ill"].note
    low, high = model["closed: ill"].interval()
    assert high - low > 3.9 * 2.5
    assert "did not converge" not in str(model)


@pytest.mark.parametrize(
    ("formula", "family", "error", "words"),
    [
        ("ill ~ agee", "auto", SchemaError, "did you mean 'age'"),
        ("ill ~ weight", "auto", SchemaError, "no column 'weight'"),
        ("ill ~ (", "auto", AnalysisError, "cannot be read"),
        ("~ age", "auto", AnalysisError, "a target and features"),
        ("age", "auto", AnalysisError, "a target and features"),
        ("ill ~ age", "gamma", AnalysisError, "gaussian, binomial, poisson, multinomial"),
        ("ward ~ age", "binomial", AnalysisError, "'ward' is categorical.*take multinomial"),
        ("age ~ ill", "multinomial", AnalysisError, "take gaussian or binomial or poisson"),
        ("ward:ill ~ age", "multinomial", AnalysisError, "one column as it is"),
        ("I(2 * pain) ~ age", "multinomial", AnalysisError, "one column as it is"),
        ("age ~ ill", "binomial", AnalysisError, "between 0 and 1"),
        ("age ~ children + I(2 * children)", "auto", AnalysisError, "cannot be told apart"),
        ("np.log(age - 200) ~ ill", "auto", AnalysisError, "cannot be computed"),
    ],
)
def test_a_formula_that_cannot_be_fitted_is_refused(formula, family, error, words):
    with pytest.raises(error, match=words):
        make_release().glm(formula, family)


def test_a_slope_that_one_row_decides_is_as_uncertain_as_that_row():
    """In ward b amounts are zero but for two, one of which all replicates go through."""
    generator = np.random.default_rng(0)
    ward = np.repeat(["a", "b"], 400)
    amount = np.where(ward == "a", generator.lognormal(3, 1, 800), 0.0)
    amount[400:402] = [33.0, 6.0]
    cost = 50 + 10 * generator.normal(size=800)
    columns = [
        cp.Column.categorical("ward", ["a", "b"]),
        cp.Column.continuous("amount", 0, 99_999),
        cp.Column.continuous("cost", 0, 200),
    ]
    table = pd.DataFrame({"ward": ward, "amount": amount, "cost": cost, "weight": 1.0})
    card = {"measured": {"counts": [["ward", "amount", "cost"]], "cells": [], "products": []}}
    replicates = generator.gamma(4.0, size=(800, 40)) / 4
    model = cp.Release(table, cp.Schema(columns), card, replicates).glm("cost ~ ward * amount")
    found, naive = model["ward[T.b]:amount"], model.naive_errors["ward[T.b]:amount"]
    assert found.standard_error == pytest.approx(naive, rel=0.2)
    assert "one row" in found.note
