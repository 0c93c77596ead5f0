"""Spark gives the vault the same exact answers as memory, and shows no row to anybody.

All of it runs in one local session, because starting one takes longer than the tests. Where there
is no Java it is skipped, and says so.
"""

import os
import pickle
import re
import shutil
import sys
import threading
import time
from dataclasses import dataclass, replace

import duckdb
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import counterpoise as cp
from counterpoise.errors import TableError, VaultError
from counterpoise.networks import Network
from counterpoise.networks.inputs import Inputs
from counterpoise.schema import Column, Schema, read_table, write_parquet
from counterpoise.synthesizers import SYNTHESIZERS
from counterpoise.vault import Budget, Dependence, DescentPlan, TeacherPlan, Vault
from counterpoise.vault.storage import open_storage
from counterpoise.vault.storage import spark as spark_storage
from counterpoise.vault.storage.spark_frames import by_position, spark_frame
from counterpoise.vault.storage.spark_tasks import Gather, Packing, Ready
from counterpoise.weights import WEIGHTERS
from tests.schema.schema_strategies import schemas
from tests.schema.test_sql_coding import COLUMNS, HARD_TEXTS, TYPED
from tests.vault import test_people

pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed: Spark is not tested")
pytestmark = [
    pytest.mark.skipif(shutil.which("java") is None, reason="no Java: Spark is not tested"),
    # Pyspark's own: it has not caught up with pandas 3.
    pytest.mark.filterwarnings("ignore::FutureWarning:pyspark"),
]

CANARY = "Canary-Zebrafinch-8231"
SCHEMA = Schema(
    [
        Column.categorical("ward", ["A", "B", "C"], other="C"),
        Column.integer("stay", 0, 60),
        Column.continuous("cost", 0.0, 1000.0, nullable=True),
    ]
)


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    from pyspark.sql import SparkSession

    folder = tmp_path_factory.mktemp("spark")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        # For jobs this small, planning and compiling take longer than the work.
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.sql.codegen.wholeStage", "false")
        .config("spark.sql.adaptive.enabled", "false")
        .config("spark.local.dir", str(folder / "local"))
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        # Not that of the machine: what is read must not depend on it.
        .config("spark.sql.session.timeZone", "Asia/Tokyo")
        .getOrCreate()
    )
    yield session
    session.stop()


def rows(count=900, seed=1):
    generator = np.random.default_rng(seed)
    cost = generator.gamma(2.0, 90.0, count)
    cost[::11] = np.nan
    return pd.DataFrame(
        {
            "ward": generator.choice(["A", "B", "C", "D"], count, p=[0.5, 0.3, 0.15, 0.05]),
            "stay": generator.poisson(4, count),
            "cost": cost,
        }
    )


@pytest.fixture
def path(tmp_path):
    write_parquet(rows(), tmp_path / "rows.parquet")
    return tmp_path / "rows.parquet"


@pytest.fixture
def frame(session, path):
    return session.read.parquet(str(path)).repartition(3)


@dataclass(frozen=True)
class UnitBits:
    """The bits of the units of every column, in two halves, as whole numbers to be added up."""

    size: int

    def __call__(self, coded):
        bits = np.ascontiguousarray(coded.units).view(np.int64)
        return np.concatenate([(bits >> 32).sum(axis=0), (bits & 0xFFFFFFFF).sum(axis=0)])


def assert_coded_alike(session, schema, path):
    """Codes row by row, and units to the bit."""
    expected = schema.encode(read_table(path))
    storage = open_storage(session.read.parquet(str(path)), schema)
    packing = Packing(schema.sizes)
    storage._codes = storage._packed(packing)
    blocks = storage._codes.collect()
    parts = [np.column_stack(packing.unpack(bytes(block[2]), block[1])) for block in blocks]
    np.testing.assert_array_equal(np.concatenate(parts), expected.codes)
    summand = UnitBits(2 * len(schema))
    np.testing.assert_array_equal(storage.add_up(summand, 100), summand(expected))
    storage.close()


def test_hard_texts_are_coded_as_in_memory(session, tmp_path):
    texts = [*HARD_TEXTS, None]
    schema = Schema(COLUMNS)
    table = pd.DataFrame({name: pd.Series(texts, dtype=object) for name in schema.names})
    write_parquet(table, tmp_path / "hard.parquet")
    assert_coded_alike(session, schema, tmp_path / "hard.parquet")


@settings(max_examples=3, deadline=None)
@given(schema=schemas(), seed=st.integers(0, 2**32))
def test_every_schema_is_coded_as_in_memory(session, tmp_path_factory, schema, seed):
    generator = np.random.default_rng(seed)
    drawn = np.column_stack([generator.integers(0, size, 20) for size in schema.sizes])
    path = tmp_path_factory.mktemp("alike") / "rows.parquet"
    write_parquet(schema.decode(drawn, generator), path)
    assert_coded_alike(session, schema, path)


# What Spark reads as a type of its own. It has no unsigned or wider integers and no nanoseconds.
TYPES = [
    *("DOUBLE", "FLOAT", "BIGINT", "TINYINT", "DECIMAL(18, 3)", "BOOLEAN", "DATE", "TIMESTAMP"),
    *("TIMESTAMP_MS", "TIMESTAMPTZ", "ENUM('a,b', 'élan')"),
]

READ = ("texts", "numbers", "truth", "pair", "few", "real", "day", "moment")  # one column a kind


def test_every_type_of_a_parquet_file_is_coded_as_in_memory(session, tmp_path):
    columns, selected, sources = [], [], []
    for place, type_ in enumerate(TYPES):
        values = [*TYPED[type_].split(", "), *["NULL"] * 20][:12]
        sources.append(
            f"unnest([{', '.join(f'CAST({v} AS {type_})' for v in values)}]) AS v{place}"
        )
        for column in (column for column in COLUMNS if column.name in READ):
            if type_ == "TIMESTAMPTZ" and not column.is_numeric:
                continue  # its text depends on the zone of a connection; its moment does not
            name = f"{type_} as {column.name}"
            columns.append(replace(column, name=name))
            selected.append(f'v{place} AS "{name.replace(chr(34), chr(34) * 2)}"')
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT {', '.join(selected)} FROM (SELECT {', '.join(sources)})) "
            f"TO '{tmp_path / 'typed.parquet'}'"
        )
    assert_coded_alike(session, Schema(columns), tmp_path / "typed.parquet")


def asked(vault):
    """Every query that Spark answers, as one list of noisy numbers and texts."""
    part = vault.budget.whole.part(0.1)
    found = [vault.total(part).value]
    vault.choose_cells(part, part)
    for answer in vault.counts([("ward", "stay"), ("cost",), ("cost", "stay", "ward")], part):
        found += answer.values.ravel().tolist()
    found += vault.sums(Halves(), 2.0, part).values.tolist()
    found.append(vault.select([("ward", "stay"), ("ward", "cost")], Dependence(), part))
    found += vault.quantiles("cost", [0.25, 0.5], part).units.tolist()
    return found


@dataclass(frozen=True)
class Halves:
    names = ("1", "stay", "cost")

    def __call__(self, coded):
        return np.column_stack([np.ones(len(coded)), coded.units[:, 1:]])


def test_the_same_seed_gives_the_same_answers_on_spark_as_elsewhere(session, path, frame):
    answers = []
    for table, storage in ((path, "memory"), (path, "duckdb"), (frame, "auto")):
        with Vault(table, SCHEMA, Budget(5.0, 1e-6), storage=storage, seed=7) as vault:
            answers.append(asked(vault))
    assert answers[0] == answers[1] == answers[2]


def test_what_a_schema_leaves_open_is_found_alike(path, frame):
    schema = Schema(
        [
            Column.categorical("ward", sources=(("enum", "paid"),)),
            Column.integer("stay", sources=(("minimum", "paid"), ("maximum", "paid"))),
        ]
    )
    found = []
    for table, storage in ((path, "memory"), (path, "duckdb"), (frame, "spark")):
        with Vault(table, schema, Budget(20.0, 1e-4), storage=storage, seed=2) as vault:
            found.append(vault.learn_domain(vault.budget.whole.part(0.9), 1e-5))
    assert found[0] == found[1] == found[2]
    assert {"A", "B", "C"} <= set(found[0]["ward"].categories)


def test_a_release_is_the_same_from_a_table_of_the_catalog_and_a_frame_in_memory(session, frame):
    session.sql("CREATE DATABASE IF NOT EXISTS hospital")
    frame.write.mode("overwrite").saveAsTable("hospital.visits")
    options = {"synthesizer": "mst", "replicates": 3, "rows": 200, "seed": 4, "progress": False}
    here = cp.release(rows(), SCHEMA, 2.0, 1e-6, **options)
    there = cp.release("spark:hospital.visits", SCHEMA, 2.0, 1e-6, **options)
    pd.testing.assert_frame_equal(here.table, there.table)
    np.testing.assert_array_equal(here.weights, there.weights)
    np.testing.assert_array_equal(here.replicates, there.replicates)


def test_persons_are_bounded_as_in_memory_however_their_rows_are_spread(session, tmp_path):
    table = test_people.visits()
    table.loc[::17, "patient"] = 1003  # one with more rows than others
    table = table.astype({"patient": "string"})
    table.loc[5:8, "patient"] = None
    write_parquet(table, tmp_path / "visits.parquet")
    budget = Budget(2.0, 1e-6, max_rows_per_person=2)
    frames = session.read.parquet(str(tmp_path / "visits.parquet"))
    tables = []
    for source in (table, frames, frames.repartition(5, "cost")):
        with Vault(source, test_people.SCHEMA, budget, person="patient", seed=1) as vault:
            tables.append(vault._storage.counts([("ward", "stay", "cost")])[0].tolist())
            sizes = table.groupby("patient").size()
            assert vault._storage.rows() == np.minimum(sizes, 2).sum()
            assert vault._storage.persons().tolist() == [(sizes <= 2).sum(), (sizes > 2).sum()]
            if source is frames:
                # Not in the two hundred parts of Spark's, each of which were a task of its own.
                kept = vault._storage._frame
                assert kept.rdd.getNumPartitions() == source.rdd.getNumPartitions()
    assert tables[0] == tables[1] == tables[2]


def test_queries_that_need_rows_are_refused_before_they_are_charged(frame):
    with Vault(frame, SCHEMA, Budget(1.0, 1e-6)) as vault:
        inputs = Inputs(vault.schema)
        network = Network((inputs.size, 4, 1))
        ask = [
            lambda: vault.minimise(
                Halves(), 2.0, SCHEMA.encode(rows()), vault.budget.whole, rows=9, regularisation=1
            ),
            lambda: vault.descent(DescentPlan(inputs, network, "logistic", 0.1, 90, 1.0, 2.0, 5)),
            lambda: vault.teachers(TeacherPlan(inputs, network, teachers=5, queries=5, noise=9.0)),
        ]
        for query in ask:
            with pytest.raises(VaultError, match="stay in Spark's executors; choose a synthesizer"):
                query()
        assert vault.ledger.spends == ()
        with pytest.raises(VaultError, match="features cannot be sent to Spark's executors"):
            vault.sums(Unsendable(), 1.0, vault.budget.whole)
        assert vault.ledger.spends == ()


class Unsendable:
    names = ("1",)

    def __init__(self):
        self.lock = threading.Lock()

    def __call__(self, coded):
        return np.ones((len(coded), 1))


@pytest.mark.parametrize("methods", [{"synthesizer": "dpgan"}, {"weights": "logistic"}])
def test_a_release_by_methods_that_need_rows_is_refused_before_anything_is_charged(
    frame, tmp_path, methods
):
    [name] = methods.values()
    with pytest.raises(VaultError, match=f"{name}: it needs the rows themselves"):
        cp.release(frame, SCHEMA, 1.0, 1e-6, work=tmp_path / "work", progress=False, **methods)
    assert "charge" not in "".join(
        file.read_text(errors="replace") for file in (tmp_path / "work").rglob("*.jsonl")
    )


def test_methods_that_need_rows_are_marked():
    """What asks for descents, teachers or minimisers; see `needs_rows` in the guide to plug-ins."""
    marked = {
        name
        for registry in (SYNTHESIZERS, WEIGHTERS)
        for name in registry
        if getattr(registry.get(name), "needs_rows", False)
    }
    assert marked == {
        *("dpgan", "dpcgan", "gan", "cgan", "mmdgan", "pategan", "support-points"),
        *("logistic", "logistic-outputs", "dp-mlp", "mlp", "pate"),
    }


def test_frames_that_differ_from_run_to_run_are_refused(session, frame):
    from pyspark.sql import functions

    budget = Budget(1.0, 1e-6)
    drawn, now = functions.udf(float, "double").asNondeterministic(), functions.current_timestamp()
    of_ward, types = frame.groupBy("ward"), frame.schema
    frame.createOrReplaceTempView("visits")
    for what, frames in {
        "an expression such as rand()": (
            frame.where(functions.rand() > 0.5),
            frame.withColumn("row", functions.monotonically_increasing_id()),
            frame.withColumn("cost", drawn("cost")),
        ),
        "a sample": (frame.sample(0.5, seed=1), frame.randomSplit([0.5, 0.5], seed=1)[0]),
        "a limit without an order": (
            frame.limit(5),
            frame.offset(5),
            frame.sortWithinPartitions("cost").limit(5),
            # In what a row is looked up in, too.
            session.sql("SELECT * FROM visits WHERE stay IN (SELECT stay FROM visits LIMIT 3)"),
            session.sql("WITH few AS (SELECT * FROM visits LIMIT 3) SELECT * FROM few"),
        ),
        "the time of the run": (
            frame.withColumn("now", now),
            frame.where(functions.unix_timestamp() > 0),
            session.sql("SELECT * FROM visits WHERE now() > current_date"),
        ),
        "dropDuplicates": (frame.dropDuplicates(["ward"]),),
        "an aggregate of whatever row comes first": (
            of_ward.agg(functions.first("stay").alias("stay"), functions.first("cost")),
            of_ward.agg(functions.max_by("stay", "cost"), functions.any_value("cost")),
        ),
        "a function over parts or groups of rows": (
            frame.mapInPandas(lambda parts: parts, types),
            frame.mapInArrow(lambda parts: parts, types),
            of_ward.applyInPandas(lambda group: group, types),
            of_ward.cogroup(of_ward).applyInPandas(lambda group, _: group, types),
        ),
    }.items():
        for unlike in frames:
            words = f"the frame has {re.escape(what)}.*no two runs of it need give the same rows"
            with pytest.raises(TableError, match=f"{words}; write it .* or checkpoint it first"):
                Vault(unlike, SCHEMA, budget)
    stream = session.readStream.format("rate").load()
    with pytest.raises(TableError, match="a stream never gives the same rows twice"):
        Vault(stream, SCHEMA, budget)


def test_frames_whose_plan_shows_no_difference_are_taken(session, frame):
    from pyspark.sql import Window, functions

    best = Window.partitionBy("ward").orderBy("cost", "stay")
    checkpointed = frame.sample(0.5, seed=1).localCheckpoint()
    for other in (
        checkpointed,
        frame.orderBy("cost", "stay").select("ward", "stay", "cost").limit(5),
        frame.distinct(),
        frame.withColumn("first", functions.first("cost").over(best)),
        frame.groupBy("ward").agg(functions.max("stay").alias("stay"), functions.sum("cost")),
        frame.withColumn("cost", functions.udf(float, "double")("cost")),
    ):
        assert spark_frame(other) is other
    checkpointed._jdf.queryExecution().analyzed().rdd().unpersist(True)


def test_a_frame_that_gives_another_number_of_rows_later_is_asked_no_more(session, tmp_path):
    place, budget = tmp_path / "changing", Budget(50.0, 1e-6)
    session.createDataFrame(rows(40)).coalesce(1).write.parquet(str(place))
    words = "another number of rows than before, .* nothing more is answered"
    for look in (
        lambda vault, share: vault.counts([["ward"]], share),
        lambda vault, share: vault.sums(Halves(), 2.0, share),
        lambda vault, share: vault.total(share),
    ):
        frame = session.read.parquet(str(place))
        with Vault(frame, SCHEMA, budget, seed=1) as vault:
            share = vault.budget.whole.part(0.1)
            vault.total(share)
            # Behind the back of the plan, and again so that the next vault starts anew.
            session.createDataFrame(rows(7)).coalesce(1).write.mode("append").parquet(str(place))
            vault._storage._frame = by_position(session.read.parquet(str(place)), SCHEMA.names)
            with pytest.raises(VaultError, match=words) as told:
                look(vault, share)
            assert not re.search(r"\d", str(told.value))
            with pytest.raises(VaultError, match=words):
                vault.counts([["stay"]], share)


def test_what_cannot_be_opened_is_refused_in_words(session, frame, path, monkeypatch):
    budget = Budget(1.0, 1e-6)
    with pytest.raises(TableError, match="Spark's catalog has no table 'nowhere'"):
        Vault("spark:nowhere", SCHEMA, budget)
    with pytest.raises(TableError, match="lacks columns that the schema names: 'cost'"):
        Vault(frame.drop("cost"), SCHEMA, budget)
    with pytest.raises(VaultError, match="storage='memory' takes no table of Spark's"):
        Vault(frame, SCHEMA, budget, storage="memory")
    with pytest.raises(VaultError, match="storage='spark' takes a frame of Spark's"):
        Vault(path, SCHEMA, budget, storage="spark")
    monkeypatch.setattr(pyspark.sql.SparkSession, "getActiveSession", lambda: None)
    with pytest.raises(TableError, match="there is no active Spark session"):
        Vault("spark:hospital.visits", SCHEMA, budget)


def test_executors_that_cannot_do_the_work_are_refused_before_any_row_is_touched(
    session, frame, monkeypatch
):
    storage = open_storage(frame, SCHEMA)
    with pytest.raises(VaultError, match="another version of counterpoise than the driver"):
        storage._gather(session.range(1), Gather(Ready(), "bigint", version="0.0.1"))
    storage.close()
    monkeypatch.setattr(spark_storage, "Ready", Broken)
    with pytest.raises(VaultError, match="their Python, which PYSPARK_PYTHON names, needs"):
        open_storage(frame, SCHEMA)


class Broken:
    """A task that cannot be sent, as one whose package is missing cannot be read."""

    def __reduce__(self):
        raise RuntimeError


@dataclass(frozen=True)
class Quoting:
    """Features that fail, and quote the rows that they failed on."""

    names = ("1",)

    def __call__(self, coded):
        raise ValueError(f"{CANARY}: {coded.units.tolist()}")


@dataclass(frozen=True)
class Short:
    names = ("1",)

    def __call__(self, coded):
        return np.ones((1, 1))


def shown_by(error, capfd):
    """What an error holds, and what anybody wrote meanwhile."""
    time.sleep(0.1)  # the other side writes by itself
    written = capfd.readouterr()
    assert error.__context__ is None and error.__cause__ is None
    return f"{error!r} {written.out} {written.err}"


def test_a_failure_in_an_executor_shows_no_value(session, frame, capfd):
    with Vault(frame, SCHEMA, Budget(1.0, 1e-6)) as vault:
        part = vault.budget.whole.part(0.1)
        for features, kind in ((Quoting(), "ValueError"), (Short(), "VaultError")):
            with pytest.raises(VaultError, match=f"{kind} in an executor") as caught:
                vault.sums(features, 1.0, part)
            shown = shown_by(caught.value, capfd)
            assert CANARY not in shown and "Traceback" not in shown
        assert len(vault.ledger.spends) == 2  # what was looked at stays paid for


def test_a_frame_that_fails_by_itself_shows_no_value(session, capfd, monkeypatch):
    """Spark quotes a value that it cannot cast: in its error, in its log, in pyspark's log."""
    from pyspark.sql.classic.dataframe import DataFrame

    # What the JVM writes goes past the capture, so what it may write is looked at instead.
    levels = []
    plain = DataFrame.toArrow
    monkeypatch.setattr(
        DataFrame,
        "toArrow",
        lambda self: (
            levels.append(log4j.LogManager.getRootLogger().getLevel().toString()) or plain(self)
        ),
    )
    quoting = session.createDataFrame([(CANARY,)], ["text"]).selectExpr("CAST(text AS INT) AS stay")
    schema = Schema([Column.integer("stay", 0, 60)])
    log4j = session._jvm.org.apache.logging.log4j
    level = log4j.LogManager.getRootLogger().getLevel().toString()
    with Vault(quoting, schema, Budget(1.0, 1e-6)) as vault:
        part = vault.budget.whole.part(0.2)
        for query in (
            lambda: vault.counts([("stay",)], part),
            lambda: vault.quantiles("stay", [0.5], part),
        ):
            with pytest.raises(VaultError, match="behind the boundary") as caught:
                query()
            assert CANARY not in shown_by(caught.value, capfd)
    assert set(levels) == {"OFF"} != {level}
    assert log4j.LogManager.getRootLogger().getLevel().toString() == level
    with pytest.raises(Exception, match=CANARY):
        quoting.collect()  # as Spark would have it, or this test were none


def test_only_sums_reach_the_driver_and_codes_are_kept_in_memory_alone(session, frame, monkeypatch):
    from pyspark.sql.classic.dataframe import DataFrame

    fetched = []
    to_arrow = DataFrame.toArrow

    def watched(self):
        fetched.append(to_arrow(self))
        return fetched[-1]

    def refused(*_):
        raise AssertionError("rows were fetched")

    monkeypatch.setattr(DataFrame, "toArrow", watched)
    for way in ("collect", "toPandas", "take", "head", "toLocalIterator", "first"):
        monkeypatch.setattr(DataFrame, way, refused)
    with Vault(frame, SCHEMA, Budget(5.0, 1e-6), seed=1) as vault:
        asked(vault)
        level = vault._storage._codes.storageLevel
        assert level.useMemory and not level.useDisk
        assert session.sparkContext._jsc.getPersistentRDDs().size() == 1
        with pytest.raises(VaultError, match="never copied or pickled"):
            pickle.dumps(vault._storage)
        with pytest.raises(VaultError, match="the rows stay in Spark's executors"):
            vault._storage.batches(10)
    assert session.sparkContext._jsc.getPersistentRDDs().size() == 0
    # Of nine hundred rows, cells and counts: never their values.
    assert {tuple(table.column_names) for table in fetched} == {("failure", "key", "sum(n)")}
    values = set(rows()["cost"].dropna())
    for table in fetched:
        assert not values & {*table.column(1).to_pylist(), *table.column(2).to_pylist()}


def test_a_table_without_rows_is_answered(session, path):
    empty = session.read.parquet(str(path)).where("stay < 0")
    with Vault(empty, SCHEMA, Budget(5.0, 1e-6), seed=1) as vault:
        assert vault._storage.rows() == 0
        assert vault._storage.counts([("ward",)])[0].tolist() == [0, 0, 0]
        assert vault._storage.add_up(UnitBits(6), 10).tolist() == [0] * 6
