"""The curator: a private table becomes a release that may be handed out.

    python examples/curator.py my-release

The table is an invented survey of employees; with your own, start from its file and schema.
"""

import sys

import numpy as np
import pandas as pd

import counterpoise as cp
from counterpoise.curation.plan import plan_release

EPSILON, DELTA = 1.0, 1e-6

# What anybody knows without looking at the rows: columns, types, round bounds, categories.
SCHEMA = cp.Schema(
    [
        cp.Column.integer("age", 15, 79, bins=13),
        cp.Column.categorical("sector", ["care", "industry", "public", "services"]),
        cp.Column.ordinal("education", ["basic", "middle", "high"]),
        cp.Column.continuous("hours", 0, 80, bins=16, nullable=True),
        cp.Column.boolean("member"),
    ]
)


def employees(rows: int, seed: int = 1) -> pd.DataFrame:
    """An invented survey: who is a union member depends on sector, age and hours."""
    generator = np.random.default_rng(seed)
    age = generator.normal(43, 12, rows).clip(15, 79).round().astype(int)
    education = generator.choice(["basic", "middle", "high"], rows, p=[0.25, 0.5, 0.25])
    is_high = education == "high"
    chances = np.where(is_high[:, None], [0.15, 0.15, 0.4, 0.3], [0.25, 0.35, 0.1, 0.3])
    sector = np.array(["care", "industry", "public", "services"])[
        (chances.cumsum(axis=1) < generator.random(rows)[:, None]).sum(axis=1)
    ]
    hours = (generator.normal(36, 7, rows) - 6 * (sector == "care")).clip(0, 80).round(1)
    logit = -2.5 + 0.03 * age + 1.2 * np.isin(sector, ["industry", "public"]) + 0.01 * hours
    member = generator.random(rows) < 1 / (1 + np.exp(-logit))
    hours[generator.random(rows) < 0.05] = np.nan
    columns = {"age": age, "sector": sector, "education": education, "hours": hours}
    return pd.DataFrame(columns | {"member": member})


def main(folder: str) -> None:
    """Release the survey to a folder."""
    private = employees(4000)

    # What will be asked, and what it will cost. Nothing has been read yet.
    plan = plan_release(SCHEMA, cp.Budget(EPSILON, DELTA), target="member")
    for stage in plan.describe(private_rows=4000):
        print(f"plan: {stage.name:12} {stage.part:4.0%} of the budget. {stage.asks}")

    # `target` is what models will predict. There is no seed: noise that repeats protects nobody.
    release = cp.release(private, SCHEMA, EPSILON, DELTA, target="member", progress=False)
    print()
    print(release.ledger)
    print()
    print(release)
    print(f"written to {release.save(folder, overwrite=True)}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "my-release")
