"""Untidy files through the command line: drafted, reviewed, released, and read as stated."""

import json

import numpy as np
import pandas as pd
import pytest

import counterpoise as cp
from counterpoise.curation import release as curation
from counterpoise.errors import TableError
from counterpoise.schema import Dialect, Spelling
from tests.cli.calls import run

ROWS = 400


def visits():
    generator = np.random.default_rng(5)
    return pd.DataFrame(
        {
            "day": np.datetime64("2021-01-01") + generator.integers(0, 365, ROWS),
            "fee": generator.lognormal(7, 0.5, ROWS).round(2),
            "arrival": generator.integers(7 * 60, 19 * 60, ROWS),
            "ward": generator.choice(["Ärzte", "Büro"], ROWS),
        }
    )


@pytest.fixture
def untidy(tmp_path):
    """A file with semicolons, decimal commas, days first, words for null, in windows-1252."""
    table = visits()
    fees = [f"{fee:,.2f} €".translate(str.maketrans(",.", ".,")) for fee in table["fee"]]
    written = pd.DataFrame(
        {
            "case": [f"C{place:04}" for place in range(ROWS)],
            "day": table["day"].dt.strftime("%d/%m/%Y"),
            "fee": ["k.A." if place % 10 == 0 else fee for place, fee in enumerate(fees)],
            "arrival": [f"{time // 60}:{time % 60:02}" for time in table["arrival"]],
            "ward": table["ward"].where(np.arange(ROWS) % 9 > 0, "N/A"),
        }
    )
    path = tmp_path / "visits.csv"
    written.to_csv(path, sep=";", index=False, encoding="windows-1252")
    return path


def reviewed(path, draft):
    """The draft of a file, with everything in it accepted."""
    run("schema", path, "--missing", "k.A.", "--missing", "N/A", "-o", draft, "-q")
    names = cp.Schema.read(draft).names
    run("schema", draft, *(word for name in names for word in ("--accept", name)), "-q")
    return cp.Schema.read(draft)


def test_a_draft_shows_how_the_file_is_read_and_what_it_left_out(untidy, tmp_path):
    shown = run("schema", untidy, "--missing", "k.A.", "--missing", "N/A")
    assert "the file is read by delimiter ';', encoding 'windows-1252'" in shown
    assert "day is read by format '%d/%m/%Y'" in shown
    assert "fee is read by decimalChar ',', groupChar '.', bareNumber False" in shown
    assert "arrival is read by format '%H:%M'" in shown
    assert "note: column 'case' is left out of the draft" in shown
    run("schema", untidy, "--keep", "case", "-q", "-o", tmp_path / "kept.json")
    assert "case" in cp.Schema.read(tmp_path / "kept.json")


def test_options_of_drafting_reach_the_draft(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("a|b\n1,500|x\n2,500|-9\n".encode("utf-16"))
    words = ("--separator", "|", "--decimal", ",", "--encoding", "utf-16", "--missing", "-9")
    draft = cp.Schema.from_dict(json.loads(run("schema", path, *words, "--json")))
    assert draft.dialect == Dialect("|", encoding="utf-16")
    assert (draft["a"].maximum, draft["a"].spelling) == (2.5, Spelling(decimal=","))
    assert draft.missing_values == ("", "-9")
    assert draft["b"].categories == ("x",)
    tabs = tmp_path / "tabs.csv"
    tabs.write_text("a\tb\n1\t2\n")
    assert "delimiter '\\t'" in run("schema", tabs, "--separator", "tab")


def test_how_to_read_a_table_is_no_question_to_a_schema(tmp_path):
    cp.Schema([cp.Column.boolean("a")]).write(tmp_path / "s.json")
    assert "drafted from it" in run("schema", tmp_path / "s.json", "--decimal", ",", code=2)


def test_an_untidy_file_is_released_as_a_plain_table(untidy, tmp_path):
    schema = reviewed(untidy, tmp_path / "visits.json")
    start = ["release", untidy, "--schema", tmp_path / "visits.json", "--epsilon", 50]
    run(*start, "--delta", 1e-6, "--out", tmp_path / "out", "--seed", 1, "--csv", "-q")
    release = cp.load(tmp_path / "out")
    assert release.schema == release.schema.as_released()
    assert "dialect" not in release.schema.to_dict()
    assert release.schema["arrival"].unit == "minutes since midnight"
    truth = visits()
    for name in ("fee", "arrival"):
        assert release.mean(name).value == pytest.approx(truth[name].mean(), rel=0.1)
    middle = release.quantile("day", 0.5).value
    assert abs((middle - truth["day"].median().date()).days) < 30
    assert release.table["fee"].isna().mean() == pytest.approx(0.1, abs=0.05)
    assert set(release.table["ward"].dropna()) == {"Ärzte", "Büro"}
    read_back = pd.read_csv(tmp_path / "out" / "synthetic.csv")
    assert read_back["day"].str.fullmatch(r"2021-\d\d-\d\d").all()
    # And the untidy file has the codes of the tidy table.
    tidy = truth.assign(
        fee=truth["fee"].mask(np.arange(ROWS) % 10 == 0),
        ward=truth["ward"].where(np.arange(ROWS) % 9 > 0),
    )
    np.testing.assert_array_equal(
        schema.encode(untidy).codes, schema.as_released().encode(tidy).codes
    )


def test_weights_of_a_plain_synthetic_table_for_an_untidy_private_one(untidy, tmp_path):
    schema = reviewed(untidy, tmp_path / "visits.json")
    synthetic = visits().sample(2000, replace=True, random_state=1)
    synthetic.to_csv(tmp_path / "synthetic.csv", index=False)
    start = ["weigh", untidy, tmp_path / "synthetic.csv", "--schema", tmp_path / "visits.json"]
    run(*start, "--epsilon", 20, "--delta", 1e-6, "--seed", 1, "--out", tmp_path / "out", "-q")
    weighted = cp.load(tmp_path / "out")
    assert weighted.schema == schema.as_released()
    assert weighted.mean("fee").value == pytest.approx(visits()["fee"].mean(), rel=0.1)


def test_a_file_in_another_dialect_is_an_error_with_a_hint(untidy, tmp_path):
    cp.Schema([cp.Column.categorical("ward", ["x"])]).write(tmp_path / "s.json")
    start = ["release", "--schema", tmp_path / "s.json", "--epsilon", 1, "--out", tmp_path / "o"]
    with pytest.raises(TableError, match="encoding"):
        run(*start, untidy)
    utf8 = tmp_path / "utf8.csv"
    utf8.write_text(untidy.read_text("windows-1252"), encoding="utf-8")
    with pytest.raises(TableError, match="a semicolon stands between its fields"):
        run(*start, utf8)
    assert not (tmp_path / "o").exists()


def test_a_run_that_goes_on_still_reads_the_file_as_the_schema_says(untidy, tmp_path, monkeypatch):
    schema = reviewed(untidy, tmp_path / "visits.json").pay("fee").select(["fee", "arrival"])
    ask = {"epsilon": 50, "delta": 1e-6, "work": tmp_path / "work", "seed": 1, "progress": False}

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(curation, "fit_synthesizer", stop)
        with pytest.raises(KeyboardInterrupt):
            cp.release(untidy, schema, **ask)
    resumed = cp.release(untidy, schema, **ask)
    assert resumed.schema["fee"].minimum > 0
    assert resumed.quantile("fee", 0.5).value == pytest.approx(visits()["fee"].median(), rel=0.3)
    assert resumed.mean("arrival").value == pytest.approx(visits()["arrival"].mean(), rel=0.1)
