"""smartnoise-synth: AIM and MST.

smartnoise takes no domain as such, but accepts transformers that are already fitted: each is
fitted here to all the codes of its column, and not to the rows, so that no domain is inferred.
Neither synthesizer takes a seed. Both draw selections and samples from numpy's global state,
seeded here, and noise from OpenDP, which cannot be seeded, so two runs with one seed differ.
MST fits its model to the exact number of rows, which adding or removing a row would reveal.
AIM leaves out marginals of more than 10,000 cells (`max_cells`), and its limit on the model's
size adds up the cliques measured, not those of the junction tree that it then builds.

Both sample through mbi 1.1.0 (the latest that smartnoise admits), whose rounding gives all
children of one parent the same ranks: columns that the model holds conditionally independent
come out strongly dependent. smartnoise offers no way to ask mbi for independent draws, so this
is in its results.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from snsynth.aim import AIMSynthesizer
from snsynth.mst import MSTSynthesizer
from snsynth.transform import LabelTransformer, TableTransformer

from peer_runners.measured import Job, main


def synthesize(job: Job, table: pd.DataFrame, domain: dict[str, int]) -> pd.DataFrame:
    if job.method == "aim":
        synthesizer = AIMSynthesizer(epsilon=job.epsilon, delta=job.delta, degree=job.workload)
    elif job.method == "mst":
        synthesizer = MSTSynthesizer(epsilon=job.epsilon, delta=job.delta)
    else:
        raise ValueError(f"smartnoise has no method {job.method!r}")
    np.random.seed(job.seed)  # noqa: NPY002, the only seed smartnoise heeds
    synthesizer.fit(table, transformer=codes_as_they_are(domain))
    return synthesizer.sample(len(table))


def codes_as_they_are(domain: dict[str, int]) -> TableTransformer:
    """A transformer that knows every code of every column beforehand."""
    transformers = []
    for size in domain.values():
        transformer = LabelTransformer(nullable=False)
        transformer.fit(range(size))
        transformers.append(transformer)
    return TableTransformer(transformers)


if __name__ == "__main__":
    main(synthesize, ["smartnoise-synth", "mbi", "jax", "numpy", "pandas", "opendp"])
