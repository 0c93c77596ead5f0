"""`counterpoise evaluate` as a curator calls it."""

import pytest

import counterpoise as cp
from counterpoise.errors import BundleError, CounterpoiseError
from counterpoise.evaluation.confidential import NOTICE
from tests.cli.calls import run
from tests.evaluation.evaluations import evaluated, made, people


@pytest.fixture
def files(tmp_path):
    people(300, 0).to_csv(tmp_path / "private.csv", index=False)
    people(120, 1).to_csv(tmp_path / "holdout.csv", index=False)
    made().save(tmp_path / "release")
    return tmp_path


def test_it_prints_a_summary_and_writes_page_and_tables(files, monkeypatch):
    asked, known = {}, evaluated()

    def evaluate(release, *tables, **options):
        asked.update(release=release, tables=tables, **options)
        return known

    monkeypatch.setattr(cp, "evaluate", evaluate)
    printed = run(
        *("evaluate", files / "release", files / "private.csv"),
        *("--holdout", files / "holdout.csv", "--report", files / "confidential.html"),
        *("--tables", files / "kept", "--target", "ill", "--no-attacks", "--workers", "1"),
    )
    assert printed.startswith(NOTICE)
    assert "written to" in printed
    assert NOTICE in (files / "confidential.html").read_text("utf-8")
    assert (files / "kept" / "confidential-distances.csv").is_file()
    assert asked["tables"] == (files / "private.csv", files / "holdout.csv")
    assert (asked["targets"], asked["attacks"], asked["workers"]) == (("ill",), False, 1)
    assert asked["release"].table.equals(cp.load(files / "release").table)


def test_quiet_prints_nothing(files, monkeypatch):
    known = evaluated()
    monkeypatch.setattr(cp, "evaluate", lambda *tables, **options: known)
    where = ("--report", files / "confidential.html")
    assert run("evaluate", files / "release", files / "private.csv", *where, "-q") == ""


def test_a_place_in_the_release_is_refused_before_anything_is_read(files):
    place = files / "release" / "confidential.html"
    with pytest.raises(BundleError, match="lies in the release"):
        run("evaluate", files / "release", files / "missing.csv", "--report", place)
    with pytest.raises(BundleError, match="lies in the release"):
        run(
            *("evaluate", files / "release", files / "missing.csv"),
            *("--report", files / "fine.html", "--tables", files / "release" / "tables"),
        )


def test_a_private_table_that_is_not_there_is_said_in_words(files):
    with pytest.raises(CounterpoiseError, match=r"missing\.csv"):
        run(
            *("evaluate", files / "release", files / "missing.csv"),
            *("--report", files / "confidential.html"),
        )
    assert not (files / "confidential.html").exists()
