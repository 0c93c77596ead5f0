"""Pages that people look at: the released report, computed from a release alone."""

from counterpoise.report.page import release_page

__all__ = ["release_page"]
