"""Other libraries' private networks on the tables of `networks.py`, measured by the same code.

Tables, splits, bounds, the number of synthetic rows, scores and distances are those of
`networks.py`, with weights that are all the same. Each peer runs in the environment that `peers.py`
makes for it, in a process of its own, with its own defaults; it has the whole epsilon, as the
bounds that our methods pay to refine are given to it. Rows go to `results/network_peers.csv`, and
what has rows there is not run again.

    python benchmarks/network_peers.py --data DIR [--sets breast,banknote] [--seeds 3]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from counterpoise import Schema, evaluation
from networks import DELTA, FEWEST, KEY, MOST, MULTIPLE, POINTS, report, table_of
from peers import HERE, ONE_THREAD, environment
from resumed import resumed

NETWORKS = ("dpctgan", "patectgan", "dpgan", "pategan")


def run(
    data: str, synthesizer: str, epsilon: float, seed: int, directory: Path, limit: float
) -> list[dict[str, Any]]:
    """One network on one table."""
    table = table_of(data, directory)
    train, held_out = table.split(seed)
    rows = int(np.clip(MULTIPLE * len(train), FEWEST, MOST))
    found: dict[str, Any] = {
        "data": data,
        "synthesizer": synthesizer,
        "epsilon": epsilon,
        "seed": seed,
        "weights": "uniform",
    }
    with tempfile.TemporaryDirectory(prefix="peer-") as folder:
        paths = {name: str(Path(folder, name)) for name in ("table", "synthetic", "result")}
        train.to_csv(paths["table"], index=False)
        job = {"method": synthesizer, "epsilon": epsilon, "delta": DELTA, "seed": seed, **paths}
        job |= {"rows": rows, "columns": public_columns(table.schema)}
        module = "peer_runners.smartnoise_networks"
        command = [str(environment("smartnoise")), "-m", module, json.dumps(job)]
        try:
            done = subprocess.run(
                command, cwd=HERE, env=os.environ | ONE_THREAD, capture_output=True, timeout=limit
            )
        except subprocess.TimeoutExpired:
            return [{**found, "status": f"stopped after {limit:g} s"}]
        if done.returncode:
            last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
            return [{**found, "status": f"failed: {' '.join(last)[:200]}"}]
        made = pd.read_csv(paths["synthetic"])
        seconds = json.loads(Path(paths["result"]).read_text())["cpu_seconds"]
    coded = table.evaluation_schema.encode(made[list(train.columns)])
    test, equal = table.evaluation_schema.encode(held_out), np.ones(len(made))
    return [
        {
            **found,
            "status": "ok",
            "fit_seconds": round(seconds, 2),
            "score": evaluation.linear_score(coded, test, table.target, equal),
            "wasserstein": evaluation.wasserstein(coded, test, equal, points=POINTS),
        }
    ]


def public_columns(schema: Schema) -> dict[str, Any]:
    """The bounds or the categories of every column, as JSON values."""
    return {
        column.name: {"bounds": [float(column.low), float(column.high)]}
        if column.is_numeric
        else {"categories": list(column.categories or ())}
        for column in schema
    }


def main() -> None:
    def names(text: str) -> list[str]:
        return text.split(",")

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    data = os.environ.get("COUNTERPOISE_DATA")
    parser.add_argument("--data", type=Path, default=data, required=data is None)
    parser.add_argument("--sets", type=names, default=["breast", "banknote"])
    parser.add_argument("--synthesizers", type=names, default=list(NETWORKS))
    parser.add_argument("--epsilons", type=names, default=["1", "6"])
    parser.add_argument("--seeds", type=int, default=3, help="how many: 0, ..., SEEDS - 1")
    parser.add_argument("--limit", type=float, default=300, help="wall seconds a network may take")
    parser.add_argument("--out", type=Path, default=Path("results"))
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    wanted = [
        (data, synthesizer, float(epsilon), seed)
        for seed in range(chosen.seeds)
        for synthesizer in chosen.synthesizers
        for data in chosen.sets
        for epsilon in chosen.epsilons
    ]
    one = partial(run, directory=chosen.data, limit=chosen.limit)
    results = resumed(one, wanted, KEY, chosen.out / "network_peers.csv", 1, every=1)
    if "score" in results:
        print(report(results))


if __name__ == "__main__":
    main()
