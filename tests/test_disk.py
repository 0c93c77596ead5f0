"""Files and folders are written whole or not at all, and the system's errors are in plain words."""

import errno
import fcntl
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from counterpoise import disk
from counterpoise.bundle.files import check_target
from counterpoise.disk import (
    as_path,
    only_one,
    plainly,
    system_error,
    whole_file,
    whole_folder,
    write_whole,
)
from counterpoise.errors import BundleError, CounterpoiseError, SchemaError, TableError
from counterpoise.schema import Column, Schema, write_csv, write_parquet

FRAME = pd.DataFrame({"a": np.random.default_rng(0).random(20_000)})
REFUSED = {
    errno.ENOSPC: "the disk is full",
    errno.EROFS: "read-only",
    errno.EACCES: "permission is denied",
    errno.ENAMETOOLONG: "the name is too long",
    errno.ENOTDIR: "is a file, not a folder",
}


def test_a_full_disk_is_said_as_such():
    with (
        pytest.raises(BundleError, match=r"/dev/full cannot be written: the disk is full"),
        plainly("/dev/full"),
        open("/dev/full", "wb") as file,
    ):
        file.write(b"x" * 100_000)


@pytest.mark.parametrize("number", REFUSED, ids=errno.errorcode.get)
@pytest.mark.parametrize("write", [write_csv, write_parquet])
def test_what_the_system_refuses_is_said_of_the_table_that_is_written(
    tmp_path, monkeypatch, number, write
):
    """Whether Python meets the error or the database does, which quotes it in its own."""

    def refused(*arguments, **options):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "replace", refused)
    with pytest.raises(TableError, match=rf"t\.table cannot be written: .*{REFUSED[number]}"):
        write(FRAME, tmp_path / "t.table")
    assert os.listdir(tmp_path) == []
    assert system_error(f"IO Error: Cannot write: {os.strerror(number)}").errno == number


def test_a_folder_that_a_killed_process_left_is_removed_and_no_other(tmp_path):
    """By the next that makes one there; what somebody uses, or is none of ours, stays."""
    used, handle = disk.new_folder(tmp_path, "rows-")
    source = (
        "import os, sys, pathlib, signal\n"
        "from counterpoise.disk import new_folder\n"
        "folder, _ = new_folder(pathlib.Path(sys.argv[1]), 'rows-')\n"
        "(folder / 'block').write_text('rows')\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = subprocess.run([sys.executable, "-c", source, str(tmp_path)], check=False)
    assert killed.returncode == -9
    [left] = {*tmp_path.iterdir()} - {used}
    (tmp_path / "others").mkdir()
    (tmp_path / "rows-link").symlink_to(tmp_path / "others")
    mine, another = disk.new_folder(tmp_path, "rows-")
    assert {*tmp_path.iterdir()} == {used, mine, tmp_path / "others", tmp_path / "rows-link"}
    assert not left.exists()
    os.close(handle)
    os.close(another)


def test_a_folder_that_is_taken_for_one_that_was_left_before_it_is_locked_is_made_anew(
    tmp_path, monkeypatch
):
    plain, tries = fcntl.flock, []

    def robbed(handle, how):
        if not tries:
            [folder] = tmp_path.iterdir()
            folder.rmdir()
            tries.append(folder)
        return plain(handle, how)

    monkeypatch.setattr(disk.fcntl, "flock", robbed)
    folder, handle = disk.new_folder(tmp_path, "rows-")
    assert folder.is_dir() and tries
    os.close(handle)


def limited(statement, folder, most=50_000):
    """Run a statement in a process that may not write files larger than `most` bytes."""
    source = (
        "import os, resource, signal, numpy, pandas\n"
        "import counterpoise as cp\n"
        "from counterpoise.schema import write_csv, write_parquet\n"
        "frame = pandas.DataFrame({'a': numpy.random.default_rng(0).random(20_000)})\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({most}, {most}))\n"
        "try:\n"
        f"    {statement}\n"
        "except cp.CounterpoiseError as error:\n"
        "    print(type(error).__name__, error)\n"
        "print(os.listdir('.'))\n"
    )

    command = [sys.executable, "-c", source]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_a_table_that_the_database_cannot_write_is_not_said_to_be_unreadable(tmp_path):
    written = "write_csv(frame, 't.csv') if 0 else write_parquet(frame, 't.parquet')"
    said, left = limited(written, tmp_path)
    assert said.startswith("TableError t.parquet cannot be written: the file would be larger")
    assert left == "[]"


@pytest.mark.parametrize("path", [None, "", "\0", 5, b"x", "\ud800", ["x"]])
def test_what_is_no_path_is_refused_by_every_writer(path):
    schema = Schema([Column.boolean("ill")])
    for write, error in (
        (lambda: write_csv(FRAME, path), TableError),
        (lambda: write_parquet(FRAME, path), TableError),
        (lambda: schema.write(path), SchemaError),
        (lambda: as_path("path", path), BundleError),
    ):
        with pytest.raises(error, match="path: expected the path of a file or folder"):
            write()


def test_a_schema_that_cannot_be_written_is_a_plain_error(tmp_path):
    schema = Schema([Column.boolean("ill")])
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    for place, reason in (
        ("folder", "it is a folder"),
        ("file/schema.json", "is a file, not a folder"),
        ("nowhere/schema.json", "no such file or folder"),
        ("x" * 300, "the name is too long"),
    ):
        with pytest.raises(SchemaError, match=f"cannot be written: .*{reason}"):
            schema.write(tmp_path / place)
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]


def test_a_file_is_as_it_was_when_its_writing_fails(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")

    def fail(file):
        file.write(b"half of the n")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_whole(path, fail)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]


def test_a_file_has_its_name_only_when_all_of_it_is_written(tmp_path, monkeypatch):
    """Nothing may wait in a buffer when the file is renamed, as a kill would lose it."""
    replace, lengths = os.replace, []

    def replacing(source, target):
        lengths.append(Path(source).stat().st_size)
        replace(source, target)

    monkeypatch.setattr(os, "replace", replacing)
    write_whole(tmp_path / "file", lambda file: file.write(b"abc"))
    assert lengths == [3]


def test_what_a_killed_writer_left_is_removed_by_the_next(tmp_path):
    left = tmp_path / ".file.abc.counterpoise-part"
    left.touch()
    others = [tmp_path / ".other.abc.counterpoise-part", tmp_path / ".file.swp"]
    for other in others:
        other.touch()
    write_whole(tmp_path / "file", lambda file: file.write(b"new"))
    assert set(tmp_path.iterdir()) == {tmp_path / "file", *others}


def test_what_a_living_writer_writes_is_left_alone(tmp_path):
    with whole_file(tmp_path / "file") as file:
        write_whole(tmp_path / "file", lambda other: other.write(b"theirs"))
        file.write(b"ours")
    assert (tmp_path / "file").read_bytes() == b"ours"
    assert os.listdir(tmp_path) == ["file"]


def test_a_lock_is_held_by_one_and_leaves_nothing(tmp_path):
    path = tmp_path / "lock"
    with only_one(path, "it is held"):
        with pytest.raises(BundleError, match="it is held; wait"), only_one(path, "it is held"):
            pass
        assert path.exists()
    with only_one(path, "it is held"):
        pass
    assert os.listdir(tmp_path) == []


def test_a_lock_that_cannot_be_removed_costs_nothing_and_blocks_nobody(tmp_path, monkeypatch):
    def refused(path, missing_ok=False):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", refused)
        with only_one(tmp_path / "lock", "busy"):
            pass
    assert (tmp_path / "lock").exists()
    with only_one(tmp_path / "lock", "busy"):
        pass
    assert not (tmp_path / "lock").exists()


def test_a_lock_file_that_was_removed_before_it_was_locked_is_opened_anew(tmp_path, monkeypatch):
    """Its holder removes it when it is done; a lock on what has no name keeps nobody out."""
    path, usual, calls = tmp_path / "lock", fcntl.flock, []

    def flock(handle, operation):
        if not calls:
            path.unlink()
        calls.append(operation)
        usual(handle, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    with only_one(path, "it is held"):
        assert len(calls) == 2
        with pytest.raises(BundleError, match="it is held"), only_one(path, "it is held"):
            pass


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such call")
def test_two_folders_change_names_in_one_step(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    assert disk._exchange(tmp_path / "one", tmp_path / "two")
    assert os.listdir(tmp_path / "one") == ["two"]
    assert not disk._exchange(tmp_path / "one", tmp_path / "nowhere")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_what_is_no_file_is_never_replaced_by_one(tmp_path):
    """As root a device would be, and with it every program that writes to it."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for write, error in (
        (lambda: Schema([Column.boolean("ill")]).write(pipe), SchemaError),
        (lambda: write_csv(FRAME, pipe), TableError),
        (lambda: write_parquet(FRAME, pipe), TableError),
    ):
        with pytest.raises(error, match="something else of that name"):
            write()
    assert pipe.is_fifo()
    assert os.listdir(tmp_path) == ["pipe"]


READ_ALL = """
from pathlib import Path
from counterpoise import Account
from counterpoise.cli.margin_files import margins_in
from counterpoise.errors import CounterpoiseError
from counterpoise.formulas.questions import questions_in
from counterpoise.schema import Schema, draft_schema, read_table

for read, name in (
    *((read, f"in{suffix}") for read in (read_table, draft_schema, lambda path: margins_in([path]))
      for suffix in (".csv", ".tsv.gz", ".parquet")),
    *((read, "in.json") for read in (Schema.read, lambda path: margins_in([path]), Account)),
    (questions_in, "in.txt"),
):
    try:
        read(Path(name))
    except CounterpoiseError as error:
        print(error)
"""


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
@pytest.mark.parametrize("make", [os.mkfifo, lambda path: os.symlink("/dev/zero", path)])
def test_what_has_no_end_is_not_read(make, tmp_path):
    """In a process of its own, which is ended where it does not end by itself."""
    for name in ("in.csv", "in.tsv.gz", "in.parquet", "in.json", "in.txt"):
        make(tmp_path / name)
    command = [sys.executable, "-c", READ_ALL]
    ran = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
    )
    said = ran.stdout.splitlines()
    assert len(said) == 13
    for line in said:
        assert "is a device, a pipe or a socket, and no file; write what comes from there" in line


def test_links_that_lead_round_and_round_are_refused_and_left(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    one.symlink_to(other)
    other.symlink_to(one)
    for write in (
        lambda: Schema([Column.boolean("ill")]).write(one),
        lambda: write_csv(FRAME, one),
        lambda: check_target(one, overwrite=True),
    ):
        with pytest.raises(CounterpoiseError, match="symbolic links lead nowhere"):
            write()
    with pytest.raises(OSError, match="symbolic links"), whole_folder(one):
        pass
    assert sorted(os.listdir(tmp_path)) == ["one", "other"]
    assert one.is_symlink() and other.is_symlink()
