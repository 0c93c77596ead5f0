"""Files and folders, written whole or not at all, and the system's errors in plain words.

A file is written under a temporary name beside its place, flushed to the disk, and renamed; so is a
folder. A folder that is there already changes places with the new one in a single step where the
system can do that (Linux), and is set aside under a known name where it cannot, from where it is
taken if the process dies in between: at every moment the old or the new one is there whole.
Whoever writes holds a lock that dies with the process, so what a killed one left is known to be
nobody's, and the next to write the same name removes it. What the operating system refuses (a full
disk, no permission, a name too long) is said in one line that names the path and the way out, in
the family of the caller's choice.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import hashlib
import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from counterpoise.errors import BundleError, CounterpoiseError

try:
    import fcntl
except ImportError:  # Windows has no such locks: there, nothing that was left over is removed.
    fcntl = None  # type: ignore[assignment]

_NO_LOCKS = "the file system has no locks; write to a local disk, and copy it from there"
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
    errno.EEXIST: "there is something else of that name; state another",
    errno.ENOTEMPTY: "there is something else of that name; state another",
    errno.ELOOP: "its symbolic links lead nowhere; state another place",
    errno.EFBIG: "the file would be larger than the system allows",
    errno.EMFILE: "too many files are open; close some and run again",
    errno.ENFILE: "too many files are open; close some and run again",
    errno.EIO: "the disk fails to read or write",
    errno.ENOLCK: _NO_LOCKS,
    errno.ENOSYS: _NO_LOCKS,
    errno.EOPNOTSUPP: _NO_LOCKS,
}

# What stands beside a name while it is written. Long, because drafts are removed unasked.
_PART, _DRAFT, _ASIDE, _LOCK = (
    f".counterpoise-{role}" for role in ("part", "draft", "aside", "lock")
)
_BETWEEN_TRIES = 0.005  # seconds
_AT_WORKING_FOLDER, _EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux


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


def system_error(message: str) -> OSError | None:
    """The error of the operating system that a library's message quotes, if it quotes one.

    >>> system_error('IO Error: Could not write file "a": No space left on device').errno == (
    ...     errno.ENOSPC
    ... )
    True
    """
    for number in _REASONS:
        if os.strerror(number).lower() in message.lower():
            return OSError(number, os.strerror(number))
    return None


def as_path(name: str, value: Any, error: type[CounterpoiseError] = BundleError) -> Path:
    """`value` as a path that the system can be asked for, or our error.

    >>> as_path("path", "")
    Traceback (most recent call last):
    counterpoise.errors.BundleError: path: expected the path of a file or folder, not ''
    """
    try:
        encoded = os.fsencode(value)
        if encoded and b"\0" not in encoded and not isinstance(value, bytes):
            return Path(value)
    except (TypeError, ValueError):
        pass
    shown = repr(value) if isinstance(value, str | bytes | int | None) else type(value).__name__
    raise error(f"{name}: expected the path of a file or folder, not {shown[:60]}")


def require_file(path: str | os.PathLike[str], error: type[CounterpoiseError]) -> None:
    """Refuse what there may be no end of, and what can be read once: a device, pipe or socket.

    Of what is not there, or is a folder, nothing is said.

    >>> require_file("/dev/zero", BundleError)
    Traceback (most recent call last):
    counterpoise.errors.BundleError: /dev/zero is a device, a pipe or a socket, and no file; ...
    """
    with contextlib.suppress(OSError, ValueError):
        mode = os.stat(path).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise error(
                f"{os.fspath(path)} is a device, a pipe or a socket, and no file; write what comes "
                "from there to a file first, and state that"
            )


def _require_way_out(path: Path) -> None:
    """Raise the system's error where symbolic links lead round and round, and to no place."""
    if os.path.islink(os.path.realpath(path)):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


@contextlib.contextmanager
def whole_file(path: Path, lasting: bool = False) -> Iterator[Any]:
    """A file to write, which takes the place of `path` when the block ends well.

    Until then its `name` is where it is. `lasting` waits until the disk has it, so that it outlives
    a crash of the machine. The system's errors are the caller's to say.
    """
    _require_way_out(path)
    if path.exists() and not (path.is_file() or path.is_dir()):
        # A device or a pipe would be replaced by a file of its name.
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
    _remove_parts(path)
    file = _new_part(path)
    try:
        with file:
            yield file
            file.flush()
            if lasting:
                os.fsync(file.fileno())
            if fcntl is None:
                file.close()
            # Still locked, so that nobody takes it for one that was left.
            os.replace(file.name, path)
    except BaseException:
        Path(file.name).unlink(missing_ok=True)
        raise
    if lasting:
        sync_folder(path.parent)


def write_whole(
    path: Path,
    write: Callable[[BinaryIO], object],
    lasting: bool = False,
    error: type[CounterpoiseError] = BundleError,
) -> None:
    """Write a file under a temporary name and rename it; it is there in full or as it was before.

    `lasting` waits until the disk has it, so that it outlives a crash of the machine.
    """
    with plainly(path, error=error), whole_file(path, lasting) as file:
        write(file)


@contextlib.contextmanager
def whole_folder(target: Path) -> Iterator[Path]:
    """A draft of a folder, which takes the place of `target` when the block ends well.

    What is at `target` stays until the draft is whole and on the disk; whether it may be replaced
    is the caller's to check, inside the block. Two processes never write one target at a time.
    The system's errors are the caller's to say.
    """
    _require_way_out(target)
    draft = _beside(target, _DRAFT)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)) from None
    with only_writer(target):
        draft.mkdir()
        try:
            yield draft
            for file in (*draft.rglob("*"), draft):
                _sync(file)
            _publish(draft, target)
        finally:
            _remove(draft)


@contextlib.contextmanager
def only_writer(target: Path) -> Iterator[None]:
    """Keep others from writing the folder `target`; what a killed one left of it is put right."""
    with only_one(_beside(target, _LOCK), f"{target} is being written by another process"):
        _settle(target)
        yield


def require_names_beside(target: Path) -> None:
    """Raise the system's error where a folder can have no draft beside it, or is at no place."""
    _require_way_out(target)
    # The root of a file system has no name, and nothing is written beside it.
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        os.lstat(_beside(target, _DRAFT) if target.name else target)


def standing(target: Path) -> Path:
    """Where the folder `target` is: there, or set aside by a process that died in replacing it."""
    if target.exists():
        return target
    aside = _beside(Path(os.path.realpath(target)), _ASIDE)
    return aside if aside.is_dir() else target


@contextlib.contextmanager
def only_one(
    path: Path, busy: str, error: type[CounterpoiseError] = BundleError, wait: float = 0.0
) -> Iterator[None]:
    """Hold the lock file `path`, or raise `error` with the words `busy` if somebody holds it.

    It is asked for again for `wait` seconds. The lock dies with its process, however it dies; a
    file that is left of it blocks nobody.
    """
    if not has_locks():
        yield
        return
    until = time.monotonic() + wait
    while (handle := _lock(path)) is None:
        if time.monotonic() >= until:
            way_out = "try again later" if wait else "wait until it is done, or state another place"
            raise error(f"{busy}; {way_out}")
        time.sleep(_BETWEEN_TRIES)
    try:
        yield
    finally:
        # Removed while it is held: whoever opened it before finds out, and opens it anew. One that
        # cannot be removed blocks nobody either, and costs nobody what was done under it.
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
        os.close(handle)


def new_folder(parent: Path, prefix: str) -> tuple[Path, int | None]:
    """A folder of a new name, and an open handle by which it is locked; close it when it is gone.

    What killed processes left of such folders, of this prefix in `parent`, is removed first.
    """
    _remove_folders(parent, prefix)
    while True:
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        if fcntl is None:
            return folder, None
        handle = os.open(folder, os.O_RDONLY)
        # Without locks on this file system, nobody takes the folder for one that was left, either.
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        if _is_at(handle, folder):
            return folder, handle
        # Between its making and its lock, somebody has.
        os.close(handle)


def own_file(path: str, flags: int) -> int:
    """An opener for `open`: a file that is new is its owner's alone, as temporary ones are."""
    return os.open(path, flags, 0o600)


def has_locks() -> bool:
    """Whether the system has locks that die with their process."""
    return fcntl is not None


def hash_of(file: Path) -> str:
    """The SHA-256 of a file."""
    with file.open("rb") as opened:
        return f"sha256:{hashlib.file_digest(opened, 'sha256').hexdigest()}"


def sync_folder(folder: Path) -> None:
    """Wait until the disk knows the names in a folder, where the system can tell."""
    if hasattr(os, "O_DIRECTORY"):
        _sync(folder)


def _sync(path: Path) -> None:
    if path.is_dir() and not hasattr(os, "O_DIRECTORY"):
        return
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _beside(target: Path, role: str) -> Path:
    return target.with_name(f".{target.name}{role}")


def _lock(path: Path) -> int | None:
    """The lock at `path`, as an open file; None when somebody holds it."""
    while True:
        handle = own_file(str(path), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(handle, path):
                return handle
        except BlockingIOError:
            os.close(handle)
            return None
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def _is_at(handle: int, path: Path | str) -> bool:
    """Whether an open file still has its name."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False


def _new_part(path: Path) -> Any:
    """A temporary file, locked as long as it is open."""
    while True:
        file = tempfile.NamedTemporaryFile(  # noqa: SIM115
            dir=path.parent, prefix=f".{path.name}.", suffix=_PART, delete=False
        )
        if fcntl is None:
            return file
        # A file system without locks: then nobody can take the file for one that was left, either.
        with contextlib.suppress(OSError):
            fcntl.flock(file.fileno(), fcntl.LOCK_EX)
        if _is_at(file.fileno(), file.name):
            return file
        file.close()


def _remove_parts(path: Path) -> None:
    """Remove what killed processes left of this file: temporary files that nobody has locked."""
    if fcntl is None:
        return
    for entry in os.scandir(path.parent):
        if not (entry.name.startswith(f".{path.name}.") and entry.name.endswith(_PART)):
            continue
        with contextlib.suppress(OSError):
            handle = os.open(entry.path, os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(entry.path)
            finally:
                os.close(handle)


def _remove_folders(parent: Path, prefix: str) -> None:
    """Remove folders of this prefix that nobody has locked."""
    if fcntl is None:
        return
    for entry in os.scandir(parent):
        if not (entry.name.startswith(prefix) and entry.is_dir(follow_symlinks=False)):
            continue
        with contextlib.suppress(OSError):
            handle = os.open(entry.path, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(entry.path, ignore_errors=True)
            finally:
                os.close(handle)


def _settle(target: Path) -> None:
    """Put right what a process left that died in writing `target`; the lock is held."""
    aside = _beside(target, _ASIDE)
    if os.path.lexists(aside) and not os.path.lexists(target):
        os.rename(aside, target)
    for left in (aside, _beside(target, _DRAFT)):
        _remove(left)


def _publish(draft: Path, target: Path) -> None:
    """Put the draft in the place of `target`; what was there is at the draft's place then."""
    if not os.path.lexists(target):
        os.rename(draft, target)
    elif not _exchange(draft, target):
        aside = _beside(target, _ASIDE)
        os.rename(target, aside)
        try:
            os.rename(draft, target)
        except BaseException:
            os.rename(aside, target)
            raise
        os.rename(aside, draft)
    # Before what was there is removed.
    sync_folder(target.parent)


def _exchange(one: Path, other: Path) -> bool:
    """Let two folders change names in one step, and say whether the system could."""
    if sys.platform != "linux":
        return False
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError):
        return False
    names = os.fsencode(one), os.fsencode(other)
    return bool(rename(_AT_WORKING_FOLDER, names[0], _AT_WORKING_FOLDER, names[1], _EXCHANGE) == 0)


def _remove(path: Path) -> None:
    """Remove a folder, or what stands in its place; what cannot be removed is met again later."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
