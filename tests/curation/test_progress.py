"""A run says how far it is: by a bar where somebody looks, and not a word where nobody does."""

import pytest

import counterpoise as cp
from counterpoise.curation import weigh as weigh_module
from counterpoise.synthesizers import DpGan


def steps(table, schema, progress) -> None:
    cp.release(table, schema, 1.0, 1e-6, rows=10, replicates=2, seed=1, progress=progress)


@pytest.mark.parametrize("progress", [True, False])
def test_nothing_is_written_where_nobody_looks(table, schema, capfd, progress):
    steps(table, schema, progress)
    assert capfd.readouterr() == ("", "")


def test_a_terminal_sees_the_stages_and_what_is_spent(table, schema, capfd, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # as rich is told of a terminal
    steps(table, schema, True)
    out, err = capfd.readouterr()
    assert out == ""
    assert "of the budget spent" in err
    steps(table, schema, False)
    assert capfd.readouterr() == ("", "")


def test_weighing_shows_a_bar_too(table, schema, capfd, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    release = cp.release(table, schema, 1.0, 1e-6, rows=40, replicates=0, seed=1, progress=False)
    synthetic = release.table.drop(columns="weight")
    monkeypatch.setattr(weigh_module, "_warned", True)
    cp.weigh(table, synthetic, release.schema, 1.0, 1e-6, replicates=2, seed=1)
    assert "of the budget spent" in capfd.readouterr().err


def test_a_long_fit_moves_the_bar_within_its_stage(table, schema):
    seen = []
    cp.release(
        table,
        schema,
        1.0,
        1e-6,
        synthesizer=DpGan(steps=50),
        weights="uniform",
        replicates=0,
        seed=1,
        progress=lambda stage, done: seen.append((stage, done)),
    )
    parts = [done for stage, done in seen if stage == "synthesizer"]
    assert len(parts) > 10
    assert parts == sorted(parts)
    assert (parts[0], round(parts[-1], 6)) == (0.05, 0.5)
