"""A release from somebody who means harm: sizes that lie, and numbers that break what uses them."""

import shutil
import zipfile

import duckdb
import numpy as np
import pandas as pd
import pytest

import counterpoise as cp
from counterpoise.bundle import archive
from counterpoise.bundle.descriptor import MODEL, TABLE
from counterpoise.errors import BundleError
from tests.bundle.fuzz_bundle import edit_model, make_bundle, restate, run


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    return make_bundle(tmp_path_factory.mktemp("original"))


@pytest.fixture
def bundle(original, tmp_path):
    return shutil.copytree(original, tmp_path / "copy")


def forge_model(bundle, change):
    """Change the members of the model's archive, by name, and the digests."""
    with zipfile.ZipFile(bundle / MODEL) as packed:
        members = {name: packed.read(name) for name in packed.namelist()}
    change(members)
    with zipfile.ZipFile(bundle / MODEL, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in members.items():
            packed.writestr(name, content)
    restate(bundle, MODEL)


def forge_table(bundle, select):
    """Write the table anew, as a query of itself, and the digests."""
    there, new = bundle / TABLE, bundle / "new.parquet"
    query = select.format(f"'{there}'")
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({query}) TO '{new}' (FORMAT parquet)")
    new.replace(there)
    restate(bundle, TABLE)


@pytest.mark.parametrize("shape", [b"(1000000000000,)", b"(10**12,)", b"(99,-99)", b"(0,)", b"()"])
def test_an_array_that_says_it_is_larger_than_its_bytes_is_refused_before_it_is_made(shape, bundle):
    def change(members):
        array = members["weights.theta.npy"]
        start = array.index(b"'shape': ") + len(b"'shape': ")
        end = array.index(b")", start) + 1
        # The header is padded with spaces, so that it may grow.
        content = array[:start] + shape + array[end:]
        longer = len(shape) - (end - start)
        line = content.index(b"\n", 10)
        members["weights.theta.npy"] = content[: line - longer] + content[line:]

    forge_model(bundle, change)
    loaded = cp.load(bundle)
    with pytest.raises(BundleError, match="is damaged"):
        loaded.sample(5)


def test_a_model_of_more_bytes_than_any_has_is_refused_before_it_is_unpacked(bundle, monkeypatch):
    forge_model(bundle, lambda members: members.update({"zeros.npy": bytes(2 * 10**6)}))
    monkeypatch.setattr(archive, "MOST_BYTES", 10**6)
    monkeypatch.setattr("counterpoise.bundle.models.MOST_BYTES", 10**6)
    monkeypatch.setattr(np, "load", None)
    with pytest.raises(BundleError, match="too large: its arrays take more than 1,000,000 bytes"):
        cp.load(bundle).sample(5)


def test_a_model_that_could_not_be_read_again_is_not_saved(monkeypatch):
    monkeypatch.setattr("counterpoise.bundle.models.MOST_BYTES", 100)
    schema = cp.Schema([cp.Column.boolean("ill")])
    made = cp.release(pd.DataFrame({"ill": [True]}), schema, 1.0, rows=9, replicates=0)
    assert made.card["model"]["saved"] is False
    assert "at most 50 bytes" in made.card["model"]["reason"]


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_model_of_numbers_that_are_not_finite_is_refused(value, bundle):
    with np.load(bundle / MODEL) as found:
        arrays = dict(found)
    arrays["weights.theta"][0] = value
    np.savez_compressed(bundle / MODEL, **arrays)
    restate(bundle, MODEL)
    loaded = cp.load(bundle)
    with pytest.raises(BundleError, match="'moments' holds numbers that are not finite"):
        loaded.sample(5)


def test_whatever_is_done_to_a_model_it_draws_rows_or_is_refused_in_our_words(original):
    counted = run(original, 40, seed=4, edit=edit_model)
    assert counted["works"] > 5
    assert counted["draws no rows"] > 5


@pytest.mark.parametrize("weight", ["1e308", "1e-320", "1e9", "'nan'::DOUBLE", "-1", "0"])
def test_weights_that_do_not_average_to_one_are_refused(weight, bundle):
    forge_table(bundle, f"SELECT * REPLACE ({weight} AS weight) FROM {{}}")
    with pytest.raises(BundleError, match="the weights of the table: expected"):
        cp.load(bundle)


def test_replicate_weights_that_do_not_average_to_one_are_refused(bundle):
    forge_table(bundle, "SELECT * REPLACE (CAST(1e30 AS FLOAT) AS weight_2) FROM {}")
    with pytest.raises(BundleError, match="the replicate weights of the table: expected"):
        cp.load(bundle)


@pytest.mark.parametrize(
    "select",
    [
        "SELECT * FROM {0} UNION ALL SELECT * FROM {0}",
        "SELECT * FROM {0} LIMIT 39",
        "SELECT t.* FROM {0} AS t, range(100_000)",
    ],
)
def test_a_table_of_other_rows_than_the_card_says_is_not_read(select, bundle, monkeypatch):
    forge_table(bundle, select)
    monkeypatch.setattr("counterpoise.bundle.files.read_table", None)
    with pytest.raises(BundleError, match="does not have the 40 rows of the card"):
        cp.load(bundle)


def test_a_text_that_is_longer_than_any_of_the_schema_is_not_read(bundle, monkeypatch):
    forge_table(bundle, "SELECT * REPLACE (repeat('F', 100_000) AS sex) FROM {}")
    monkeypatch.setattr("counterpoise.bundle.files.read_table", None)
    with pytest.raises(BundleError, match="larger than its rows and the schema make it"):
        cp.load(bundle)
