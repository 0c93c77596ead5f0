"""Replicate weights of a large release: read and checked when asked for, and as written."""

import dataclasses
import shutil

import numpy as np
import pandas as pd
import pyarrow
import pytest
from pyarrow import parquet

import counterpoise as cp
from counterpoise.bundle import files, saved_replicates
from counterpoise.errors import BundleError


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    generator = np.random.default_rng(0)
    table = pd.DataFrame({"x": generator.uniform(size=500), "y": generator.uniform(size=500) < 0.5})
    schema = cp.Schema([cp.Column.continuous("x", 0, 1), cp.Column.boolean("y")])
    made = cp.release(table, schema, 1.0, 1e-6, seed=1, replicates=5, progress=False)
    path = tmp_path_factory.mktemp("releases") / "release"
    made.save(path)
    return path


@pytest.fixture
def large(monkeypatch):
    """Every release counts as large."""
    monkeypatch.setattr(files, "MANY", 0)


def held(release: cp.Release):
    return vars(release)["_replicates"]


def test_they_are_those_of_a_release_that_is_read_at_once(folder, monkeypatch):
    at_once = cp.load(folder)
    assert isinstance(held(at_once), np.ndarray)
    monkeypatch.setattr(files, "MANY", 0)
    later = cp.load(folder)
    assert not isinstance(held(later), np.ndarray)
    assert later.replicates.dtype == np.float32
    assert later.replicates.tolist() == at_once.replicates.tolist()
    assert later.replicates is later.replicates
    one, other = later.use_weights().mean("x"), at_once.use_weights().mean("x")
    assert (one.value, one.standard_error) == (other.value, other.standard_error)


@pytest.mark.usefixtures("large")
def test_a_release_without_replicates_has_none(folder):
    assert cp.load(folder).unweighted().replicates is None
    assert cp.Release(pd.DataFrame(), cp.load(folder).schema, {}).replicates is None


@pytest.mark.usefixtures("large")
def test_a_file_that_is_gone_or_changed_is_refused(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "copy")
    gone, changed = cp.load(tmp_path / "copy"), cp.load(tmp_path / "copy")
    file = tmp_path / "copy" / "synthetic.parquet"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    with pytest.raises(BundleError, match="was changed"):
        _ = changed.replicates
    file.unlink()
    with pytest.raises(BundleError, match="no longer there"):
        _ = gone.replicates


@pytest.mark.usefixtures("large")
def test_the_same_file_written_again_is_read(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "copy")
    release = cp.load(tmp_path / "copy")
    file = tmp_path / "copy" / "synthetic.parquet"
    file.write_bytes(file.read_bytes())
    assert release.replicates.shape == (len(release.table), 5)


def with_one_weight(folder, path, value):
    """A table with another value among its replicate weights, as saved replicates."""
    shutil.copytree(folder, path)
    file = path / "synthetic.parquet"
    table = parquet.read_table(file)
    place = table.column_names.index("weight_3")
    column = table.column(place).to_pylist()
    column[7] = value
    # Not from pandas, for which a NaN is a null.
    parquet.write_table(table.set_column(place, "weight_3", pyarrow.array(column)), file)
    names = [f"weight_{place}" for place in range(1, 6)]
    return files.SavedReplicates.checked(file, names, len(table), "")


@pytest.mark.parametrize("value", [-1.0, np.inf, None])
def test_what_a_file_says_is_no_weight_is_refused_on_load(folder, tmp_path, value):
    with pytest.raises(BundleError, match="finite numbers from zero"):
        with_one_weight(folder, tmp_path / "copy", value)


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf, None])
def test_every_value_is_looked_at_when_it_is_read(folder, tmp_path, monkeypatch, value):
    checked = files.SavedReplicates.checked.__func__

    def trusting(cls, file, names, rows, stated):
        # As if the file said of its columns what another one does.
        whole = checked(cls, folder / "synthetic.parquet", names, rows, stated)
        return dataclasses.replace(whole, file=file, stamp=saved_replicates.stamp_of(file))

    monkeypatch.setattr(files.SavedReplicates, "checked", classmethod(trusting))
    found = with_one_weight(folder, tmp_path / "copy", value)
    with pytest.raises(BundleError, match="replicate weights of the table: expected finite"):
        _ = found.columns


@pytest.mark.usefixtures("large")
def test_a_large_release_is_saved_again_over_itself(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "copy")
    before = cp.load(folder).replicates
    cp.load(tmp_path / "copy").save(tmp_path / "copy", overwrite=True)
    assert cp.load(tmp_path / "copy").replicates.tolist() == before.tolist()
