"""What a release and its analysis take: processor seconds and peak memory, case by case.

Every case is a fresh process with one thread. Before it, the same process does a fixed reference
computation (matrix products, exponentials, a sort), so that figures of different machines or days
can be set against each other: `ratio` is seconds over those of the reference. Seconds are those of
the processor, so that other work on the machine hardly counts, but for two threads that share a
core. The imports that a case needs are counted in, and given by themselves too. Peak memory is the
most that the process held during the case, with Python and its libraries; the tables are made, and
written to files, by processes of their own.

    python benchmarks/cost.py [--cases adult,medium] [--data DIR] [--label after] [--again]

`adult` and `census` read public tables from `--data`; the others are generated, with columns that
lean on one another. `load`, `mean`, `glm` and `posterior` ask the release of `million` and of
`posterior-table`, which are made if they are not there. What was measured is kept in
`results/cost.csv` under its label, and not measured again unless asked for.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import counterpoise as cp
from counterpoise import Column, Schema
from memory import forget_peak, peak_megabytes

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
DELTA = 1e-9
CATEGORIES_CENSUS = ("INDP", "PWGTP", "WGTP")


@dataclass(frozen=True)
class Shape:
    """A generated table: rows, skewed or plain numbers, small integers, sizes of categories."""

    rows: int
    numbers: int
    integers: int
    categories: tuple[int, ...]


SHAPES = {
    "medium": Shape(34_000, 4, 3, (2, 2, 2, 3, 3, 4, 5, 9, 12)),
    "flights": Shape(340_000, 8, 6, (2, 16, 100, 105, 4_000)),
    "million": Shape(1_000_000, 4, 2, (2, 2, 3, 4, 5, 6, 8, 10, 20)),
    "hundred": Shape(10_000, 30, 20, (2,) * 20 + (3,) * 10 + (5,) * 10 + (8,) * 5 + (20,) * 5),
    "posterior-table": Shape(20_000, 3, 1, (2, 3, 5)),
    "long": Shape(20_000_000, 3, 2, (2, 5, 12, 20, 50)),
    "long-synthetic": Shape(100_000, 3, 2, (2, 5, 12, 20, 50)),
    "two-million": Shape(2_000_000, 3, 2, (2, 5, 12, 20, 50)),
}
# What each case should take at most: processor seconds, and megabytes.
WANTED: dict[str, tuple[float, float | None]] = {
    "adult": (8, None),
    "medium": (6, None),
    "census": (20, 500),
    "flights": (60, 1500),
    "million": (90, 2000),
    "hundred": (60, None),
    "weigh": (60, None),
    "weigh-two-million": (60, None),
    "load": (2, 800),
    "mean": (0.3, None),
    "glm": (4, None),
    "posterior": (5, None),
}


def schema_of(shape: Shape) -> Schema:
    """What is stated of a generated table: generous bounds, no edges, all categories."""
    columns = []
    for index in range(shape.numbers):
        largest = 5_000_000 if index % 2 else 110
        columns.append(Column.continuous(f"number{index}", 0, largest))
    columns += [Column.integer(f"integer{index}", 1, 16) for index in range(shape.integers)]
    for index, size in enumerate(shape.categories):
        columns.append(Column.categorical(f"category{index}", _labels(size)))
    return Schema(columns)


def generate(shape: Shape, seed: int = 0) -> pd.DataFrame:
    """A table in which every column leans on the one before it, and half of the numbers is skewed.

    A third of each skewed number is zero, and the rare ones of many categories are very rare.
    """
    generator = np.random.default_rng(seed)
    place = generator.normal(size=shape.rows)

    def onward() -> np.ndarray:
        nonlocal place
        place = 0.5 * place + np.sqrt(0.75) * generator.normal(size=shape.rows)
        return place

    table: dict[str, Any] = {}
    for index in range(shape.numbers):
        at = onward()
        skewed = np.where(at < -0.44, 0, np.exp(8 + 1.5 * at))
        table[f"number{index}"] = (skewed if index % 2 else 50 + 15 * at).round(2)
    for index in range(shape.integers):
        table[f"integer{index}"] = np.clip(8 + 3 * onward(), 1, 16).astype(int)
    for index, size in enumerate(shape.categories):
        shares = 1 / np.arange(1, size + 1) ** (1.2 if size > 15 else 0.5)
        cuts = np.cumsum(shares / shares.sum())[:-1]
        # The quantiles of a thousandth of the rows would do; those of the normal law are exact.
        codes = np.searchsorted(_normal_quantiles(cuts), onward())
        table[f"category{index}"] = pd.Categorical.from_codes(codes, _labels(size))
    return pd.DataFrame(table)


def _labels(size: int) -> list[str]:
    return [f"c{code}" for code in range(size)]


def _normal_quantiles(shares: np.ndarray) -> np.ndarray:
    from scipy.special import ndtri

    return np.asarray(ndtri(shares))


def table_file(name: str, folder: Path) -> Path:
    """The Parquet file of a generated table, a piece after the other where it is long."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = folder / f"{name}.parquet"
    if path.exists():
        return path
    shape, step = SHAPES[name], 1_000_000
    draft, writer = path.with_suffix(".draft"), None
    for place, start in enumerate(range(0, shape.rows, step)):
        part = Shape(min(step, shape.rows - start), *list(vars(shape).values())[1:])
        made = generate(part, seed=place + (1000 if name == "long-synthetic" else 0))
        for each in made.select_dtypes("category"):
            made[each] = made[each].astype(str)
        arrow = pa.Table.from_pandas(made, preserve_index=False)
        writer = writer or pq.ParquetWriter(draft, arrow.schema)
        writer.write_table(arrow)
    assert writer is not None
    writer.close()
    draft.rename(path)
    return path


def reference() -> float:
    """The processor seconds of the fixed computation."""
    generator = np.random.default_rng(0)
    rows = generator.normal(size=(20_000, 200))
    weights = generator.normal(size=(200, 80))
    began = time.process_time()
    for _ in range(10):
        rows.T @ np.exp(-np.abs(rows @ weights))
    for _ in range(20):
        rows.T @ rows
    np.sort(generator.normal(size=2_000_000))
    return time.process_time() - began


def adult(data: Path, folder: Path) -> Callable[[], Any]:
    from adult import FILE, SCHEMA, TARGET

    return lambda: cp.release(
        data / FILE, SCHEMA, 1.0, DELTA, target=TARGET, seed=1, progress=False
    )


def census(data: Path, folder: Path) -> Callable[[], Any]:
    from public_tables import CENSUS, FILES, load

    table, schema, _ = load(CENSUS, data)
    whole = pd.read_csv(data / FILES[CENSUS], dtype=str, keep_default_na=False)
    # What the scored columns leave out: the industry's code, and two sampling weights.
    listed = sorted(whole["INDP"].unique())
    columns = [*schema, Column.categorical("INDP", listed)]
    columns += [Column.integer(name, 0, 10_000) for name in ("PWGTP", "WGTP")]
    for name in CATEGORIES_CENSUS:
        table[name] = whole[name] if name == "INDP" else whole[name].astype(int)
    stated = Schema(columns, schema.missing_values)
    return lambda: cp.release(table, stated, 10.0, DELTA, seed=1, progress=False)


def generated(name: str) -> Callable[[Path, Path], Callable[[], Any]]:
    """The release of a generated table with its defaults, from its file."""

    def prepare(data: Path, folder: Path) -> Callable[[], Any]:
        path, schema = folder / f"{name}.parquet", schema_of(SHAPES[name])
        return lambda: cp.release(path, schema, 1.0, DELTA, seed=1, progress=False)

    return prepare


def weighed(name: str) -> Callable[[Path, Path], Callable[[], Any]]:
    """Weights for a table of 100,000 rows, from a long private file."""

    def prepare(data: Path, folder: Path) -> Callable[[], Any]:
        synthetic = pd.read_parquet(folder / "long-synthetic.parquet")
        path, schema = folder / f"{name}.parquet", schema_of(SHAPES[name])
        for column in schema:
            if column.is_numeric:
                # A private value out of bounds is clamped; a synthetic one is refused.
                synthetic[column.name] = synthetic[column.name].clip(column.low, column.high)
        return lambda: cp.weigh(path, synthetic, schema, 1.0, DELTA, seed=1, progress=False)

    return prepare


def loaded(data: Path, folder: Path) -> Callable[[], Any]:
    return lambda: cp.load(folder / "million-release")


def asked(release: str, ask: Callable[[cp.Release], Any]) -> Callable[[Path, Path], Any]:
    """A question to a release that is loaded already."""

    def prepare(data: Path, folder: Path) -> Callable[[], Any]:
        found = cp.load(folder / f"{release}-release").use_weights()
        return lambda: ask(found)

    return prepare


CASES: dict[str, Callable[[Path, Path], Callable[[], Any]]] = {
    "adult": adult,
    "medium": generated("medium"),
    "census": census,
    "flights": generated("flights"),
    "million": generated("million"),
    "hundred": generated("hundred"),
    "weigh": weighed("long"),
    "weigh-two-million": weighed("two-million"),
    "load": loaded,
    "mean": asked("million", lambda release: release.mean("number0")),
    "glm": asked("million", lambda release: release.glm("category0 ~ number0 + integer0")),
    "posterior": asked(
        "posterior-table",
        lambda release: release.posterior("category0 ~ number0 + integer0", seed=1),
    ),
}
# The questions to a release that was loaded before, and its modules imported with it.
ASKED = ("mean", "glm", "posterior")
# What has to be there before: generated tables, and saved releases of them.
NEEDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    **{name: ((name,), ()) for name in ("medium", "flights", "million", "hundred")},
    "weigh": (("long", "long-synthetic"), ()),
    "weigh-two-million": (("two-million", "long-synthetic"), ()),
    **dict.fromkeys(("load", "mean", "glm"), (("million",), ("million",))),
    "posterior": (("posterior-table",), ("posterior-table",)),
}


def prepare_here(name: str, folder: Path) -> None:
    """Make what a case needs, unless it is there."""
    folder.mkdir(parents=True, exist_ok=True)
    tables, releases = NEEDS.get(name, ((), ()))
    for each in tables:
        table_file(each, folder)
    for each in releases:
        path = folder / f"{each}-release"
        if not path.exists():
            generated(each)(Path(), folder)().save(path)


def run_here(name: str, data: Path, folder: Path) -> None:
    """Measure one case in this process."""
    known = reference()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cp.CounterpoiseWarning)
        began = time.process_time()
        _ = cp.release, cp.load  # names are imported when they are first used
        imports = time.process_time() - began if name not in ASKED else 0.0
        run = CASES[name](data, folder)
        forget_peak()
        began, wall = time.process_time(), time.perf_counter()
        made = run()
        seconds = imports + time.process_time() - began
        wall = time.perf_counter() - wall
        peak = peak_megabytes()
        if name == "million" and not (folder / "million-release").exists():
            made.save(folder / "million-release")
    found = {"seconds": seconds, "imports": imports, "wall": wall}
    print(json.dumps(found | {"megabytes": peak, "reference": known}))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--data", type=Path, default=os.environ.get("COUNTERPOISE_DATA", "data"))
    parser.add_argument("--label", default="now", help="the name under which figures are kept")
    parser.add_argument("--again", action="store_true", help="measure what was measured before")
    parser.add_argument("--limit", type=float, default=1800, help="wall seconds a case may take")
    parser.add_argument("--folder", type=Path, default=Path("results/cost"), help="for the tables")
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--here", help=argparse.SUPPRESS)
    parser.add_argument("--prepare", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.prepare:
        prepare_here(chosen.prepare, chosen.folder)
    elif chosen.here:
        run_here(chosen.here, Path(chosen.data), chosen.folder)
    else:
        measure(chosen)


def measure(chosen: argparse.Namespace) -> None:
    """Run the cases one after the other, and keep each as soon as it is measured."""
    chosen.out.mkdir(parents=True, exist_ok=True)
    path = chosen.out / "cost.csv"
    kept = pd.read_csv(path).to_dict("records") if path.exists() else []
    for name in chosen.cases.split(","):
        same = [row for row in kept if (row["label"], row["case"]) == (chosen.label, name)]
        if same and not chosen.again:
            print(_line(same[0]), flush=True)
            continue
        given = ["--folder", str(chosen.folder), "--data", str(chosen.data)]
        try:
            _run("--prepare", name, given, chosen.limit)
            found = json.loads(_run("--here", name, given, chosen.limit).splitlines()[-1])
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            said = getattr(error, "stderr", None) or "it took too long"
            print(f"{name}: failed: {str(said).splitlines()[-1]}", flush=True)
            continue
        row = {"label": chosen.label, "case": name, **found}
        kept = [row for row in kept if row not in same] + [row]
        pd.DataFrame(kept).to_csv(path, index=False)
        print(_line(row), flush=True)


def _run(what: str, name: str, given: list[str], limit: float) -> str:
    command = [sys.executable, __file__, what, name, *given]
    done = subprocess.run(
        command,
        env=os.environ | ONE_THREAD,
        capture_output=True,
        text=True,
        timeout=limit,
        check=True,
    )
    return done.stdout


def _line(row: dict[str, Any]) -> str:
    seconds, megabytes = WANTED[row["case"]]
    wanted = f"wanted {seconds:g} s" + (f", {megabytes:g} MB" if megabytes else "")
    ratio = row["seconds"] / row["reference"]
    imports = row.get("imports", math.nan)
    return (
        f"{row['label']:<8} {row['case']:<18} {row['seconds']:8.2f} s CPU, imports {imports:4.2f} "
        f"({ratio:7.1f} x reference)  {row['megabytes']:6.0f} MB  {wanted}"
    )


if __name__ == "__main__":
    main()
