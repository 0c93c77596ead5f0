"""The load-bearing wall: only `vault/` sees private rows, only `vault/noise` draws their noise.

The test reads the syntax tree of every file. It is itself tested on small sources that break each
rule.
"""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "counterpoise"

# What only the vault may touch: its rows and its noise.
SECRET_ATTRIBUTES = {
    "_storage",
    "_open_storage",
    "_noise",
    "_settle",
    "_ask",
    "_pay",
    "_look",
    "_courses",
}
SECRET_MODULES = (
    "counterpoise.vault.storage",
    "counterpoise.vault.noise",
    "counterpoise.vault.counts",
    "counterpoise.vault.totals",
    "counterpoise.vault.sums",
    "counterpoise.vault.minimise",
    "counterpoise.vault.objective",
    "counterpoise.vault.descend",
    "counterpoise.vault.gradients",
    "counterpoise.vault.votes",
    "counterpoise.vault.select",
    "counterpoise.vault.persons",
    "counterpoise.vault.points",
    "counterpoise.vault.bandwidth",
    "counterpoise.vault.quantiles",
    "counterpoise.vault.bounds",
    "counterpoise.vault.categories",
    "counterpoise.vault.domain",
    "counterpoise.vault.boundary",
)
# Measures against exact private rows, the rooms that show them to the curator, and the package
# itself, which hands out names of every room when they are asked for.
CONFIDENTIAL = "counterpoise.evaluation"
CURATORS_ROOMS = ("evaluation", "cli", ".")
# Sources of noise good enough for privacy, which nobody else has a use for.
SECURE_SOURCES = ("opendp", "secrets")
# Ordinary randomness, which the vault must not use outside its noise.
ORDINARY_SOURCES = {"random", "numpy.random", "jax.random"}


def breaches(source: str, room: str) -> list[str]:
    """What a file in `room` ("vault", "vault/noise", "weights", ...) does that it may not."""
    in_vault = room.split("/")[0] == "vault"
    in_noise = room.startswith("vault/noise")
    is_curators = room.split("/")[0] in CURATORS_ROOMS
    found = []
    for node in ast.walk(ast.parse(source)):
        for module in _imported(node):
            if not in_vault and module.startswith(SECRET_MODULES):
                found.append(f"line {node.lineno}: imports {module}")
            if not is_curators and module.startswith(CONFIDENTIAL):
                found.append(f"line {node.lineno}: imports {module}")
            if not in_noise and module.startswith(SECURE_SOURCES):
                found.append(f"line {node.lineno}: imports {module}")
            if in_vault and not in_noise and module in ORDINARY_SOURCES:
                found.append(f"line {node.lineno}: imports {module}")
        if isinstance(node, ast.Attribute):
            if not in_vault and node.attr in SECRET_ATTRIBUTES:
                found.append(f"line {node.lineno}: touches {node.attr}")
            if not in_noise and node.attr in ("urandom", "getrandom"):
                found.append(f"line {node.lineno}: draws from the operating system")
            if in_vault and not in_noise and _is_numpy_random(node):
                found.append(f"line {node.lineno}: uses numpy.random")
        if isinstance(node, ast.Call) and not in_vault and _is_getattr_of_secret(node):
            found.append(f"line {node.lineno}: reaches for a secret attribute by name")
    return found


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        base = node.module or ""
        return [base, *(f"{base}.{alias.name}" for alias in node.names)]
    return []


def _is_numpy_random(node: ast.Attribute) -> bool:
    return (
        node.attr == "random"
        and isinstance(node.value, ast.Name)
        and node.value.id in ("np", "numpy")
    )


def _is_getattr_of_secret(node: ast.Call) -> bool:
    return (
        isinstance(node.func, ast.Name)
        and node.func.id in ("getattr", "setattr", "vars")
        and any(
            isinstance(argument, ast.Constant) and argument.value in SECRET_ATTRIBUTES
            for argument in node.args
        )
    )


FILES = sorted(SOURCE.rglob("*.py"))


@pytest.mark.parametrize("file", FILES, ids=[str(file.relative_to(SOURCE)) for file in FILES])
def test_no_file_breaches_the_wall(file):
    room = file.parent.relative_to(SOURCE).as_posix()
    assert breaches(file.read_text(encoding="utf-8"), room) == []


def test_the_schema_room_knows_nothing_of_the_vault():
    """Public knowledge must not depend on private rows, so it does not even import them."""
    for file in (SOURCE / "schema").glob("*.py"):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        imported = [module for node in ast.walk(tree) for module in _imported(node)]
        assert not any(module.startswith("counterpoise.vault") for module in imported), file


@pytest.mark.parametrize(
    ("source", "room"),
    [
        ("rows = vault._storage.batches(10)", "weights"),
        ("rows = getattr(vault, '_storage')", "weights"),
        ("from counterpoise.vault.storage import open_storage", "synthesizers"),
        ("from counterpoise.vault import storage", "synthesizers"),
        ("from counterpoise.vault.noise import Noise", "bundle"),
        ("noise = vault._noise.gaussian(x, 1.0)", "analysis"),
        ("from counterpoise.evaluation import wasserstein", "weights"),
        ("from counterpoise import evaluation", "bundle"),
        ("import opendp.prelude as dp", "weights"),
        ("import opendp", "vault"),
        ("import os\nos.urandom(8)", "synthesizers"),
        ("import secrets", "vault"),
        ("import numpy as np\nz = np.random.default_rng()", "vault"),
        ("from numpy.random import default_rng", "vault"),
        ("import random", "vault"),
    ],
)
def test_the_wall_notices(source, room):
    assert breaches(source, room)


@pytest.mark.parametrize(
    ("source", "room"),
    [
        ("import numpy as np\nz = np.random.default_rng(1)", "synthesizers"),
        ("import numpy as np\nz = np.random.default_rng(1)", "vault/noise"),
        ("from counterpoise.vault import Vault, Share", "weights"),
        ("from counterpoise.evaluation import wasserstein", "cli"),
        ("rows = vault._storage.batches(10)", "vault"),
        ("import os\nos.urandom(8)", "vault/noise"),
    ],
)
def test_the_wall_leaves_the_rest_alone(source, room):
    assert breaches(source, room) == []
