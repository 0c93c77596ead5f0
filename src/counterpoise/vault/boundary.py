"""The boundary: what leaves a look at private rows by way of an exception is public.

An exception holds the frames that it came through, and those frames hold rows; a logger that
captures locals would ship them. So whatever goes wrong behind the boundary is caught here, its
frames are cleared, and a new exception with a public message is raised from this side. Our own
errors keep their words, which quote nothing; of any other only its kind is told. Whether a number
overflows on the way may depend on the rows too, so numpy warns of nothing there, and raises nothing
of that kind, whatever the caller has set. A private table
that is handed from function to function on this side is sealed, so that no frame shows it.
[PRIVACY: ground rule 6]
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

import numpy as np

from counterpoise.errors import CounterpoiseError, VaultError

Answer = TypeVar("Answer")


class NeverCopied:
    """What holds private rows, or leads to them: it cannot be copied or pickled."""

    __slots__ = ()

    def __reduce__(self) -> NoReturn:
        raise VaultError(
            f"a {type(self).__name__} holds private rows, and is never copied or pickled"
        )


class Sealed(NeverCopied):
    """A private table on its way to the vault: it cannot be seen, copied or pickled.

    >>> seal([1, 2, 3])
    <a private table>
    """

    __slots__ = ("_content",)

    def __init__(self, content: Any):
        self._content = content

    def __repr__(self) -> str:
        return "<a private table>"


def seal(table: Any) -> Any:
    """A table that no frame shows; a path, which shows no rows, and a sealed one stay as it is."""
    return table if isinstance(table, str | os.PathLike | Sealed) else Sealed(table)


def unseal(table: Any) -> Any:
    """The table itself; for the other side of the boundary only."""
    return table._content if isinstance(table, Sealed) else table


def behind(look: Callable[[], Answer], what: str) -> Answer:
    """What `look` returns; what it raises comes out with public words and without its frames."""
    try:
        with np.errstate(all="ignore"):
            return look()
    except BaseException as error:
        public = _public(error, what)
        _forget(error)
    # Outside of the handler, or the new exception would keep the old one as its context.
    raise public


def _public(error: BaseException, what: str) -> BaseException:
    match error:
        case CounterpoiseError():
            return type(error)(str(error))
        case MemoryError():
            return VaultError(
                f"{what}: memory ran out; ask for less at once, or use storage='duckdb'"
            )
        case KeyboardInterrupt() | GeneratorExit():
            return type(error)()
        case SystemExit():
            return SystemExit(error.code if isinstance(error.code, int) else 1)
    return VaultError(
        f"{what}: {type(error).__name__} behind the boundary; its message is not shown, because it "
        "may quote private rows"
    )


def _forget(error: BaseException) -> None:
    """Clear the frames of an exception and of those that it came from."""
    known: set[int] = set()
    left: list[BaseException | None] = [error]
    while left:
        one = left.pop()
        if one is None or id(one) in known:
            continue
        known.add(id(one))
        left += [one.__context__, one.__cause__]
        if isinstance(one, BaseExceptionGroup):
            left += one.exceptions
        traceback.clear_frames(one.__traceback__)
        one.__traceback__ = None
