"""Counterpoise: differentially private synthetic tables with the weights that correct them.

The curator calls `release`, the analyst `load`. Names are imported when they are first used, so
that `import counterpoise` is quick.
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from counterpoise.release import release

if TYPE_CHECKING:
    from counterpoise.errors import CounterpoiseError
    from counterpoise.release.bundle import load
    from counterpoise.release.result import Release
    from counterpoise.schema import Column, Schema, draft_schema
    from counterpoise.vault import Budget, Ledger, Share, Vault

__version__ = version("counterpoise")

_HOMES = {
    "CounterpoiseError": "errors",
    "Release": "release.result",
    "load": "release.bundle",
    "Column": "schema",
    "Schema": "schema",
    "draft_schema": "schema",
    "Budget": "vault",
    "Ledger": "vault",
    "Share": "vault",
    "Vault": "vault",
}

__all__ = [
    "Budget",
    "Column",
    "CounterpoiseError",
    "Ledger",
    "Release",
    "Schema",
    "Share",
    "Vault",
    "__version__",
    "draft_schema",
    "load",
    "release",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'counterpoise' has no attribute {name!r}")
    value = getattr(import_module(f"counterpoise.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
