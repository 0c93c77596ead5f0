"""Files, written whole or not at all, and the system's errors in plain words.

A file is written under a temporary name beside its place, flushed to the disk, and renamed. What
the operating system refuses (a full disk, no permission, a name too long) is said in one line that
names the path and the way out, in the family of the caller's choice.
"""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from counterpoise.errors import BundleError, CounterpoiseError

_REASONS = {
    errno.ENOSPC: "the disk is full; free some space and run again",
    errno.EDQUOT: "your quota of the disk is used up; free some space and run again",
    errno.EROFS: "the file system is read-only; state a place that can be written to",
    errno.EACCES: "permission is denied; state a place that is yours, or ask for permission",
    errno.EPERM: "permission is denied; state a place that is yours, or ask for permission",
    errno.ENAMETOOLONG: "the name is too long; state a shorter one",
    errno.ENOTDIR: "a part of the path is a file, not a folder; state another place",
    errno.EISDIR: "it is a folder; state a file",
    errno.ENOENT: "there is no such file or folder",
    errno.EFBIG: "the file would be larger than the system allows",
    errno.EMFILE: "too many files are open; close some and run again",
    errno.ENFILE: "too many files are open; close some and run again",
    errno.EIO: "the disk fails to read or write",
}


@contextlib.contextmanager
def plainly(
    path: str | os.PathLike[str],
    doing: str = "written",
    error: type[CounterpoiseError] = BundleError,
) -> Iterator[None]:
    """Say an error of the operating system in plain words: `path` cannot be `doing`.

    >>> with plainly("/a/b", "read"):
    ...     raise OSError(errno.ENOSPC, "No space left on device")
    Traceback (most recent call last):
    counterpoise.errors.BundleError: /a/b cannot be read: the disk is full; free some space and ...
    """
    try:
        yield
    except OSError as problem:
        reason = _REASONS.get(problem.errno or 0) or problem.strerror or type(problem).__name__
        raise error(f"{os.fspath(path)} cannot be {doing}: {reason}") from None


def write_whole(path: Path, write: Callable[[BinaryIO], object], lasting: bool = False) -> None:
    """Write a file under a temporary name and rename it; it is there in full or as it was before.

    `lasting` waits until the disk has it, so that it outlives a crash of the machine.
    """
    with plainly(path):
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                write(file)
                if lasting:
                    file.flush()
                    os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        if lasting:
            sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Wait until the disk knows the names in a folder, where the system can tell."""
    if hasattr(os, "O_DIRECTORY"):
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Whether the lock in a file could be had; it is held for the block and ends with the process.

    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name) / "lock"
    >>> with locked(path) as first, locked(path) as second:
    ...     print(first, second)
    True False
    >>> folder.cleanup()
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        yield _lock(handle)
    finally:
        os.close(handle)


def _lock(handle: int) -> bool:
    try:
        import fcntl
    except ImportError:  # Windows, where a lock is one on bytes of the file
        import msvcrt

        with contextlib.suppress(OSError):
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
            return True
        return False
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False
