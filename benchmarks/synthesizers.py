"""Our AIM, MST, PrivBayes and independent columns on public tables, side by side with the peers.

Tables, splits, domains, budgets and measures are those of `peers.py`, and every job is run and
measured by the same code, in a fresh process on one thread: CPU seconds of opening the vault,
fitting and sampling; peak memory with all imports. The noise is the private kind, from the
operating system, so that two runs of a seed differ, as they do for the peers.

    python benchmarks/synthesizers.py --data DIR --peers results/peers.csv
    python benchmarks/synthesizers.py --data DIR --run-peers

Writes `synthesizers.csv`, a row a job, and `synthesizers.md`, a table a method, into `results/`.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd

import peers
from counterpoise import Budget, Column, Schema, Vault
from counterpoise.synthesizers import Aim, Independent, Mst, PrivBayes, Synthesizer
from peer_runners import measured

OURS = "counterpoise"

# A method, the largest marginals it models, and the tables it runs on. PrivBayes with 2 has one
# parent a column, as the peers are run; 4 is our default, up to three where they stay useful.
PLAN: tuple[tuple[str, int, tuple[str, ...]], ...] = (
    ("independent", 1, ("compas", "heart", "adult", "breast")),
    ("mst", 2, ("compas", "heart", "adult")),
    ("privbayes", 2, ("compas", "heart", "adult", "breast")),
    ("privbayes", 4, ("compas", "heart", "adult", "breast")),
    ("aim", 2, ("compas", "heart", "adult", "breast")),
    ("aim", 3, ("compas", "heart", "adult", "breast")),
)
WANTED_RATIO = {"aim": 100, "mst": 50, "privbayes": 50}  # times less CPU than the fastest peer
ERRORS = ("error_2way", "error_3way")

NOTES = """\
The domains equal the values observed in the very rows, and the bins of `breast` were cut from
them, so neither is public knowledge: epsilon describes the algorithms alone. Peers are timed
after their imports, ours after its imports and a run on a tiny table of other columns; our peak
memory includes some 25 MB of this script's own imports. Means over seeds with their standard
errors, where there are two seeds or more; a seed fixes the split. Errors are mean total variation
distances to the training rows; AUC is of a logistic regression on held-out rows.

- DataSynthesizer spends epsilon twice, on one-way histograms and on the network, so that its true
  cost is 2 epsilon; it promises delta = 0, and its codes range up to the largest found in the rows.
  It runs on as many processes as there are cores; their CPU time is added up.
- dpmm's PrivBayes scores parents in bits divided by sqrt(H1 H2) but calibrates to the sensitivity
  of mutual information in nats, undivided: the epsilon of its choice of the network is unproven.
- smartnoise's MST fits to the exact number of rows. Its AIM and MST sample through an mbi whose
  rounding makes conditionally independent columns dependent, which is in its errors.
- The AIM of both leaves out marginals of more than 10,000 cells; dpmm's model is limited to 80 MB.
- Peers' PrivBayes has one parent a column (2-way). Ours is shown so, and with its default of up
  to three parents (4-way), against the same peers.
"""


def schema_of(domain: dict[str, int]) -> Schema:
    """A schema of integer categories 0, ..., size - 1."""
    return Schema([Column.categorical(name, list(range(size))) for name, size in domain.items()])


def synthesizer(method: str, workload: int) -> Synthesizer:
    """Our method that models marginals of up to `workload` columns."""
    if method == "aim":
        return Aim(degree=workload)
    if method == "privbayes":
        return PrivBayes(most_parents=workload - 1)
    return {"mst": Mst(), "independent": Independent()}[method]


def synthesize(job: measured.Job, table: pd.DataFrame, domain: dict[str, int]) -> pd.DataFrame:
    """Open a vault, fit, and sample as many rows as there were."""
    budget = Budget(job.epsilon, job.delta)
    with Vault(table, schema_of(domain), budget) as vault:
        model = synthesizer(job.method, job.workload).fit(vault, budget.whole)
    return model.sample(len(table), seed=job.seed)


def warm_up(method: str, workload: int) -> None:
    """Run once on a tiny table that shares no column or budget with the benchmark's."""
    generator = np.random.default_rng(0)
    table = pd.DataFrame(generator.integers(0, 2, (50, 3)), columns=["warm", "up", "only"])
    job = measured.Job(method, "", "", 0.987, 1e-5, 0, workload, "", "")
    synthesize(job, table, dict.fromkeys(table.columns, 2))


def run_here() -> None:
    """Run the job on the command line in this process, and write down what it cost."""
    job = json.loads(sys.argv[1])
    warm_up(job["method"], job["workload"])
    measured.main(synthesize, [OURS, "numpy", "scipy", "pandas", "duckdb"])


def plan(seeds: Iterable[int], epsilon: float, sets: list[str]) -> Iterator[peers.Job]:
    for seed in seeds:
        for method, workload, tables in PLAN:
            for data in (name for name in tables if name in sets):
                yield peers.Job(OURS, method, data, seed, workload, epsilon)


def side_by_side(results: pd.DataFrame) -> str:
    """A table a method, ours first, with a verdict for every set, as Markdown."""
    lines = []
    for method in ("aim", "mst", "privbayes", "independent"):
        here = results[results["method"] == method]
        if here.empty:
            continue
        lines += [f"\n## {method}\n", _row(HEADER), _row(["---"] * len(HEADER))]
        for data in dict.fromkeys(here["data"]):
            for workload in sorted(set(here.loc[here["peer"] == OURS, "workload"])):
                lines += [_row(cells) for cells in _compare(here, method, data, int(workload))]
    return "\n".join(lines) + "\n\n" + NOTES


HEADER = (
    "data",
    "k-way",
    "who",
    "seeds",
    "CPU s",
    "peer / ours",
    "MB",
    "2-way error",
    "3-way error",
    "AUC",
    "wanted",
)


def _compare(here: pd.DataFrame, method: str, data: str, workload: int) -> Iterator[list[str]]:
    ours = here[(here["peer"] == OURS) & (here["data"] == data) & (here["workload"] == workload)]
    # Peers' PrivBayes was run with one parent only, so it stands beside each of ours.
    theirs = 2 if method == "privbayes" else workload
    others = here[(here["peer"] != OURS) & (here["data"] == data) & (here["workload"] == theirs)]
    if ours.empty:
        return
    cost = ours["cpu_seconds"].mean()
    verdict = _verdict(ours, others, WANTED_RATIO.get(method))
    yield [data, str(workload), "**ours**", *_figures(ours, ""), verdict]
    for peer, rows in others.groupby("peer"):
        if (finished := rows[rows["status"] == "ok"]).empty:
            # Only a job stopped by its time limit says how long it takes at least.
            status, least = str(rows["status"].iloc[0]), rows["cpu_seconds"].max()
            is_slow = status.startswith("stopped after")
            shown = [f"> {least:,.1f}", f"> {least / cost:,.0f}"] if is_slow else ["", ""]
            yield [data, str(theirs), str(peer), "0", *shown, *[""] * 4, status]
        else:
            ratio = f"{finished['cpu_seconds'].mean() / cost:,.0f}"
            yield [data, str(theirs), str(peer), *_figures(finished, ratio), ""]


def _figures(rows: pd.DataFrame, ratio: str) -> list[str]:
    shown = [_mean(rows[name]) for name in (*ERRORS, "auc")]
    cost, peak = rows["cpu_seconds"].mean(), rows["peak_mb"].max()
    return [str(len(rows)), f"{cost:,.2f}", ratio, f"{peak:,.0f}", *shown]


def _verdict(ours: pd.DataFrame, others: pd.DataFrame, wanted: int | None) -> str:
    """Whether the wanted ratio of CPU time and the wanted errors are met, as it is."""
    finished = others[others["status"] == "ok"]
    if wanted is None or finished.empty:
        return "no peer to compare with" if others.empty else "no peer finished"
    fastest = finished.groupby("peer")["cpu_seconds"].mean().min()
    ratio = fastest / ours["cpu_seconds"].mean()
    said = [f"1/{wanted} of the time: {'met' if ratio >= wanted else 'NOT met'} (1/{ratio:,.0f})"]
    for name in ERRORS:
        best = finished.groupby("peer")[name].mean().min()
        excess = ours[name].mean() - best
        said.append(f"{name[6:]} error: {'met' if excess <= 0 else 'NOT met'} ({excess:+.4f})")
    return "; ".join(said)


def _mean(values: pd.Series) -> str:
    error = values.std(ddof=1) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return f"{values.mean():.4f}" + ("" if math.isnan(error) else f" ± {error:.4f}")


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    data = os.environ.get("COUNTERPOISE_DATA")
    parser.add_argument("--data", type=Path, default=data, required=data is None)
    parser.add_argument("--seeds", type=int, default=5, help="how many: 0, ..., SEEDS - 1")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--sets", default="compas,heart,adult,breast")
    parser.add_argument("--peers", type=Path, help="the CSV of a run of peers.py")
    parser.add_argument("--run-peers", action="store_true", help="run peers.py first: hours")
    parser.add_argument("--out", type=Path, default=Path("results"))
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    ours, sets = chosen.out / "synthesizers.csv", chosen.sets.split(",")
    command = [sys.executable, "-m", "synthesizers"]
    jobs = plan(range(chosen.seeds), chosen.epsilon, sets)
    peers.benchmark(jobs, chosen.data, ours, command=lambda _: command)
    results = [pd.read_csv(ours)]
    theirs = chosen.peers or chosen.out / "peers.csv"
    if chosen.run_peers:
        theirs_jobs = peers.plan(
            sets=sets, seeds=range(chosen.seeds), workloads=(2, 3), epsilon=chosen.epsilon
        )
        peers.benchmark(theirs_jobs, chosen.data, theirs)
    if theirs.exists():
        results.append(pd.read_csv(theirs))
    together = pd.concat(results, ignore_index=True)
    text = side_by_side(together[together["epsilon"] == chosen.epsilon])
    (chosen.out / "synthesizers.md").write_text(text)
    print(text)


if __name__ == "__main__":
    run_here() if sys.argv[1:2] and sys.argv[1].startswith("{") else main()
