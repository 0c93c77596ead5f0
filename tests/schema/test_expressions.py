import pickle
import sys

import numpy as np
import pandas as pd
import pytest

from counterpoise.errors import AnalysisError, SchemaError
from counterpoise.schema.expression_trees import DEEPEST, LONGEST
from counterpoise.schema.expressions import parse

TABLE = pd.DataFrame(
    {
        "a": [1.0, 2.0, None],
        "b": [3, 0, 1],
        "sex": ["male", None, "female"],
        "ill": pd.array([True, False, None], dtype="boolean"),
        "start": pd.to_datetime(["2020-01-01", "2021-01-01", None]),
        "end": pd.to_datetime(["2020-03-01", "2020-12-31", "2020-01-01"]),
        "grade": pd.Categorical([1, 2, 1]),
        "first name": [1, 2, 3],
        "tick`ed": [4, 5, 6],
        "a.b": [7, 8, 9],
    }
)


def answers(text):
    """The values, with None for null."""
    found = parse(text).evaluate(TABLE)
    return [
        value if known else None
        for value, known in zip(found.values.tolist(), found.known.tolist(), strict=True)
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a + b", [4, 2, None]),
        ("a + b * 2 - 1", [6, 1, None]),
        ("-b ** 2", [-9, 0, -1]),
        ("2 ** 3 ** 0", [2, 2, 2]),
        ("2 ** -b", [0.125, 1, 0.5]),
        ("10 - 3 - 2", [5, 5, 5]),
        ("7 // 2 + 7 % 4", [6, 6, 6]),
        ("a / b", [1 / 3, None, None]),
        ("9 ** 9 ** 9", [None, None, None]),
        ("max(a, b) + min(b, 1)", [4, 2, None]),
        ("abs(b - 2) + sqrt(4) + floor(1.5)", [4, 5, 4]),
        ("log(b)", [pytest.approx(np.log(3)), None, 0]),
        ("`first name` + `tick\\`ed` + a.b", [12, 15, 18]),
        ("start <= end", [True, False, None]),
        ("end - start", [60, -1, None]),
        ("end >= date('2020-03-01')", [True, True, False]),
        ("0 <= a < 2", [True, False, None]),
        ("b % 100 < 60", [True, True, True]),
        ("sex == 'male'", [True, None, False]),
        ('not (ill and sex == "male")', [False, True, True]),
        ("ill or a > 1", [True, True, None]),
        ("False and a > 1", [False, False, False]),
        ("sex in ['male', 'other']", [True, None, False]),
        ("sex not in ['male'] or is_null(sex)", [False, True, True]),
        ("grade == 1", [True, False, True]),
        ("ill + 1", [2, 1, None]),
        ("b in [0, 1]", [False, True, True]),
    ],
)
def test_an_expression_has_a_value_in_every_row_and_nulls_propagate(text, expected):
    assert answers(text) == expected


def test_an_expression_is_a_value_that_says_which_columns_it_needs():
    rule = parse("not (ill and `first name` > a.b)  or a*2 == -a")
    assert rule.columns == ("ill", "first name", "a.b", "a")
    assert str(rule) == "not (ill and `first name` > a.b) or a * 2 == -a"
    assert parse(str(rule)) == rule == pickle.loads(pickle.dumps(rule))
    assert hash(parse(str(rule))) == hash(rule)


@pytest.mark.parametrize(
    "text", ["a - (b - 1)", "(a ** 2) ** 3", "-(a + 1)", "(-a) ** 2", "(a < b) == ill", "a ** -b"]
)
def test_brackets_are_written_where_they_matter(text):
    assert str(parse(text)) == text
    assert parse(str(parse(text))) == parse(text)


def test_a_row_is_read_by_itself():
    whole = parse("sex == 'male' or a / b > 0").evaluate(TABLE)
    for place in range(3):
        alone = parse("sex == 'male' or a / b > 0").evaluate(TABLE.iloc[[place]])
        assert alone.known[0] == whole.known[place]
        assert not alone.known[0] or alone.values[0] == whole.values[place]


def test_a_mapping_of_arrays_is_a_table_as_well():
    found = parse("a * 2").evaluate({"a": np.array([1, 2])})
    assert found.values.tolist() == [2, 4]


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "a +", "a b", "a..", "(a", "a)", "a,", "a = b", "a = 1", "a := 1", "x.y.z()"),
        *(
            "a[0]",
            "a.real",
            "[].append",
            "{}",
            "{a}",
            "a; b",
            "a\nimport os",
            "lambda: 0",
            "a if b",
        ),
        *("open('x')", "exec('1')", "eval('1')", "__import__('os')", "print(a)", "getattr(a, 'b')"),
        *("().__class__", "''.join", "a.__class__", "f'{a}'", "b'x'", "r'x'", "'a' 'b'", "*a"),
        *("**a", "a ** ", "log(a, b)", "log()", "log(x=1)", "max(a)", "date(a)", "date('x')"),
        *("sex + 1", "sex < 'x'", "-sex", "not sex", "sex and ill", "log(sex)", "a in b", "[1]"),
        *("a in [1", "'unclosed", "`unclosed", "``", "a ? b", "a & b", "~a", "a @ b", "1e999"),
        *("abs(a, key=1)", "abs(a, a=1, a=2)", "abs(a=1, b)", "not", "and", "a and", "a + not b"),
        *("nothing", "a ! b", "a $ b", "'\\n'", "\x00", "a\x00", "0x10", "1_000", "1j", "a.b.c"),
    ],
)
def test_what_is_no_expression_is_refused(text):
    with pytest.raises(SchemaError):
        parse(text).evaluate(TABLE)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 10_000 + "a" + ")" * 9000,
        "-" * 15_000 + "a",
        "not " * 4000 + "a",
        "abs(" * 4000,
        "[" * 10_000,
        "2**" * 5000 + "2",
        "(" * (DEEPEST + 1) + "a" + ")" * (DEEPEST + 1),
        "a" * (LONGEST + 1),
    ],
)
def test_no_text_exhausts_the_stack(text):
    with pytest.raises(SchemaError):
        parse(text)


def test_a_long_sum_is_one_flat_node():
    limit = sys.getrecursionlimit()
    text = " + ".join(["a"] * 5000)
    try:
        sys.setrecursionlimit(300)
        assert parse(text).evaluate({"a": np.array([1.0])}).values[0] == 5000
        assert str(parse(text)) == text
    finally:
        sys.setrecursionlimit(limit)


def test_the_caller_says_which_error_it_is():
    with pytest.raises(AnalysisError, match="character 5"):
        parse("a + )", AnalysisError)
    with pytest.raises(AnalysisError, match="no column 'nothing'"):
        parse("nothing", AnalysisError).evaluate(TABLE)
