import json
import os

import duckdb
import frictionless
import numpy as np
import pandas as pd
import pytest

import counterpoise as cp
from counterpoise import report as report_module
from counterpoise.bundle import files as files_module
from counterpoise.errors import BundleError


@pytest.fixture
def release(table, schema):
    return cp.release(table, schema, 1.0, 1e-6, rows=60, replicates=5)


@pytest.fixture
def bundle(release, tmp_path):
    return release.save(tmp_path / "patients release")


def test_a_release_is_the_same_after_saving_and_loading(release, bundle):
    loaded = cp.load(bundle)
    pd.testing.assert_frame_equal(loaded.table, release.table)
    assert loaded.schema == release.schema
    assert loaded.replicates.dtype == np.float32
    np.testing.assert_array_equal(loaded.replicates, release.replicates)
    assert {key: loaded.card[key] for key in release.card} == release.card
    assert loaded.mean("age") == release.mean("age")
    assert loaded.ledger.to_dict() == release.ledger.to_dict()


@pytest.mark.parametrize("seed", [0, 1])
def test_every_kind_of_column_survives(tmp_path, seed):
    import datetime

    day, moment = datetime.date, datetime.datetime
    schema = cp.Schema(
        [
            cp.Column.categorical("text", ["a", "b'c", 'd"e'], nullable=bool(seed)),
            cp.Column.categorical("number", [3, 1, 2], nullable=bool(seed)),
            cp.Column.boolean("truth", nullable=bool(seed)),
            cp.Column.ordinal("grade", ["z", "y", "x"], nullable=bool(seed)),
            cp.Column.integer("count", -5, 500, nullable=bool(seed)),
            cp.Column.continuous("real", -1.5, 2.5, nullable=bool(seed)),
            cp.Column.date("day", day(1900, 1, 1), day(2100, 1, 1), nullable=bool(seed)),
            cp.Column.datetime("time", moment(2000, 1, 1), moment(2001, 1, 1), nullable=bool(seed)),
        ]
    )
    nothing = pd.DataFrame({name: [] for name in schema.names})
    release = cp.release(nothing, schema, 1.0, 1e-6, rows=80, replicates=2, seed=seed)
    release.save(tmp_path / "out")
    loaded = cp.load(tmp_path / "out").table
    pd.testing.assert_frame_equal(loaded, release.table)


def test_it_is_a_valid_data_package(bundle):
    descriptor = json.loads((bundle / "datapackage.json").read_text())
    package = frictionless.Package(str(bundle / "datapackage.json"))
    names = {resource.name for resource in package.resources}
    assert names == {"synthetic", "report", "model"}
    schema = frictionless.Schema.from_descriptor(descriptor["resources"][0]["schema"])
    assert schema.field_names[-6:] == ["weight", *(f"weight_{place}" for place in range(1, 6))]


def test_the_rows_as_csv_are_valid_by_their_own_description(release, tmp_path):
    folder = release.save(tmp_path / "out", csv=True)
    package = frictionless.Package(str(folder / "datapackage.json"))
    checked = package.get_resource("synthetic-csv").validate()
    assert checked.valid, checked.flatten()
    rows = pd.read_csv(folder / "synthetic.csv")
    assert list(rows.columns) == [*release.table.columns, *(f"weight_{i}" for i in range(1, 6))]
    # Next to zero, single precision has fewer digits.
    written = release.replicates[:, 2]
    np.testing.assert_allclose(rows["weight_3"], written, rtol=1e-6, atol=1e-30)


def test_it_opens_in_duckdb_with_one_line(bundle, release):
    found = duckdb.sql(f"SELECT sex, sum(weight) FROM '{bundle}/synthetic.parquet' GROUP BY sex")
    assert sum(total for _, total in found.fetchall()) == pytest.approx(len(release.table))
    table = duckdb.sql(f"SELECT weight, weight_5 FROM '{bundle}/synthetic.parquet'")
    assert [str(kind) for kind in table.types] == ["DOUBLE", "FLOAT"]


def test_there_is_nothing_but_plain_files(bundle):
    assert sorted(file.name for file in bundle.iterdir()) == [
        "datapackage.json",
        "model.npz",
        "report.html",
        "synthetic.parquet",
    ]
    with np.load(bundle / "model.npz", allow_pickle=False) as arrays:
        assert all(not arrays[name].dtype.hasobject for name in arrays.files)


@pytest.mark.parametrize("file", ["synthetic.parquet", "report.html", "model.npz"])
@pytest.mark.parametrize("damage", ["truncated", "changed", "missing"])
def test_a_damaged_bundle_is_refused_by_the_name_of_the_file(bundle, file, damage):
    path = bundle / file
    content = path.read_bytes()
    if damage == "truncated":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "changed":
        path.write_bytes(content[:-9] + b"x" + content[-8:])
    else:
        path.unlink()
    with pytest.raises(BundleError, match=file):
        cp.load(bundle)


@pytest.mark.parametrize("content", ["", "{", "{}", '{"counterpoise": {}, "resources": []}'])
def test_a_damaged_descriptor_is_refused(bundle, content):
    (bundle / "datapackage.json").write_text(content)
    with pytest.raises(BundleError, match=r"datapackage\.json"):
        cp.load(bundle)


def test_a_bundle_of_a_newer_version_is_refused(bundle):
    path = bundle / "datapackage.json"
    descriptor = json.loads(path.read_text())
    descriptor["counterpoise"]["format"] = 99
    path.write_text(json.dumps(descriptor))
    with pytest.raises(BundleError, match="newer"):
        cp.load(bundle)


def test_a_descriptor_cannot_point_outside_its_folder(bundle, tmp_path):
    path = bundle / "datapackage.json"
    descriptor = json.loads(path.read_text())
    descriptor["resources"][0]["path"] = "../../etc/passwd"
    path.write_text(json.dumps(descriptor))
    with pytest.raises(BundleError, match="passwd is missing"):
        cp.load(bundle)


def test_loading_what_is_not_a_release_is_refused(tmp_path):
    with pytest.raises(BundleError, match="no folder"):
        cp.load(tmp_path / "nowhere")
    with pytest.raises(BundleError, match="not a release"):
        cp.load(tmp_path)


def test_an_existing_release_is_replaced_only_when_asked(bundle, release, table, schema):
    with pytest.raises(BundleError, match="overwrite"):
        release.save(bundle)
    other = cp.release(table, schema, 1.0, 1e-6, rows=7)
    other.save(bundle, overwrite=True)
    assert len(cp.load(bundle).table) == 7
    assert [entry.name for entry in bundle.parent.iterdir()] == [bundle.name]


def test_a_folder_that_is_no_release_is_never_overwritten(release, tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("years of work")
    with pytest.raises(BundleError, match="not a release"):
        release.save(tmp_path / "thesis", overwrite=True)
    assert (tmp_path / "thesis" / "chapter.tex").read_text() == "years of work"


@pytest.mark.parametrize("moment", ["write_parquet", "release_page", "_descriptor", "_put"])
@pytest.mark.parametrize("there", [True, False])
def test_an_interrupted_save_leaves_what_was_there(release, tmp_path, monkeypatch, moment, there):
    target = tmp_path / "out"
    if there:
        release.save(target)
    before = cp.load(target).table if there else None

    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    home = report_module if moment == "release_page" else files_module
    monkeypatch.setattr(home, moment, interrupted)
    with pytest.raises(KeyboardInterrupt):
        release.save(target, overwrite=True)
    assert os.listdir(tmp_path) == (["out"] if there else [])
    if there:
        pd.testing.assert_frame_equal(cp.load(target).table, before)


def test_the_report_is_one_self_contained_page(bundle, release):
    page = (bundle / "report.html").read_text()
    for name in release.schema.names:
        assert name in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "<script" not in page
    assert page.count("<svg") > len(release.schema)


def test_names_are_escaped_in_the_report(tmp_path):
    name = '<b onclick="x">&'
    schema = cp.Schema([cp.Column.categorical(name, ["<i>", "b"])])
    cp.release(pd.DataFrame({name: ["b"]}), schema, 1.0).save(tmp_path / "out")
    page = (tmp_path / "out" / "report.html").read_text()
    assert "<b onclick" not in page
    assert "<i>" not in page
