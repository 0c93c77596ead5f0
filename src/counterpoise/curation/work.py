"""Work that is not finished: what was paid for, kept in a folder, so that a run can go on.

The journal in the folder has every charge, written before the look, and every answer; a run with
the same request starts from it, asks again, and is given the same answers. Stages that were
finished are kept besides, so that their models need not be fitted again: such a file is believed
only when it carries a mark of this journal, and is otherwise as good as absent. A folder in which
nothing was charged holds nothing that anybody paid for: a run that fails before its first charge
removes it, and where a kill left one, another request takes it over. Nothing that depends on
private rows is kept but through noise, and so the folder cannot tell one private table from
another: who runs again promises that the table is the same. What lies open is noticed: another size
or time of a file, of which a digest is kept for nobody but the curator, or another number of rows
where that is public. A lock keeps a second run out.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from counterpoise.bundle.archive import read_archive, write_archive
from counterpoise.bundle.card import MADE_BY, RETARGETED
from counterpoise.bundle.release import Release
from counterpoise.bundle.stored_rows import PREFIX
from counterpoise.curation.plan import Plan
from counterpoise.disk import as_path, only_one, plainly, write_whole
from counterpoise.errors import BudgetError, BundleError
from counterpoise.vault import Journal

REQUEST = "request.json"
STAGES = ("domain", "synthesizer", "weights")
_JOURNAL, _LOCK, _TABLE = "journal", "lock", "table.json"
# The request goes last, when a folder is removed: what is left without it would be in the way.
_FILES = (*(f"{stage}.npz" for stage in STAGES), _JOURNAL, _TABLE, _LOCK, REQUEST)
# A size is soon guessed: each try takes a tenth of a second. A round number; not studied.
_ROUNDS = 200_000
# What of a table another run may notice to have changed.
_NOTICED = {
    "file": "its file has another size, or was changed since",
    "rows": "it has another number of rows, which is public here",
}


@dataclass(frozen=True)
class Work:
    """A folder for one request; without a folder nothing is kept.

    `sampling_seed` makes free draws the same when they are made again; `request` is the digest of
    what was asked for.
    """

    sampling_seed: int
    folder: Path | None = None
    journal: Journal | None = None
    request: str = ""

    @property
    def described(self) -> dict[str, Any]:
        """The card's line by which the same request knows its release, and a folder its own."""
        if self.journal is None:
            return {}
        return {MADE_BY: {"request": self.request, "run": self.journal.run}}

    def arrays(self, stage: str) -> dict[str, np.ndarray] | None:
        """The arrays of a stage that this run finished; its answers will not be asked for again."""
        found = self._read(stage)
        return None if found is None else found[0]

    def notes(self, stage: str) -> dict[str, Any] | None:
        """What was noted of a stage that this run finished."""
        found = self._read(stage)
        return None if found is None else found[1]

    def keep(
        self,
        stage: str,
        arrays: Mapping[str, np.ndarray] | None = None,
        notes: Mapping[str, Any] | None = None,
    ) -> None:
        """A stage is finished: keep what came of it, with the mark of the journal up to here."""
        if self.folder is not None and self.journal is not None:
            kept = {**(notes or {}), "mark": self.journal.mark}
            write_archive(self.folder / f"{stage}.npz", arrays or {}, kept)

    def require_same_table(self, table: Any = None, rows: int | None = None) -> None:
        """Refuse another table than that of which answers were paid for, where one can tell.

        A `table` that is a file by its size and when it was changed, or one of so many `rows`.
        """
        if self.folder is None:
            return
        place = self.folder / _TABLE
        found = {"file": self._file_mark(table), "rows": rows}
        known = _read_known(place) if _is_charged(self.folder) else {}
        for what, value in found.items():
            if value is not None and known.get(what, value) != value:
                raise BundleError(
                    f"work: the run in {self.folder} was started with another table: "
                    f"{_NOTICED[what]}. Go on with the one that it was started with; if it is the "
                    f"same and its file was only copied, remove {place}, and if it is not, remove "
                    "the folder to start anew, which pays again"
                )
        said = {key: value for key, value in found.items() if value is not None}
        if said:
            content = json.dumps(known | said).encode()
            write_whole(place, lambda file: file.write(content), lasting=True)

    def _file_mark(self, table: Any) -> str | None:
        """What tells a file from what it may be later, from which its size cannot be read."""
        if not (isinstance(table, str | os.PathLike) and os.path.isfile(table)):
            return None
        stated = os.stat(table)
        told = f"{stated.st_size} {stated.st_mtime_ns}".encode()
        salt = str(self.sampling_seed).encode()
        return hashlib.pbkdf2_hmac("sha256", told, salt, _ROUNDS).hex()

    def _read(self, stage: str) -> tuple[dict[str, np.ndarray], dict[str, Any]] | None:
        if self.folder is None or self.journal is None:
            return None
        try:
            arrays, notes = read_archive(self.folder / f"{stage}.npz")
            is_ours = self.journal.skip(str(notes["mark"]))
        except (BundleError, KeyError, TypeError):
            return None
        return (arrays, notes) if is_ours else None


@contextmanager
def open_work(
    folder: str | Path | None, request: Mapping[str, Any], plan: Plan, private: bool
) -> Iterator[Work]:
    """Start a folder, or go on with one that was started for the same request; locked meanwhile."""
    if folder is None:
        yield Work(_fresh_seed())
        return
    path = _checked_folder(folder)
    new = [place for place in (path, *path.parents) if not place.exists()]
    with ExitStack() as held:
        held.callback(_remove_empty, new)
        with plainly(path, "used as a working folder"):
            path.mkdir(parents=True, exist_ok=True)
            held.enter_context(only_one(path / _LOCK, f"work: another run is at work in {path}"))
        _sweep(path)
        seed = _request_seed(path, json.loads(json.dumps(request)))
        try:
            journal = Journal(path / _JOURNAL, plan.budget, private, plan.threshold_delta)
            yield Work(seed, path, journal, digest_of(request))
        except BaseException:
            with suppress(OSError, BundleError):
                if not _is_charged(path):
                    _remove_files(path)
            raise


def digest_of(request: Mapping[str, Any]) -> str:
    """What tells one request from another on a card, all of it public.

    The name of the column of persons is the curator's, and a short one could be guessed from a
    digest: only whether there is one counts.
    """
    public = {**request, "person": "person" in request}
    text = json.dumps(public, sort_keys=True)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def is_begun(folder: str | Path | None) -> bool:
    """Whether a run has paid for anything in a folder, from which another would go on."""
    return folder is not None and _is_charged(_checked_folder(folder))


def require_answers(work: Work) -> None:
    """Refuse a run whose journal owes an answer: its shares add up to all that there was."""
    if work.journal is not None and work.journal.lost:
        raise BudgetError(
            f"work: the run in {work.folder} was killed during the look for "
            f"{work.journal.lost[0]!r}. Its charge stays and its answer is lost, so what is left "
            "of the budget no longer pays for the rest; remove the folder to start anew, which "
            "pays again"
        )


def is_left_of(folder: Path, plan: Plan, release: Release) -> bool:
    """Whether a folder is what a kill left after its release was saved, and is of no more use."""
    if not _is_charged(folder):
        return False
    kept = Journal(folder / _JOURNAL, plan.budget, threshold_delta=plan.threshold_delta)
    return kept.run == _made_by(release).get("run")


def is_made_by(release: Release, request: Mapping[str, Any]) -> bool:
    """Whether a release is what a request asks for, and as it was made."""
    is_as_made = not (release.card.get(RETARGETED) or release.card["weights"].get("reweighted"))
    return is_as_made and _made_by(release).get("request") == digest_of(request)


def _made_by(release: Release) -> Mapping[str, Any]:
    found = release.card.get(MADE_BY)
    return found if isinstance(found, Mapping) else {}


def discard(folder: Path) -> None:
    """Remove a folder of work: its own files, and the folder if nothing else is in it."""
    if not folder.is_dir():
        return
    with plainly(folder, "removed"):
        with only_one(folder / _LOCK, f"work: another run is at work in {folder}"):
            _sweep(folder)
            _remove_files(folder)
        if not any(folder.iterdir()):
            folder.rmdir()


def _checked_folder(folder: str | Path) -> Path:
    path = as_path("work", folder)
    with plainly(path, "used as a working folder"):
        if path.exists() and not path.is_dir():
            raise BundleError(f"work: {path} is not a folder; state another")
    return path


def _fresh_seed() -> int:
    return uuid.uuid4().int % 2**63


def _sweep(folder: Path) -> None:
    """Remove what a kill left half written: files under temporary names of ours, and rows."""
    for rows in folder.glob(f"{PREFIX}*"):
        shutil.rmtree(rows, ignore_errors=True)
    for name in _FILES:
        for file in folder.glob(f".{name}.*"):
            file.unlink(missing_ok=True)


def _is_charged(folder: Path) -> bool:
    """Whether a journal has more whole lines than the first, which only says whose it is.

    Of one that does not begin with a digest, as ours do, nobody knows what was in it.
    """
    journal = folder / _JOURNAL
    with plainly(journal, "read"):
        written = journal.read_bytes() if journal.exists() else b""
    return written.count(b"\n") > 1 or written[:1] not in b"0123456789abcdef"


def _remove_files(folder: Path) -> None:
    for name in _FILES:
        (folder / name).unlink(missing_ok=True)


def _read_known(place: Path) -> dict[str, Any]:
    """What is known of the table that a run was started with; nothing where that is damaged."""
    try:
        return dict(json.loads(place.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return {}


def _remove_empty(folders: Sequence[Path]) -> None:
    """Remove folders that a run made, the innermost first, as far as nothing is in them."""
    with suppress(OSError):
        for folder in folders:
            folder.rmdir()


def _request_seed(folder: Path, request: dict[str, Any]) -> int:
    """The seed of the free draws, of a folder that is new, of the same request or of nobody's."""
    path = folder / REQUEST
    found = _read_request(path) if path.exists() else None
    if found is not None and found[0] != request and not _is_charged(folder):
        _remove_files(folder)
        found = None
    if found is None:
        if any(file.name != _LOCK for file in folder.iterdir()):
            raise BundleError(f"work: {folder} holds something else; state another folder")
        seed = _fresh_seed()
        content = json.dumps({"request": request, "sampling_seed": seed}, indent=2).encode()
        write_whole(path, lambda file: file.write(content), lasting=True)
        return seed
    kept, seed = found
    if kept != request:
        differing = [key for key in sorted({*kept, *request}) if kept.get(key) != request.get(key)]
        raise BundleError(
            f"work: {folder} was started for another request (it differs in "
            f"{', '.join(differing)}); state another folder, repeat the request as it was, or "
            "remove the folder to start anew, which pays again"
        )
    return seed


def _read_request(path: Path) -> tuple[dict[str, Any], int]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return dict(found["request"]), int(found["sampling_seed"])
    except (OSError, ValueError, KeyError, TypeError):
        raise BundleError(f"work: {path} is damaged; remove its folder to start anew") from None
