"""The journal: charges written down before the look, and the noisy answers that were paid for.

A journal is a file of one line a fact. A charge is on the disk, flushed, before the vault looks;
its answer follows it. A run that starts from a journal owes every charge in it, whether or not the
answer was written before the run ended, and gets the answers that are there when it asks the same
questions again: nothing that was looked at is forgotten, and nothing is drawn anew for free. Every
line carries a digest of all before it, so lines of another run are found out, and whatever else is
kept of a run can say by a `mark` how far its journal had got. A last line that is torn was never
acted upon, and is cut off. Answers are noised, so a journal is as public as what it leads to.
A charge may also pay for a course of many steps. Then the line that says how many steps have begun
is on the disk before they are taken, so that no run takes a step that an earlier one took; what the
course had led to is kept beside it, and a later run goes on from there.
[PRIVACY: ground rule 10]
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import os
import uuid
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from counterpoise.disk import own_file, plainly, sync_folder
from counterpoise.errors import BudgetError, BundleError
from counterpoise.vault.budget import Budget
from counterpoise.vault.ledger import Ledger, Spend

# An answer is a list of texts or an array of one of these.
Answer = np.ndarray | list[str]
_DTYPES = ("int64", "float64")

_FORMAT = 1


@dataclass
class _Entry:
    """A charge, the question that it paid for, and what came of it so far."""

    spend: Spend
    question: str
    answer: Answer | None = None
    used: bool = False
    begun: int = 0  # steps of a course
    kept: Kept | None = None


@dataclass(frozen=True, eq=False)
class Kept:
    """What a course of steps had led to, and after how many of them; as public as its answers."""

    steps: int
    arrays: Mapping[str, np.ndarray]


class Journal:
    """The charges and answers of one run under one budget, in a file.

    Opened on a file that is there, it goes on with it. `private` says whether noise comes from the
    operating system; where some of it did not, that stays. `threshold_delta` is set aside as for a
    `Ledger`. Only one run may have the file open.

    >>> import tempfile
    >>> from counterpoise.vault.events import GaussianDpEvent
    >>> folder = tempfile.TemporaryDirectory()
    >>> path, budget = Path(folder.name) / "journal", Budget(1.0, 1e-6)
    >>> journal = Journal(path, budget)
    >>> journal.charge(Spend("domain", "rows", GaussianDpEvent(50.0)), "how many rows?")
    >>> journal.keep(np.array([1013]))
    >>> again = Journal(path, budget)
    >>> again.answer("how many rows?"), again.answer("how many rows?")
    (array([1013]), None)
    >>> len(again.ledger().spends)
    1
    >>> folder.cleanup()
    """

    def __init__(
        self,
        path: str | Path,
        budget: Budget,
        private: bool = True,
        threshold_delta: float = 0.0,
    ):
        self.path = Path(path)
        self.budget = budget
        self.private = private
        self.threshold_delta = Ledger(budget, private, threshold_delta).delta_set_aside
        self.run = ""  # what tells this run from others; drawn when the file is made
        self._entries: list[_Entry] = []
        # Each digest, and how many charges stood in the file then.
        self._marks: dict[str, int] = {}
        self._mark = ""
        lines = self._lines() if self.path.exists() else []
        if lines:
            self._read(lines)
        else:
            # A file without a whole line is one whose run ended before it asked anything.
            self.run = uuid.uuid4().hex
            run = {"format": _FORMAT, "run": self.run, "private": private}
            self._append({"journal": run | self._terms()})
            with plainly(self.path):
                sync_folder(self.path.parent)

    @property
    def mark(self) -> str:
        """A digest of all that is written so far."""
        return self._mark

    @property
    def lost(self) -> tuple[str, ...]:
        """Queries that were charged, whose answers never came, and which were not asked again."""
        return tuple(
            entry.spend.query
            for place, entry in enumerate(self._entries)
            if entry.answer is None
            and not entry.used
            and all(later.question != entry.question for later in self._entries[place + 1 :])
        )

    def ledger(self) -> Ledger:
        """All charges so far, on a ledger under the journal's budget."""
        found = Ledger(self.budget, self.private, self.threshold_delta)
        for entry in self._entries:
            found.stage = entry.spend.stage
            found.spend(entry.spend.query, entry.spend.event, entry.spend.delta)
        return found

    def skip(self, mark: str) -> bool:
        """Be done with all answers up to a mark; False when the mark is of another journal."""
        for entry in self._entries[: self._marks.get(mark, 0)]:
            entry.used = True
        return mark in self._marks

    def answer(self, question: str) -> Answer | None:
        """The answer to a question that was paid for, once; None where there is none left."""
        for entry in self._entries:
            if entry.question == question and entry.answer is not None and not entry.used:
                entry.used = True
                return entry.answer
        return None

    def charge(self, spend: Spend, question: str) -> None:
        """Write a charge down; when this returns, the disk has it."""
        self._append({"charge": spend.to_dict(), "question": question})
        self._entries.append(_Entry(spend, question))

    def keep(self, answer: Answer) -> None:
        """Write down the answer to the last charge."""
        self._append({"answer": _to_json(answer)})
        self._entries[-1].answer, self._entries[-1].used = answer, True

    def start(self, spend: Spend, question: str) -> int:
        """Write down the charge of a course; the number by which it is known."""
        self.charge(spend, question)
        self._entries[-1].used = True
        return len(self._entries) - 1

    def resume(self, question: str) -> int | None:
        """The number of a course that an earlier run paid for, once; None where there is none."""
        for place, entry in enumerate(self._entries):
            if entry.question == question and entry.answer is None and not entry.used:
                entry.used = True
                return place
        return None

    def begun(self, course: int) -> int:
        """How many steps of a course count as taken."""
        return self._entries[course].begun

    def kept(self, course: int) -> Kept | None:
        """What was kept of a course last."""
        return self._entries[course].kept

    def begin(self, course: int, steps: int) -> None:
        """Write down that so many steps of a course count as taken, before they are."""
        self._append({"course": course, "begun": steps})
        self._entries[course].begun = steps

    def keep_course(self, course: int, kept: Kept) -> None:
        """Write down what a course has led to."""
        arrays = {name: _to_json(array) for name, array in kept.arrays.items()}
        self._append({"course": course, "kept": arrays, "steps": kept.steps})
        self._entries[course].kept = kept

    def _terms(self) -> dict[str, Any]:
        return {"budget": self.budget.to_dict(), "threshold_delta": self.threshold_delta}

    def _append(self, fact: Mapping[str, Any]) -> None:
        text = json.dumps(fact, allow_nan=False)
        mark = _digest(self._mark, text)
        with plainly(self.path), open(self.path, "ab", opener=own_file) as file:
            before = file.tell()
            try:
                file.write(f"{mark} {text}\n".encode("ascii"))
                file.flush()
                os.fsync(file.fileno())
            except OSError:
                # Half a line, on a disk that is full, must not stand before the next one.
                os.truncate(self.path, before)
                raise
        self._mark = mark
        self._marks[mark] = len(self._entries)

    def _lines(self) -> list[str]:
        """The whole lines of the file; a torn last one is cut off."""
        with plainly(self.path, "read"):
            content = self.path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if len(whole) < len(content):
            # Neither the look nor the use of an answer comes before its line is whole.
            with plainly(self.path):
                os.truncate(self.path, len(whole))
        return whole.decode("ascii", "replace").splitlines()

    def _read(self, lines: list[str]) -> None:
        try:
            for place, line in enumerate(lines):
                mark, _, text = line.partition(" ")
                if mark != _digest(self._mark, text):
                    raise ValueError("a line that does not follow from those before it")
                self._take(json.loads(text), is_head=place == 0)
                self._mark = mark
                self._marks[mark] = len(self._entries)
        except (ValueError, KeyError, TypeError, IndexError, BudgetError, zlib.error):
            raise BundleError(
                f"{self.path} is damaged, or of another budget; remove its folder to start anew, "
                "which pays again"
            ) from None

    def _take(self, fact: Mapping[str, Any], is_head: bool) -> None:
        if is_head:
            head = fact["journal"]
            terms = self._terms()
            if head["format"] != _FORMAT or {key: head[key] for key in terms} != terms:
                raise ValueError("another format or budget")
            self.private = self.private and head["private"] is True
            self.run = str(head["run"])
        elif "charge" in fact:
            self._entries.append(_Entry(Spend.from_dict(fact["charge"]), str(fact["question"])))
        elif "course" in fact:
            self._take_course(self._entries[fact["course"]], fact)
        else:
            self._entries[-1].answer = _from_json(fact["answer"])

    def _take_course(self, entry: _Entry, fact: Mapping[str, Any]) -> None:
        if "begun" in fact:
            entry.begun = int(fact["begun"])
            return
        arrays = {name: np.asarray(_from_json(array)) for name, array in fact["kept"].items()}
        entry.kept = Kept(int(fact["steps"]), arrays)


def question(stage: str, spend: Mapping[str, Any], asked: Mapping[str, Any]) -> str:
    """What tells one question from another, all of it public, as a digest."""
    return _digest(stage, json.dumps([spend, asked], sort_keys=True, default=str))


def _digest(before: str, text: str) -> str:
    return hashlib.sha256(f"{before} {text}".encode("utf-8", "surrogatepass")).hexdigest()


def _to_json(answer: Answer) -> Any:
    if isinstance(answer, list):
        return {"texts": answer}
    if answer.dtype.name not in _DTYPES:
        raise TypeError(f"an answer is an array of {' or '.join(_DTYPES)}, not of {answer.dtype}")
    packed = zlib.compress(np.ascontiguousarray(answer).tobytes(), level=1)
    return {
        "dtype": answer.dtype.name,
        "shape": list(answer.shape),
        "bytes": base64.b64encode(packed).decode("ascii"),
    }


def _from_json(values: Mapping[str, Any]) -> Answer:
    if "texts" in values:
        return [str(text) for text in values["texts"]]
    if values["dtype"] not in _DTYPES:
        raise ValueError("an unknown kind of numbers")
    content = zlib.decompress(base64.b64decode(values["bytes"], validate=True))
    shape = tuple(int(size) for size in values["shape"])
    if len(content) != 8 * math.prod(shape):
        raise ValueError("a wrong number of bytes")
    return np.frombuffer(content, dtype=values["dtype"]).reshape(shape).copy()
