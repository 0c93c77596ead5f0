"""Signals that end a process, held between looks: a look that is charged is finished before.

A look that is broken off has been paid for and gives nothing. So the first SIGINT (Ctrl-C), SIGTERM
(a scheduler) or SIGHUP (a connection that was lost) waits for the answer to be written down; a
second one does not wait. Only the main thread gets signals, and a handler of the caller's own is
left alone. Where the process would end without a word, `stoppable` raises an exception instead, so
that what is open is closed.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn


class Terminated(KeyboardInterrupt):
    """The process was told to end, by SIGTERM."""


class HungUp(KeyboardInterrupt):
    """The terminal or the connection that the process belongs to is gone, by SIGHUP."""


_ENDS: dict[int, type[KeyboardInterrupt]] = {
    signal.SIGINT: KeyboardInterrupt,
    signal.SIGTERM: Terminated,
}
if hasattr(signal, "SIGHUP"):  # Windows has none
    _ENDS[signal.SIGHUP] = HungUp


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    raise _ENDS[number]


@contextmanager
def stoppable() -> Iterator[None]:
    """Raise `Terminated` or `HungUp` where a signal would end the process without a word."""
    usual = _handlers({signal.SIG_DFL})
    for number in usual:
        signal.signal(number, _stop)
    try:
        yield
    finally:
        _restore(usual)


@contextmanager
def patiently(wait: bool = True) -> Iterator[None]:
    """Hold back one signal until the block is done, where `wait` says so."""
    usual = _handlers({signal.SIG_DFL, signal.default_int_handler, _stop}) if wait else {}
    held: list[int] = []

    def hold(number: int, frame: FrameType | None) -> None:
        if held:
            _restore(usual)
            signal.raise_signal(number)
        held.append(number)

    for number in usual:
        signal.signal(number, hold)
    try:
        yield
    finally:
        _restore(usual)
        if held:
            signal.raise_signal(held[0])


def _handlers(of: set[Any]) -> dict[int, Any]:
    """The handlers of signals that end the process, where they are one of these."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    found = {number: signal.getsignal(number) for number in _ENDS}
    return {number: handler for number, handler in found.items() if handler in of}


def _restore(usual: dict[int, Any]) -> None:
    for number, handler in usual.items():
        signal.signal(number, handler)
