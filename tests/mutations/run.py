"""Break the vault on purpose, one line at a time, and see that a named test notices.

`make mutations` copies the source to a temporary folder, applies each breakage of `breakages.txt`
to the copy by itself and runs the test that has to fail. It prints what became of each, and fails
itself when a breakage survives, when its line is no longer found exactly once, or when a named test
fails on the source as it is. Two run at a time, each in a fresh process that is forked from one
which has imported everything but Counterpoise. `python -m tests.mutations.run budget select` runs
those files alone.
"""

import argparse
import contextlib
import gc
import importlib
import io
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOM = "counterpoise/vault"
PROCESSES = 2
LONGEST = 300  # seconds; a breakage that runs on is noticed too

CAUGHT, SURVIVED = "caught", "SURVIVED"
NOT_FOUND, NOT_RUN, HUNG = "NOT FOUND ONCE", "DID NOT RUN", "caught (ran on)"


@dataclass(frozen=True)
class Breakage:
    """A piece of the vault that occurs once in its file, what is put for it, and who notices."""

    file: str  # in the vault's folder, without its ending
    old: str
    new: str
    test: str


def read_breakages(file: Path) -> list[Breakage]:
    """The breakages in a text of `## file`, `@ test`, `- old` and `+ new` lines."""
    found = []
    place = test = old = ""
    for line in file.read_text().splitlines():
        mark, _, rest = line.partition(" ")
        match mark:
            case "##":
                place = rest
            case "@":
                test = rest
            case "-":
                old = rest
            case "+":
                found.append(Breakage(place, old, rest, test))
            case "" | "#":
                pass
            case _:
                raise SystemExit(f"{file.name}: cannot read {line!r}")
    return found


@dataclass(frozen=True)
class Outcome:
    breakage: Breakage
    result: str
    seconds: float
    output: str = ""


# What takes long to import, and is not to be broken.
SLOW = (
    "dp_accounting.pld",
    "dp_accounting.rdp",
    "duckdb",
    "formulaic",
    "hypothesis.strategies",
    "mpmath",
    "opendp.prelude",
    "pandas",
    "pyarrow.parquet",
    "scipy.optimize",
    "scipy.stats",
    "sklearn.linear_model",
)


def main() -> int:
    """Run the breakages of the files that are named, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", help="names of files in the vault, such as budget")
    parser.add_argument("--verbose", action="store_true", help="show what the tests said")
    parser.add_argument("--source", type=Path, default=ROOT / "src", help="what to break a copy of")
    options = parser.parse_args()
    breakages = read_breakages(Path(__file__).with_name("breakages.txt"))
    chosen = [b for b in breakages if not options.files or b.file in options.files]
    if not chosen:
        parser.error(f"no breakages of {', '.join(options.files)}")
    tests = list(dict.fromkeys(breakage.test for breakage in chosen))
    for module in SLOW:
        importlib.import_module(module)
    gc.freeze()  # what is there before the forks need not be looked through in each
    with tempfile.TemporaryDirectory() as folder:
        copies = [_copy(options.source, Path(folder) / str(number)) for number in range(PROCESSES)]
        print(f"{len(tests)} tests on the source as it is ...", flush=True)
        code, output = _tested(copies[0], tests)
        if code != pytest.ExitCode.OK:
            print(output)
            print("They have to pass before anything is broken.")
            return 1
        print(f"{len(chosen)} breakages, {PROCESSES} at a time", flush=True)
        outcomes = _all(chosen, copies, options.verbose)
    gc.unfreeze()
    counts = Counter(outcome.result for outcome in outcomes)
    missed = [o for o in outcomes if o.result not in (CAUGHT, HUNG)]
    for outcome in missed:
        breakage = outcome.breakage
        print(f"\n{outcome.result}: {breakage.file}\n  - {breakage.old}\n  + {breakage.new}")
        print(f"  by {breakage.test}")
        if options.verbose:
            print(outcome.output)
    print(
        f"\n{len(outcomes) - len(missed)} of {len(outcomes)} breakages were noticed", dict(counts)
    )
    return 1 if missed else 0


def _copy(source: Path, folder: Path) -> Path:
    shutil.copytree(source, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def _all(breakages: list[Breakage], copies: list[Path], verbose: bool) -> list[Outcome]:
    """Every breakage in one of the copies, the outcomes shown as they come."""
    context = multiprocessing.get_context("fork")
    folders: multiprocessing.Queue[Path] = context.Queue()
    for copy in copies:
        folders.put(copy)
    outcomes = []
    with context.Pool(len(copies), _take_folder, (folders,)) as pool:
        for outcome in pool.imap(_broken, breakages):
            breakage = outcome.breakage
            print(
                f"{outcome.result:15} {outcome.seconds:5.1f} s  {breakage.file:14} "
                f"{_short(breakage.old)}  ->  {_short(breakage.new)}",
                flush=True,
            )
            outcomes.append(outcome)
            if verbose:
                print("\n".join(line for line in outcome.output.splitlines() if "FAILED" in line))
    return outcomes


def _short(line: str) -> str:
    return line if len(line) <= 60 else f"{line[:57]}..."


_folder = Path()


def _take_folder(folders: "multiprocessing.Queue[Path]") -> None:
    global _folder
    _folder = folders.get()


def _broken(breakage: Breakage) -> Outcome:
    started = time.monotonic()

    def outcome(result: str, output: str = "") -> Outcome:
        return Outcome(breakage, result, time.monotonic() - started, output)

    file = _folder / ROOM / f"{breakage.file}.py"
    whole = file.read_text() if file.exists() else ""
    if whole.count(breakage.old) != 1:
        return outcome(NOT_FOUND, f"found {whole.count(breakage.old)} times")
    _write(file, whole.replace(breakage.old, breakage.new))
    try:
        code, output = _tested(_folder, [breakage.test])
    finally:
        _write(file, whole)
    match code:
        case pytest.ExitCode.TESTS_FAILED:
            return outcome(CAUGHT, output)
        case pytest.ExitCode.OK:
            return outcome(SURVIVED, output)
        case None:
            return outcome(HUNG)
        case _:
            return outcome(NOT_RUN, output)


def _write(file: Path, content: str) -> None:
    """Write a module, and forget what it was compiled to: a second has room for two versions."""
    file.write_text(content)
    for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*.pyc"):
        compiled.unlink()


def _tested(source: Path, tests: list[str]) -> tuple[int | None, str]:
    """How pytest ended with the package in `source`, and what it said; None when it ran on."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os._exit(_in_child(source, tests, writing))
    os.close(writing)

    def stop(*_: object) -> None:
        os.kill(child, signal.SIGKILL)

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(LONGEST if len(tests) == 1 else 4 * LONGEST)
    with os.fdopen(reading, "rb") as pipe:
        output = pipe.read().decode(errors="replace")
    _, status = os.waitpid(child, 0)
    signal.alarm(0)
    return (None if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)), output


def _in_child(source: Path, tests: list[str], writing: int) -> int:
    os.dup2(writing, 1)
    os.dup2(writing, 2)
    os.chdir(ROOT)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell may have taken away
    sys.path[:0] = [str(source), str(ROOT)]
    # The options of the project start processes of their own and read every module for examples.
    options = ["-o", "addopts=", "--strict-markers", "--assert=plain"]
    for plugin in ("cacheprovider", "xdist", "unraisableexception"):
        options += ["-p", f"no:{plugin}"]
    try:
        code = int(pytest.main([*options, "-q", "-x", "--tb=short", *tests]))
        import counterpoise

        if not Path(counterpoise.__file__ or "").is_relative_to(source):
            print(f"the tests ran on {counterpoise.__file__}")
            code = int(pytest.ExitCode.INTERNAL_ERROR)
    except BaseException as error:
        print(f"{type(error).__name__}: {error}")
        code = int(pytest.ExitCode.INTERNAL_ERROR)
    with contextlib.suppress(io.UnsupportedOperation, ValueError):
        sys.stdout.flush()
    return code


if __name__ == "__main__":
    sys.exit(main())
