"""smartnoise-synth: its networks, DPCTGAN, PATECTGAN, DPGAN and PATEGAN, with their defaults
(but for batches of 100 rows where a table has less than 1,000).

Bounds and categories are those of the schema that the other methods have: transformers are fitted
to them, and not to the rows. No network takes a seed; torch's is set, and noise that comes
from elsewhere cannot be.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from snsynth.pytorch import PytorchDPSynthesizer
from snsynth.pytorch.nn import DPCTGAN, DPGAN, PATECTGAN, PATEGAN
from snsynth.transform import (
    ChainTransformer,
    LabelTransformer,
    MinMaxTransformer,
    OneHotEncoder,
    TableTransformer,
)

# Their batch of 500 rows is more than a small table has, and is refused.
FEW_ROWS, SMALL_BATCH = 1000, 100
NETWORKS = {"dpctgan": DPCTGAN, "patectgan": PATECTGAN, "dpgan": DPGAN, "pategan": PATEGAN}


def main() -> None:
    job = json.loads(sys.argv[1])
    train = pd.read_csv(job["table"])
    torch.manual_seed(job["seed"])
    np.random.seed(job["seed"])  # noqa: NPY002, the only seed that smartnoise heeds
    options: dict[str, Any] = {}
    if "ctgan" in job["method"]:
        options = {"verbose": False, "cuda": False}
        if len(train) < FEW_ROWS:
            options["batch_size"] = SMALL_BATCH
    network = NETWORKS[job["method"]](epsilon=job["epsilon"], delta=job["delta"], **options)
    synthesizer = PytorchDPSynthesizer(job["epsilon"], network, None)
    start = time.process_time()
    synthesizer.fit(train, transformer=public_transformer(job["columns"], list(train.columns)))
    made = synthesizer.sample(job["rows"])
    seconds = time.process_time() - start
    made.to_csv(job["synthetic"], index=False)
    Path(job["result"]).write_text(json.dumps({"cpu_seconds": seconds}))


def public_transformer(columns: dict[str, Any], names: list[str]) -> TableTransformer:
    """A transformer that knows the bounds, or the categories, of every column beforehand."""
    transformers = []
    for name in names:
        known = columns[name]
        if "categories" in known:
            transformer: Any = ChainTransformer([LabelTransformer(nullable=False), OneHotEncoder()])
            transformer.fit(known["categories"])
        else:
            low, high = known["bounds"]
            transformer = MinMaxTransformer(lower=low, upper=high, nullable=False)
            transformer.fit([low, high])
        transformers.append(transformer)
    return TableTransformer(transformers)


if __name__ == "__main__":
    main()
