"""The reading of a column as DuckDB SQL, for files, and for text wherever it is.

Each expression maps a column of any type (text from a CSV, or what a Parquet file holds) to what
it is coded from (`readings`): a number on the numeric scale, or a place in the list of categories.
Text is read by these very expressions in memory too, so that there is one reading of it. Nothing
here can raise on a value: whatever cannot be cast is null. Names and literals are quoted, never
pasted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from counterpoise.schema.column import Column
from counterpoise.schema.quoting import quote_name, quote_text
from counterpoise.schema.rules import LARGEST_INTEGER, texts
from counterpoise.schema.spelling import PLAIN, Spelling

# A time of day followed by an offset or the name of a zone.
_ZONED = "':[0-9.]+ *[-+A-Za-z]'"
_YEAR_FIRST = "'^ *[0-9]{4}|^-?infinity$'"
_IN_ZONE = "'TIMESTAMP WITH TIME ZONE'"


def place_expression(
    column: Column, source: str | None = None, missing_values: Iterable[str] = ("",)
) -> str:
    """SQL for the place of a category in the schema's list, and after them that of null.

    `source` is the name of the column in the relation, if that differs.

    >>> "ENUM('a', 'b')" in place_expression(Column.categorical("letter", ["a", "b"]))
    True
    """
    column.require_complete()
    return _category_place(column, _name(column, source), _words(column, missing_values))


def value_expression(
    column: Column, source: str | None = None, missing_values: Iterable[str] = ("",)
) -> str:
    """SQL for the value of a numeric column, clamped, on the numeric scale; NULL for null."""
    column.require_complete()
    value = _read(column, _name(column, source), _words(column, missing_values))
    return f"CASE WHEN {value} IS NULL THEN NULL ELSE {_clamped(column, value)} END"


def filled_expression(
    column: Column, source: str | None = None, missing_values: Iterable[str] = ("",)
) -> str:
    """SQL for the value of a numeric column as above, but the minimum for null: never NULL."""
    column.require_complete()
    return _clamped(column, _read(column, _name(column, source), _words(column, missing_values)))


def reading_expression(
    column: Column, source: str | None = None, missing_values: Iterable[str] = ("",)
) -> str:
    """SQL for a text of what a value is read as, before any bounds or lists; NULL for null.

    Two values of a column with one reading have one code, whatever the schema comes to say of it.
    """
    name, missing = _name(column, source), _words(column, missing_values)
    if column.is_numeric:
        value = _read(column, name, missing)
        # Adding zero makes one of the two zeros.
        is_moment = column.kind in ("date", "datetime")
        return f"CAST({value} AS VARCHAR)" if is_moment else f"CAST({value} + 0 AS VARCHAR)"
    return _key(column, name, missing)


def text_expression(
    column: Column, source: str | None = None, missing_values: Iterable[str] = ("",)
) -> str:
    """SQL for the text that is compared with text categories; NULL for null."""
    return _text(_name(column, source), _words(column, missing_values))


def _name(column: Column, source: str | None) -> str:
    [name] = texts([column.name if source is None else source], "a source is named by text")
    return quote_name(name)


def _words(column: Column, missing_values: Iterable[str]) -> tuple[str, ...]:
    own = column.spelling.missing_values
    return texts(missing_values, "words for null must be a list of texts") if own is None else own


def _read(column: Column, name: str, missing: tuple[str, ...]) -> str:
    """The value of a numeric column as a DOUBLE, a DATE or a TIMESTAMP; NULL for null."""
    spelling = column.spelling
    if column.kind in ("date", "datetime"):
        moment = _moment(name, missing)
        if spelling.format is not None:
            is_moment = f"typeof({name}) = 'DATE' OR starts_with(typeof({name}), 'TIMESTAMP')"
            spelled = spelling.moment_of(_text(name, missing))
            moment = f"CASE WHEN {is_moment} THEN {moment} ELSE {spelled} END"
        return f"CAST({moment} AS DATE)" if column.kind == "date" else moment
    if spelling.clock is not None:
        return spelling.time_of(_text(name, missing, cuts_midnight=False))
    return f"nullif({_number(name, missing, spelling)}, {_double(float('nan'))})"


def _number(name: str, missing: tuple[str, ...], spelling: Spelling = PLAIN) -> str:
    """The number that a value is or spells, a DOUBLE; NULL where it is none."""
    of_text = _unless_missing(name, spelling.number_of(f"CAST({name} AS VARCHAR)"), missing)
    return f"CASE WHEN {_is_text(name)} THEN {of_text} ELSE TRY_CAST({name} AS DOUBLE) END"


def _clamped(column: Column, value: str) -> str:
    """The value within the bounds, on the numeric scale; NULL becomes the minimum.

    least() and greatest() pass over NULL. An expression here holds its operand once, because
    the text of nested ones would double with every level.
    """
    if column.kind in ("integer", "continuous"):
        low, high = _double(column.low), _double(column.high)
        within = f"least(greatest({value}, {low}), {high})"
        return within if column.kind == "continuous" else f"CAST(floor({within}) AS BIGINT)"
    bounds: tuple[Any, Any] = (column.minimum, column.maximum)
    type_ = "DATE" if column.kind == "date" else "TIMESTAMP"
    earliest, latest = (f"{type_} {quote_text(bound.isoformat())}" for bound in bounds)
    within = f"least(greatest({value}, {earliest}), {latest})"
    if column.kind == "date":
        return f"CAST({within} - DATE '1970-01-01' AS BIGINT)"
    return f"epoch_us({within})"


def _category_place(column: Column, name: str, missing: tuple[str, ...]) -> str:
    column = column.ungrouped
    assert column.categories is not None
    codes = {category: code for code, category in enumerate(column.categories)}
    null_code = column.null_code
    other = codes[column.other] if column.other is not None else None
    unlisted = next(code for code in (other, null_code, 0) if code is not None)
    null = next(code for code in (null_code, other, 0) if code is not None)
    key, is_text = _key(column, name, missing), column.category_type == "string"
    members = [str(each if is_text else int(each)) for each in column.categories]
    # A cast to an ENUM is one hash lookup a row; a CASE, a list or a map is a scan a row.
    listed = ", ".join(quote_text(member) for member in members)
    position = f"CAST(enum_code(TRY_CAST({key} AS ENUM({listed}))) AS INTEGER)"
    code = f"coalesce({position}, {unlisted})"
    return code if null == unlisted else f"CASE WHEN {key} IS NULL THEN {null} ELSE {code} END"


def _key(column: Column, name: str, missing: tuple[str, ...]) -> str:
    """The text by which a category is known; NULL where none of its type can be read."""
    if column.category_type == "string":
        return _text(name, missing)
    if column.category_type == "boolean":
        return _truth(name, missing, column.spelling)
    return _whole_number(_number(name, missing))


def _text(name: str, missing: tuple[str, ...], cuts_midnight: bool = True) -> str:
    # Pandas turns whole numbers into floats where there are nulls: 1.0 must match "1", and a
    # moment at midnight its date. Adding zero makes one of the two zeros.
    text = f"CAST({name} AS VARCHAR)"
    number = f"CAST(TRY_CAST({name} AS DOUBLE) + 0 AS VARCHAR)"
    in_utc = f"CAST(timezone('UTC', TRY_CAST({name} AS TIMESTAMPTZ)) AS VARCHAR)"
    moment = f"CASE typeof({name}) WHEN {_IN_ZONE} THEN {in_utc} ELSE {text} END"
    is_moment = f"starts_with(typeof({name}), 'TIMESTAMP')"
    # Moments in whole seconds are days where a frame holds them, and have no time.
    is_cut = is_moment if cuts_midnight else f"typeof({name}) = 'TIMESTAMP_S'"
    uncut = "" if cuts_midnight else f"WHEN {is_moment} THEN {moment} "
    read = (
        f"CASE WHEN typeof({name}) IN ('DOUBLE', 'FLOAT') "
        f"THEN nullif(regexp_replace({number}, '\\.0$', ''), 'nan') "
        f"WHEN {is_cut} THEN regexp_replace({moment}, ' 00:00:00$', '') "
        f"{uncut}ELSE {text} END"
    )
    return _unless_missing(name, read, missing)


def _whole_number(number: str) -> str:
    """A whole number as text, the empty text (which no category is) for any other number."""
    is_whole = f"{number} = floor({number}) AND abs({number}) <= {_double(LARGEST_INTEGER)}"
    return (
        f"CASE WHEN coalesce(isnan({number}), true) THEN NULL "
        f"WHEN {is_whole} THEN CAST(TRY_CAST({number} AS BIGINT) AS VARCHAR) ELSE '' END"
    )


def _truth(name: str, missing: tuple[str, ...], spelling: Spelling) -> str:
    """A truth as '1' or '0'; NULL where a value neither is nor spells one.

    Where no word fits, a whole number is read as it is written without decimals: 1.0 as "1".
    """
    word = spelling.truth_of(f"CAST({name} AS VARCHAR)")
    number = spelling.truth_of(_whole_number(_number(name, ())))
    spelled = _unless_missing(name, f"coalesce({word}, {number})", missing)
    # What is a truth already needs no words, which take several times as long.
    truth = f"CAST(TRY_CAST(TRY_CAST({name} AS BOOLEAN) AS INTEGER) AS VARCHAR)"
    return f"CASE typeof({name}) WHEN 'BOOLEAN' THEN {truth} ELSE {spelled} END"


def _moment(name: str, missing: tuple[str, ...]) -> str:
    text = f"CAST({name} AS VARCHAR)"
    in_utc = f"timezone('UTC', TRY_CAST({name} AS TIMESTAMPTZ))"
    # The database takes 01/02/03 for a day of the year 1, and has a word for that of 1970.
    is_year_first = f"regexp_matches({text}, {_YEAR_FIRST})"
    of_text = (
        f"CASE WHEN regexp_matches({text}, {_ZONED}) AND {is_year_first} THEN {in_utc} "
        f"WHEN {is_year_first} THEN TRY_CAST({text} AS TIMESTAMP) END"
    )
    # A cast from nanoseconds rounds; numpy cuts down, which keeps a moment within its day.
    nanoseconds = f"epoch_ns(TRY_CAST({name} AS TIMESTAMP_NS))"
    cut = f"make_timestamp(({nanoseconds} - ({nanoseconds} % 1000 + 1000) % 1000) // 1000)"
    # A DATE may lie beyond what a TIMESTAMP can hold.
    day = f"least(greatest(TRY_CAST({name} AS DATE), DATE '0001-01-01'), DATE '9999-12-31')"
    return (
        f"CASE WHEN {name} IS NULL THEN NULL ELSE CASE typeof({name}) "
        f"WHEN 'DATE' THEN CAST({day} AS TIMESTAMP) "
        f"WHEN {_IN_ZONE} THEN {in_utc} "
        f"WHEN 'TIMESTAMP_NS' THEN {cut} "
        f"WHEN 'TIMESTAMP' THEN TRY_CAST({name} AS TIMESTAMP) "
        f"WHEN 'TIMESTAMP_S' THEN TRY_CAST({name} AS TIMESTAMP) "
        f"WHEN 'TIMESTAMP_MS' THEN TRY_CAST({name} AS TIMESTAMP) "
        f"ELSE {_unless_missing(name, of_text, missing)} END END"
    )


def _is_text(name: str) -> str:
    """Whether a column holds text, which is where words for null are looked for."""
    type_ = f"typeof({name})"
    return f"({type_} IN ('VARCHAR', 'JSON', 'BLOB') OR starts_with({type_}, 'ENUM'))"


def _unless_missing(name: str, then: str, missing: tuple[str, ...]) -> str:
    """An expression, or NULL where the column is one of the texts that stand for null."""
    if not missing:
        return then
    # Not IN: a longer list would be planned as a join, with the cost of one.
    text = f"CAST({name} AS VARCHAR)"
    is_token = " OR ".join(f"{text} = {quote_text(token)}" for token in missing)
    return f"CASE WHEN {_is_text(name)} AND ({is_token}) THEN NULL ELSE {then} END"


def _double(value: Any) -> str:
    # A bare 0.1 would be a DECIMAL.
    return f"CAST({quote_text(repr(float(value)))} AS DOUBLE)"
