"""The order of the rooms: a room imports only from rooms above it, and `Release` is the front door.

The test reads the syntax tree of every file, imports inside functions included, and is itself
tested on small sources that break the order. What is imported for type checkers alone counts too.
"""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "counterpoise"

# From the ground up; files of the package itself stand for rooms of one file.
ROOMS = (
    "errors",
    "arguments",
    "disk",
    "patience",
    "registry",
    "schema",
    "formulas",
    "networks",
    "importance",
    "vault",
    "synthesizers",
    "weights",
    "bundle",
    "analysis",
    "report",
    "curation",
    "evaluation",
    "testing",
    "cli",
)
# The one file that may import from lower rooms, inside its methods or for type checkers.
FRONT_DOOR = "bundle/release.py"
# The package itself hands out names of every room, when they are asked for.
HALL = "__init__.py"


def breaches(source: str, file: str) -> list[str]:
    """What a file imports from rooms further down than its own."""
    if file == HALL:
        return []
    own = file.split("/")[0].removesuffix(".py")
    tree = ast.parse(source)
    inside = _inside_functions(tree) | _for_type_checkers(tree) if file == FRONT_DOOR else set()
    found = []
    for node in ast.walk(tree):
        for room in _rooms(node):
            if ROOMS.index(room) > ROOMS.index(own) and node not in inside:
                found.append(f"line {node.lineno}: {own} imports from {room}")
    return found


def _rooms(node: ast.AST) -> list[str]:
    """The rooms that an import statement names."""
    modules = []
    if isinstance(node, ast.Import):
        modules = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and node.module == "counterpoise":
        modules = [f"counterpoise.{alias.name}" for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and node.module:
        modules = [node.module]
    parts = [module.split(".") for module in modules]
    return [
        part[1] for part in parts if part[0] == "counterpoise" and part[1:2] and part[1] in ROOMS
    ]


def _inside_functions(tree: ast.AST) -> set[ast.AST]:
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return {inner for function in functions for inner in ast.walk(function)}


def _for_type_checkers(tree: ast.AST) -> set[ast.AST]:
    guarded = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.If)
        and isinstance(node.test, ast.Name)
        and node.test.id == "TYPE_CHECKING"
    ]
    return {inner for node in guarded for inner in ast.walk(node)}


FILES = sorted(file.relative_to(SOURCE).as_posix() for file in SOURCE.rglob("*.py"))


@pytest.mark.parametrize("file", FILES)
def test_every_file_imports_from_its_own_room_or_above(file):
    assert breaches((SOURCE / file).read_text(encoding="utf-8"), file) == []


def test_every_room_has_its_place_in_the_order():
    there = {file.split("/")[0].removesuffix(".py") for file in FILES} - {"__init__"}
    assert there == set(ROOMS)


def test_tests_mirror_the_rooms():
    tests = Path(__file__).parent
    folders = {room for room in ROOMS if (SOURCE / room).is_dir()}
    assert folders <= {folder.name for folder in tests.iterdir() if folder.is_dir()}


@pytest.mark.parametrize(
    ("source", "file"),
    [
        ("from counterpoise.analysis.glm import glm", "bundle/files.py"),
        ("from counterpoise.analysis.glm import glm", FRONT_DOOR),
        ("def f():\n    from counterpoise.curation.work import Work", "bundle/files.py"),
        ("import counterpoise.cli", "curation/plan.py"),
        ("from counterpoise import vault", "schema/column.py"),
        ("from counterpoise.vault import Budget", "registry.py"),
    ],
)
def test_the_order_is_noticed(source, file):
    assert breaches(source, file)


@pytest.mark.parametrize(
    ("source", "file"),
    [
        ("def save():\n    from counterpoise.analysis.glm import glm", FRONT_DOOR),
        ("from counterpoise.vault import Budget", "weights/moments.py"),
        ("import counterpoise", "vault/vault.py"),
        ("from counterpoise import __version__", "bundle/card.py"),
    ],
)
def test_the_rest_is_left_alone(source, file):
    assert breaches(source, file) == []
