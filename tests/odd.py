"""Odd values for any argument, and which of them a call answers in words that are not ours."""

import datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd

from counterpoise.errors import CounterpoiseError


class Unprintable:
    """A value that cannot even be shown."""

    def __repr__(self):
        raise RuntimeError("not to be shown")


# What is done with a value that is looked at; a text tells what it is by `str`.
DEEDS = (
    *("eq", "ne", "lt", "le", "gt", "ge", "hash", "bool", "repr", "format", "float", "int"),
    *("index", "len", "iter", "contains", "abs", "neg", "add", "sub", "mul", "truediv"),
)


def contrary(kind, *arguments):
    """A value of a kind of its own, derived from another, which raises whatever is done with it."""

    def refuse(*_):
        raise RuntimeError("not to be done")

    names = DEEDS if kind is str else (*DEEDS, "str")
    deeds = {f"__{name}__": refuse for name in names}
    return type("Contrary", (kind,), deeds)(*arguments)


def is_contrary(value):
    return type(value).__name__ == "Contrary"


ODD = (
    None,
    True,
    np.True_,
    0,
    -1,
    3,
    10**30,
    10**400,
    0.0,
    0.5,
    1.5,
    -1.5,
    1e308,
    5e-324,
    float("nan"),
    float("inf"),
    -float("inf"),
    np.float32(1),
    np.float16("nan"),
    np.int8(3),
    np.int64(5),
    np.uint64(2**64 - 1),
    np.array(3),
    np.array([1.0, 2.0]),
    np.zeros((0, 2)),
    np.array(["x"], dtype=object),
    np.datetime64("NaT"),
    np.str_("x"),
    Decimal("1.5"),
    Decimal("sNaN"),
    Fraction(1, 2),
    1j,
    "",
    "x",
    "nan",
    "a\0b",
    "\udc80",
    "a" * 5000,
    b"x",
    (),
    ("x",),
    [],
    [None],
    ["x", 3],
    [["a"], [5]],
    {},
    {"a": None},
    {"x"},
    range(3),
    object(),
    Unprintable(),
    contrary(object),
    contrary(float, 0.5),
    contrary(int, 3),
    contrary(str, "x"),
    int,
    len,
    slice(None),
    ...,
    ValueError("x"),
    datetime.date(2020, 1, 1),
    datetime.timedelta(days=1),
    pd.NA,
    pd.NaT,
    pd.DataFrame(),
    pd.DataFrame({"x": [1]}),
    pd.Series([1.0, 2.0]),
    Path("nowhere/x"),
)

# What a function of the caller's own raises is the caller's.
FUNCTIONS = {"progress", "log_weights"}


def foreign_errors(call, sound, argument):
    """The errors outside our family when one argument of a sound call is odd, by the odd value."""
    foreign = {}
    for value in ODD:
        if argument in FUNCTIONS and callable(value):
            continue
        try:
            call(**(sound | {argument: value}))
        except CounterpoiseError as error:
            assert "\n" not in str(error), f"not one line: {error}"
        except Exception as error:
            foreign[shown(value)] = f"{type(error).__name__}: {error}"
    return foreign


def shown(value):
    if is_contrary(value) or isinstance(value, Unprintable):
        return f"a {type(value).__base__.__name__} that raises"
    return f"{value!r:.60}"
