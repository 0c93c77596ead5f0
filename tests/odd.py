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
    return "Unprintable()" if isinstance(value, Unprintable) else f"{value!r:.60}"
