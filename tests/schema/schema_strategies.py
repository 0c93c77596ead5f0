"""Hypothesis strategies for columns and schemas of every kind, the awkward ones among them."""

from datetime import date, datetime

from hypothesis import strategies as st

from counterpoise.schema import Column, Grouping, Schema, Shape

texts = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=8
)
HARD_COLUMNS = [
    column
    for nullable in (False, True)
    for column in (
        Column.categorical("one", ["a"], nullable=nullable),
        Column.categorical("text", ["b", "a", "it's", "日本"], other="a", nullable=nullable),
        Column.ordinal("levels", ["low", "high"], nullable=nullable),
        Column.categorical("codes", [3, -1, 2**53], nullable=nullable),
        Column.categorical(
            "grouped",
            ["a", "it's", "b", "日本", "c"],
            other="c",
            grouping=Grouping((1, 0, 1, 2, 1), (0.1, 0.5, 0.1, 0.3, 0.0), (0.1,) * 5),
            nullable=nullable,
        ),
        Column.ordinal(
            "runs",
            [7, 2, 9, 4],
            grouping=Grouping((0, 0, 1, 1), (0.5, 0.5, 0.0, 0.0), (0.0,) * 4),
            nullable=nullable,
        ),
        Column.ordinal("ranks", [2, 1], nullable=nullable),
        Column.boolean("truth", nullable=nullable),
        Column.integer("few", -3, 4, nullable=nullable),
        Column.integer("many", -(10**9), 10**9 + 7, nullable=nullable),
        Column.integer("uneven", 0, 10, bins=4, nullable=nullable),
        Column.integer("edges", 0, 10, bins=(0, 1, 9, 10), nullable=nullable),
        Column.integer("constant", 5, 5, nullable=nullable),
        Column.integer("top", 0, 10, bins=(0, 9, 10, 10), nullable=nullable),
        Column.integer(
            "shaped",
            -500,
            500,
            bins=(-500, 0, 1, 500),
            shape=Shape((-500, -20, 0, 1, 70, 500), (1, 2, 3, 0, 1), 400.0),
            nullable=nullable,
        ),
        Column.continuous(
            "atoms",
            0,
            1e6,
            bins=(0, 5e-324, 30, 1e6),
            shape=Shape((0, 5e-324, 1, 30, 1e6 - 1e-9, 1e6), (3, 1, 1, 0, 1), 1e3),
            nullable=nullable,
        ),
        Column.integer("powers", 0, 10**6, scale="log", atoms=(777,), nullable=nullable),
        Column.continuous("ratio", -20, 8e5, bins=9, scale="log", step=0.01, nullable=nullable),
        Column.continuous("real", 0.1, 0.7, bins=1000, nullable=nullable),
        Column.continuous("far", 1e15, 1e15 + 3, nullable=nullable),
        Column.continuous("cut", -1, 1, bins=(-1, 0.1, 0.1 + 2**-53, 1), nullable=nullable),
        Column.date("days", date(1, 1, 1), date(9999, 12, 31), nullable=nullable),
        Column.date("week", date(2020, 1, 1), date(2020, 1, 7), nullable=nullable),
        Column.datetime("ages", datetime.min, datetime.max, bins=97, nullable=nullable),
        Column.datetime("hours", datetime(2020, 1, 1), datetime(2020, 1, 2), nullable=nullable),
    )
]

names = texts.filter(lambda name: "\r" not in name and "\n" not in name)
marks = st.dictionaries(
    st.sampled_from(["type", "minimum", "maximum", "enum", "required", "bins"]),
    st.sampled_from(["data", "public", "paid"]),
    max_size=3,
)
whole_numbers = st.integers(-(2**53), 2**53)
floats = st.floats(-1e12, 1e12)


@st.composite
def groupings(draw, kind, size):
    codes = draw(st.lists(st.integers(0, 2), min_size=size, max_size=size))
    codes = [sorted(set(codes)).index(code) for code in codes]
    parts = st.lists(st.floats(0, 1), min_size=size, max_size=size).map(tuple)
    return Grouping(
        tuple(sorted(codes) if kind == "ordinal" else codes),
        draw(parts.filter(any)),
        draw(parts),
    )


@st.composite
def category_columns(draw, name):
    categories = draw(
        st.one_of(
            st.lists(texts, min_size=1, max_size=6, unique=True),
            st.lists(whole_numbers, min_size=1, max_size=6, unique=True),
            st.lists(st.booleans(), min_size=1, max_size=2, unique=True),
        )
    )
    kind = draw(st.sampled_from(["categorical", "ordinal"]))
    return Column(
        name,
        kind,
        tuple(categories),
        grouping=draw(st.none() | groupings(kind, len(categories))),
        other=draw(st.none() | st.sampled_from(categories)),
        nullable=draw(st.booleans()),
        unit=draw(st.none() | texts),
        sources=tuple(draw(marks).items()),
    )


@st.composite
def numeric_columns(draw, name):
    kind = draw(st.sampled_from(["integer", "continuous", "date", "datetime"]))
    values = {
        "integer": draw(st.sampled_from([st.integers(-50, 50), st.integers(-(10**9), 10**9)])),
        "continuous": floats,
        "date": st.dates(),
        "datetime": st.datetimes(),
    }[kind]
    bounds = sorted(draw(st.lists(values, min_size=2, max_size=6, unique=True)))
    if kind == "continuous" and bounds[-1] - bounds[0] < 1e-300:
        bounds = [0.0, 1.0]
    bins = draw(st.sampled_from([None, tuple(bounds)]) | st.integers(1, 70))
    if kind != "continuous" and not isinstance(bins, tuple) and draw(st.booleans()):
        bounds = bounds[:1]
    scales = [None, "linear", "log"] if kind in ("integer", "continuous") else [None, "linear"]
    return Column(
        name,
        kind,
        scale=draw(st.sampled_from(scales)),
        atoms=draw(st.sampled_from([None, (bounds[0],), tuple(bounds[1:]) or None])),
        minimum=bounds[0],
        maximum=bounds[-1],
        bins=bins,
        nullable=draw(st.booleans()),
        unit=draw(st.none() | texts),
        sources=tuple(draw(marks).items()),
    )


@st.composite
def open_columns(draw, name):
    """Columns that leave out what must be stated or paid for."""
    kind = draw(
        st.sampled_from(["categorical", "ordinal", "integer", "continuous", "date", "datetime"])
    )
    if kind in ("categorical", "ordinal"):
        extra = {"category_type": draw(st.sampled_from(["string", "integer"]))}
    else:
        bound = {"integer": 3, "continuous": 0.1, "date": date(1, 1, 1)}
        side = draw(st.sampled_from(["minimum", "maximum"]))
        extra = {side: draw(st.none() | st.just(bound.get(kind, datetime(2020, 1, 1, 0, 0, 0, 7))))}
        extra["bins"] = draw(st.none() | st.integers(1, 9))
    nullable = draw(st.booleans())
    return Column(name, kind, nullable=nullable, sources=tuple(draw(marks).items()), **extra)


@st.composite
def schemas(draw, complete=True):
    kinds = [category_columns, numeric_columns] + ([] if complete else [open_columns])
    listed_names = draw(st.lists(names, min_size=1, max_size=4, unique_by=str.casefold))
    columns = [draw(draw(st.sampled_from(kinds))(name)) for name in listed_names]
    listed = {str(category) for column in columns for category in column.categories or ()}
    tokens = draw(st.lists(st.sampled_from(["", "?", "n/a", "it's"]), unique=True))
    return Schema(columns, tuple(token for token in tokens if token not in listed))
