"""What an interrupted fit has paid for, on disk, so that it can go on: noisy answers only.

A checkpoint is one `.npz` file without pickles: the measured tables, how the rest is to be spent,
the ledger up to here, and a description of the job. It is written under a temporary name and
renamed after every round. An answer that was charged but not kept is lost and was never used, so
going on with the kept ledger is sound.
"""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from counterpoise.errors import BundleError, MethodError
from counterpoise.synthesizers.graphical import Measurement
from counterpoise.vault import Ledger, Vault


@dataclass(frozen=True, eq=False)
class Progress:
    """Measured tables so far, the rho that is left, and the rho of the next round."""

    measured: tuple[Measurement, ...]
    left: float
    round_amount: float


@dataclass(frozen=True)
class Checkpoint:
    """A file for the progress of one job; `job` tells it from any other."""

    path: Path
    job: dict[str, Any]

    def keep(self, progress: Progress, ledger: Ledger) -> None:
        """Write all that was paid for; the file is there in full or as it was before."""
        notes = {
            "job": self.job,
            "ledger": ledger.to_dict(),
            "left": progress.left,
            "round_amount": progress.round_amount,
            "columns": [list(part.columns) for part in progress.measured],
            "scales": [part.scale for part in progress.measured],
        }
        arrays = {f"values_{i}": part.values for i, part in enumerate(progress.measured)}
        handle, temporary = tempfile.mkstemp(dir=self.path.parent, prefix=f".{self.path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                np.savez(file, notes=np.array(json.dumps(notes)), **arrays)  # type: ignore[arg-type]
            os.replace(temporary, self.path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise

    def resume(self, vault: Vault) -> Progress | None:
        """The progress that the file holds, when it is of this job; None when there is no file.

        The vault has to carry on with the ledger of the file: see `kept_ledger`.
        """
        if not self.path.exists():
            return None
        notes, arrays = _read(self.path)
        if notes["job"] != json.loads(json.dumps(self.job)):
            raise MethodError(
                f"{self.path} belongs to another schema, method or share; remove it to start anew"
            )
        if notes["ledger"]["spends"] != [spend.to_dict() for spend in vault.ledger.spends]:
            raise MethodError(
                f"{self.path} was paid for on another ledger; open the vault with "
                "ledger=kept_ledger(path), or remove the file to start anew"
            )
        measured = tuple(
            Measurement(tuple(columns), arrays[f"values_{i}"], scale)
            for i, (columns, scale) in enumerate(
                zip(notes["columns"], notes["scales"], strict=True)
            )
        )
        return Progress(measured, notes["left"], notes["round_amount"])


def kept_ledger(path: str | Path) -> Ledger | None:
    """The ledger up to a checkpoint, for the vault that goes on; None when there is no file."""
    return Ledger.from_dict(_read(Path(path))[0]["ledger"]) if Path(path).exists() else None


def _read(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        return json.loads(str(arrays.pop("notes"))), arrays
    except (OSError, ValueError, KeyError, zipfile.BadZipFile):
        raise BundleError(f"{path} is damaged; remove it to start anew") from None
