"""A process that dies while it saves a release: what was there stays until the new one is whole.

A child process saves, and dies just before its k-th call of the file system, for every k. The
parent then finds the old or the new release, saves again, and finds nothing else in the folder.
"""

import os
import sys
import warnings

import pandas as pd
import pytest

import counterpoise as cp
from counterpoise import disk
from counterpoise.bundle import files
from counterpoise.bundle.descriptor import read_descriptor
from counterpoise.errors import BundleError
from counterpoise.schema import write_parquet

CALLS = {"open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.chmod", "shutil.rmtree"}
DIED, FINISHED = 9, 0


def made(rows):
    schema = cp.Schema([cp.Column.boolean("ill")])
    table = pd.DataFrame({"ill": [True, False] * 20})
    options = {"synthesizer": "independent", "weights": "uniform", "replicates": 0}
    return cp.release(table, schema, 1.0, rows=rows, **options)


@pytest.fixture(scope="module")
def old():
    return made(3)


@pytest.fixture(scope="module")
def new():
    return made(5)


def save(release, target, overwrite=False):
    """As `Release.save`, with a page that is quick to make."""
    files.write_bundle(release, target, overwrite=overwrite)
    files.write_page(release, target, lambda release: "<p>page</p>")


def dies(step, folder, act):
    """Whether a child that does `act` dies at its `step`-th call; False when it has fewer."""
    with warnings.catch_warnings():
        # A child of a process with threads must not wait for them; this one only writes files.
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        child = os.fork()
    if child == 0:
        left = [step]

        def count(event, arguments):
            ours = event in CALLS and (event != "open" or str(folder) in str(arguments[0]))
            left[0] -= ours
            if ours and left[0] < 0:
                os._exit(DIED)

        try:
            sys.addaudithook(count)
            act()
            os._exit(FINISHED)
        finally:
            os._exit(1)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (DIED, FINISHED)
    return code == DIED


@pytest.mark.parametrize("way", ["new", "exchanged", "set aside"])
def test_after_a_kill_at_any_step_the_old_or_the_new_release_is_whole(
    tmp_path, monkeypatch, old, new, way
):
    monkeypatch.setattr(files, "write_parquet", copied(tmp_path, old, new))
    if way == "set aside":
        monkeypatch.setattr(disk, "_exchange", lambda one, other: False)
    found = []
    for step in range(1000):
        target = tmp_path / str(step) / "out"
        if way != "new":
            save(old, target)
        died = dies(step, tmp_path, lambda target=target: save(new, target, overwrite=way != "new"))
        found.append(rows_of(target))
        if died and found[-1] is None:
            save(new, target)
        else:
            with pytest.raises(BundleError, match="exists"):
                save(new, target)
            save(new, target, overwrite=True)
        assert rows_of(target) == 5
        assert os.listdir(target.parent) == ["out"]
        if not died:
            break
    first = None if way == "new" else 3
    assert len(found) > 15
    assert found == [first] * found.index(5) + [5] * (len(found) - found.index(5))
    assert found.index(5) < len(found) - 1


def rows_of(target):
    """The rows of the release at a place, which is whole; None when there is nothing at all."""
    try:
        return read_descriptor(disk.standing(target)).card["rows"]
    except BundleError as error:
        assert "is not a release" in str(error)
        assert not target.exists()
        return None


def copied(folder, *releases):
    """Writes tables that were written once already: as `write_parquet`, without the database."""
    contents = {}
    for release in releases:
        write_parquet(release.table, folder / "once.parquet")
        contents[len(release.table)] = (folder / "once.parquet").read_bytes()
    return lambda table, path: disk.write_whole(path, lambda file: file.write(contents[len(table)]))


def test_a_release_set_aside_is_found_by_load_and_brought_back_by_save(
    tmp_path, monkeypatch, old, new
):
    target = tmp_path / "out"
    save(old, target)
    target.rename(tmp_path / ".out.counterpoise-aside")
    with pytest.raises(BundleError, match="exists"):
        save(new, target)
    assert os.listdir(tmp_path) == [".out.counterpoise-aside"]
    assert len(cp.load(target).table) == 3
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        # Interrupted again: what was set aside is not removed before the new one is whole.
        patched.setattr(files, "describe_folder", interrupted)
        save(new, target, overwrite=True)
    assert len(cp.load(target).table) == 3
    save(new, target, overwrite=True)
    assert (len(cp.load(target).table), os.listdir(tmp_path)) == (5, ["out"])


def interrupted(*arguments):
    raise KeyboardInterrupt


def test_what_a_killed_save_left_blocks_nothing_and_is_removed(tmp_path, new):
    (tmp_path / ".out.counterpoise-draft").mkdir()
    (tmp_path / ".out.counterpoise-draft" / "synthetic.parquet").write_text("half of")
    (tmp_path / ".out.counterpoise-lock").touch()
    (tmp_path / ".other.counterpoise-draft").mkdir()
    save(new, tmp_path / "out")
    assert sorted(os.listdir(tmp_path)) == [".other.counterpoise-draft", "out"]


def test_a_draft_that_somebody_is_writing_is_left_alone(tmp_path, new):
    target = tmp_path / "out"
    with disk.whole_folder(target) as draft:
        (draft / "file").write_text("theirs")
        with pytest.raises(BundleError, match="being written by another process"):
            save(new, target)
    assert (target / "file").read_text() == "theirs"
    assert os.listdir(tmp_path) == ["out"]


def test_what_is_saved_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch, old, new):
    """Every file and the folder are flushed before the folder is published."""
    target = tmp_path / "out"
    save(old, target)
    happened = []
    flush, exchange = os.fsync, disk._exchange

    def flushing(handle):
        happened.append(os.fstat(handle).st_ino)
        flush(handle)

    def exchanging(one, other):
        happened.append("published")
        return exchange(one, other)

    monkeypatch.setattr(os, "fsync", flushing)
    monkeypatch.setattr(disk, "_exchange", exchanging)
    files.write_bundle(new, target, overwrite=True)
    place = happened.index("published")
    assert {path.stat().st_ino for path in (target, *target.iterdir())} <= set(happened[:place])
    assert happened[place + 1] == tmp_path.stat().st_ino
