"""Named arrays in a file: `.npz` without pickles, there in full or not at all."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from counterpoise.disk import plainly, write_whole
from counterpoise.errors import BundleError

_NOTES = "notes"


def write_archive(
    path: Path, arrays: Mapping[str, np.ndarray], notes: Mapping[str, Any] | None = None
) -> None:
    """Write arrays and JSON notes under a temporary name, and rename the file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_archive(Path(folder) / "a.npz", {"x": np.arange(3)}, {"of": "three"})
    ...     read_archive(Path(folder) / "a.npz")
    ({'x': array([0, 1, 2])}, {'of': 'three'})
    """
    text = np.array(json.dumps(dict(notes or {}), allow_nan=False))
    write_whole(
        path,
        lambda file: np.savez_compressed(file, **{_NOTES: text}, **arrays),  # type: ignore[arg-type]
    )


def read_archive(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays and the notes of a file that `write_archive` wrote."""
    with plainly(path, "read"):
        content = io.BytesIO(path.read_bytes())
    try:
        with np.load(content, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        return arrays, json.loads(str(arrays.pop(_NOTES)))
    except MemoryError:
        raise
    except Exception:
        # The readers of zip files and arrays have many errors for bytes that are neither.
        raise BundleError(f"{path} is damaged: it is not an archive of arrays") from None
