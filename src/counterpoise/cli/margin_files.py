"""Files of margins: JSON as Python has them, or a CSV a margin, as statistical offices give them.

A CSV has columns of the release, and `share` or `count`: `sex,share`, or `sex,region,count` for
both together. In JSON an object has shares by category, or a mean, for single columns; a list has
any margins in the form of a card. Intervals are text, "[18, 65)".
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from counterpoise.disk import plainly, require_file
from counterpoise.errors import AnalysisError, CounterpoiseError

AMOUNTS = ("share", "count")


def margins_in(files: Iterable[Path]) -> list[dict[str, Any]]:
    """The margins of all files, each in the form of the card."""
    return [margin for file in files for margin in _margins(file)]


def _margins(file: Path) -> list[dict[str, Any]]:
    if file.suffix.lower() != ".json":
        return [_table(file)]
    require_file(file, AnalysisError)
    with plainly(file, "read"):
        if not file.is_file():
            raise AnalysisError(f"there is no file {file}")
        content = file.read_bytes()
    try:
        found = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError):
        raise AnalysisError(f"{file}: expected JSON in UTF-8") from None
    if isinstance(found, Mapping) and "columns" in found:
        found = [found]
    if isinstance(found, Mapping):
        return [_stated(name, value) for name, value in found.items()]
    if not isinstance(found, list):
        raise AnalysisError(f"{file}: expected an object of margins, or a list of them")
    return found


def _stated(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        return {"columns": [name], "mean": value}
    return {
        "columns": [name],
        "cells": [[cell] for cell in value],
        "shares": list(value.values()),
    }


def _table(file: Path) -> dict[str, Any]:
    from counterpoise.schema.tables import read_table

    try:
        table = read_table(file)
    except CounterpoiseError as error:
        raise AnalysisError(f"margins: {error}") from None
    amounts = [name for name in AMOUNTS if name in table]
    names = [str(name) for name in table.columns if name not in AMOUNTS]
    if len(amounts) != 1 or not names:
        raise AnalysisError(
            f"{file}: expected columns of the release and one called share or count, not "
            f"{', '.join(map(str, table.columns[:8]))}"
        )
    cells = table[names].astype(object).where(table[names].notna(), None)
    return {
        "columns": names,
        "cells": [[_text(part) for part in cell] for cell in cells.itertuples(index=False)],
        "shares": [_number(file, value) for value in table[amounts[0]]],
    }


def _text(value: Any) -> Any:
    return value if value is None or isinstance(value, str) else str(value)


def _number(file: Path, value: Any) -> float:
    try:
        found = float(value)
    except (TypeError, ValueError):
        found = math.nan
    if not math.isfinite(found):
        raise AnalysisError(f"{file}: expected a number in every line of its shares or counts")
    return found
