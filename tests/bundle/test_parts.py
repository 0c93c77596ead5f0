"""Releases that are made in parts and stay in their file: the same answers as in memory."""

import contextlib
import gc
import shutil
from collections import namedtuple

import numpy as np
import pandas as pd
import pytest
from pyarrow import parquet
from sklearn.linear_model import LogisticRegression

import counterpoise as cp
from counterpoise.analysis import replication
from counterpoise.analysis.result import Estimate
from counterpoise.bundle import assemble, parts, stored_rows
from counterpoise.errors import AnalysisError, BundleError
from counterpoise.formulas import row_sums
from counterpoise.schema import tables
from counterpoise.weights import judge_replicates

ROWS, BLOCK = 1_600, 350

SCHEMA = cp.Schema(
    [
        cp.Column.identifier("id", "string"),
        cp.Column.integer("age", 0, 99),
        cp.Column.categorical("ward", ["a", "b", "c"]),
        cp.Column.boolean("ill"),
        cp.Column.continuous("dose", 0, 20, nullable=True),
        cp.Column.derived("months", "12 * age"),
    ]
)


def patients(rows: int = 2_000) -> pd.DataFrame:
    generator = np.random.default_rng(0)
    age = generator.integers(0, 90, rows)
    dose = np.clip(generator.gamma(2, 1 + age / 60), 0, 20)
    table = {
        "id": np.arange(rows),
        "age": age,
        "ward": generator.choice(["a", "b", "c"], rows, p=[0.5, 0.3, 0.2]),
        "ill": generator.random(rows) < 0.2 + age / 200,
        "dose": np.where(generator.random(rows) < 0.1, np.nan, dose),
        "months": 12 * age,
    }
    return pd.DataFrame(table)


@contextlib.contextmanager
def small_parts(large: bool = True):
    """Releases of more than a block are made in parts, and count as large."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "MADE_TOGETHER", BLOCK)
        patch.setattr(parts, "BLOCK_ROWS", BLOCK)
        if large:
            patch.setattr(stored_rows, "MOST_NUMBERS", 0)
        yield patch


def made(**options) -> cp.Release:
    asked = {"rows": ROWS, "replicates": 8, "synthesizer": "mst", "seed": 1, "progress": False}
    return cp.release(patients(), SCHEMA, 1.0, 1e-6, **(asked | options)).use_weights()


@pytest.fixture(scope="module")
def release():
    with small_parts(large=False):
        return made()


@pytest.fixture
def large(monkeypatch):
    monkeypatch.setattr(stored_rows, "MOST_NUMBERS", 0)


def in_memory(release: cp.Release) -> cp.Release:
    stored = release.stored
    held = cp.Release(stored.read(), release.schema, release.card, stored.all_replicates())
    return held.use_weights()


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "release"
    with small_parts():
        made().save(path)
    return path


@pytest.fixture(scope="module")
def loaded(saved):
    with small_parts():
        return cp.load(saved).use_weights()


@pytest.fixture(scope="module")
def held(loaded):
    return in_memory(loaded)


QUESTIONS = {
    "mean": lambda release: release.mean("dose"),
    "mean by": lambda release: release.mean("age", by=["ward", "ill"]),
    "total": lambda release: release.total("dose", by="ill"),
    "count": lambda release: release.total("ward", "b"),
    "share": lambda release: release.proportion("ward"),
    "share by": lambda release: release.proportion("ill", by="ward"),
    "quantile": lambda release: release.quantile("dose", 0.9),
    "quantile by": lambda release: release.quantile("age", by="ward"),
    "histogram": lambda release: release.histogram("dose"),
    "crosstab": lambda release: release.crosstab("ward", "ill", of="rows"),
    "correlations": lambda release: release.corr("age", "dose", "ill"),
    "binomial": lambda release: release.glm("ill ~ age + C(ward) + dose"),
    "gaussian": lambda release: release.glm("dose ~ age * ill"),
    "multinomial": lambda release: release.glm("ward ~ age"),
}


def figures(answer) -> pd.DataFrame:
    members = [answer] if isinstance(answer, Estimate) else list(answer)
    lines = [
        (one.value, one.standard_error, one.unweighted, *(one.interval() or (None, None)))
        for one in members
    ]
    return pd.DataFrame(lines).astype(float)


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("question", QUESTIONS)
def test_answers_from_the_file_are_those_in_memory(loaded, held, question):
    assert loaded.stored is not None and held.stored is None
    found, expected = (figures(QUESTIONS[question](each)) for each in (loaded, held))
    pd.testing.assert_frame_equal(found, expected, rtol=1e-9, atol=1e-12)


def test_the_same_seed_gives_the_same_rows_whatever_is_read_or_written_at_a_time(
    release, monkeypatch
):
    monkeypatch.setattr(tables, "GROUP_ROWS", 2_048)
    monkeypatch.setattr(stored_rows, "_VECTORS_AT_ONCE", 1)
    monkeypatch.setattr(replication, "_NUMBERS_AT_ONCE", 40)
    monkeypatch.setattr(row_sums, "BLOCK_ROWS", 100)
    with small_parts(large=False):
        again = made()
    pd.testing.assert_frame_equal(again.stored.read(), release.stored.read())
    assert np.array_equal(again.stored.all_replicates(), release.stored.all_replicates())
    assert again.card == release.card


def test_weights_average_to_one_and_rows_are_whole(release):
    rows, columns = release.stored.read(), release.stored.all_replicates().astype(float)
    assert len(rows) == ROWS and columns.shape == (ROWS, 8)
    assert rows["weight"].mean() == pytest.approx(1)
    assert columns.mean(axis=0) == pytest.approx(np.ones(8), rel=1e-5)
    assert rows["id"].tolist() == [f"id-{number:06d}" for number in range(1, ROWS + 1)]
    assert (rows["months"] == 12 * rows["age"]).all()
    assert list(rows.columns) == [*SCHEMA.names, "weight"]
    sizes = release.card["replicates"]["effective_sample_sizes"]
    assert sizes == pytest.approx((columns.sum(axis=0) ** 2 / (columns**2).sum(axis=0)).tolist())
    assert release.card["rows"] == ROWS


def test_blocks_share_the_noise_and_draw_rows_of_their_own():
    # With hardly any budget the noise is nearly all of an error; it does not average out over
    # blocks, as it would if each had drawn noise of its own.
    table = patients(2_000)[["age", "ill"]]
    schema = cp.Schema([cp.Column.integer("age", 0, 99, bins=5), cp.Column.boolean("ill")])
    asked = {"synthesizer": "independent", "seed": 3, "progress": False, "replicates": 60}
    asked |= {"fine": False, "rows": 4_000}
    together = cp.release(table, schema, 0.05, 1e-6, **asked).use_weights()
    with small_parts(large=False):
        apart = cp.release(table, schema, 0.05, 1e-6, **asked).use_weights()
    assert apart.stored is not None and together.stored is None
    for column in ("age", "ill"):
        one, other = apart.mean(column).standard_error, together.mean(column).standard_error
        assert 0.7 < one / other < 1.4
    # Rows that are drawn again are other rows in each block.
    columns = apart.stored.all_replicates()
    first, second = (columns[rows, 0] < 0.9 for rows in (slice(300), slice(350, 650)))
    assert 0.2 < first.mean() < 0.8 and not np.array_equal(first, second)


def test_saving_moves_the_rows_and_the_release_goes_on(tmp_path):
    with small_parts():
        one = made()
        own, before, plain = one.stored.folder.path, one.mean("age"), one.unweighted()
        rows = one.stored.read()
        one.save(tmp_path / "one", csv=True)
        assert not own.exists()
        assert one.mean("age") == before
        assert plain.mean("age").value > 0
        one.save(tmp_path / "two")
        for name in ("one", "two"):
            loaded = cp.load(tmp_path / name)
            pd.testing.assert_frame_equal(loaded.stored.read(), rows)
            assert loaded.card == one.card
        lines = pd.read_csv(tmp_path / "one" / "synthetic.csv")
        assert lines["dose"].tolist() == pytest.approx(rows["dose"].tolist(), nan_ok=True)
        assert set(lines["ill"]) == {True, False}


def test_the_file_is_one_that_a_small_release_would_have(saved, tmp_path):
    together = made(rows=BLOCK)
    together.save(tmp_path / "small")
    small, large = (
        parquet.read_schema(path / "synthetic.parquet") for path in (tmp_path / "small", saved)
    )
    assert small.equals(large)


def test_rows_of_their_own_go_with_the_release():
    with small_parts():
        one = made(replicates=0)
        folder = one.stored.folder.path
        assert folder.exists()
        another = one.unweighted()
        del one
        gc.collect()
        assert another.mean("age").value > 0
        del another
        gc.collect()
    assert not folder.exists()


@pytest.mark.usefixtures("large")
def test_a_large_table_is_not_read_without_being_asked_for(loaded):
    for ask in (lambda: loaded.table, lambda: loaded.replicates):
        with pytest.raises(BundleError, match=r"1,600 rows and 8 .*release.part.*release.read\(\)"):
            ask()
    assert list(loaded.read("ward", "age").columns) == ["ward", "age"]
    assert len(loaded.read()) == ROWS
    assert repr(loaded) == "<Release: 1,600 rows x 6 columns, NOT PRIVATE (seeded)>"
    with pytest.raises(BundleError, match="no column 'height'"):
        loaded.read("height")


def test_a_release_that_is_not_large_reads_its_rows_when_they_are_asked_for(release):
    held = release.changed()
    assert len(held.table) == ROWS and held.stored is None
    assert held.replicates.shape == (ROWS, 8)
    assert held.table is held.table and held.replicates is held.replicates


@pytest.mark.usefixtures("large")
def test_what_needs_all_rows_at_once_says_so_and_takes_a_part(loaded, held, monkeypatch):
    with pytest.raises(BundleError, match=r"release\.part"):
        loaded.posterior("ill ~ age")
    with pytest.raises(BundleError, match=r"release\.part"):
        loaded.retarget({"ward": {"a": 0.5, "b": 0.25, "c": 0.25}})
    fitted = loaded.fit(LogisticRegression(), "ill", ["age", "ward"])
    same = held.fit(LogisticRegression(), "ill", ["age", "ward"])
    assert fitted["model"].coef_ == pytest.approx(same["model"].coef_)
    monkeypatch.setattr("counterpoise.analysis.learn.MOST_FEATURES", 1_000)
    with pytest.raises(AnalysisError, match=r"release\.part"):
        loaded.fit(LogisticRegression(), "ill")
    part = loaded.part(400)
    turned = part.retarget({"ward": {"a": 0.5, "b": 0.25, "c": 0.25}}).use_weights()
    assert turned.proportion("ward", "a").value == pytest.approx(0.5)


def test_replicates_are_bounded_alike_in_all_blocks(monkeypatch):
    # As if all of them rested on too few rows
    monkeypatch.setattr(judge_replicates, "LEAST_PART", 0.8)
    monkeypatch.setattr(judge_replicates, "CAUTIOUS_PART", 0.9)
    with small_parts(large=False):
        one = made(replicates=4)
    found = one.card["replicates"]
    assert found["bounded"] == 4
    assert found["worst_before_bounding"] < found["worst_effective_sample_size"]
    least = 0.8 * one.card["weights"]["effective_sample_size"]
    assert found["effective_sample_sizes"] == pytest.approx([least] * 4, rel=0.1)
    assert one.stored.all_replicates().mean(axis=0) == pytest.approx(np.ones(4), rel=1e-5)


@pytest.mark.parametrize("places", [[1, 0], [0.5], [[0]], [-1], [ROWS], None])
def test_places_of_no_rows_are_refused(release, places):
    with pytest.raises(BundleError, match="places"):
        release.take(places)


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("kind", ["file", "memory"])
def test_a_part_is_a_smaller_release(loaded, held, kind):
    whole = loaded
    part = (whole if kind == "file" else held).part(800)
    every = np.arange(0, ROWS, 2)
    expected = whole.stored.read().iloc[every].reset_index(drop=True)
    names = list(SCHEMA.names)
    pd.testing.assert_frame_equal(part.table[names], expected[names])
    assert part.weights == pytest.approx(expected["weight"].to_numpy() / expected["weight"].mean())
    columns = whole.stored.all_replicates()[every]
    assert part.replicates == pytest.approx(columns / columns.mean(axis=0), rel=1e-5)
    assert part.card["rows"] == 800
    one, other = part.mean("age"), whole.mean("age")
    assert abs(one.value - other.value) < 4 * (one.standard_error + other.standard_error)
    assert len(whole.part(10 * ROWS).table) == ROWS


@pytest.mark.usefixtures("large")
def test_rows_are_resampled_from_the_file(loaded, held):
    pd.testing.assert_frame_equal(loaded.resample(50, seed=2), held.resample(50, seed=2))


@pytest.mark.usefixtures("large")
def test_without_weights_all_rows_count_alike(loaded, tmp_path):
    plain = loaded.unweighted()
    assert plain.mean("age").value == pytest.approx(plain.read("age")["age"].mean())
    assert plain.mean("age").standard_error is None
    plain.save(tmp_path / "plain")
    again = cp.load(tmp_path / "plain")
    assert again.replicate_count == 0 and (again.weights == 1).all()
    assert again.read("weight")["weight"].tolist() == [1.0] * ROWS


@pytest.mark.usefixtures("large")
def test_a_file_that_is_cut_off_gone_or_changed_is_refused(saved, tmp_path):
    shutil.copytree(saved, tmp_path / "copy")
    loaded = cp.load(tmp_path / "copy").use_weights()
    file = tmp_path / "copy" / "synthetic.parquet"
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])
    with pytest.raises(BundleError, match="was changed"):
        loaded.mean("age")
    with pytest.raises(BundleError):
        cp.load(tmp_path / "copy")
    file.write_bytes(content)
    assert loaded.mean("age").standard_error is not None
    file.unlink()
    with pytest.raises(BundleError, match="no longer there"):
        loaded.mean("age")


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf])
def test_every_replicate_is_looked_at_when_it_is_read(saved, tmp_path, value):
    table = parquet.read_table(saved / "synthetic.parquet").to_pandas()
    table.loc[7, "weight_3"] = value
    file = tmp_path / "synthetic.parquet"
    table.to_parquet(file)
    found = stored_rows.StoredRows(file, SCHEMA, ROWS, 8, known={stored_rows.stamp_of(file)})
    with pytest.raises(BundleError, match="finite numbers from zero"):
        list(found.replicate_blocks())
    with pytest.raises(BundleError, match="finite numbers from zero"):
        found.replicate(2)


@pytest.mark.usefixtures("large")
def test_values_without_a_place_are_refused_on_load(saved, tmp_path):
    table = parquet.read_table(saved / "synthetic.parquet").to_pandas()
    file = tmp_path / "synthetic.parquet"
    for column, value in (("age", 1_000), ("ward", "z"), ("id", "id-000002"), ("weight", -1.0)):
        broken = table.copy()
        broken.loc[0, column] = value
        broken.to_parquet(file)
        with pytest.raises(BundleError, match=column):
            stored_rows.StoredRows.checked(file, SCHEMA, ROWS, 8, "")


def test_new_rows_are_drawn_in_parts_too(loaded):
    with small_parts():
        drawn = loaded.sample(900, seed=5)
        assert drawn.stored is not None and drawn.rows == 900 and drawn.replicate_count == 8
        one, other = drawn.use_weights().mean("age"), loaded.mean("age")
        assert abs(one.value - other.value) < 4 * (one.standard_error + other.standard_error)


def test_an_interrupted_run_leaves_no_rows_and_goes_on(release, tmp_path):
    def interrupted(model, schema, seed, rows, place):
        if place == 2:
            raise KeyboardInterrupt
        return assemble.draw_part(model, schema, seed, rows, place)

    work = tmp_path / "work"
    with small_parts(large=False) as patch:
        patch.setattr("counterpoise.curation.release.draw_part", interrupted)
        with pytest.raises(KeyboardInterrupt):
            made(work=work, seed=None)
        gc.collect()
        assert work.is_dir() and not list(work.glob("counterpoise-rows-*"))
        # What a kill would have left
        (work / "counterpoise-rows-left").mkdir()
        patch.undo()
    with small_parts(large=False):
        again = made(work=work, seed=None)
        assert not (work / "counterpoise-rows-left").exists()
        assert again.stored.file.is_relative_to(work)
        spent = again.ledger.spends
        assert len(spent) == len(release.ledger.spends)
        again.save(tmp_path / "saved")
    assert not work.exists()
    assert cp.load(tmp_path / "saved").ledger.spends == spent


def test_rows_that_the_disk_has_no_room_for_are_refused_before_anything_is_paid(monkeypatch):
    usage = namedtuple("usage", "free")
    monkeypatch.setattr(parts.shutil, "disk_usage", lambda path: usage(1_000_000))
    with small_parts(), pytest.raises(BundleError, match=r"rows: 1,600 rows .*work"):
        cp.release(None, SCHEMA, 1.0, 1e-6, rows=ROWS, progress=False)


@pytest.mark.usefixtures("large")
def test_the_page_of_a_large_release_shows_a_part_of_it(saved, loaded, monkeypatch):
    from counterpoise.report import page

    assert "1,600 synthetic rows" in (saved / "report.html").read_text()
    monkeypatch.setattr(page, "MOST_SHOWN", 100)
    shown = page.release_page(loaded)
    assert "are of 100 of the 1,600 rows, taken evenly" in shown
