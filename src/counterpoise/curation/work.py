"""Work that is not finished: what was paid for, kept in a folder, so that a run can go on.

Each finished stage is one file of noisy answers with the ledger up to it, written under a temporary
name and renamed. A run with the same request goes on from there and does not pay twice; answers
that were charged and not kept are lost and were never used, so the kept ledger is the whole cost.
A stage that failed on its answers has shown something: such a run is over, and says so. Nothing
that depends on private rows is kept but through noise, and so the folder cannot tell one private
table from another: who runs again promises that the table is the same. Two runs at once must not
share a folder.
"""

from __future__ import annotations

import json
import os
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from counterpoise.bundle.archive import read_archive, write_archive
from counterpoise.errors import BudgetError, BundleError, CounterpoiseError, TableError
from counterpoise.synthesizers import kept_ledger
from counterpoise.vault import Ledger

REQUEST = "request.json"
STAGES = ("domain", "synthesizer", "weights")
# That a stage failed, and the rounds of one that can go on in its middle.
_FAILED, _ROUNDS = "failed", "rounds"


@dataclass(frozen=True)
class Work:
    """A folder for one request; without a folder nothing is kept.

    `sampling_seed` makes free draws the same when they are made again.
    """

    folder: Path | None
    sampling_seed: int

    @classmethod
    def open(cls, folder: str | Path | None, request: Mapping[str, Any]) -> Work:
        """Start a folder, or go on with one that was started for the same request."""
        fresh = uuid.uuid4().int % 2**63
        if folder is None:
            return cls(None, fresh)
        path = Path(folder)
        if not path.exists():
            path.mkdir(parents=True)
        if not path.is_dir():
            raise BundleError(f"work: {path} is not a folder; state another")
        described = json.loads(json.dumps(request))
        if not (path / REQUEST).exists():
            if any(path.iterdir()):
                raise BundleError(f"work: {path} holds something else; state another folder")
            _write_json(path / REQUEST, {"request": described, "sampling_seed": fresh})
            return cls(path, fresh)
        kept = _read_json(path / REQUEST)
        if kept["request"] != described:
            differing = [
                key
                for key in sorted({*kept["request"], *described})
                if kept["request"].get(key) != described.get(key)
            ]
            raise BundleError(
                f"work: {path} was started for another request (it differs in "
                f"{', '.join(differing)}); state another folder, repeat the request as it was, or "
                "remove the folder to start anew, which pays again"
            )
        opened = cls(path, int(kept["sampling_seed"]))
        if opened.notes(_FAILED) is not None:
            raise BudgetError(
                f"work: the run in {path} failed after it had spent a part of its budget, and its "
                "error told something of the answers; remove the folder to start anew, which pays "
                "again"
            )
        return opened

    @property
    def rounds(self) -> Path | None:
        """The file in which a method may keep what it paid for, before its stage is finished."""
        return None if self.folder is None else self._file(_ROUNDS)

    def ledger(self) -> Ledger | None:
        """The ledger up to where the work stands; None when nothing was paid for."""
        found = [
            Ledger.from_dict(notes["ledger"])
            for stage in STAGES
            if (notes := self.notes(stage)) is not None
        ]
        if self.rounds is not None and (partial := kept_ledger(self.rounds)) is not None:
            found.append(partial)
        return max(found, key=lambda ledger: len(ledger.spends), default=None)

    def notes(self, stage: str) -> dict[str, Any] | None:
        """What was noted of a stage, if it is finished."""
        found = self._read(stage)
        return None if found is None else found[1]

    def arrays(self, stage: str) -> dict[str, np.ndarray] | None:
        """The arrays of a stage, if it is finished."""
        found = self._read(stage)
        return None if found is None else found[0]

    def keep(
        self,
        stage: str,
        ledger: Ledger,
        arrays: Mapping[str, np.ndarray] | None = None,
        notes: Mapping[str, Any] | None = None,
    ) -> None:
        """A stage is finished: keep its answers and the ledger up to here."""
        if self.folder is None:
            return
        kept = {**(notes or {}), "ledger": ledger.to_dict()}
        write_archive(self._file(stage), arrays or {}, kept)
        if stage == "synthesizer":
            self._file(_ROUNDS).unlink(missing_ok=True)

    @contextmanager
    def charging(self, ledger: Ledger) -> Iterator[None]:
        """Note that a stage failed after it was charged; a table out of reach is no answer."""
        before = len(ledger.spends)
        try:
            yield
        except TableError:
            raise
        except CounterpoiseError:
            if len(ledger.spends) > before:
                self.keep(_FAILED, ledger)
            raise

    def _file(self, stage: str) -> Path:
        assert self.folder is not None
        return self.folder / f"{stage}.npz"

    def _read(self, stage: str) -> tuple[dict[str, np.ndarray], dict[str, Any]] | None:
        if self.folder is None or not self._file(stage).exists():
            return None
        return read_archive(self._file(stage))


def discard(folder: Path) -> None:
    """Remove a folder of work: its own files, and the folder if nothing else is in it."""
    for name in (REQUEST, *(f"{stage}.npz" for stage in (*STAGES, _FAILED, _ROUNDS))):
        (folder / name).unlink(missing_ok=True)
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def _write_json(path: Path, values: Mapping[str, Any]) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(values, file, indent=2, ensure_ascii=False)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _read_json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return {"request": dict(found["request"]), "sampling_seed": int(found["sampling_seed"])}
    except (OSError, ValueError, KeyError, TypeError):
        raise BundleError(f"work: {path} is damaged; remove its folder to start anew") from None
