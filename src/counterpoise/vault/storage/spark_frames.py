"""Spark's frames as sources of private rows: found by name, refused if no two runs are alike.

A frame is a plan that Spark runs anew for each question, and again in part when an executor is
lost or a kept block has made room for another. A row counts once in an answer if every run gives
the same rows. So a plan that shows that it need not is refused: by `rand()` or the like, by what
depends on the clock or on the order in which rows come, by functions over whole parts of the table,
and so is a stream. Of the rest the curator promises it: that its sources are left as they are while
the work goes on, that an order that decides which rows stay leaves no ties, and that functions of
its own give the same for the same. What Spark writes to its logs while it runs may quote rows, and
is kept quiet for as long.
"""

from __future__ import annotations

import contextlib
import threading
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from counterpoise.errors import TableError, VaultError

# What a table's name starts with, as in "spark:hospital.patients".
PREFIX = "spark:"

_INSTALL = "pip install 'counterpoise[spark]'"
_WRITE = "write it to a table of your own, and hand over its name: 'spark:database.table'"

# What a plan shows that may come out otherwise when it is run again, by the names of Spark's own
# classes: operators, the clock, and aggregates of whichever row comes first.
_OPERATORS = {
    "Sample": "a sample",
    **dict.fromkeys(
        (
            *("MapInPandas", "MapInArrow", "PythonMapInArrow", "MapPartitions", "MapGroups"),
            *("FlatMapGroupsInPandas", "FlatMapGroupsInArrow", "FlatMapCoGroupsInPandas"),
            *("FlatMapCoGroupsInArrow", "CoGroup", "ScriptTransformation"),
        ),
        "a function over parts or groups of rows, such as mapInPandas",
    ),
}
_CLOCK = {"CurrentDate", "CurrentTime", "CurrentTimestamp", "LocalTimestamp", "Now"}
_OF_THE_FIRST = {"AnyValue", "CollectList", "First", "Last", "MaxBy", "MinBy"}
_LIMITS = {"GlobalLimit", "LocalLimit", "Offset", "Tail"}
# Operators that leave the order of rows as it is.
_IN_ORDER = {*_LIMITS, "Project", "Filter", "SubqueryAlias"}

# Where pyspark writes the message of an error before it raises it.
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


def is_frame(table: Any) -> bool:
    """Whether a table is a frame of Spark's, of any kind."""
    return type(table).__module__.startswith("pyspark.") and hasattr(table, "sparkSession")


def is_named(table: Any) -> bool:
    """Whether a table is the name of one in Spark's catalog.

    >>> is_named("spark:hospital.patients"), is_named("patients.parquet")
    (True, False)
    """
    return isinstance(table, str) and table.startswith(PREFIX)


def spark_frame(table: Any) -> Any:
    """The frame of a name, or a frame as it is; refused unless runs of its plan are alike."""
    frame = _named(table) if is_named(table) else table
    if not hasattr(frame, "_jdf"):
        raise TableError(
            "a frame of Spark Connect does not show whether it gives the same rows each time; "
            "work in a session on the cluster itself"
        )
    if frame.isStreaming:
        raise TableError(f"a stream never gives the same rows twice; {_WRITE}")
    varying = _varying(frame._jdf.queryExecution().analyzed())
    if varying is not None:
        raise TableError(
            f"the frame has {varying}, so that no two runs of it need give the same rows; "
            f"{_WRITE}, or checkpoint it first"
        )
    return frame


def _varying(plan: Any) -> str | None:
    """What in a plan need not come out the same when it is run again; None where nothing shows."""
    if not plan.deterministic():
        return "an expression such as rand() or monotonically_increasing_id()"
    name = plan.nodeName()
    if name in _OPERATORS:
        return _OPERATORS[name]
    if name in _LIMITS and not _is_ordered(plan):
        return "a limit without an order"
    # Of all columns, whichever of the same rows stays is the same.
    if name == "Deduplicate" and plan.keys().size() < plan.output().size():
        return "dropDuplicates on some of its columns"
    expressions = {name for each in _each(plan.expressions()) for name in _names(each)}
    if expressions & _CLOCK:
        return "the time of the run, as of current_timestamp()"
    if name == "Aggregate" and expressions & _OF_THE_FIRST:
        return "an aggregate of whatever row comes first, such as first()"
    parts = (*_each(plan.children()), *_each(plan.subqueries()))
    return next((found for part in parts if (found := _varying(part)) is not None), None)


def _is_ordered(plan: Any) -> bool:
    """Whether an order of all rows stands below a limit."""
    while plan.nodeName() in _IN_ORDER:
        plan = plan.children().head()
    return plan.nodeName() == "Sort" and bool(getattr(plan, "global")())


def _names(expression: Any) -> Iterator[str]:
    """The names of an expression and of all that it is made of."""
    yield expression.nodeName()
    for part in _each(expression.children()):
        yield from _names(part)


def _each(sequence: Any) -> Iterator[Any]:
    """The members of a sequence of Spark's."""
    members = sequence.iterator()
    while members.hasNext():
        yield members.next()


def _named(table: str) -> Any:
    try:
        from pyspark.errors import AnalysisException, ParseException
        from pyspark.sql import SparkSession
    except ImportError:
        raise TableError(f"{table!r} needs pyspark: {_INSTALL}") from None
    session = SparkSession.getActiveSession()
    if session is None:
        raise TableError(
            f"{table!r}: there is no active Spark session; make one, with "
            "SparkSession.builder.getOrCreate(), or hand over a frame of yours"
        )
    name = table.removeprefix(PREFIX)
    try:
        return session.table(name)
    except (AnalysisException, ParseException):
        # Nothing was read yet; what Spark says is of its catalog, and longer than it helps.
        raise TableError(
            f"{table!r}: Spark's catalog has no table {name!r} for this session"
        ) from None


def by_position(frame: Any, names: Sequence[str]) -> Any:
    """The columns of these names, as `c0`, `c1` and so on: Spark does not tell "Age" from "age"."""
    columns = list(frame.columns)
    numbered = frame.toDF(*(f"n{place}" for place in range(len(columns))))
    return numbered.selectExpr(
        *(f"n{columns.index(name)} AS c{place}" for place, name in enumerate(names))
    )


def let_go(frame: Any) -> None:
    """Drop what is kept of a frame in the executors; a session that was stopped has done so."""
    if frame.sparkSession.sparkContext._jsc is not None:
        with quiet(frame.sparkSession):
            frame.unpersist(blocking=True)


class _Quiet:
    """How many vaults are looking now, and what Spark's logs were set to before the first."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.looking = 0
        self.levels: list[tuple[Any, Any]] = []


_QUIET = _Quiet()


@contextlib.contextmanager
def quiet(session: Any) -> Iterator[None]:
    """Spark's logs on this machine are off meanwhile: its errors quote what they stumbled over."""
    with _QUIET.lock:
        if _QUIET.looking == 0:
            _QUIET.levels = _turn_off(session)
        _QUIET.looking += 1
    try:
        with warnings.catch_warnings():
            # On pandas 3, which pyspark warns of, and which nothing here goes through.
            warnings.simplefilter("ignore", FutureWarning)
            yield
    finally:
        with _QUIET.lock:
            _QUIET.looking -= 1
            if _QUIET.looking == 0:
                _turn_on(session, _QUIET.levels)
                _QUIET.levels = []


def _turn_off(session: Any) -> list[tuple[Any, Any]]:
    _set_disabled(True)
    log4j = session._jvm.org.apache.logging.log4j
    context = log4j.LogManager.getContext(False)
    loggers = list(context.getConfiguration().getLoggers().values())
    levels = [(logger, logger.getLevel()) for logger in loggers]
    for logger in loggers:
        logger.setLevel(log4j.Level.OFF)
    context.updateLoggers()
    return levels


def _set_disabled(disabled: bool) -> None:
    """Pyspark's own loggers, which only pyspark may make: it writes to them in a way of its own."""
    from pyspark.logger import PySparkLogger

    for name in _LOGGERS:
        PySparkLogger.getLogger(name).disabled = disabled


def _turn_on(session: Any, levels: list[tuple[Any, Any]]) -> None:
    _set_disabled(False)
    for logger, level in levels:
        logger.setLevel(level)
    session._jvm.org.apache.logging.log4j.LogManager.getContext(False).updateLoggers()


def refuse_changed() -> None:
    """Refuse a frame that gave other rows than before, without a word of how many."""
    raise VaultError(
        "the frame has given another number of rows than before, so that its answers do not belong "
        f"together; {_WRITE}: of this one nothing more is answered"
    )


def refuse_rows(query: str) -> None:
    """Refuse a query that needs the rows themselves: they stay in the executors."""
    raise VaultError(
        f"{query}: it needs the rows themselves, which stay in Spark's executors; choose a "
        "synthesizer of counts, such as 'mst' or 'aim', and weights='moments', or hand over a "
        "Parquet file, which DuckDB reads in parts"
    )
