"""Releases: made by the curator, written to disk, loaded by the analyst."""
