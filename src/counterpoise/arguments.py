"""Arguments as they should have been meant: whole numbers, real numbers and seeds, or our error.

numpy's scalars are taken for what they are and come back as plain Python numbers, because whatever
is asked for ends up in a ledger or a card, and so in JSON. Truth values are no numbers here.
"""

import math
from numbers import Integral, Real
from typing import Any

from counterpoise.errors import CounterpoiseError, MethodError


def whole_number(
    name: str,
    value: Any,
    least: int = 1,
    most: int | None = None,
    error: type[CounterpoiseError] = MethodError,
) -> int:
    """`value` as a plain whole number from `least` to `most`.

    >>> import numpy as np
    >>> whole_number("rows", np.int64(5))
    5
    >>> whole_number("rows", 0)
    Traceback (most recent call last):
    counterpoise.errors.MethodError: rows: expected a whole number from 1, not 0
    """
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not is_whole or value < least or (most is not None and value > most):
        limit = "" if most is None else f" to {most:,}"
        raise error(f"{name}: expected a whole number from {least}{limit}, not {_shown(value)}")
    return int(value)


def real_number(
    name: str,
    value: Any,
    expected: str,
    error: type[CounterpoiseError] = MethodError,
    *,
    above: float = -math.inf,
    below: float = math.inf,
    inclusive: bool = False,
) -> float:
    """`value` as a plain finite number between two limits, which `inclusive` lets it reach.

    >>> real_number("split", 0.5, "a number between 0 and 1", above=0, below=1)
    0.5
    >>> real_number("split", "x", "a number between 0 and 1", above=0, below=1)
    Traceback (most recent call last):
    counterpoise.errors.MethodError: split: expected a number between 0 and 1, not 'x'
    """
    found = math.nan
    if isinstance(value, Real) and not isinstance(value, bool):
        try:
            found = float(value)
        except (OverflowError, ValueError, TypeError):
            found = math.nan
    fits = above <= found <= below if inclusive else above < found < below
    if not (math.isfinite(found) and fits):
        raise error(f"{name}: expected {expected}, not {_shown(value)}")
    return found


def seed_or_none(seed: Any) -> int | None:
    """A seed as a plain whole number, or None.

    >>> seed_or_none(None) is None
    True
    """
    if seed is None:
        return None
    is_whole = isinstance(seed, Integral) and not isinstance(seed, bool)
    if not is_whole or seed < 0:
        raise MethodError(f"seed: expected a whole number from 0, or None, not {_shown(seed)}")
    return int(seed)


def _shown(value: Any) -> str:
    """A short text of a value that was refused, whatever it is."""
    try:
        text = repr(value)
    except Exception:
        text = f"a {type(value).__name__}"
    return text if len(text) <= 60 else f"{text[:57]}..."
