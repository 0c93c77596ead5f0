"""dpmm: AIM, MST and PrivBayes.

dpmm takes a domain (column name to number of codes), so none is inferred, and its own binning
is switched off because the table is already discrete. The seed reaches its choices of marginals
and its sampling, but not its noise: that comes from OpenDP, which cannot be seeded, so two runs
with one seed differ. AIM leaves out marginals of more than 10,000 cells (`max_cells`).
PrivBayes scores parents by mutual information in bits divided by sqrt(H1 H2), yet calibrates
its exponential mechanism to the sensitivity of mutual information in nats, not divided.
"""

from __future__ import annotations

import pandas as pd
from dpmm.pipelines import AIMPipeline, MSTPipeline, PrivBayesPipeline

from peer_runners.measured import Job, main


def synthesize(job: Job, table: pd.DataFrame, domain: dict[str, int]) -> pd.DataFrame:
    common = {
        "epsilon": job.epsilon,
        "delta": job.delta,
        "n_jobs": 1,
        "disable_processing": True,
    }
    if job.method == "aim":
        # 80 MB is the default of dpmm's AIM and of its paper; the pipeline's own is no limit.
        degree = {"degree": job.workload}
        pipeline = AIMPipeline(**common, max_model_size=80, gen_kwargs=degree)
    elif job.method == "mst":
        pipeline = MSTPipeline(**common)
    elif job.method == "privbayes":
        # `degree` counts the columns of a clique: a child and its degree - 1 parents.
        pipeline = PrivBayesPipeline(**common, gen_kwargs={"degree": job.workload})
    else:
        raise ValueError(f"dpmm has no method {job.method!r}")
    pipeline.fit(table, domain=domain, random_state=job.seed)
    return pipeline.generate(n_records=len(table), random_state=job.seed)


if __name__ == "__main__":
    main(synthesize, ["dpmm", "numpy", "scipy", "pandas", "opendp"])
