"""Releases of schemas with rules: obeyed by every row, exact, and nothing of it from the data."""

import itertools

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import counterpoise as cp
from counterpoise.cli import group
from counterpoise.curation.plan import plan_release
from counterpoise.errors import AnalysisError, CounterpoiseError, MethodError, SchemaError
from counterpoise.schema.row_rules import all_obeyed
from tests import canary

ROWS = 1500
SCHEMA = cp.Schema(
    [
        cp.Column.identifier("patient", "string"),
        cp.Column.integer("departure", 0, 2359, bins=24),
        cp.Column.date(
            "start", pd.Timestamp("2020-01-01").date(), pd.Timestamp("2020-12-31").date()
        ),
        cp.Column.date("end", pd.Timestamp("2020-01-01").date(), pd.Timestamp("2020-12-31").date()),
        cp.Column.categorical("sex", ["female", "male"]),
        cp.Column.boolean("pregnant", nullable=True),
        cp.Column.continuous("ancillary", 0, 100, bins=5),
        cp.Column.continuous("accommodation", 0, 50, bins=5, nullable=True),
        cp.Column.derived("total", "ancillary + accommodation"),
        cp.Column.derived("stay", "end - start", "integer", minimum=0),
        cp.Column.derived("long", "stay > 20", "boolean"),
    ],
    checks=["departure % 100 < 60", "end >= start", "not (pregnant and sex == 'male')"],
)


@pytest.fixture(scope="module")
def private_table():
    """Without what is derived; and untidy: some rows break the checks."""
    generator = np.random.default_rng(5)
    start = generator.integers(0, 300, ROWS)
    sex = generator.choice(["female", "male"], ROWS)
    found = pd.DataFrame(
        {
            "patient": [f"{canary.TEXT}-{row}" for row in range(ROWS)],
            "departure": generator.integers(0, 24, ROWS) * 100 + generator.integers(0, 60, ROWS),
            "start": np.datetime64("2020-01-01") + start,
            "end": np.datetime64("2020-01-01") + start + generator.integers(0, 60, ROWS),
            "sex": sex,
            "pregnant": (sex == "female") & (generator.random(ROWS) < 0.3),
            "ancillary": generator.random(ROWS) * 100,
            "accommodation": generator.random(ROWS) * 50,
        }
    )
    found.loc[:20, "departure"] = 99
    found.loc[:20, "end"] = found.loc[:20, "start"] - pd.Timedelta(days=3)
    return found


@pytest.fixture(scope="module")
def made(private_table):
    return cp.release(private_table, SCHEMA, 2.0, 1e-6, seed=1, replicates=20, progress=False)


def keeps_its_rules(release):
    table = release.table
    assert list(table.columns) == [*SCHEMA.names, "weight"]
    assert (table["departure"] % 100 < 60).all()
    assert (table["end"] >= table["start"]).all()
    assert not (table["pregnant"].fillna(False) & (table["sex"] == "male")).any()
    total = table["ancillary"] + table["accommodation"]
    pd.testing.assert_series_equal(table["total"], total, check_exact=True, check_names=False)
    assert (table["stay"] == (table["end"] - table["start"]).dt.days).all()
    assert (table["long"] == (table["stay"] > 20)).all()
    assert table["patient"].tolist()[:2] == ["id-000001", "id-000002"]
    assert table["patient"].is_unique
    assert (table["stay"].dtype, table["long"].dtype) == (np.dtype("int64"), np.dtype("bool"))
    return True


@pytest.mark.filterwarnings("ignore::counterpoise.CounterpoiseWarning")
def test_every_row_keeps_the_rules_wherever_rows_come_from(made, tmp_path):
    assert keeps_its_rules(made)
    made.save(tmp_path / "made", csv=True)
    loaded = cp.load(tmp_path / "made")
    assert loaded.schema == made.schema
    assert cp.Schema.read(loaded.schema.to_dict()) == made.schema
    pd.testing.assert_frame_equal(loaded.table, made.table, check_exact=True)
    again = loaded.sample(700, seed=9)
    assert keeps_its_rules(again)
    assert again.replicates.shape == (700, 20)
    for table in (made.resample(2000, seed=1), made.duplicate(1.5)):
        assert table["patient"].is_unique
        assert (table["end"] >= table["start"]).all()
    page = (tmp_path / "made" / "report.html").read_text()
    assert "ancillary + accommodation" in page


def test_nothing_is_asked_about_what_is_derived_or_made_up(made, private_table):
    asked = str(made.card["ledger"])
    assert not any(name in asked for name in ("total", "stay", "long", "patient"))
    assert canary.search(made) == []
    # Columns of these names in the private table change nothing.
    more = private_table.assign(total="no number", stay=-1, long=None)
    same = cp.release(more, SCHEMA, 2.0, 1e-6, seed=1, replicates=0, progress=False)
    pd.testing.assert_frame_equal(same.table, made.table)


def test_analyses_take_derived_columns_like_others(made):
    mean = made.mean("total")
    assert mean.value == pytest.approx(
        np.average(made.table["total"].dropna(), weights=made.weights[made.table["total"].notna()])
    )
    assert mean.standard_error > 0
    assert abs(mean.value - 75) < 5
    assert 0 < made.proportion("long", True).value < 1
    assert len(made.mean("total", by="stay").members) > 1
    assert made.quantile("stay").value >= 0
    assert len(made.histogram("total")) == made.schema["total"].cells
    assert made.corr("total", "ancillary").value > 0.5
    assert "stay" in str(made.glm("total ~ stay + long"))
    features = str(made.glm("ancillary ~ ."))
    assert "departure" in features
    assert not any(name in features for name in ("total", "stay", "long", "patient"))
    with pytest.raises(AnalysisError, match="'patient' is an identifier"):
        made.proportion("patient")


def test_replicates_are_as_wide_as_without_rules(made, private_table):
    free = cp.Schema(SCHEMA.modelled.columns)
    other = cp.release(private_table, free, 2.0, 1e-6, seed=1, replicates=20, progress=False)
    for name in ("start", "end", "departure", "ancillary"):
        wider = made.mean(name).standard_error / other.mean(name).standard_error
        assert 0.4 < wider < 2.5, name


def test_contradictory_checks_cost_nothing(tmp_path):
    schema = cp.Schema([cp.Column.integer("hour", 0, 23)], checks=["hour > 30"])
    with pytest.raises(SchemaError, match="check 'hour > 30'"):
        cp.release(tmp_path / "is not there.csv", schema, 1.0, work=tmp_path / "work")
    assert not (tmp_path / "work").exists()


def test_a_check_that_only_the_model_contradicts_is_named_afterwards():
    columns = [cp.Column.integer("a", 0, 99_999, bins=4), cp.Column.integer("b", 0, 99_999, bins=4)]
    schema = cp.Schema(columns, checks=["a == b + 1"])
    private = pd.DataFrame({"a": np.arange(1, 501), "b": np.arange(500)})
    with pytest.raises(SchemaError, match="check 'a == b \\+ 1'"):
        cp.release(private, schema, 1.0, 1e-6, seed=1, progress=False)


def test_a_target_is_a_column_that_is_asked_for():
    with pytest.raises(MethodError, match="target: 'total' is not asked of the private table"):
        plan_release(SCHEMA, cp.Budget(1.0, 1e-6), target="total")


def test_paid_bounds_carry_over_to_what_is_derived_from_them(private_table):
    paid = {"minimum": "paid", "maximum": "paid"}
    schema = cp.Schema(
        [
            cp.Column.continuous("ancillary", sources=paid),
            cp.Column.categorical("sex", sources={"enum": "paid"}),
            cp.Column.derived("double", "2 * ancillary"),
        ],
        checks=["sex != 'male' or ancillary < 50", "sex != 'never seen'"],
    )
    made = cp.release(private_table, schema, 4.0, 1e-6, seed=1, replicates=0, progress=False)
    assert made.schema["double"].maximum == 2 * made.schema["ancillary"].maximum
    assert (made.table["double"] == 2 * made.table["ancillary"]).all()
    assert made.table["ancillary"][made.table["sex"] == "male"].max() < 50


@pytest.mark.filterwarnings("ignore::counterpoise.CounterpoiseWarning")
def test_rows_from_elsewhere_that_break_a_rule_are_refused(made, private_table):
    rows = made.table[list(SCHEMA.modelled.names)]
    weighed = cp.weigh(private_table, rows, SCHEMA, 1.0, 1e-6, seed=1, replicates=5, progress=False)
    assert keeps_its_rules(weighed)
    broken = rows.assign(end=rows["start"] - pd.Timedelta(days=1))
    late = rows["start"] > pd.Timestamp("2020-01-01")
    with pytest.raises(CounterpoiseError, match=r"check 'end >= start': 1,\d\d\d of the 1,\d\d\d"):
        cp.weigh(private_table, broken[late], SCHEMA, 1.0, 1e-6, progress=False)


def test_an_interrupted_run_belongs_to_its_rules(private_table, tmp_path):
    options = {"seed": 1, "replicates": 0, "progress": False, "work": tmp_path / "work"}
    cp.release(private_table, SCHEMA, 2.0, 1e-6, **options)
    fewer = cp.Schema(SCHEMA.columns, checks=SCHEMA.checks[:2])
    with pytest.raises(CounterpoiseError, match="work"):
        cp.release(private_table, fewer, 2.0, 1e-6, **options)


def test_the_command_line_takes_and_shows_rules(private_table, tmp_path):
    private_table.to_csv(tmp_path / "table.csv", index=False)
    SCHEMA.write(tmp_path / "schema.json")
    shown = CliRunner().invoke(group, ["schema", str(tmp_path / "schema.json")])
    assert "= ancillary + accommodation" in shown.output
    assert "check: end >= start" in shown.output
    stated = ["--schema", str(tmp_path / "schema.json"), "--epsilon", "2", "--delta", "1e-6"]
    others = ["--replicates", "5", "--seed", "1", "--synthesizer", "independent", "--quiet"]
    ran = CliRunner().invoke(
        group,
        ["release", str(tmp_path / "table.csv"), "--out", str(tmp_path / "out"), *stated, *others],
    )
    assert ran.exit_code == 0, ran.output
    assert keeps_its_rules(cp.load(tmp_path / "out"))


FIELDS = [
    cp.Column.integer("k", 0, 5),
    cp.Column.integer("m", -10, 300, bins=6, nullable=True),
    cp.Column.continuous("x", -1, 1, bins=4),
    cp.Column.boolean("t", nullable=True),
    cp.Column.categorical("c", ["red", "green", "blue"]),
]
RULES = [
    ["k <= 3 or t", "m % 7 != 0"],
    ["x > 0 and k != 2", "c != 'red' or x < 0.5"],
    ["is_null(m) == (k == 0)"],
    ["z >= 0", "c in ['red', 'blue']"],
    ["not t", "abs(x) > 0.3", "m > 100 or k >= 1"],
]


@pytest.mark.parametrize(
    ("checks", "synthesizer"),
    [*itertools.product(RULES, ["independent", "privbayes"])],
    ids=lambda each: each if isinstance(each, str) else each[0],
)
def test_random_tables_obey_whatever_the_rules(checks, synthesizer):
    derived = [cp.Column.derived("z", "k * x"), cp.Column.derived("w", "m // 2", "integer")]
    schema = cp.Schema([*FIELDS, *derived, cp.Column.identifier("id")], checks=checks)
    generator = np.random.default_rng(len(checks[0]))
    codes = generator.integers(0, schema.modelled.sizes, (200, 5))
    private = schema.modelled.decode(codes, generator)
    made = cp.release(
        private, schema, 1.0, synthesizer=synthesizer, seed=2, replicates=3, progress=False
    )
    assert all_obeyed(made.schema, made.table).all()
    assert (made.table["z"] == made.table["k"] * made.table["x"]).all()
    assert made.table["w"].equals(made.table["m"] // 2)
    assert made.table["id"].tolist() == list(range(1, len(made.table) + 1))
