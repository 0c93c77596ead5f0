"""Ctrl-C between looks: a look that is charged is finished before the interruption takes effect.

A look that is broken off has been paid for and gives nothing. So the first interruption waits for
the answer to be written down; a second one does not wait. Only the main thread gets interruptions,
and a handler of the caller's own is left alone.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def patiently(wait: bool = True) -> Iterator[None]:
    """Hold back one interruption until the block is done, where `wait` says so."""
    is_ours = (
        wait
        and threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    if not is_ours:
        yield
        return
    held: list[int] = []

    def hold(number: int, frame: FrameType | None) -> None:
        if held:
            raise KeyboardInterrupt
        held.append(number)

    signal.signal(signal.SIGINT, hold)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if held:
        raise KeyboardInterrupt
