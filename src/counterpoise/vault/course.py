"""Courses: queries of many looks that are charged together, and open in between.

A course holds what it needs of the private rows while it is open, as the vault itself holds rows,
and lets go of it when it is closed; it is closed with the vault. It counts what it has given
against what was paid for, and refuses more. With a journal it writes down in blocks what counts as
given before it is given: a run that is killed has been given no more than the journal says, and a
later one that plans the same goes on with what is left, from the public state that was kept.
[PRIVACY: ground rules 2, 6 and 10]
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from counterpoise.errors import VaultError
from counterpoise.vault.boundary import NeverCopied
from counterpoise.vault.journal import Journal, Kept

if TYPE_CHECKING:
    from counterpoise.vault.vault import Vault

# A journal gets a line this often in a course: a run that is killed loses one part in so many.
_BLOCKS = 50


class Course(NeverCopied, ABC):
    """An open course; use it in a `with` block, or close it.

    `kept` is what an earlier run of the same course had kept, with how much of the course it stands
    for, or None.
    """

    def __init__(self, vault: Vault, query: str, paid: int, what: str, number: int | None):
        self.kept: Kept | None = None
        self._vault, self._query = vault, query
        self._paid, self._what = paid, what
        self._taken = self._begun = 0
        self._journal: Journal | None = None
        self._number = 0  # in the journal
        self._latest: Kept | None = None
        self._is_open = True
        if number is not None:
            self._journal, self._number = vault._journal, number
            assert self._journal is not None
            self._taken = self._begun = self._journal.begun(number)
            self.kept = self._latest = self._journal.kept(number)
        with vault._lock:  # while the vault is closed, it goes through them
            vault._courses.add(self)

    @property
    def taken(self) -> int:
        """How much of what was paid for counts as taken."""
        return self._taken

    @property
    def left(self) -> int:
        """How much is left of what was paid for."""
        return self._paid - self._taken

    def keep(self, state: Mapping[str, np.ndarray]) -> None:
        """Keep arrays that the noisy answers led to, such as parameters, for a later run.

        They are written to the journal, if the vault has one, when the next block begins and when
        the course is closed.
        """
        self._require_open()
        self._latest = Kept(self._taken, _checked_state(state))

    def close(self) -> None:
        """Let go of the rows, once a look of another thread is done; what is left stays paid for.

        Closed during a look it would be handed the rows again.
        """
        with self._vault._lock:
            if not self._is_open:
                return
            self._is_open = False
            self._let_go()
            self._vault._courses.discard(self)
            if self._journal is not None:
                self._write_latest()
                if self._taken < self._begun:
                    # Of the last block only this much was taken: the rest is for a later run.
                    self._journal.begin(self._number, self._taken)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "open" if self._is_open else "closed"
        kind = type(self).__name__
        return f"<{kind}, {state}: {self._taken:,} of {self._paid:,} {self._what} taken>"

    @abstractmethod
    def _let_go(self) -> None:
        """Forget all that is private."""

    def _require_open(self) -> None:
        self._vault._require_open()
        if not self._is_open:
            raise VaultError("the course is closed; what is left of it stays paid for")

    def _take(self, count: int) -> None:
        """Count so much as taken, on disk first; it stays so, whatever becomes of the look."""
        self._require_open()
        if count > self.left:
            raise VaultError(
                f"{self._query!r}: all but {self.left:,} of its {self._paid:,} {self._what} are "
                "taken; plan more in advance"
            )
        if self._taken + count > self._begun:
            block = max(count, math.ceil(self._paid / _BLOCKS))
            self._begun = min(self._paid, self._taken + block)
            if self._journal is not None:
                self._write_latest()
                self._journal.begin(self._number, self._begun)
        self._taken += count

    def _write_latest(self) -> None:
        assert self._journal is not None
        if self._latest is not None and self._latest is not self._journal.kept(self._number):
            self._journal.keep_course(self._number, self._latest)


def _checked_state(state: Any) -> dict[str, np.ndarray]:
    expected = "arrays of numbers by name"
    if not isinstance(state, Mapping) or not all(isinstance(name, str) for name in state):
        raise VaultError(f"state: expected {expected}")
    found = {}
    for name, value in state.items():
        array = np.array(value)  # a copy: the caller's goes on changing
        if array.dtype.kind not in "iuf" or array.dtype == np.uint64:
            raise VaultError(f"state: expected {expected}, not {name!r}")
        found[str(name)] = array.astype(np.int64 if array.dtype.kind in "iu" else float)
    return found
