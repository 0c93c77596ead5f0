"""Memory and time of counting and summing a Parquet file that is never loaded.

Generates a file of mixed columns, opens it in a vault with DuckDB storage in a process of its
own, asks for all 2-way marginals and for the sums of all unit values, and reports peak memory.

    python benchmarks/out_of_core.py [--rows N] [--folder DIR]
"""

import argparse
import itertools
import math
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb

from counterpoise.schema import Column, Schema
from counterpoise.vault import Budget, Vault

SCHEMA = Schema(
    [
        Column.categorical("region", [f"region {i}" for i in range(20)]),
        Column.categorical("sex", ["F", "M"]),
        Column.categorical("job", [f"job {i}" for i in range(50)], nullable=True),
        Column.integer("age", 0, 110),
        Column.integer("children", 0, 9),
        Column.continuous("income", 0.0, 250_000.0),
        Column.continuous("rent", 0.0, 5000.0),
        Column.continuous("score", 0.0, 1.0),
        Column.boolean("employed"),
        Column.categorical("month", list(range(1, 13))),
    ]
)

_GENERATE = """
COPY (
  SELECT 'region ' || CAST(floor(random() * 20) AS INT) AS region,
         CASE WHEN random() < 0.5 THEN 'F' ELSE 'M' END AS sex,
         CASE WHEN random() > 0.1 THEN 'job ' || CAST(floor(random() * 50) AS INT) END AS job,
         CAST(floor(random() * 100) AS INT) AS age,
         CAST(floor(random() * 6) AS INT) AS children,
         random() * 200000 AS income, random() * 4000 AS rent, random() AS score,
         random() < 0.7 AS employed, CAST(floor(random() * 12) AS INT) + 1 AS month
  FROM range({rows})
) TO '{path}' (FORMAT parquet)
"""


class Units:
    """The unit values of a row, as features."""

    names = SCHEMA.names

    def __call__(self, rows):
        return rows.units


def ask(path: str) -> None:
    """Count and sum in this process, and print what it took."""
    pairs = list(itertools.combinations(SCHEMA.names, 2))
    idle = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    with Vault(path, SCHEMA, Budget(1.0, 1e-9), storage="duckdb") as vault:
        start = time.perf_counter()
        answers = vault.counts(pairs, vault.budget.whole.part(0.5))
        counted = time.perf_counter()
        vault.sums(Units(), math.sqrt(len(SCHEMA)), vault.budget.whole.part(0.5))
        summed = time.perf_counter()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    cells = sum(answer.values.size for answer in answers)
    print(f"{len(pairs)} two-way marginals, {cells:,} cells  {counted - start:7.1f} s")
    print(f"sums of {len(SCHEMA)} unit values            {summed - counted:7.1f} s")
    print(f"peak memory {peak:,.0f} MB, of which {idle:,.0f} MB before the vault was opened")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--ask", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.ask:
        ask(options.ask)
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = f"{folder}/rows.parquet"
        duckdb.connect(config={"memory_limit": "2GB"}).execute(
            _GENERATE.format(rows=options.rows, path=path)
        )
        size = Path(path).stat().st_size / 2**20
        print(f"{options.rows:,} rows x {len(SCHEMA)} columns, {size:,.0f} MB of Parquet")
        subprocess.run([sys.executable, __file__, "--ask", path], check=True)


if __name__ == "__main__":
    main()
