"""What a synthesizer misses of relations that it did not count, and whether that is known.

The law of `weights/shrinkage.py` says how large such differences usually are. Here samples of the
populations of `truth.py` are released with nothing stated, and the population itself tells how far
it is from the synthetic rows in each white coordinate of the moment weights: `missed` is the root
mean square of these differences, `middle` the middle one, `noise` the middle deviation of the noise
with which they were measured; `error` what is left of them after shrinkage, `fit` the posterior's
deviation over that, and `held` the part within 1.96 deviations. The same for coordinates that the
synthesizer counted, against the private sample.

    python benchmarks/missed.py --data DIR --rows 1000,5000 --epsilons 1 --tables 3
"""

from __future__ import annotations

import argparse
import os
import warnings
from itertools import product
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

import counterpoise as cp
from truth_populations import CHOOSE, population

MOST_ROWS = 30_000


def one(name: str, rows: int, epsilon: float, seed: int, data: Path | None) -> pd.DataFrame:
    """The differences of one release, a line a coordinate."""
    known = population(name, data)
    private = known.draw(rows, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = cp.release(
            private, known.schema, epsilon, 1 / rows**2, seed=seed, progress=False, replicates=0
        )
    assert made.models is not None
    model: Any = made.models.weights
    whole = known.rows.sample(min(MOST_ROWS, len(known.rows)), random_state=0)
    truths = [
        model.white(model.schema.encode(table.reset_index(drop=True))).mean(axis=0)
        for table in (whole, private)
    ]
    noise = model.noise_scale * model.whitening.directions
    return pd.DataFrame(
        {
            "population": name,
            "rows": rows,
            "epsilon": epsilon,
            "counted": model.follows,
            "truth": np.where(model.follows, truths[1], truths[0]),
            "estimate": model.trust @ model.differences,
            "deviation": np.sqrt(model.doubt),
            "noise": np.sqrt((noise**2).sum(axis=0)),
        }
    )


def report(found: pd.DataFrame) -> pd.DataFrame:
    """A line a setting."""
    found["square"] = found["truth"] ** 2
    found["size"] = found["truth"].abs()
    found["missed_by"] = (found["estimate"] - found["truth"]) ** 2
    found["variance"] = found["deviation"] ** 2
    found["held"] = found["missed_by"] <= 1.96**2 * found["variance"]
    grouped = found.groupby(["counted", "rows", "epsilon", "population"])
    table = pd.DataFrame(
        {
            "coordinates": grouped.size(),
            "missed": np.sqrt(grouped["square"].mean()),
            "middle": grouped["size"].median(),
            "noise": grouped["noise"].median(),
            "error": np.sqrt(grouped["missed_by"].mean()),
            "fit": np.sqrt(grouped["variance"].mean() / grouped["missed_by"].mean()),
            "held": grouped["held"].mean(),
        }
    )
    return table.round(3)


def main() -> None:
    def several(kind: type) -> Any:
        return lambda text: [kind(part) for part in text.split(",")]

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("COUNTERPOISE_DATA"))
    parser.add_argument("--populations", type=several(str), default=list(CHOOSE))
    parser.add_argument("--rows", type=several(int), default=[1000, 5000])
    parser.add_argument("--epsilons", type=several(float), default=[1.0])
    parser.add_argument("--tables", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2)
    chosen = parser.parse_args()
    wanted = product(chosen.populations, chosen.rows, chosen.epsilons, range(chosen.tables))
    made = Parallel(n_jobs=chosen.jobs)(delayed(one)(*each, chosen.data) for each in wanted)
    print(report(pd.concat(made)).to_string())


if __name__ == "__main__":
    main()
