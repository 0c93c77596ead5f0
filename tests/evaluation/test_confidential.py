"""An evaluation says that it is confidential wherever it goes, and goes into no release."""

import json

import numpy as np
import pandas as pd
import pytest

import counterpoise as cp
from counterpoise.errors import BundleError
from counterpoise.evaluation.confidential import NOTICE, check_outside_releases, csv_text
from tests import canary
from tests.evaluation.evaluations import evaluated, made


@pytest.fixture
def bundle(tmp_path):
    return made().save(tmp_path / "release")


def test_every_file_says_so_in_its_name_its_first_line_and_its_metadata(tmp_path):
    folder = evaluated().save(tmp_path / "kept")
    files = sorted(folder.iterdir())
    assert {file.suffix for file in files} == {".html", ".csv", ".txt"}
    for file in files:
        assert "confidential" in file.name
        lines = file.read_text("utf-8").splitlines()
        assert NOTICE in (lines[1] if file.suffix == ".html" else lines[0])
    page = (folder / "confidential.html").read_text("utf-8")
    assert '<meta name="classification" content="confidential">' in page
    assert page.index(NOTICE) < page.index("<h1>")
    assert str(evaluated()).startswith(NOTICE)
    assert "CONFIDENTIAL" in repr(evaluated())
    assert evaluated().about["confidential"] is True


def test_saved_figures_are_those_of_the_frames(tmp_path):
    folder = evaluated().save(tmp_path / "kept")
    for name, frame in evaluated().frames():
        read = pd.read_csv(folder / f"confidential-{name}.csv", comment="#")
        numbers = frame.select_dtypes("number")
        assert np.allclose(read[numbers.columns], numbers, equal_nan=True)


def test_the_default_names_say_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert evaluated().to_html().name == "confidential.html"
    assert "confidential" in evaluated().save().name


def test_a_place_in_a_release_is_refused_however_it_is_reached(bundle, tmp_path):
    (bundle / "sub" / "folder").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to(bundle)
    (tmp_path / "deep").symlink_to(bundle / "sub")
    (tmp_path / "file.html").symlink_to(bundle / "report.html")
    (bundle / "out").symlink_to(tmp_path / "elsewhere")
    before = {file: file.read_bytes() for file in bundle.iterdir() if file.is_file()}
    for place in (
        bundle / "confidential.html",
        bundle / "report.html",
        bundle / "sub" / "folder" / "confidential.html",
        bundle / "new" / "confidential.html",
        tmp_path / "link" / "confidential.html",
        tmp_path / "deep" / "folder" / "confidential.html",
        tmp_path / "elsewhere" / ".." / "release" / "confidential.html",
        tmp_path / "file.html",
        bundle / "out" / "confidential.html",
    ):
        with pytest.raises(BundleError, match="lies in the release"):
            evaluated().to_html(place)
        with pytest.raises(BundleError, match="lies in the release"):
            evaluated().save(place.parent if place.name == "confidential.html" else place)
    assert {file: file.read_bytes() for file in bundle.iterdir() if file.is_file()} == before
    assert not list(tmp_path.rglob("confidential*"))


def test_a_folder_with_a_damaged_descriptor_might_be_a_release(tmp_path):
    (tmp_path / "datapackage.json").write_text("{")
    with pytest.raises(BundleError, match="lies in the release"):
        check_outside_releases(tmp_path / "confidential.html")
    # The private table itself may be kept as a Data Package, and is no release.
    (tmp_path / "datapackage.json").write_text(json.dumps({"name": "private", "resources": []}))
    assert check_outside_releases(tmp_path / "confidential.html")


def test_saving_a_release_takes_nothing_along(tmp_path):
    evaluated().save(tmp_path / "both")
    with pytest.raises(BundleError, match="exists"):
        made().save(tmp_path / "both")
    with pytest.raises(BundleError, match="not a release"):
        made().save(tmp_path / "both", overwrite=True)
    folder = made().save(tmp_path / "release")
    # Put there by hand, against all advice.
    (folder / "confidential.html").write_text(NOTICE)
    made().save(folder, overwrite=True)
    assert not (folder / "confidential.html").exists()


def test_an_evaluation_leaves_no_trace_in_the_release(tmp_path, monkeypatch):
    monkeypatch.setattr("counterpoise.evaluation.evaluate.MODELS", ("linear", "random forest"))
    rows = canary.table().iloc[:300].copy()
    made_of = cp.release(
        rows, canary.SCHEMA, 1.0, 1e-9, synthesizer="independent", seed=2, rows=200, replicates=4
    )
    before = made_of.save(tmp_path / "before")
    kept = {file.name: file.read_bytes() for file in before.iterdir()}
    found = cp.evaluate(made_of, rows, attacks=False, workers=1, progress=False)
    after = made_of.save(tmp_path / "before", overwrite=True)
    assert {file.name: file.read_bytes() for file in after.iterdir()} == kept
    assert canary.traces_in_files(after) == []
    # Nor does it hold the rows themselves.
    assert {"text", "number"} & {*canary.search(found)} == set()
    loaded = cp.load(after)
    assert NOTICE not in json.dumps(loaded.card, default=str)


def test_no_cell_of_a_csv_is_a_formula():
    frame = pd.DataFrame({"column": ["=1+1", "@x", "age", "-9"], "distance": [-0.5, 1, 2, 3]})
    _, *lines = csv_text(frame).splitlines()
    assert lines == ["column,distance", "'=1+1,-0.5", "'@x,1.0", "age,2.0", "-9,3.0"]
