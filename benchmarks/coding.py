"""How quickly a table is coded and decoded: a million rows of 15 mixed columns.

python benchmarks/coding.py [--rows N]
"""

import argparse
import datetime
import time

import numpy as np
import pandas as pd

from counterpoise.schema import Column, Schema


def mixed_table(rows: int) -> tuple[pd.DataFrame, Schema]:
    generator = np.random.default_rng(0)
    columns: list[Column] = []
    data: dict[str, object] = {}
    for index, size in enumerate((10, 20, 30, 40, 50)):
        categories = [f"category {i}" for i in range(size)]
        columns.append(Column.categorical(f"text_{index}", categories))
        data[f"text_{index}"] = generator.choice(categories, rows)
    columns.append(Column.categorical("number", list(range(12))))
    data["number"] = generator.integers(0, 12, rows)
    for index in range(3):
        columns.append(Column.integer(f"integer_{index}", 0, 1000, nullable=index == 0))
        data[f"integer_{index}"] = generator.integers(0, 1001, rows)
    for index in range(4):
        columns.append(Column.continuous(f"real_{index}", -4.0, 4.0, nullable=index == 0))
        data[f"real_{index}"] = generator.normal(size=rows)
    columns.append(Column.date("day", datetime.date(2000, 1, 1), datetime.date(2024, 12, 31)))
    data["day"] = pd.Timestamp("2000-01-01") + pd.to_timedelta(
        generator.integers(0, 9000, rows), unit="D"
    )
    start, end = datetime.datetime(2020, 1, 1), datetime.datetime(2024, 1, 1)
    columns.append(Column.datetime("moment", start, end))
    data["moment"] = pd.Timestamp(start) + pd.to_timedelta(
        generator.integers(0, 100_000_000, rows), unit="s"
    )
    return pd.DataFrame(data), Schema(columns)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows = parser.parse_args().rows
    table, schema = mixed_table(rows)
    start = time.perf_counter()
    coded = schema.encode(table)
    encoded = time.perf_counter()
    schema.decode(coded.codes, np.random.default_rng(0))
    decoded = time.perf_counter()
    print(f"{rows:,} rows x {len(schema)} columns")
    print(f"table to codes and unit box  {encoded - start:6.2f} s")
    print(f"codes to table               {decoded - encoded:6.2f} s")


if __name__ == "__main__":
    main()
