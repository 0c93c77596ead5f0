"""Counterpoise: differentially private synthetic tables with the weights that correct them.

The curator calls `release` or `weigh`, the analyst `load`. Names are imported when they are first
used, so that `import counterpoise` is quick. `release` and `weigh` are also rooms of the package,
`from counterpoise.weigh import Moments`; as attributes of the package they are the functions.
"""

import sys
from importlib import import_module
from importlib.metadata import version
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from counterpoise.analyse.posterior_model import Prior
    from counterpoise.errors import AnalysisError, CounterpoiseError, CounterpoiseWarning
    from counterpoise.release.bundle import load
    from counterpoise.release.elsewhere import weigh
    from counterpoise.release.result import Release
    from counterpoise.release.run import release
    from counterpoise.schema import Column, Schema, draft_schema
    from counterpoise.vault import Budget, Ledger, Share, Vault

__version__ = version("counterpoise")

_HOMES = {
    "AnalysisError": "errors",
    "CounterpoiseError": "errors",
    "CounterpoiseWarning": "errors",
    "Prior": "analyse.posterior_model",
    "Release": "release.result",
    "load": "release.bundle",
    "release": "release.run",
    "weigh": "release.elsewhere",
    "Column": "schema",
    "Schema": "schema",
    "draft_schema": "schema",
    "Budget": "vault",
    "Ledger": "vault",
    "Share": "vault",
    "Vault": "vault",
}

__all__ = [
    "AnalysisError",
    "Budget",
    "Column",
    "CounterpoiseError",
    "CounterpoiseWarning",
    "Ledger",
    "Prior",
    "Release",
    "Schema",
    "Share",
    "Vault",
    "__version__",
    "draft_schema",
    "load",
    "release",
    "weigh",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'counterpoise' has no attribute {name!r}")
    value = getattr(import_module(f"counterpoise.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


class _Package(ModuleType):
    """The package, in which a room never takes the place of the function of its name."""

    def __setattr__(self, name: str, value: Any) -> None:
        # Whoever imports a room first makes the import system bind it here.
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
