import csv
import errno
import json
import os
import re
from dataclasses import replace

import duckdb
import frictionless
import numpy as np
import pandas as pd
import pytest

import counterpoise as cp
from counterpoise import disk
from counterpoise import report as report_module
from counterpoise.bundle import files as files_module
from counterpoise.bundle import stored_rows
from counterpoise.errors import BundleError, TableError


@pytest.fixture
def release(table, schema):
    return cp.release(table, schema, 1.0, 1e-6, rows=60, replicates=5)


@pytest.fixture
def bundle(release, tmp_path):
    return release.save(tmp_path / "patients release")


@pytest.mark.filterwarnings("ignore::counterpoise.CounterpoiseWarning")
def test_a_release_is_the_same_after_saving_and_loading(release, bundle):
    loaded = cp.load(bundle)
    pd.testing.assert_frame_equal(loaded.table, release.table)
    assert loaded.schema == release.schema
    assert loaded.replicates.dtype == np.float32
    np.testing.assert_array_equal(loaded.replicates, release.replicates)
    assert loaded.card == release.card
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


@pytest.mark.parametrize(
    ("file", "damage"),
    [
        (file, damage)
        for file in ("synthetic.parquet", "report.html", "model.npz")
        for damage in ("truncated", "changed", "missing")
        if (file, damage) != ("report.html", "missing")
    ],
)
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


def test_a_release_without_its_page_is_whole(bundle):
    (bundle / "report.html").unlink()
    assert cp.load(bundle).rows == 60


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


@pytest.mark.parametrize("moment", ["write_parquet", "describe_folder", "_publish"])
@pytest.mark.parametrize("there", [True, False])
def test_an_interrupted_save_leaves_what_was_there(release, tmp_path, monkeypatch, moment, there):
    target = tmp_path / "out"
    if there:
        release.save(target)
    before = cp.load(target).table if there else None

    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    homes = {"_publish": disk}
    monkeypatch.setattr(homes.get(moment, files_module), moment, interrupted)
    with pytest.raises(KeyboardInterrupt):
        release.save(target, overwrite=True)
    assert os.listdir(tmp_path) == (["out"] if there else [])
    if there:
        pd.testing.assert_frame_equal(cp.load(target).table, before)


def failing(error):
    def page(release):
        raise error

    return page


@pytest.mark.parametrize(
    "error",
    [ValueError("math domain error"), MemoryError(), BundleError("the disk is full")],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("there", [True, False])
def test_a_page_that_fails_costs_no_release(release, tmp_path, monkeypatch, error, there):
    target = tmp_path / "out"
    if there:
        release.unweighted().save(target)
    with monkeypatch.context() as patched:
        patched.setattr(report_module, "release_page", failing(error))
        said = rf"saved, but without its page \((the disk|{type(error).__name__}).*report {target}`"
        with pytest.warns(cp.CounterpoiseWarning, match=said):
            release.save(target, overwrite=True)
    assert os.listdir(tmp_path) == ["out"]
    assert not (target / "report.html").exists()
    loaded = cp.load(target)
    pd.testing.assert_frame_equal(loaded.table, release.table)
    assert loaded.report(target) == target / "report.html"
    assert "How to use it" in (target / "report.html").read_text(encoding="utf-8")
    assert frictionless.Package(target / "datapackage.json").has_resource("report")
    assert cp.load(target).rows == 60


def test_an_interrupted_page_leaves_the_release_without_one(release, tmp_path, monkeypatch):
    monkeypatch.setattr(report_module, "release_page", failing(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        release.save(tmp_path / "out")
    assert cp.load(tmp_path / "out").rows == 60


@pytest.mark.parametrize("allowed", range(3))
def test_a_process_that_dies_in_writing_the_page_leaves_a_whole_release(
    bundle, monkeypatch, allowed
):
    write, steps = files_module.write_whole, []

    def stopped(file, *arguments, **options):
        steps.append(file.name)
        if len(steps) > allowed:
            raise KeyboardInterrupt
        write(file, *arguments, **options)

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(files_module, "write_whole", stopped)
        patched.setattr(report_module, "release_page", lambda release: "<p>another</p>")
        cp.load(bundle).report(bundle)
    assert steps == ["datapackage.json", "report.html", "datapackage.json"][: allowed + 1]
    cp.load(bundle).report(bundle)
    assert cp.load(bundle).rows == 60
    assert "How to use it" in (bundle / "report.html").read_text(encoding="utf-8")
    assert {file.stat().st_mode & 0o777 for file in bundle.iterdir()} == {0o644}


def test_a_page_is_written_into_its_own_release_alone(bundle, release, tmp_path):
    (bundle / "notes.txt").write_text("mine")
    for place, said in ((tmp_path / "nowhere", "is not a release"), (bundle, "another release")):
        with pytest.raises(BundleError, match=said):
            release.unweighted().report(place)
    (bundle / "report.html").unlink()
    cp.load(bundle).report(bundle)
    assert (bundle / "notes.txt").read_text() == "mine"


def test_the_report_is_one_self_contained_page(bundle, release):
    page = (bundle / "report.html").read_text()
    for name in release.schema.names:
        assert name in page
    assert "http" not in re.sub("http://www.w3.org/2000/svg|http-equiv", "", page)
    assert "<script" not in page
    assert page.count("<svg") > len(release.schema)


def test_names_are_escaped_in_the_report(tmp_path):
    name = '<b onclick="x">&'
    schema = cp.Schema([cp.Column.categorical(name, ["<i>", "b"])])
    cp.release(pd.DataFrame({name: ["b"]}), schema, 1.0).save(tmp_path / "out")
    page = (tmp_path / "out" / "report.html").read_text()
    assert "<b onclick" not in page
    assert "<i>" not in page


@pytest.mark.parametrize("path", [None, "", "\0", 5, b"x", "\ud800", ["x"]])
def test_what_is_no_path_is_refused(release, path):
    with pytest.raises(BundleError, match="path: expected the path"):
        release.save(path)
    with pytest.raises(BundleError, match="path: expected the path"):
        cp.load(path)


def test_odd_places_are_refused_in_plain_words_and_left_as_they_are(release, tmp_path):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    for path, options, reason in (
        ("/", {}, "/ exists"),
        ("/", {"overwrite": True}, "is not a release"),
        (tmp_path / "file", {}, "exists"),
        (tmp_path / "file", {"overwrite": True}, "is not a release"),
        (tmp_path / "file" / "out", {}, "is a file, not a folder"),
        (tmp_path / ("x" * 300), {}, "the name is too long"),
        (tmp_path / ("x" * 250), {}, "the name is too long"),
        (tmp_path / "out", {"overwrite": "x"}, "overwrite: expected True or False"),
        (tmp_path / "out", {"csv": None}, "csv: expected True or False, or 'verbatim'"),
    ):
        with pytest.raises(BundleError, match=reason):
            release.save(path, **options)
    for path, reason in (
        ("/", "is not a release"),
        (tmp_path / "file", "no folder"),
        (tmp_path / ("x" * 300), "the name is too long"),
        (tmp_path / "circle", "no folder|lead nowhere"),
        (tmp_path / "file" / "out", "no folder|is a file, not a folder"),
    ):
        with pytest.raises(BundleError, match=reason):
            cp.load(path)
    assert sorted(os.listdir(tmp_path)) == ["circle", "file"]
    assert (tmp_path / "file").read_text() == "mine"


def test_a_link_to_a_release_stays_one_and_what_it_leads_to_is_replaced(release, tmp_path):
    (tmp_path / "store").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "store" / "release")
    release.save(tmp_path / "out")
    release.unweighted().save(tmp_path / "out", overwrite=True)
    assert (tmp_path / "out").is_symlink()
    assert os.listdir(tmp_path / "store") == ["release"]
    assert cp.load(tmp_path / "out").replicates is None


@pytest.mark.parametrize(
    ("number", "reason", "there"),
    [
        (errno.ENOSPC, "the disk is full", True),
        (errno.ENOSPC, "the disk is full", False),
        (errno.EROFS, "the file system is read-only", False),
        (errno.EACCES, "permission is denied", False),
    ],
)
def test_a_save_that_the_system_refuses_at_any_call_loses_nothing(
    release, tmp_path, monkeypatch, number, reason, there
):
    """Every call that changes the disk fails in turn; then the release is saved elsewhere."""
    target = tmp_path / "out"
    if there:
        release.unweighted().save(target)
    for call in ("mkdir", "open", "replace", "fsync", "rename", "chmod"):
        usual = getattr(os, call)

        def refused(path, *arguments, usual=usual, **options):
            if isinstance(path, int) or str(tmp_path) in str(path):
                raise OSError(number, os.strerror(number))
            return usual(path, *arguments, **options)

        with monkeypatch.context() as patched:
            patched.setattr(os, call, refused)
            if call == "rename":
                patched.setattr(disk, "_exchange", lambda one, other: False)
            with pytest.raises(BundleError, match=rf"out.* cannot be .*: {reason}"):
                release.save(target, overwrite=True)
        assert os.listdir(tmp_path) == (["out"] if there else []), call
        if there:
            assert cp.load(target).replicates is None
    assert len(cp.load(release.save(tmp_path / "elsewhere")).table) == 60


def test_a_full_disk_is_named_with_the_file_that_it_did_not_take(release, tmp_path, monkeypatch):
    def full(table, path):
        raise TableError(f"{path} cannot be written: the disk is full")

    monkeypatch.setattr(files_module, "write_parquet", full)
    with pytest.raises(BundleError, match=r"/out/synthetic\.parquet cannot be written: the disk"):
        release.save(tmp_path / "out")


def test_the_work_stays_until_the_release_is_saved(table, schema, tmp_path, monkeypatch):
    work = tmp_path / "work"
    release = cp.release(table, schema, 1.0, 1e-6, rows=9, replicates=0, work=work)
    (tmp_path / "file").touch()
    with pytest.raises(BundleError, match="is a file, not a folder"):
        release.save(tmp_path / "file" / "out")
    assert work.exists()
    release.save(tmp_path / "out")
    assert not work.exists()


def test_work_that_cannot_be_removed_does_not_undo_a_save(table, schema, tmp_path, monkeypatch):
    release = cp.release(table, schema, 1.0, 1e-6, rows=9, replicates=0, work=tmp_path / "work")

    def refused(folder):
        raise OSError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("counterpoise.curation.work.discard", refused)
    with pytest.warns(cp.CounterpoiseWarning, match=r"saved, but .*work cannot be removed: perm"):
        release.save(tmp_path / "out")
    assert len(cp.load(tmp_path / "out").table) == 9


def test_a_release_put_together_from_parts_is_described_as_it_is(release, tmp_path):
    part = replace(release, table=release.table.head(30), replicates=None, models=None)
    part = replace(part, card=part.card | {"weights": part.unweighted().card["weights"]})
    loaded = cp.load(part.save(tmp_path / "out"))
    assert (loaded.card["rows"], loaded.card["replicates"]) == (30, None)
    assert not loaded.card["model"]["saved"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"weight": -1.0}, "finite numbers from zero"),
        ({"weight": np.nan}, "finite numbers from zero"),
        ({"weight": 0.0}, "some above zero"),
        ({"age": 200}, "column 'age' of the table holds values"),
        ({"more": 1}, "the columns of the schema"),
    ],
)
def test_what_could_not_be_read_again_is_not_written(release, tmp_path, change, reason):
    with pytest.raises(BundleError, match=reason):
        replace(release, table=release.table.assign(**change)).save(tmp_path / "out")
    with pytest.raises(BundleError, match="JSON has no place"):
        replace(release, card=release.card | {"note": {1, 2}}).save(tmp_path / "out")
    assert os.listdir(tmp_path) == []


FORMULAS = ("=1+1", "+1-2", "-1+cmd|' /C calc'!A0", "@SUM(A1)", "\t=1", "\r=1", "\n=1")


@pytest.mark.parametrize("is_stored", [False, True])
def test_no_cell_of_the_csv_is_a_formula_unless_texts_are_to_be_as_they_are(
    is_stored, tmp_path, monkeypatch
):
    texts = [*FORMULAS, "-9", "+1.5", "'=1", "a=b"]
    schema = cp.Schema(
        [
            *(cp.Column.categorical(name, texts) for name in FORMULAS[:5]),
            cp.Column.integer("age", -9, 9, nullable=True),
        ]
    )
    rows = pd.DataFrame(dict.fromkeys(FORMULAS[:5], texts * 20) | {"age": -5})
    made = cp.release(
        rows, schema, 9.0, 1e-6, rows=99, synthesizer="independent", replicates=0, seed=1
    )
    made.save(tmp_path / "first")
    if is_stored:
        monkeypatch.setattr(stored_rows, "MOST_NUMBERS", 0)
    loaded = cp.load(tmp_path / "first")
    assert (loaded.stored is not None) == is_stored

    def cells(folder):
        with (folder / "synthetic.csv").open(encoding="utf-8", newline="") as file:
            return [cell for line in csv.reader(file) for cell in line]

    guarded = cells(loaded.save(tmp_path / "guarded", csv=True))
    verbatim = cells(loaded.save(tmp_path / "verbatim", csv="verbatim"))
    assert verbatim[:7] == list(made.table.columns)
    assert {"-9", "+1.5", "-5", *FORMULAS} <= {*verbatim}
    assert guarded == [f"'{cell}" if cell in FORMULAS else cell for cell in verbatim]
