"""The guard at the door of this room: weights that were found bad are not used by accident.

The card of a release carries a verdict on its weights: "fine", "caution" or "do not use", with a
reason and a way out. Caution is said once a release; a release whose weights should not be used
is refused, until the analyst takes one of two steps: `release.unweighted()` or
`release.use_weights()`. A card without a verdict is taken as fine.
"""

from __future__ import annotations

import inspect
import warnings
from typing import TYPE_CHECKING

from counterpoise.errors import AnalysisError, CounterpoiseWarning

if TYPE_CHECKING:
    from counterpoise.bundle.release import Release

CAUTION, REFUSE = "caution", "do not use"


def check_weights(release: Release) -> None:
    """Warn once, or raise an AnalysisError, when the verdict on the weights is bad."""
    if not release.rows:
        raise AnalysisError("the release has no rows, so there is nothing to estimate from")
    verdict = release.card.get("weights", {}).get("verdict") or {}
    level = verdict.get("level")
    if release.accepted or level not in (CAUTION, REFUSE):
        return
    said = "; ".join(verdict[key] for key in ("reason", "way_out") if verdict.get(key))
    because = f": {said}" if said else ""
    if level == REFUSE:
        raise AnalysisError(
            f"the weights of this release should not be used{because}. Go on without them "
            "(release.unweighted()), or with them at your own risk (release.use_weights())"
        )
    if "caution" not in release.told:
        release.told.add("caution")
        warn(f"use the weights of this release with caution{because}")


def warn(message: str) -> None:
    """Warn at the line of the analyst's that led here, however deep in this package we are."""
    frame, level = inspect.currentframe(), 1
    while frame is not None and frame.f_globals.get("__name__", "").startswith("counterpoise."):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, CounterpoiseWarning, stacklevel=level)
