"""Design matrices are those of formulaic, which is the oracle here and nowhere else."""

from datetime import date, datetime

import formulaic
import numpy as np
import pandas as pd
import pytest

import counterpoise as cp
from counterpoise.errors import AnalysisError, SchemaError
from counterpoise.formulas.matrices import read_formula

SCHEMA = cp.Schema(
    [
        cp.Column.continuous("y", -9, 9),
        cp.Column.continuous("x", -9, 9),
        cp.Column.continuous("z", 0.5, 6),
        cp.Column.integer("k", 0, 3),
        cp.Column.boolean("ill"),
        cp.Column.categorical("w", ["a", "b", "c", "nobody"]),
        cp.Column.categorical("v", ["p", "q"]),
    ]
)
EQUAL = [
    # which terms there are
    *("y ~ 1", "y ~ x", "y ~ x + z", "y ~ x + x", "y ~ x - x", "y ~ -x + z", "y ~ +x"),
    *("y ~ 0 + x", "y ~ x + 0", "y ~ x - 1", "y ~ -1 + x", "y ~ x - 0", "y ~ x + -z + k"),
    *("y ~ (x - 1)", "y ~ (0 + x)", "y ~ x + (0 + z)", "y ~ x:z", "y ~ x*z", "y ~ x*z*k"),
    *("y ~ x/z", "y ~ (x + z)/k", "y ~ z/(w + x)", "y ~ (x + z + k)**2", "y ~ (x + z + k)^3"),
    *("y ~ x:x", "y ~ x**2", "y ~ 2:x", "y ~ x:2:z", "y ~ x:1", "y ~ ."),
    *("y ~ x*z - x", "y ~ x + (z + k):w", "y ~ x*(z + k)**2"),
    # which categories are compared
    *("y ~ w", "y ~ w + v", "y ~ w - 1", "y ~ w + v - 1", "y ~ w:v", "y ~ 0 + w:v", "y ~ w*v"),
    *("y ~ w*v - w", "y ~ w/v", "y ~ v/w", "y ~ x:w", "y ~ x*w", "y ~ x*w - 1", "y ~ x/w"),
    *("y ~ w:x + w", "y ~ (w + v):x", "y ~ (w + x)/z", "y ~ w*v*x", "y ~ w:v:x", "y ~ w:v:C(k)"),
    *("y ~ C(w)", "y ~ C(k)", "y ~ C(ill)", "y ~ C(x > 0)", "y ~ C(k, levels=[3, 2, 1, 0])"),
    *("y ~ C(w, levels=['c', 'b', 'a'])", "y ~ C(w, Treatment('b'))", "y ~ C(w, Sum)"),
    *("y ~ C(w, contr.treatment(base='c'))", "y ~ C(w, contr.SAS)", "y ~ C(w, Helmert)"),
    *("y ~ C(w, Diff)", "y ~ C(w, Poly)", "y ~ C(k, contr.poly)", "y ~ 0 + C(w, Sum)"),
    *("y ~ C(w, Sum)*C(v, Sum)", "y ~ C(w, Treatment(reference='b')):x"),
    # functions of columns
    *("y ~ log(z) + np.log(z)", "y ~ log2(z) + log10(z) + exp(x) + exp2(x)", "y ~ np.log1p(z)"),
    *("y ~ np.sqrt(z) + abs(x) + np.expm1(x)", "y ~ I(x**2) + I(x + z)", "y ~ I(-(x + 1)*2/z)"),
    *(
        "y ~ I(z // 2) + I(z % 2)",
        "y ~ I(x > 0)",
        "y ~ I(w == 'a')",
        "y ~ I(1e3*x - (z - (x - 1)))",
    ),
    *("y ~ I(2**x)", "y ~ I(-x**2)", "y ~ I((x + z)*k):w", "np.log(z) ~ x", "I(y + 1) ~ x"),
    # what is learnt from the rows
    *("y ~ center(x)", "y ~ scale(x)", "y ~ standardize(x)", "y ~ scale(x, center=False)"),
    *(
        "y ~ scale(x, scale=2)",
        "y ~ center(log(z))",
        "y ~ I(center(x)**2)",
        "y ~ log(center(z) + 9)",
    ),
    *("y ~ poly(x)", "y ~ poly(x, 3)", "y ~ poly(x, degree=2, raw=True)", "y ~ poly(log(z), 2)"),
    *(
        "y ~ bs(x, df=4)",
        "y ~ bs(x, df=6, degree=2)",
        "y ~ bs(x, knots=[-.5, .5])",
        "y ~ bs(k, df=5)",
    ),
    *("y ~ bs(x, df=5, include_intercept=True)", "y ~ 0 + bs(x, df=5, include_intercept=True)"),
    *("y ~ bs(x, df=5, include_intercept=True):w", "y ~ bs(x, degree=1, knots=[0])"),
    *("y ~ bs(x, df=5, lower_bound=-9, upper_bound=9)", "y ~ bs(x, degree=0, knots=[0, 1])"),
    *("y ~ bs(x, df=4, lower_bound=-1, upper_bound=1, extrapolation='clip')",),
    *("y ~ bs(x, df=4, lower_bound=-1, upper_bound=1, extrapolation='zero')",),
    *("y ~ bs(x, df=4, lower_bound=-1, upper_bound=1, extrapolation='extend')",),
    *("y ~ cr(x, df=4)", "y ~ cs(x, df=3)", "y ~ cc(x, df=4)", "y ~ cr(x, knots=[0, 1])"),
    *("y ~ cr(x, df=4, constraints='center')", "y ~ cc(x, df=3, constraints='center')"),
    *("y ~ cr(x, df=4, lower_bound=-1, upper_bound=1)", "y ~ w:cr(z, df=3, constraints='center')"),
]


def rows(count, seed):
    generator = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "y": generator.normal(size=count),
            "x": generator.normal(size=count),
            "z": generator.uniform(1, 5, count),
            "k": generator.integers(0, 4, count).astype(float),
            "ill": (generator.random(count) < 0.4).astype(float),
            "w": pd.Categorical(generator.choice(list("abc"), count), categories=list("abc")),
            "v": pd.Categorical(generator.choice(list("pq"), count), categories=list("pq")),
        }
    )


@pytest.mark.parametrize("formula", EQUAL)
def test_a_design_matrix_is_that_of_formulaic_also_for_other_rows(formula):
    table = rows(60, seed=0)
    # Of a few rows alone the means, knots and categories would be others.
    inside = (table["x"].abs() < 1) & table["z"].between(2, 4)
    few = table[inside].head(7).reset_index(drop=True)
    context = {"__formulaic_variables_available__": list(table)}
    expected = formulaic.Formula(formula, _context=context).get_model_matrix(table)
    found = read_formula(formula, SCHEMA).matrices(table)
    assert list(found.terms) == list(expected.rhs.columns)
    assert found.features == pytest.approx(expected.rhs.to_numpy(float), abs=1e-9)
    assert found.target == pytest.approx(expected.lhs.to_numpy(float)[:, 0])
    again, known = found.recipe.features(few)
    assert known.all()
    assert again == pytest.approx(
        expected.rhs.model_spec.get_model_matrix(few).to_numpy(float), abs=1e-9
    )


def release_of(**columns):
    """A release with a column for each, as numbers, and a target."""
    generator = np.random.default_rng(0)
    table = pd.DataFrame({name: generator.uniform(1, 9, 40) for name in (*columns, "y")})
    schema = cp.Schema([cp.Column.continuous(name, 0, 10) for name in table])
    return cp.Release(table.assign(weight=1.0), schema, {})


@pytest.mark.parametrize(
    ("name", "formula", "term"),
    [
        ("a.b", "y ~ a.b", "a.b"),
        ("a.b", "y ~ `a.b`", "a.b"),
        ("a.b", "y ~ log(a.b)", "log(a.b)"),
        ("first name", "y ~ `first name`", "first name"),
        ("first name", "y ~ I(`first name` * 2)", "I(`first name` * 2)"),
        ("tick`ed", "y ~ `tick\\`ed`", "tick`ed"),
        ("back\\slash", "y ~ `back\\\\slash`", "back\\slash"),
        ("a ~ b", "y ~ `a ~ b`", "a ~ b"),
        ("log", "y ~ log(log)", "log(log)"),
        ("größe", "y ~ größe", "größe"),
        ("not", "y ~ `not`", "not"),
        ("__class__", "y ~ __class__", "__class__"),
    ],
)
def test_columns_may_have_any_name(name, formula, term):
    release = release_of(**{name: 1})
    assert list(release.glm(formula).coefficients.to_frame().index) == ["Intercept", term]


def test_a_column_that_is_not_there_is_not_taken_apart():
    with pytest.raises(SchemaError, match=r"no column 'a\.c'"):
        release_of(a=1).glm("y ~ a.c")


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        ("y ~ x | z", "several parts, by '|'"),
        ("y ~ x %in% w", r"in the place of %in%"),
        ("y ~ x[0]", "no subscripts"),
        ("y ~ {x}", "cannot stand here"),
        ("y ~ nope(x)", "no function 'nope'"),
        ("y ~ 2*x", "can only multiply a term, by ':'"),
        ("y ~ 0", "at least one term"),
        ("1 ~ x", "no target"),
        ("x + z ~ w", "one target"),
        ("y ~ (x + z)**w", "a whole number after the power"),
        ("y ~ bs(x)*bs(x, nope=3)", "'nope' is unknown"),
        ("y ~ bs(x, df=10**9)", "bs: expected options"),
        ("y ~ bs(x, df=1000000)", "df: expected a whole number from 1 to 200"),
        ("y ~ bs(w, df=4)", "bs is of numbers"),
        ("y ~ log(w)", "is no number"),
        ("y ~ C(w, levels=['a', 'b'])", "'c' has rows"),
        ("y ~ C(w, Treatment('d'))", "no category 'd'"),
        ("y ~ C(C(w))", "cannot stand within"),
        ("y ~ log(x)", "no value in some of the rows"),
        ("y ~ scale(x, ddof='1')", "ddof: expected a number"),
        ("y ~ poly(k, 9)", "too few different values"),
        ("y ~ " + ":".join(f"C(x > {place})" for place in range(9)), "more than 8 factors"),
        ("y ~ C(x)*C(z)", "it makes 6,400 features"),
        ("y ~ (x + z + k)", None),
    ],
)
def test_what_a_formula_cannot_mean_is_said(formula, words):
    read = lambda: read_formula(formula, SCHEMA).matrices(rows(80, seed=0))  # noqa: E731
    if words is None:
        assert read().features.shape == (80, 4)
        return
    with pytest.raises(AnalysisError, match=words):
        read()


def test_a_row_that_the_model_knows_nothing_of_has_no_prediction():
    table = rows(60, seed=0)
    made = read_formula("y ~ C(k) + log(z) + w", SCHEMA).matrices(table[table["k"] < 3])
    new = table.head(3).assign(k=[1, 3, 2], w=["a", "b", "nobody"])
    _, known = made.recipe.features(new)
    assert known.tolist() == [True, False, False]
    spline = read_formula("y ~ bs(x, df=4)", SCHEMA).matrices(table)
    with pytest.raises(AnalysisError, match="extrapolation='clip'"):
        spline.recipe.features(table.assign(x=8.9))


def test_dates_of_all_years_count_in_days():
    moments = np.array(["0001-01-01", "1500-06-15", "1970-01-02", "2300-01-01", "9999-12-31"])
    schema = cp.Schema(
        [
            cp.Column.date("day", date(1, 1, 1), date(9999, 12, 31)),
            cp.Column.datetime("at", datetime(1, 1, 1), datetime(9999, 12, 31)),
            cp.Column.continuous("y", 0, 9),
        ]
    )
    table = schema.restore(
        pd.DataFrame({"day": moments, "at": moments, "y": [1.0, 2, 3, 4, 6]}).assign(
            day=moments.astype("datetime64[s]"), at=moments.astype("datetime64[us]")
        )
    )
    release = cp.Release(table.assign(weight=1.0), schema, {})
    days = moments.astype("datetime64[D]").astype(float)
    slope = np.polyfit(days, table["y"], 1)[0]
    assert release.glm("y ~ day")["day"].value == pytest.approx(slope)
    assert release.glm("y ~ at")["at"].value == pytest.approx(slope)
    assert release.quantile("day", 1.0).value == date(9999, 12, 31)
    assert release.quantile("at", 0.0).value == datetime(1, 1, 1)
    found = release.histogram("day", bins=[date(1, 1, 1), date(1600, 1, 1), date(9999, 12, 31)])
    assert [each.value for each in found] == [0.5, 0.5]
    assert release.histogram("at", by="day") is not None
