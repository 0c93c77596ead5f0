"""Counterpoise: differentially private synthetic tables with the weights that correct them.

The curator calls `release` or `weigh`, the analyst `load`. Rooms are nouns (`curation`, `weights`)
and functions verbs, so no room has the name of a function. Names are imported when they are first
used, so that `import counterpoise` is quick.
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from counterpoise.analysis.posterior_model import Prior
    from counterpoise.bundle.files import load
    from counterpoise.bundle.release import Release
    from counterpoise.curation.release import release
    from counterpoise.curation.weigh import weigh
    from counterpoise.errors import AnalysisError, CounterpoiseError, CounterpoiseWarning
    from counterpoise.evaluation.evaluate import evaluate
    from counterpoise.evaluation.result import Evaluation
    from counterpoise.formulas.questions import Question
    from counterpoise.schema import Column, Schema, draft_schema
    from counterpoise.vault import Account, Budget, Ledger, Share, Vault

__version__ = version("counterpoise")

_HOMES = {
    "AnalysisError": "errors",
    "CounterpoiseError": "errors",
    "CounterpoiseWarning": "errors",
    "Evaluation": "evaluation.result",
    "Prior": "analysis.posterior_model",
    "Question": "formulas.questions",
    "Release": "bundle.release",
    "evaluate": "evaluation.evaluate",
    "load": "bundle.files",
    "release": "curation.release",
    "weigh": "curation.weigh",
    "Column": "schema",
    "Schema": "schema",
    "draft_schema": "schema",
    "Account": "vault",
    "Budget": "vault",
    "Ledger": "vault",
    "Share": "vault",
    "Vault": "vault",
}

__all__ = [
    "Account",
    "AnalysisError",
    "Budget",
    "Column",
    "CounterpoiseError",
    "CounterpoiseWarning",
    "Evaluation",
    "Ledger",
    "Prior",
    "Question",
    "Release",
    "Schema",
    "Share",
    "Vault",
    "__version__",
    "draft_schema",
    "evaluate",
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


def __dir__() -> list[str]:
    return sorted(__all__)
