"""Bins of equal width, fine and coarse cells, and paid quantiles, for continuous columns.

Each table is split 80 : 20. The curator states round bounds. The bins are of equal width, as many
as the rows allow; or the coarse cells of a paid fine histogram, which is also the columns' shape;
or their edges are quantiles for which a tenth of the budget is paid. AIM then gets the rest.
Measured on the held-out rows: the mean Wasserstein-1 distance of the columns in the unit box, and
the AUC or R^2 of a linear model trained on the synthetic rows.

    python benchmarks/bins.py --data DIR [--seeds N] [--out results/bins.csv]
"""

import argparse
import math
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import wasserstein_distance
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from counterpoise.curation.plan import CELLS_FRACTION
from counterpoise.schema import Column, Schema
from counterpoise.synthesizers import Aim
from counterpoise.vault import Budget, Share, Vault

SETS = {
    "breast_cancer.csv": "diagnosis",
    "banknote.csv": "class",
    "california_housing.csv.gz": "MedHouseVal",
}
QUANTILES_PART = 0.1
KINDS = ("equal width", "cells", "quantiles")


def round_bounds(values: pd.Series) -> tuple[float, float]:
    """Bounds that somebody might state: the range, widened to two digits.

    They are read off the data, so this is a comparison of methods and not a private release.
    """
    low, high = float(values.min()), float(values.max())
    step = 10 ** math.floor(math.log10(high - low)) / 2
    return math.floor(low / step) * step, math.ceil(high / step) * step


def schema_of(table: pd.DataFrame, target: str) -> Schema:
    columns = []
    for name in table.columns:
        if name == target and table[name].nunique() == 2:
            columns.append(Column.categorical(name, [0, 1]))
        else:
            columns.append(Column.continuous(name, *round_bounds(table[name])))
    return Schema(columns)


def at_quantiles(vault: Vault, count: int, share: Share) -> Schema:
    """The schema with the inner edges of its continuous columns at private quantiles."""
    schema = vault.schema
    numeric = [column for column in schema if column.kind == "continuous"]
    for column in numeric:
        wanted = [i / count for i in range(1, count)]
        found = vault.quantiles(column.name, wanted, share.part(1 / len(numeric))).units
        inner = column.low + np.unique(found) * (column.high - column.low)
        inner = inner[(inner > column.low) & (inner < column.high)]
        schema = schema.replace(replace(column, bins=(column.low, *inner.tolist(), column.high)))
    return schema


def synthetic_table(train: pd.DataFrame, schema: Schema, epsilon: float, kind: str) -> pd.DataFrame:
    budget = Budget(epsilon, 1 / len(train) ** 2)
    whole = budget.whole
    with Vault(train, schema, budget) as vault:
        if kind == "cells":
            vault.choose_cells(whole.part(CELLS_FRACTION), whole.part(0.01))
            return Aim().fit(vault, whole.part(0.99 - CELLS_FRACTION)).sample(len(train))
        chosen = vault.choose_bins(whole.part(0.01))
        if kind == "equal width":
            return Aim().fit(vault, whole.part(0.99)).sample(len(train))
        # A second vault, because bins have to be settled before rows are counted; the budget is
        # shared between the two.
        count = max(column.cells for column in chosen if column.kind == "continuous")
        edges = at_quantiles(vault, count, whole.part(QUANTILES_PART))
    with Vault(train, edges, budget) as vault:
        return Aim().fit(vault, whole.part(0.99 - QUANTILES_PART)).sample(len(train))


def measures(
    synthetic: pd.DataFrame, held_out: pd.DataFrame, schema: Schema, target: str
) -> tuple[float, float]:
    numeric = [column for column in schema if column.kind == "continuous"]
    distances = [
        wasserstein_distance(synthetic[c.name], held_out[c.name]) / (c.high - c.low)
        for c in numeric
    ]
    features = [name for name in schema.names if name != target]
    if schema[target].kind == "continuous":
        model = make_pipeline(StandardScaler(), LinearRegression())
        model.fit(synthetic[features], synthetic[target])
        return float(np.mean(distances)), r2_score(
            held_out[target], model.predict(held_out[features])
        )
    if synthetic[target].nunique() < 2:
        return float(np.mean(distances)), 0.5
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    model.fit(synthetic[features], synthetic[target].astype(int))
    scores = model.predict_proba(held_out[features])[:, 1]
    return float(np.mean(distances)), roc_auc_score(held_out[target], scores)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("COUNTERPOISE_DATA"))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 4.0])
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--out", type=Path, default=Path("results/bins.csv"))
    options = parser.parse_args()
    if options.data is None:
        parser.error("state the data directory with --data or COUNTERPOISE_DATA")
    rows = []
    for file, target in SETS.items():
        table = pd.read_csv(Path(options.data) / file)
        schema = schema_of(table, target)
        for seed in range(options.seeds):
            train = table.sample(frac=0.8, random_state=seed)
            held_out = table.drop(train.index)
            for epsilon in options.epsilons:
                for kind in options.kinds:
                    made = synthetic_table(train, schema, epsilon, kind)
                    distance, score = measures(made, held_out, schema, target)
                    rows.append((file.split(".")[0], epsilon, kind, seed, distance, score))
    results = pd.DataFrame(
        rows, columns=["data", "epsilon", "bins", "seed", "wasserstein", "score"]
    )
    options.out.parent.mkdir(parents=True, exist_ok=True)
    results.to_csv(options.out, index=False)
    groups = results.groupby(["data", "epsilon", "bins"])[["wasserstein", "score"]]
    print(groups.agg(["mean", "sem"]).to_string(float_format="{:.4f}".format))


if __name__ == "__main__":
    main()
