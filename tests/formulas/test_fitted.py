"""A model fitted to public rows has scores on any coded rows, and refuses none of them."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import counterpoise as cp
from counterpoise.errors import AnalysisError
from counterpoise.formulas.families import choose_family
from counterpoise.formulas.fitted import Fitted
from counterpoise.formulas.matrices import as_numbers, read_formula
from counterpoise.formulas.rows import values_of
from tests.analysis.releases import SCHEMA, make_table

ROWS = SCHEMA.encode(make_table(600))
FORMULAS = [
    ("ill ~ age + ward", "auto"),
    ("ill ~ bs(age, df=4) + ward * scale(dose)", "binomial"),
    ("dose ~ poly(age, 2) + C(pain, Sum)", "auto"),
    ("children ~ cr(age, df=3) + ill", "poisson"),
    ("pain ~ age", "multinomial"),
    ("log1p(dose) ~ I(age ** 2) + seen", "auto"),
]


def fitted(formula, family="auto", rows=ROWS):
    read = read_formula(formula, rows.schema)
    return Fitted.learn(read, choose_family(rows.schema, read.targets, family), rows)


def test_coded_rows_have_the_values_of_the_table():
    table = make_table(200)
    by_table = as_numbers(SCHEMA, table)
    by_codes = values_of(SCHEMA.encode(table), SCHEMA.names)
    for name in SCHEMA.names:
        if isinstance(by_table[name].dtype, pd.CategoricalDtype):
            assert by_codes[name].astype(object).equals(by_table[name].astype(object))
        else:
            np.testing.assert_allclose(by_codes[name], by_table[name], rtol=1e-9)


@pytest.mark.parametrize(("formula", "family"), FORMULAS)
def test_scores_add_up_to_zero_over_the_rows_fitted_to(formula, family):
    scores = fitted(formula, family).scores(ROWS)
    assert np.abs(scores.mean(axis=0)).max() < 1e-6 * np.abs(scores).max()


@pytest.mark.parametrize("formula", ["ill ~ age + ward", "pain ~ age", "dose ~ age + ill"])
def test_a_score_is_the_gradient_of_the_log_likelihood(formula):
    model = fitted(formula)
    x, y, _ = model.matrices(ROWS)

    def height(beta):
        eta = x @ (beta.reshape(-1, x.shape[1]).T if model.family == "multinomial" else beta)
        if model.family == "multinomial":
            eta = np.hstack([np.zeros((len(eta), 1)), eta])
            return eta[np.arange(len(y)), y.astype(int)] - np.log(np.exp(eta).sum(axis=1))
        cumulant = np.log1p(np.exp(eta)) if model.family == "binomial" else eta**2 / 2
        return y * eta - cumulant

    scores = model.scores(ROWS)
    has_value = np.abs(scores).max(axis=1) > 0
    for place in range(len(model.beta)):
        step = np.zeros(len(model.beta))
        step[place] = 1e-6 / max(1.0, np.abs(x).max())
        slope = (height(model.beta + step) - height(model.beta - step)) / (2 * step[place])
        np.testing.assert_allclose(
            scores[has_value, place], slope[has_value], atol=1e-4 * np.abs(slope).max()
        )


def test_a_row_has_the_same_score_whatever_the_others():
    model = fitted("ill ~ bs(age, df=4) + ward * scale(dose)")
    whole = model.scores(ROWS)
    for row in (0, 17, 599):
        np.testing.assert_array_equal(model.scores(ROWS.take(np.array([row])))[0], whole[row])
    assert model.scores(ROWS.take(np.empty(0, dtype=int))).shape == (0, len(model.terms))


@pytest.mark.parametrize(("formula", "family"), FORMULAS)
def test_what_was_learnt_is_kept_as_json(formula, family):
    model = fitted(formula, family)
    read = Fitted.from_dict(SCHEMA, json.loads(json.dumps(model.to_dict())))
    np.testing.assert_array_equal(read.scores(ROWS), model.scores(ROWS))
    assert read.terms == model.terms


def test_no_row_is_refused_and_what_has_no_value_has_score_zero():
    """An error would tell of the rows: of a value beyond the splines, a category without rows."""
    learnt = make_table(600)
    learnt = learnt[learnt["age"].between(20, 60)]
    odd = make_table(8, seed=1)
    odd["age"] = [0, 99, 40, 40, 40, 40, 40, 40]
    odd["dose"] = [1.0, 1.0, np.nan, 0.0, 10.0, 1.0, 1.0, 1.0]
    odd["ward"] = ["surgery"] * 6 + ["closed"] * 2
    for formula in ("ill ~ bs(age, df=4) + ward", "ill ~ log(dose) + age", "ill ~ cc(age, df=3)"):
        rows = SCHEMA.encode(learnt[learnt["dose"].gt(0)])
        scores = fitted(formula, rows=rows).scores(SCHEMA.encode(odd))
        assert np.isfinite(scores).all()
        if "ward" in formula:
            assert (scores[6:] == 0).all()
            assert (np.abs(scores[:2]).max(axis=1) > 0).all()
        if "dose" in formula:
            assert (scores[2:4] == 0).all()


@pytest.mark.parametrize(
    ("formula", "family"), [*FORMULAS, ("ill ~ cc(dose, df=3) * ward", "auto")]
)
def test_rows_of_which_none_has_a_value_have_scores_of_zero(formula, family):
    """As happens to a batch: what is left of it is empty, and must not be refused."""
    wide = cp.Schema([replace(column, nullable=True) for column in SCHEMA])
    model = fitted(formula, family, wide.encode(make_table(600)))
    nothing = wide.encode(pd.DataFrame({name: [None] * 3 for name in SCHEMA.names}))
    assert (model.scores(nothing) == 0).all()


def test_terms_that_say_the_same_are_left_out():
    assert fitted("ill ~ age + I(2 * age) + I(age + 1)").terms in {
        ("Intercept", "age"),
        ("Intercept", "I(2 * age)"),
        ("I(2 * age)", "I(age + 1)"),
        ("age", "I(age + 1)"),
        ("Intercept", "I(age + 1)"),
        ("age", "I(2 * age)"),
    }


def test_a_target_that_the_terms_separate_has_coefficients_all_the_same():
    table = make_table(300).assign(ill=lambda rows: rows["age"] > 50)
    model = fitted("ill ~ age", rows=SCHEMA.encode(table))
    assert np.isfinite(model.beta).all()
    assert 0.05 < model.beta[1] < 1


@pytest.mark.parametrize(
    ("formula", "change", "why"),
    [
        ("ill ~ age", {"ill": True}, "one value"),
        ("ill ~ log(dose)", {"dose": 0.0}, "cannot be computed|no finite number"),
        ("dose ~ age", {"dose": np.nan}, "no synthetic row"),
        ("ill ~ 0 + children", {"children": 0}, "zero in all"),
    ],
)
def test_what_the_rows_cannot_answer_is_said(formula, change, why):
    with pytest.raises(AnalysisError, match=why):
        fitted(formula, rows=SCHEMA.encode(make_table(50).assign(**change)))


def test_a_predictor_is_held_within_those_fitted_to():
    schema = cp.Schema([cp.Column.integer("k", 0, 50), cp.Column.continuous("x", 0, 1e6)])
    generator = np.random.default_rng(0)
    x = generator.uniform(0, 5, 500)
    near = schema.encode(pd.DataFrame({"k": generator.poisson(np.exp(0.2 * x)), "x": x}))
    far = schema.encode(pd.DataFrame({"k": [3], "x": [1e6]}))
    read = read_formula("k ~ x", schema)
    model = Fitted.learn(read, "poisson", near)
    assert 0 < model.means(model.matrices(far)[0])[0] < 10
