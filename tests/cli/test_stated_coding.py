"""Scales, atoms and steps, stated on the command line."""

import pytest

import counterpoise as cp
from counterpoise.errors import SchemaError
from tests.cli.calls import run


@pytest.fixture
def draft(tmp_path):
    path = tmp_path / "draft.json"
    cp.Schema(
        [
            cp.Column.continuous("charge", 0, 5e6),
            cp.Column.date("admitted", "2020-01-01", "2020-12-31"),
            cp.Column.categorical("ward", ["north", "south"]),
        ]
    ).write(path)
    return path


def state(draft, column, *words):
    said = run("schema", "set", draft, column, *words)
    return cp.Schema.read(draft)[column], said


def test_a_scale_atoms_and_a_step_are_stated_and_shown(draft):
    column, said = state(
        draft, "charge", "--scale", "log", "--atoms", "0,99999,12.5", "--step", "0.01"
    )
    assert (column.scale, column.atoms, column.step) == ("log", (0.0, 12.5, 99_999.0), 0.01)
    assert "charge.scale: none -> log" in said
    assert "charge.atoms: none -> 0, 12.5, 99999" in said
    assert "charge.step: none -> 0.01" in said
    assert "auto, log, atoms 0, 12.5, 99999, step 0.01" in run("schema", "show", draft)
    column, _ = state(draft, "admitted", "--atoms", "2020-01-01")
    assert [str(atom) for atom in column.atoms] == ["2020-01-01"]


def test_they_are_taken_back_by_nothing_and_by_another_type(draft):
    state(draft, "charge", "--scale", "log", "--atoms", "7", "--step", "0.5")
    column, said = state(draft, "charge", "--scale", "", "--atoms", "")
    assert (column.scale, column.atoms, column.step) == (None, None, 0.5)
    assert "charge.atoms: 7 -> none" in said
    column, said = state(draft, "charge", "--type", "integer")
    assert column.step is None
    assert "charge.step: 0.5 -> none" in said
    state(draft, "charge", "--scale", "log")
    column, said = state(draft, "charge", "--type", "string")
    assert column.scale is None


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("charge", "--scale", "square"), "'linear' or 'log'"),
        (("charge", "--atoms", "7,many"), "an atom must be a number, not 'many'"),
        (("charge", "--atoms", "6e6"), "beyond the maximum"),
        (("charge", "--step", "-1"), "above zero"),
        (("admitted", "--scale", "log"), "no zero"),
        (("admitted", "--step", "1"), "type number"),
        (("ward", "--atoms", "north"), "--type number"),
    ],
)
def test_nonsense_is_refused_and_the_draft_stays(draft, words, error):
    before = draft.read_bytes()
    with pytest.raises(SchemaError, match=error):
        run("schema", "set", draft, *words)
    assert draft.read_bytes() == before
