"""Which columns of a table are identifiers: numbers of cases, names, free text.

Where nearly every row has a value of its own there is nothing to count: categories of one row
each are noise, and a list of them would be a list of people. A draft leaves such columns out.
Quantities differ from row to row as well, so numbers count as identifiers only if they also look
like ones.
"""

from __future__ import annotations

import re

import numpy as np

# With fewer rows than these, distinct values say little.
_FEWEST_ROWS, _FEWEST_SERIALS = 20, 50
# The part of the rows with a value of their own, for text and for numbers.
_OWN_TEXT, _OWN_NUMBER = 0.95, 0.99
_NAMED = re.compile(r"(^|[\W_])(id|ids|key|uuid|guid|number|no|nr|code|record|serial|index)$", re.I)
_CAMEL = re.compile(r"[a-z](Id|ID|Key|Number|No|Nr)$")
_LONG_NUMBER = 10_000_000


def is_identifier(name: str, values: np.ndarray, rows: int) -> bool:
    """Whether nearly every one of `rows` has a value of its own, and numbers look like serials.

    >>> is_identifier("id", np.arange(100.0), 100), is_identifier("pay", np.arange(10.0) ** 3, 10)
    (True, False)
    """
    distinct = np.unique(values) if values.dtype != object else values
    if rows < _FEWEST_ROWS or not len(distinct):
        return False
    if values.dtype == object:
        return len(distinct) >= _OWN_TEXT * rows
    if len(distinct) < _OWN_NUMBER * rows or not (distinct % 1 == 0).all():
        return False
    low, high = float(distinct[0]), float(distinct[-1])
    is_named = bool(_NAMED.search(name) or _CAMEL.search(name))
    is_serial = rows >= _FEWEST_SERIALS and high - low < 2 * rows
    is_long = low >= _LONG_NUMBER and len(str(int(low))) == len(str(int(high)))
    return is_named or is_serial or is_long
