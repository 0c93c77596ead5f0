"""Named arrays in a file: `.npz` without pickles, there in full or not at all.

A few bytes of such a file can stand for terabytes. So before an array is read, what the file says
of its size is held against its own header, and what all of them take against a limit.
"""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from counterpoise.disk import plainly, write_whole
from counterpoise.errors import BundleError

_NOTES = "notes"
# What arrays take unpacked, where they are somebody else's: models of the methods here take up to a
# few tens of megabytes, and a gigabyte of zeros is read in seconds. A round number.
MOST_BYTES = 2**30
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


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


def read_archive(
    path: Path, most: float = math.inf
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays and the notes of a file that `write_archive` wrote, of at most so many bytes."""
    with plainly(path, "read"):
        content = io.BytesIO(path.read_bytes())
    try:
        _check_sizes(path, content, most)
        content.seek(0)
        with np.load(content, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        return arrays, json.loads(str(arrays.pop(_NOTES)))
    except (BundleError, MemoryError):
        raise
    except Exception:
        # The readers of zip files and arrays have many errors for bytes that are neither.
        raise BundleError(f"{path} is damaged: it is not an archive of arrays") from None


def _check_sizes(path: Path, content: io.BytesIO, most: float) -> None:
    """Refuse arrays of more than `most` bytes, and raise where a size is not that of its header."""
    with zipfile.ZipFile(content) as packed:
        members = packed.infolist()
        if sum(member.file_size for member in members) > most:
            raise BundleError(
                f"{path} is too large: its arrays take more than {most:,} bytes; get the release "
                "again, from somebody whom you trust"
            )
        for member in members:
            with packed.open(member) as file:
                shape, _, dtype = _HEADERS[np.lib.format.read_magic(file)](file)
                taken = math.prod(shape) * dtype.itemsize
                # An array of nothings has any number of entries.
                if not dtype.itemsize or file.tell() + taken != member.file_size:
                    raise ValueError
