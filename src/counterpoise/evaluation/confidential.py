"""What marks an evaluation as confidential, and keeps it out of what is released.

An evaluation is made of exact private rows and is covered by no budget. Every file of it begins
with a line that says so, and none is written into the folder of a release, nor below it, whichever
links lead there. A release is written as a whole folder of files that it lists itself, so that
saving one takes nothing along.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from counterpoise.bundle.descriptor import DESCRIPTOR
from counterpoise.disk import as_path, plainly, write_whole
from counterpoise.errors import BundleError
from counterpoise.schema.quoting import as_cell

NOTICE = (
    "CONFIDENTIAL: computed from private rows, covered by no privacy budget; "
    "never publish it, nor put it in a release"
)


def check_outside_releases(path: Any) -> Path:
    """Refuse a path in the folder of a release, or below it, by its name or where links lead.

    >>> check_outside_releases("confidential.html").name
    'confidential.html'
    """
    stated = as_path("path", path)
    with plainly(stated):
        for folder in _around(stated):
            if _is_release(folder):
                raise BundleError(
                    f"{stated} lies in the release {folder}, and what it would hold is "
                    "confidential; state a place outside of every release"
                )
    return stated


def write_text(path: Path, text: str) -> None:
    """Write a confidential text, whose notice is the writer's to have put in."""
    check_outside_releases(path)
    write_whole(path, lambda file: file.write(text.encode("utf-8")))


def csv_text(frame: pd.DataFrame) -> str:
    """A frame as CSV below a line, after a hash, that says what it is; no text is a formula.

    >>> print(csv_text(pd.DataFrame({"a": [1]})).splitlines()[1:])
    ['a', '1']
    """
    cells = frame.map(lambda cell: as_cell(cell) if isinstance(cell, str) else cell)
    return f"# {NOTICE}\n{cells.to_csv(index=False, lineterminator=chr(10))}"


def _around(path: Path) -> Iterator[Path]:
    """The folders that a path is in, as it is written and as it is without links, and itself."""
    absolute = Path(os.path.abspath(path))
    seen = set()
    for start in (absolute, Path(os.path.realpath(path))):
        for folder in (start, *start.parents):
            if folder not in seen:
                seen.add(folder)
                yield folder


def _is_release(folder: Path) -> bool:
    """Whether a folder has a release's descriptor; one that cannot be read might be."""
    file = folder / DESCRIPTOR
    if not file.is_file():
        # A pipe would be waited for.
        return os.path.lexists(file)
    try:
        return "counterpoise" in json.loads(file.read_bytes())
    except (OSError, ValueError, TypeError, RecursionError):
        return True
