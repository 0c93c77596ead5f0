"""Benchmarks are run by hand, and rarely: that what they import from here is still there is held.

The scripts are read and not run, because they need more than the tests install.
"""

import ast
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SCRIPTS = sorted((ROOT / "benchmarks").rglob("*.py"))


def imported(source: str) -> list[tuple[str, str]]:
    """The modules and names of the package that a script imports, wherever in it."""
    return [
        (node.module, alias.name)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("counterpoise")
        for alias in node.names
    ]


def is_there(module: str, name: str) -> bool:
    if hasattr(import_module(module), name):
        return True
    try:
        import_module(f"{module}.{name}")
    except ImportError:
        return False
    return True


@pytest.mark.parametrize("script", SCRIPTS, ids=[script.name for script in SCRIPTS])
def test_what_a_benchmark_imports_is_there(script):
    found = imported(script.read_text(encoding="utf-8"))
    assert [pair for pair in found if not is_there(*pair)] == []


def test_what_is_gone_is_noticed():
    [gone] = imported("def f():\n    from counterpoise import forget")
    assert not is_there(*gone)
