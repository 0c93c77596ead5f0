"""How far a long fit is, for whoever watches: the one who waits sets a watcher, the method reports.

A method calls `report` with the part that is done, and need not know whether anybody looks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_WATCHER: ContextVar[Callable[[float], None] | None] = ContextVar("watcher", default=None)


@contextmanager
def watched(watcher: Callable[[float], None]) -> Iterator[None]:
    """Within it, what methods report is handed to `watcher`.

    >>> with watched(print):
    ...     report(0.5)
    0.5
    >>> report(1.0)
    """
    before = _WATCHER.set(watcher)
    try:
        yield
    finally:
        _WATCHER.reset(before)


def report(done: float) -> None:
    """Say which part of a fit is done, from 0 to 1."""
    watcher = _WATCHER.get()
    if watcher is not None:
        watcher(done)
