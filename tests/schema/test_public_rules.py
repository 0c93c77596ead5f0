"""Rules in a schema: read, checked against what is known of the columns, and applied to rows."""

from datetime import date, datetime

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from counterpoise.errors import SchemaError, TableError
from counterpoise.schema import Column, Schema
from counterpoise.schema.expressions import parse
from counterpoise.schema.feasibility import require_possible
from counterpoise.schema.ranges import Range, range_of
from counterpoise.schema.row_rules import all_obeyed, complete, obeyed

A, B = Column.integer("a", 0, 9), Column.integer("b", 0, 9, nullable=True)
X = Column.continuous("x", -2, 3)
START = Column.date("start", date(2020, 1, 1), date(2020, 12, 31))
END = Column.date("end", date(2020, 1, 1), date(2020, 12, 31))
SEX = Column.categorical("sex", ["female", "male"])
PREGNANT = Column.boolean("pregnant")


def table(**columns):
    return pd.DataFrame(columns)


def test_rules_are_the_same_in_json_and_in_python():
    described = {
        "fields": [
            {"name": "patient", "type": "string", "role": "identifier"},
            {"name": "a", "type": "number", "constraints": {"minimum": 0, "maximum": 5}},
            {"name": "twice", "type": "number", "derived": "2 * a"},
            {"name": "much", "type": "boolean", "derived": "twice > 4"},
        ],
        "checks": ["twice != 3"],
    }
    stated = Schema(
        [
            Column.identifier("patient", "string"),
            Column.continuous("a", 0, 5, nullable=True),
            Column.derived("twice", "2 * a"),
            Column.derived("much", "twice > 4", "boolean"),
        ],
        checks=["twice != 3"],
    )
    assert Schema.from_dict(described) == stated
    assert Schema.from_dict(stated.to_dict()) == stated
    assert Schema.from_dict(stated.settled.to_dict()) == stated.settled


def test_derived_columns_have_the_values_and_the_dtypes_of_their_kind():
    schema = Schema(
        [
            Column.derived("late", "due > date('2020-06-01')", "boolean"),
            START,
            A,
            B,
            Column.derived("total", "a + b", "integer"),
            Column.derived("half", "a / 2"),
            Column.derived("whole", "half", "integer"),
            Column.derived("due", "start + a", "date"),
            Column.derived("noon", "start + 0.5", "datetime"),
        ]
    )
    rows = table(
        start=np.array(["2020-05-31", "2020-01-01"], "datetime64[s]"),
        a=np.array([3, 9]),
        b=pd.array([4, None], dtype="Int64"),
    )
    made = complete(schema, rows)
    assert list(made.columns) == list(schema.names)
    assert made["late"].tolist() == [True, False]
    assert made["total"].tolist() == [7, pd.NA]
    assert made["half"].tolist() == [1.5, 4.5]
    assert made["whole"].tolist() == [1, 4], "a fraction is cut down, as where numbers are read"
    assert made["due"].tolist() == [pd.Timestamp("2020-06-03"), pd.Timestamp("2020-01-10")]
    assert made["noon"].tolist() == [
        pd.Timestamp("2020-05-31 12:00"),
        pd.Timestamp("2020-01-01 12:00"),
    ]
    decoded = schema.plain.decode(schema.plain.encode(made).codes, np.random.default_rng(0))
    assert made.dtypes.equals(decoded.dtypes)
    assert schema.restore(made).equals(made)


def test_bounds_and_nulls_of_derived_columns_follow_from_their_expression():
    schema = Schema(
        [A, B, START, Column.derived("c", "a - b"), Column.derived("d", "start + 30", "date")]
    )
    assert (schema.settled["c"].minimum, schema.settled["c"].maximum) == (-9.0, 9.0)
    assert (schema.settled["c"].nullable, schema.settled["d"].nullable) == (True, False)
    assert schema.settled["d"].maximum == date(2021, 1, 30)
    assert schema.plain["d"].cells == 20


@pytest.mark.parametrize(
    ("minimum", "checks"),
    [(-365, []), (0, ["end >= start"]), (0, ["stay >= 0"]), (1, ["0 < a and start + 1 <= end"])],
)
def test_stated_bounds_are_kept_where_a_check_sees_to_it(minimum, checks):
    stay = Column.derived("stay", "end - start", "integer", minimum=minimum)
    if minimum == 1:
        with pytest.raises(SchemaError, match="add the check 'stay >= 1'"):
            Schema([START, END, A, stay], checks=checks)
    else:
        assert Schema([START, END, A, stay], checks=checks).settled["stay"].low == minimum


@pytest.mark.parametrize(
    ("columns", "checks", "message"),
    [
        ([A, Column.derived("c", "aa + 1")], [], "no column 'aa'; did you mean 'a'"),
        ([A, Column.derived("c", "d"), Column.derived("d", "c")], [], "'c', 'd' are derived from"),
        ([A, Column.derived("c", "c + a")], [], "'c' are derived from each other"),
        ([A, Column.derived("c", "a +")], [], "column 'c': expression: 'a \\+' cannot be read"),
        ([A, Column.derived("c", "1 + 1")], [], "column 'c': it names no column"),
        ([SEX, Column.derived("c", "sex")], [], "is continuous, and 'sex' is a category"),
        ([SEX, Column.derived("c", "sex + 1")], [], "a category or a text is no number"),
        ([A, Column.derived("c", "a", "boolean")], [], "is true or false, and 'a' is a number"),
        ([A, Column.identifier("id"), Column.derived("c", "id")], [], "'id' is an identifier"),
        ([A, Column.derived("c", "2 * a", maximum=10)], [], "may leave the maximum 10.*'c <= 10"),
        ([A, Column.derived("c", "1 / a")], [], "however large; add a check"),
        ([A, Column.derived("c", "2 * a")], ["c > 20"], "the checks leave no value that '2"),
        (
            [
                A,
                Column.derived("n", "a / 2 + 0.5", "integer"),
                Column.derived("c", "n", minimum=0.5),
            ],
            [],
            "'n' may leave the minimum 0.5",
        ),
        ([B, Column.derived("c", "b + 1", nullable=False)], [], "'not is_null\\(c\\)'"),
        ([Column.identifier("id")], [], "neither derived nor an identifier"),
        ([A], ["a + 1"], "check 'a \\+ 1': it is neither true nor false"),
        ([A], ["hour < 3"], "check 'hour < 3': the schema has no column 'hour'"),
        ([SEX], ["sex == 'Male'"], "'sex' is never 'Male'; its categories are 'female', 'male'"),
        ([SEX], ["sex in ['male', 'x']"], "'sex' is never 'x'"),
        ([SEX], ["sex < 'male'"], "no order"),
        ([A], "a < 3", "checks must be a list"),
    ],
)
def test_rules_that_cannot_be_kept_are_refused_with_the_way_out(columns, checks, message):
    with pytest.raises(SchemaError, match=message):
        Schema(columns, checks=checks)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Column.derived("c", "a", "categorical"),
        lambda: Column.derived("c", 3),
        lambda: Column.derived("c", np.arange(2), np.arange(2)),
        lambda: Column.identifier("id", np.arange(2)),
        lambda: Schema([A], checks=[np.arange(2)]),
        lambda: Schema([A], checks=[None]),
        lambda: Column.derived("c", "a", sources={"minimum": "paid"}),
        lambda: Column.identifier("id", "number"),
        lambda: Column.identifier("id", nullable=True),
        lambda: Column.identifier("id", minimum=3),
        lambda: Column.identifier("id", expression="a"),
        lambda: Schema([A, Column.identifier("id")]).pay("id"),
        lambda: Schema([A, Column.derived("c", "a")]).pay("c"),
        lambda: Schema.from_dict({"fields": [{"name": "a", "type": "boolean", "role": "person"}]}),
        lambda: Schema.from_dict({"fields": [{"name": "a", "type": "boolean"}], "checks": "a"}),
    ],
)
def test_columns_that_are_not_read_say_no_more_than_they_can(make):
    with pytest.raises(SchemaError):
        make()


def test_what_a_vault_is_asked_for_has_no_rules():
    schema = Schema([Column.identifier("id"), A, Column.derived("c", "2 * a")], checks=["a < 5"])
    assert schema.modelled == Schema([A])
    assert schema.encode(table(a=[3])).schema == Schema([A]), "a table need not have the others"
    assert schema.plain.names == ("a", "c")
    assert schema.plain.checks == ()


def test_selected_columns_keep_the_rules_that_they_can():
    schema = Schema([A, X, Column.derived("c", "2 * a")], checks=["a < 5", "a < x"])
    assert schema.select(["c", "a"]) == Schema([Column.derived("c", "2 * a"), A], checks=["a < 5"])
    assert schema.select(["c", "x"]) == Schema([Column.continuous("c", 0, 18), X])


def test_a_check_that_is_null_counts_as_obeyed():
    schema = Schema([A, B], checks=["a < b"])
    rows = table(a=[1, 5, 5], b=pd.array([2, 2, None], dtype="Int64"))
    assert obeyed(schema, rows)["check 'a < b'"].tolist() == [True, False, True]


def test_checks_see_derived_columns_as_they_come_out():
    schema = Schema([X, Column.derived("whole", "x", "integer")], checks=["whole == 1"])
    assert all_obeyed(schema, table(x=[0.9, 1.0, 1.9, 2.0])).tolist() == [False, True, True, False]


def test_identifiers_are_made_afresh_and_never_read():
    schema = Schema([Column.identifier("n"), Column.identifier("id", "string"), A])
    made = complete(schema, table(a=[7, 7], id=["Ann", "Bob"]))
    assert made["n"].tolist() == [1, 2]
    assert made["id"].tolist() == ["id-000001", "id-000002"]
    assert schema.restore(made).equals(made)
    with pytest.raises(TableError, match="each of them once"):
        schema.restore(made.assign(n=[1, 1]))


def test_a_required_column_that_turns_out_null_is_refused():
    derived = Column.derived("c", "b + 1", "integer", nullable=False)
    schema = Schema([B, derived], checks=["not is_null(c)"])
    rows = table(b=pd.array([2, None], dtype="Int64"))
    assert all_obeyed(schema, rows).tolist() == [True, False]
    with pytest.raises(TableError, match="null in some rows"):
        complete(schema, rows)


OPERATORS = ["+", "-", "*", "/", "//", "%", "**", "<", "==", "and", "call", "max"]
FUNCTIONS = ["abs", "ceil", "floor", "round", "sign", "sqrt", "exp", "log", "log1p", "expm1", "-"]


@st.composite
def trees(draw, depth=3):
    if depth == 0 or draw(st.integers(0, 4)) == 0:
        return draw(st.sampled_from(["a", "b", "x", "t", "2", "0.5", "-3", "7"]))
    one, other = draw(trees(depth=depth - 1)), draw(trees(depth=depth - 1))
    operator = draw(st.sampled_from(OPERATORS))
    if operator == "call":
        return f"{draw(st.sampled_from(FUNCTIONS))}({one})"
    return f"max({one}, {other})" if operator == "max" else f"({one} {operator} {other})"


@settings(max_examples=100, deadline=None)
@given(trees())
@example("x ** 2")
@example("abs(x)")
@example("max(t, b ** 0.5 // a)")
def test_no_value_lies_outside_the_range_of_its_expression(text):
    expression = parse(text)
    columns = [A, B, X, Column.boolean("t")]
    ranges = {
        "a": Range(0, 9),
        "b": Range(0, 9, True),
        "x": Range(-2, 3),
        "t": Range(0, 1),
    }
    found = range_of(expression.tree, ranges.__getitem__)
    rows = Schema(columns).decode(
        np.random.default_rng(0).integers(0, [10, 11, 20, 2], (300, 4)), np.random.default_rng(1)
    )
    rows.loc[0, "x"], rows.loc[1, "x"], rows.loc[2, "x"] = -2.0, 3.0, 0.0
    values = expression.evaluate(rows) if expression.columns else None
    if values is None:
        return
    numbers = values.values[values.known].astype(float)
    assert ((numbers >= found.low) & (numbers <= found.high)).all()
    assert found.nullable or values.known.all()


def test_checks_that_no_row_obeys_are_found_without_any_table():
    with pytest.raises(SchemaError, match="check 'a > 9': no row of the schema's domain obeys it"):
        require_possible(Schema([A, B], checks=["a < 5", "a > 9"]))
    with pytest.raises(SchemaError, match="the checks contradict each other"):
        require_possible(Schema([A], checks=["a < 5", "a > 6"]))
    with pytest.raises(SchemaError, match="let it be derived"):
        require_possible(Schema([X, Column.continuous("y", 0, 1)], checks=["x == 2 * y"]))
    with pytest.raises(SchemaError, match="'b > 9'"):
        require_possible(Schema([B], checks=["b > 9"]))  # nulls obey it, and nothing else does


@pytest.mark.parametrize(
    "schema",
    [
        Schema([A, B]),
        Schema([B, A], checks=["is_null(b)", "a == 3"]),
        Schema([START, END, Column.derived("stay", "end - start")], checks=["0 <= stay < 3"]),
        Schema(
            [Column.integer(name, 0, 99, bins=10) for name in "abcdefgh"],
            checks=["a <= b <= c <= d <= e <= f <= g <= h"],
        ),
        Schema(
            [A, Column.integer("k", sources={"minimum": "paid", "maximum": "paid"})],
            checks=["k < a"],
        ),
        Schema([SEX, PREGNANT], checks=["not (pregnant and sex == 'male')"]),
        Schema(
            [Column.datetime("at", datetime(2020, 1, 1), datetime(2021, 1, 1))],
            checks=["at % 1 < 0.5"],
        ),
    ],
    ids=["none", "nulls", "derived", "chain", "paid", "categories", "moments"],
)
def test_checks_that_some_rows_obey_pass(schema):
    require_possible(schema)


@settings(max_examples=40, deadline=None)
@given(trees(), st.sampled_from(["continuous", "integer", "boolean", "date", "datetime"]))
def test_whatever_can_be_derived_can_be_written_and_read_again(text, kind):
    try:
        schema = Schema([A, B, X, Column.boolean("t"), Column.derived("c", text, kind)])
    except SchemaError:
        return
    settled = schema.settled
    assert Schema.from_dict(settled.to_dict()) == settled
    codes = np.random.default_rng(0).integers(0, [10, 11, 20, 2], (200, 4))
    rows = schema.modelled.decode(codes, np.random.default_rng(1))
    made = complete(schema, rows[all_obeyed(schema, rows)])
    pd.testing.assert_frame_equal(settled.restore(made), made)
    assert settled.plain.encode(made).codes.shape == (len(made), 5)
