"""Releases: made by the curator, written to disk, loaded by the analyst."""

from counterpoise.release.run import release

__all__ = ["release"]
