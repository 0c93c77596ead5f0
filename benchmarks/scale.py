"""What a release costs as the private table grows, on DuckDB and on Spark: time and memory.

Invents tables of 15 mixed columns that depend on each other, as Parquet, and makes a full release
of each with moment weights and replicates, each in a process of its own: `mst` and `aim`, from the
file by DuckDB and by a local Spark. The number of synthetic rows is the same for all, so that what
grows is what the private rows cost. Prints a line a stage: wall and CPU seconds, and the most
memory of this process; for Spark also what its own processes took, the passes over the rows that it
made, and the bytes that it shuffled, from its event log. Writes scale.csv.

    python benchmarks/scale.py [--rows 100000 1000000] [--storages duckdb spark]
        [--synthesizers mst aim] [--folder DIR] [--constants]
"""

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb

import counterpoise as cp
from counterpoise.schema import Column, Schema
from memory import forget_peak, peak_megabytes

WARDS = [f"ward {i}" for i in range(12)]
SCHEMA = Schema(
    [
        Column.categorical("region", [f"region {i}" for i in range(20)]),
        Column.categorical("sex", ["F", "M"]),
        Column.categorical("job", [f"job {i}" for i in range(50)], nullable=True),
        Column.categorical("ward", WARDS),
        Column.categorical("month", list(range(1, 13))),
        Column.ordinal("risk", ["low", "middle", "high"]),
        Column.boolean("employed"),
        Column.boolean("readmitted"),
        Column.integer("age", 0, 110),
        Column.integer("children", 0, 9),
        Column.integer("stay", 0, 365),
        Column.continuous("income", 0.0, 1_000_000.0, nullable=True),
        Column.continuous("rent", 0.0, 10_000.0),
        Column.continuous("charges", 0.0, 500_000.0),
        Column.date("admitted", "2015-01-01", "2024-12-31"),
    ]
)

# A few hidden numbers make the columns depend on each other.
GENERATE = """
COPY (
  SELECT 'region ' || CAST(floor(20 * a * a) AS INT) AS region,
         CASE WHEN b < 0.45 + 0.1 * a THEN 'F' ELSE 'M' END AS sex,
         CASE WHEN c > 0.1 THEN 'job ' || CAST(floor(50 * (0.5 * a + 0.5 * c)) AS INT) END AS job,
         'ward ' || CAST(floor(12 * (0.7 * d + 0.3 * b)) AS INT) AS ward,
         CAST(floor(12 * e) AS INT) + 1 AS month,
         CASE WHEN d + f < 0.8 THEN 'low' WHEN d + f < 1.5 THEN 'middle' ELSE 'high' END AS risk,
         c > 0.25 AS employed, d * f > 0.5 AS readmitted,
         CAST(floor(95 * (0.6 * d + 0.4 * c)) AS INT) AS age,
         CAST(floor(5 * b * c) AS INT) AS children,
         CAST(floor(-6 * (0.3 + d) * ln(f + 1e-9)) AS INT) AS stay,
         CASE WHEN c > 0.05 THEN exp(9.5 + 2 * a * c - 0.7 * ln(1 / (b + 1e-9) - 1 + 1e-9)) END
           AS income,
         300 + 2500 * a * (0.5 + b) AS rent,
         CASE WHEN f < 0.2 THEN 0 ELSE round(exp(6 + 3 * d * f + b), 2) END AS charges,
         DATE '2015-01-01' + CAST(floor(3650 * sqrt(e)) AS INT) AS admitted
  FROM (SELECT random() AS a, random() AS b, random() AS c, random() AS d, random() AS e,
               random() AS f FROM range({rows}))
) TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 250000)
"""


class Clock:
    """Wall and CPU seconds of this process and of those that it started, stage by stage."""

    def __init__(self) -> None:
        self.lines: list[dict[str, float | str]] = []
        self._stage = ""
        self._start = self._now()

    def __call__(self, stage: str, done: float) -> None:
        """What `release` calls with its progress."""
        if stage != self._stage:
            self.close()
            self._stage, self._start = stage, self._now()
            forget_peak()

    def close(self) -> None:
        """The stage that was running is over."""
        if self._stage:
            wall, own, others = (b - a for a, b in zip(self._start, self._now(), strict=True))
            self.lines.append(
                {
                    "stage": self._stage,
                    "wall_s": round(wall, 1),
                    "cpu_s": round(own, 1),
                    "cpu_of_spark_s": round(others, 1),
                    "peak_mb": round(peak_megabytes()),
                }
            )
        self._stage = ""

    @staticmethod
    def _now() -> tuple[float, float, float]:
        return time.perf_counter(), time.process_time(), _cpu_of_descendants()


def _cpu_of_descendants() -> float:
    """CPU seconds of all processes below this one (Linux); some that have ended may be missing."""
    below, ticks = {os.getpid()}, 0
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            found[int(entry.name)] = int(fields[1]), sum(map(int, fields[11:15]))
    for _ in range(5):
        below |= {process for process, (parent, _) in found.items() if parent in below}
    ticks = sum(used for process, (_, used) in found.items() if process in below - {os.getpid()})
    return ticks / os.sysconf("SC_CLK_TCK")


def spark_session(folder: str):
    """A local session of two cores that writes its events down."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    return (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "2g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "8")
        .config("spark.eventLog.enabled", "true")
        .config("spark.eventLog.compress", "false")
        .config("spark.eventLog.dir", f"file:{folder}")
        .config("spark.local.dir", folder)
        .getOrCreate()
    )


def spark_metrics(folder: str) -> dict[str, float]:
    """Jobs, bytes shuffled and bytes read, of all tasks."""
    jobs = shuffled = read = 0
    for file in Path(folder).rglob("events_*"):
        for line in file.read_text(encoding="utf-8").splitlines():
            event = json.loads(line)
            jobs += event["Event"] == "SparkListenerJobStart"
            if event["Event"] == "SparkListenerTaskEnd" and event.get("Task Metrics"):
                metrics = event["Task Metrics"]
                shuffled += metrics["Shuffle Write Metrics"]["Shuffle Bytes Written"]
                read += metrics["Input Metrics"]["Bytes Read"]
    return {"jobs": jobs, "shuffled_mb": round(shuffled / 1e6, 2), "read_mb": round(read / 1e6)}


def watch_passes() -> list[tuple[str, float]]:
    """Note every pass over the rows, with its seconds, from here on."""
    from counterpoise.vault.storage.out_of_core import DuckDBStorage
    from counterpoise.vault.storage.spark import SparkStorage

    passes: list[tuple[str, float]] = []

    def noted(kind, name, what):
        plain = getattr(kind, name)

        def asked(self, *arguments):
            start = time.perf_counter()
            answer = plain(self, *arguments)
            passes.append((what or type(arguments[1].task).__name__, time.perf_counter() - start))
            return answer

        setattr(kind, name, asked)

    def noted_stream(kind, name, what):
        plain = getattr(kind, name)

        def streamed(self, *arguments):
            start = time.perf_counter()
            yield from plain(self, *arguments)
            passes.append((what, time.perf_counter() - start))

        setattr(kind, name, streamed)

    noted(SparkStorage, "_gather", "")
    noted(SparkStorage, "rows", "rows")
    noted(DuckDBStorage, "rows", "rows")
    noted_stream(DuckDBStorage, "_read", "scan")
    noted(DuckDBStorage, "_tabulated", "tables from codes")
    return passes


def ask(path: str, storage: str, synthesizer: str, draw: int, replicates: int) -> None:
    """Make one release in this process, and print what each stage took as JSON."""
    with tempfile.TemporaryDirectory(dir=Path(path).parent) as folder:
        table = path
        if storage == "spark":
            session = spark_session(folder)
            table = session.read.parquet(path)
        passes, clock = watch_passes(), Clock()
        if storage == "duckdb":
            # Files below 64 MB would go to memory, and this is about files that do not.
            from counterpoise.vault import storage as kinds

            kinds._SMALL_FILE = 0
        clock("opening", 0.0)
        cp.release(
            table,
            SCHEMA,
            epsilon=1.0,
            delta=1e-9,
            synthesizer=synthesizer,
            rows=draw,
            replicates=replicates,
            progress=clock,
        )
        clock.close()
        more = {}
        if storage == "spark":
            session.stop()
            more = spark_metrics(folder)

    print(json.dumps({"lines": clock.lines, "passes": passes, **more}))


def constants(path: str) -> None:
    """Print what an executor takes for a row of each kind of pass: for the model of a cluster."""
    import itertools

    import pyarrow.parquet

    from counterpoise.vault.noise import Grid
    from counterpoise.vault.storage.spark_tasks import (
        AddUp,
        CountCliques,
        CountColumns,
        Gather,
        PackCodes,
        Packing,
        Reading,
    )
    from counterpoise.vault.sums import ClippedSum
    from counterpoise.weights.features import Features, OneHot, Squares
    from counterpoise.weights.standardise import Standardised

    schema = SCHEMA.with_bins(20)
    table = pyarrow.parquet.read_table(path, columns=list(schema.names))
    batches = table.to_batches(10_000)
    rows, packing = len(table), Packing(schema.sizes)

    def timed(task, given):
        start = time.process_time()
        found = list(task(iter(given)))
        return found, (time.process_time() - start) / rows * 1e6

    packed, code = timed(PackCodes(Reading(schema), packing), batches)
    kept = sum(batch.nbytes for batch in packed) / rows
    _, columns = timed(Gather(CountColumns(Reading(schema), tuple(schema)), "bigint"), batches)
    print(f"\nof an executor, in CPU microseconds a row of {len(schema)} columns:")
    print(f"coding all columns                {code:8.2f}, and {kept:.0f} bytes are kept")
    print(f"counting all columns by themselves{columns:8.2f}")
    for size in (1, 2, 3):
        cliques = tuple(itertools.combinations(range(len(schema)), size))
        pairs, count = timed(Gather(CountCliques(packing, cliques), "bigint"), packed)
        sent = sum(batch.num_rows for batch in pairs)
        print(
            f"counting {len(cliques):3} tables of {size} columns   {count:8.2f}, "
            f"{count / len(cliques):.4f} a table; {sent:,} pairs are sent"
        )
    public = schema.encode(table.slice(0, 10_000))
    made = [recipe.over(public) for recipe in (OneHot(), Squares())]
    features = Features(tuple(block for each in made for block in each.blocks))
    scaled = Standardised.over(features, public, 0)
    summand = ClippedSum(scaled, scaled.bound, Grid.below(scaled.bound), len(scaled.names))
    _, sums = timed(Gather(AddUp(Reading(schema), schema, summand), "bigint"), batches)
    print(f"coding, and summing {len(features.names):3} features {sums:8.2f}")


def report(rows: int, storage: str, synthesizer: str, megabytes: float, found: dict) -> list[dict]:
    """Print a run, and return its lines."""
    print(f"\n{rows:,} rows ({megabytes:,.0f} MB of Parquet), {synthesizer} on {storage}")
    print(f"{'stage':14}{'wall s':>9}{'CPU s':>9}{'Spark CPU s':>13}{'peak MB':>9}")
    for line in found["lines"]:
        numbers = (line["wall_s"], line["cpu_s"], line["cpu_of_spark_s"], line["peak_mb"])
        print(f"{line['stage']:14}{numbers[0]:9}{numbers[1]:9}{numbers[2]:13}{numbers[3]:9}")
    seconds: dict[str, list[float]] = {}
    for what, took in found["passes"]:
        seconds.setdefault(what, []).append(took)
    told = ", ".join(f"{len(took)} {what} ({sum(took):.1f} s)" for what, took in seconds.items())
    print(f"passes over the rows: {told}")
    if storage == "spark":
        print(
            f"{found['jobs']} jobs, {found['shuffled_mb']} MB shuffled, {found['read_mb']} MB read"
        )
    about = {"rows": rows, "storage": storage, "synthesizer": synthesizer}
    more = {"passes": len(found["passes"]), "shuffled_mb": found.get("shuffled_mb", "")}
    return [{**about, **line, **more} for line in found["lines"]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--storages", nargs="+", default=["duckdb", "spark"])
    parser.add_argument("--synthesizers", nargs="+", default=["mst", "aim"])
    parser.add_argument("--draw", type=int, default=10_000, help="synthetic rows")
    parser.add_argument("--replicates", type=int, default=80)
    parser.add_argument("--folder", type=Path, help="keeps the tables, and uses them again")
    parser.add_argument("--csv", type=Path, default=Path("scale.csv"))
    parser.add_argument("--constants", action="store_true", help="of an executor, and no more")
    parser.add_argument("--ask", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.ask:
        ask(*options.ask, options.draw, options.replicates)
        return
    lines: list[dict] = []
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for rows in options.rows:
            path = f"{options.folder or folder}/{rows}.parquet"
            if not Path(path).exists():
                duckdb.connect(config={"memory_limit": "1GB", "threads": 1}).execute(
                    GENERATE.format(rows=rows, path=path)
                )
            if options.constants:
                constants(path)
                continue
            megabytes = Path(path).stat().st_size / 1e6
            for synthesizer in options.synthesizers:
                for storage in options.storages:
                    command = [sys.executable, __file__, "--ask", path, storage, synthesizer]
                    command += ["--draw", str(options.draw)]
                    command += ["--replicates", str(options.replicates)]
                    answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
                    found = json.loads(answer.stdout.splitlines()[-1])
                    lines += report(rows, storage, synthesizer, megabytes, found)
                    sys.stdout.flush()
                    with options.csv.open("w", newline="") as file:
                        writer = csv.DictWriter(file, fieldnames=list(lines[0]))
                        writer.writeheader()
                        writer.writerows(lines)


if __name__ == "__main__":
    main()
