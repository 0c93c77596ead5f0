"""Arguments as they should have been meant: numbers, seeds, choices and kinds, or our error.

numpy's scalars are taken for what they are and come back as plain Python values, because whatever
is asked for ends up in a ledger or a card, and so in JSON. Truth values are no numbers here. What
is of a type derived from a plain one may do anything when it is compared or shown, so it is made
plain before it is looked at.
"""

import contextlib
import math
import operator
from collections.abc import Collection
from numbers import Integral, Number, Real
from typing import TYPE_CHECKING, Any, TypeVar

from counterpoise.errors import CounterpoiseError, MethodError

if TYPE_CHECKING:
    import numpy as np

# What a terminal obeys and a page does not show: controls (C0, DEL, C1), the ends of lines and of
# paragraphs, and the marks that turn the direction of what is written (UAX 9).
_UNSEEN = {
    code: f"\\u{code:04x}"
    for first, last in (
        (0x00, 0x1F),
        (0x7F, 0x9F),
        (0x061C, 0x061C),
        (0x200E, 0x200F),
        (0x2028, 0x202E),
        (0x2066, 0x2069),
    )
    for code in range(first, last + 1)
}
_UNSEEN_IN_LINES = {code: text for code, text in _UNSEEN.items() if code != ord("\n")}


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
    found = _whole(value)
    if found is None or found < least or (most is not None and found > most):
        limit = "" if most is None else f" to {most:,}"
        raise error(f"{name}: expected a whole number from {least}{limit}, not {shown(value)}")
    return found


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
        with contextlib.suppress(Exception):
            found = float(value)
    fits = above <= found <= below if inclusive else above < found < below
    if not (math.isfinite(found) and fits):
        raise error(f"{name}: expected {expected}, not {shown(value)}")
    return found


def positive_or_none(
    name: str, value: Any, error: type[CounterpoiseError] = MethodError
) -> float | None:
    """`value` as a plain positive number, or None.

    >>> positive_or_none("regularisation", 0)
    Traceback (most recent call last):
    counterpoise.errors.MethodError: regularisation: expected a positive number or None, not 0
    """
    if value is None:
        return None
    return real_number(name, value, "a positive number or None", error, above=0)


def seed_or_none(seed: Any) -> int | None:
    """A seed as a plain whole number, or None.

    >>> seed_or_none(None) is None
    True
    """
    if seed is None:
        return None
    found = _whole(seed)
    if found is None or found < 0:
        raise MethodError(f"seed: expected a whole number from 0, or None, not {shown(seed)}")
    return found


def one_of(
    name: str,
    value: Any,
    choices: Collection[str | None],
    error: type[CounterpoiseError] = MethodError,
) -> Any:
    """`value` as a plain text, or None, that has to be one of the `choices`.

    >>> one_of("noise", "gausian", ("gaussian", None))
    Traceback (most recent call last):
    counterpoise.errors.MethodError: noise: expected 'gaussian' or None, not 'gausian'
    """
    if value is None or isinstance(value, str):
        found = None if value is None else plain_text(value)
        if found in choices:
            return found
    *others, last = map(repr, choices)
    listed = f"{', '.join(others)} or {last}" if others else last
    raise error(f"{name}: expected {listed}, not {shown(value)}")


def truth_value(name: str, value: Any, error: type[CounterpoiseError] = MethodError) -> bool:
    """`value` as a plain True or False; nothing else is taken for one.

    >>> truth_value("debias", "no")
    Traceback (most recent call last):
    counterpoise.errors.MethodError: debias: expected True or False, not 'no'
    """
    if not _is_truth(value):
        raise error(f"{name}: expected True or False, not {shown(value)}")
    return bool(value)


Kind = TypeVar("Kind")


def instance_of(
    name: str,
    value: Any,
    kind: type[Kind],
    expected: str,
    error: type[CounterpoiseError] = MethodError,
) -> Kind:
    """`value`, which has to be of a `kind`; `expected` says it in words.

    >>> instance_of("schema", 3, dict, "a schema")
    Traceback (most recent call last):
    counterpoise.errors.MethodError: schema: expected a schema, not 3
    """
    if not isinstance(value, kind):
        raise error(f"{name}: expected {expected}, not {shown(value)}")
    return value


def column_name(name: str, value: Any, error: type[CounterpoiseError] = MethodError) -> str:
    """`value` as a plain text that may be the name of a column.

    >>> column_name("target", 3)
    Traceback (most recent call last):
    counterpoise.errors.MethodError: target: expected the name of a column, not 3
    """
    return plain_text(instance_of(name, value, str, "the name of a column", error))


def column_sets(
    name: str, value: Any, error: type[CounterpoiseError] = MethodError
) -> tuple[tuple[str, ...], ...]:
    """Sets of columns, such as a workload, as plain tuples of names.

    >>> column_sets("workload", [["age", "sex"], ("age",)])
    (('age', 'sex'), ('age',))
    >>> column_sets("workload", ["age"])
    Traceback (most recent call last):
    counterpoise.errors.MethodError: workload: expected a list of lists of columns, not a list
    """
    found: list[tuple[str, ...]] = []
    try:
        for columns in value:
            found.append(tuple(columns))
            if isinstance(columns, str) or not all(isinstance(name, str) for name in found[-1]):
                raise TypeError
    except Exception:
        raise error(f"{name}: expected a list of lists of columns, not {shown(value)}") from None
    return tuple(tuple(map(plain_text, columns)) for columns in found)


def number_array(
    name: str,
    value: Any,
    expected: str = "an array of numbers",
    error: type[CounterpoiseError] = MethodError,
) -> "np.ndarray":
    """`value` as an array of floats; texts and moments are not read as numbers.

    >>> number_array("weights", [1, 2])
    array([1., 2.])
    >>> number_array("weights", ["1", "2"])
    Traceback (most recent call last):
    counterpoise.errors.MethodError: weights: expected an array of numbers, not a list
    """
    import numpy as np

    try:
        found = np.asarray(value)
        if found.dtype.kind not in "biufO" or isinstance(value, str | bytes):
            raise TypeError
        return found.astype(float)
    except Exception:
        raise error(f"{name}: expected {expected}, not {shown(value)}") from None


def plain_text(value: str) -> str:
    """The characters of a text, whatever a type derived from `str` would say of itself.

    >>> plain_text(type("Loud", (str,), {"__str__": str.upper})("age"))
    'age'
    """
    return str.__str__(value)


def settle_texts(made: Any, *names: str) -> None:
    """Put plain texts in the place of those that a frozen dataclass was made with."""
    for name in names:
        value = getattr(made, name)
        if isinstance(value, str):
            object.__setattr__(made, name, plain_text(value))


def settle(made: Any, **checked: Any) -> None:
    """Put checked arguments in the place of those that a frozen dataclass was made with."""
    for name, value in checked.items():
        object.__setattr__(made, name, value)


def _is_truth(value: Any) -> bool:
    # By its name: numpy takes long to import, and help on the command line must not wait for it.
    return isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")


def _whole(value: Any) -> int | None:
    """A whole number as a plain one; None for all else."""
    if not isinstance(value, Integral) or isinstance(value, bool):
        return None
    try:
        # To numpy a span of time is an integer, but it counts nothing.
        return operator.index(value)
    except Exception:
        return None


def shown(value: Any) -> str:
    """A short text of a value that was refused; of what may hold rows, only its type."""
    text = f"a {type(value).__name__}"
    if value is None or isinstance(value, str | bytes | Number):
        # A number of thousands of digits has no text.
        with contextlib.suppress(Exception):
            text = plain_text(repr(value))
    return text if len(text) <= 60 else f"{text[:57]}..."


def visible(text: str, lines: bool = False) -> str:
    """A text whose control characters are seen, and not obeyed; `lines` keeps the ends of lines.

    They are written as JSON writes them, so that JSON stays what it is.

    >>> print(visible("\\x1b[31mred"))
    \\u001b[31mred
    """
    return text.translate(_UNSEEN_IN_LINES if lines else _UNSEEN)
