"""Run other libraries' AIM, MST and PrivBayes on public tables and measure cost and accuracy.

Each peer lives in a virtual environment of its own, made on first use, because their pinned
dependencies exclude each other and ours. A job runs there as a subprocess with limits on time
and memory; what comes back is a synthetic table of integer codes and what it cost. Costs are of
fitting and sampling only, after all imports, on one thread wherever the peer lets us choose;
the peak memory includes the imports. Results are appended to a CSV file, and a job that already
has a row there is not run again, so that an interrupted run can go on.

    python benchmarks/peers.py --data DIR --jobs mst,privbayes,aim --sets compas,heart,adult

The domains of the tables were read off the very rows they describe, as were the bin edges of
`breast`. They are therefore no public knowledge, and the epsilon of a row describes the peer's
algorithm alone. mbi is not among the peers: its wheel has the inference, but no mechanism.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from measures import held_out_auc, marginal_error

HERE = Path(__file__).resolve().parent

# The commands that build each environment: one `pip install` a line, in order.
PEERS: dict[str, tuple[tuple[str, ...], ...]] = {
    "dpmm": (("dpmm==0.1.9",),),
    # This exact torch has a build for the CPU; others bring gigabytes of CUDA.
    "smartnoise": (("packaging", "torch==2.13.0"), ("smartnoise-synth==1.0.8",)),
    "datasynthesizer": (("DataSynthesizer==0.1.13",),),
}
PYTHON = (3, 11)  # the only version that all of them support

METHODS: dict[str, tuple[str, ...]] = {  # a method and the peers that have it
    "mst": ("smartnoise", "dpmm"),
    "privbayes": ("datasynthesizer", "dpmm"),
    "aim": ("smartnoise", "dpmm"),
}
SETS: dict[str, tuple[str, ...]] = {  # a method and the tables it runs on
    "mst": ("compas", "heart", "adult"),
    "privbayes": ("adult", "breast"),
    "aim": ("compas", "heart", "adult"),
}
BREAST_BINS = 8

COLUMNS = (
    "peer",
    "method",
    "data",
    "rows",
    "columns",
    "epsilon",
    "delta",
    "workload",
    "seed",
    "cpu_seconds",
    "wall_seconds",
    "peak_mb",
    "error_2way",
    "error_3way",
    "auc",
    "status",
    "versions",
)
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "JAX_PLATFORMS": "cpu",
}


@dataclass(frozen=True)
class Table:
    """Integer codes, and how many codes each column has; the last column is the target."""

    name: str
    codes: pd.DataFrame
    domain: dict[str, int]

    def split(self, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
        """80% of the rows, chosen by `seed`, to synthesize from; the rest to test on."""
        order = np.random.default_rng(seed).permutation(len(self.codes))
        cut = round(0.8 * len(order))
        train, held_out = self.codes.iloc[order[:cut]], self.codes.iloc[order[cut:]]
        return train.reset_index(drop=True), held_out.reset_index(drop=True)


@dataclass(frozen=True)
class Job:
    """One method of one peer on one table. `workload` is the size of the largest marginal.

    For MST it is always 2; for PrivBayes it is a child and its `workload` - 1 parents.
    """

    peer: str
    method: str
    data: str
    seed: int = 0
    workload: int = 2
    epsilon: float = 1.0

    @property
    def key(self) -> tuple[str, ...]:
        workload, seed, epsilon = str(self.workload), str(self.seed), str(self.epsilon)
        return self.peer, self.method, self.data, workload, seed, epsilon


@dataclass(frozen=True)
class Outcome:
    """What a peer made and what it cost; no table and a telling `status` if it did not finish.

    A job that was stopped has the cost until then, its imports included.
    """

    status: str  # "ok", "stopped after ... s", "stopped above ... MB" or "failed: ..."
    cpu_seconds: float
    wall_seconds: float
    peak_mb: float
    synthetic: pd.DataFrame | None = None
    versions: dict[str, str] = field(default_factory=dict)


def load(name: str, directory: Path) -> Table:
    """Read the table `name` (compas, heart, adult or breast) from the data directory."""
    if name == "breast":
        frame = pd.read_csv(directory / "breast_cancer.csv")
        codes = frame.iloc[:, :-1].apply(_equal_width).assign(diagnosis=frame["diagnosis"])
        domain = dict.fromkeys(codes.columns[:-1], BREAST_BINS) | {"diagnosis": 2}
        return Table(name, codes, domain)
    codes = pd.read_csv(directory / f"dpml_{name}.csv")
    sizes = json.loads((directory / f"dpml_{name}_domain.json").read_text())
    return Table(name, codes, {column: int(sizes[column]) for column in codes.columns})


def environment(peer: str, cache: Path | None = None) -> Path:
    """The Python of the peer's own environment, which is made if it is not there yet.

    Environments are kept under `cache`, by default the directory in COUNTERPOISE_PEERS, else
    `~/.cache/counterpoise-peers`.
    """
    default = Path.home() / ".cache" / "counterpoise-peers"
    root = (cache or Path(os.environ.get("COUNTERPOISE_PEERS") or default)) / peer
    python, complete = root / "bin" / "python", root / "complete.json"
    steps = [list(step) for step in PEERS[peer]]
    if complete.exists() and json.loads(complete.read_text()) == steps:
        return python
    root.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run([_interpreter(), "-m", "venv", "--clear", root], check=True)
    for step in steps:
        subprocess.run([python, "-m", "pip", "install", "--quiet", *step], check=True)
    complete.write_text(json.dumps(steps))
    return python


def peer_command(job: Job, cache: Path | None = None) -> list[str]:
    """The command that runs a job in its peer's environment, when the job is appended to it."""
    return [str(environment(job.peer, cache)), "-m", f"peer_runners.{job.peer}"]


def run_job(
    start: Sequence[str],
    job: Job,
    train: pd.DataFrame,
    domain: dict[str, int],
    delta: float,
    *,
    limit_seconds: float = 1800,
    limit_mb: float = 12_000,
) -> Outcome:
    """Run `job` on the codes `train` by the command `start`; return a table of equal length.

    The job and everything it started are killed after `limit_seconds` of wall time, or when its
    resident memory exceeds `limit_mb`.
    """
    with tempfile.TemporaryDirectory(prefix="peer-") as directory:
        paths = {
            "table": Path(directory, "table.csv"),
            "domain": Path(directory, "domain.json"),
            "synthetic": Path(directory, "synthetic.csv"),
            "result": Path(directory, "result.json"),
        }
        train.to_csv(paths["table"], index=False)
        paths["domain"].write_text(json.dumps(domain))
        parameters = {
            "method": job.method,
            "epsilon": job.epsilon,
            "delta": delta,
            "seed": job.seed,
            "workload": job.workload,
        } | {name: str(path) for name, path in paths.items()}
        log = Path(directory, "log.txt")
        whole = _watch([*start, json.dumps(parameters)], log, limit_seconds, limit_mb)
        if whole.status != "ok":
            return whole
        cost = json.loads(paths["result"].read_text())
        synthetic = pd.read_csv(paths["synthetic"])
    if synthetic.shape != train.shape:
        return Outcome(f"failed: {synthetic.shape} codes instead of {train.shape}", **cost)
    sizes = pd.Series(domain)[synthetic.columns]
    if (synthetic.min() < 0).any() or (synthetic.max() >= sizes).any():
        return Outcome("failed: codes outside the domain", **cost)
    return Outcome("ok", **cost, synthetic=synthetic)


def evaluate(
    outcome: Outcome, train: pd.DataFrame, held_out: pd.DataFrame, domain: dict[str, int]
) -> dict[str, float]:
    """The accuracy columns of a result row; not a number where there is no table."""
    if outcome.synthetic is None:
        return {"error_2way": math.nan, "error_3way": math.nan, "auc": math.nan}
    sizes = [domain[column] for column in train.columns]
    synthetic = outcome.synthetic[list(train.columns)].to_numpy()
    return {
        "error_2way": marginal_error(synthetic, train.to_numpy(), sizes, 2),
        "error_3way": marginal_error(synthetic, train.to_numpy(), sizes, 3),
        "auc": held_out_auc(synthetic, held_out.to_numpy(), sizes),
    }


def plan(
    methods: Iterable[str] = tuple(METHODS),
    sets: Sequence[str] = ("compas", "heart", "adult", "breast"),
    seeds: Iterable[int] = (0,),
    workloads: Sequence[int] = (2,),
    peers: Sequence[str] = tuple(PEERS),
    epsilon: float = 1.0,
) -> Iterator[Job]:
    """The jobs in the order given: by seed, then method, workload, table and peer."""
    methods = tuple(methods)
    for seed in seeds:
        for method in methods:
            for workload in workloads if method == "aim" else [w for w in workloads if w == 2]:
                for data in (name for name in sets if name in SETS[method]):
                    for peer in (name for name in METHODS[method] if name in peers):
                        yield Job(peer, method, data, seed, workload, epsilon)


def benchmark(
    jobs: Iterable[Job],
    directory: Path,
    out: Path,
    *,
    command: Callable[[Job], Sequence[str]] = peer_command,
    limit_seconds: float = 1800,
    limit_mb: float = 12_000,
) -> None:
    """Run the jobs that have no row in `out` yet, one after the other, and append their rows."""
    for job in jobs:
        if job.key in _finished(out):
            continue
        table = load(job.data, directory)
        train, held_out = table.split(job.seed)
        delta = 1 / len(train) ** 2
        outcome = run_job(
            command(job),
            job,
            train,
            table.domain,
            delta,
            limit_seconds=limit_seconds,
            limit_mb=limit_mb,
        )
        row = {
            "peer": job.peer,
            "method": job.method,
            "data": job.data,
            "rows": len(train),
            "columns": train.shape[1],
            "epsilon": job.epsilon,
            "delta": delta,
            "workload": job.workload,
            "seed": job.seed,
            "cpu_seconds": round(outcome.cpu_seconds, 3),
            "wall_seconds": round(outcome.wall_seconds, 3),
            "peak_mb": round(outcome.peak_mb),
            **evaluate(outcome, train, held_out, table.domain),
            "status": outcome.status,
            "versions": " ".join(f"{name}={number}" for name, number in outcome.versions.items()),
        }
        _append(row, out)
        print(
            f"{job.method} {job.workload}-way on {job.data}, {job.peer}, seed {job.seed}:"
            f" {outcome.status}; {row['cpu_seconds']} CPU s, {row['peak_mb']} MB,"
            f" errors {row['error_2way']:.4f} and {row['error_3way']:.4f}, AUC {row['auc']:.4f}",
            flush=True,
        )


def _equal_width(column: pd.Series) -> pd.Series:
    share = (column - column.min()) / (column.max() - column.min())
    return (share * BREAST_BINS).astype(int).clip(upper=BREAST_BINS - 1)


def _interpreter() -> str:
    if sys.version_info[:2] == PYTHON:
        return sys.executable
    name = "python" + ".".join(map(str, PYTHON))
    found = shutil.which(name)
    if found is None:
        raise RuntimeError(f"the peers need {name}, which is not on the path")
    return found


def _watch(command: Sequence[str], log: Path, limit_seconds: float, limit_mb: float) -> Outcome:
    """Run a command to its end or its limits; its cost includes its imports."""
    before, start, peak = _children_cpu_seconds(), time.perf_counter(), 0.0
    status = None
    with log.open("w") as output:
        process = subprocess.Popen(
            command,
            cwd=HERE,
            env=os.environ | ONE_THREAD,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            while process.poll() is None:
                resident, highest = memory_mb(process.pid)
                peak = max(peak, highest)
                if time.perf_counter() - start > limit_seconds:
                    status = f"stopped after {limit_seconds:g} s"
                elif resident > limit_mb:
                    status = f"stopped above {limit_mb:g} MB"
                if status is not None:
                    break
                time.sleep(0.2)
        finally:
            # Also when interrupted: neither the peer nor a worker of its may outlive its job.
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if status is None:
        status = "ok" if process.returncode == 0 else f"failed: {_last_line(log)}"
    wall = time.perf_counter() - start
    return Outcome(status, _children_cpu_seconds() - before, wall, peak)


def _children_cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def memory_mb(pid: int) -> tuple[float, float]:
    """Resident memory of a process, now and at its highest; zeros where there is no /proc."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0, 0.0
    kilobytes = {
        name: int(rest.split()[0])
        for name, _, rest in (line.partition(":") for line in lines)
        if name in ("VmRSS", "VmHWM")
    }
    return kilobytes.get("VmRSS", 0) / 1024, kilobytes.get("VmHWM", 0) / 1024


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1][:200] if lines else "no message"


def _finished(out: Path) -> set[tuple[str, ...]]:
    if not out.exists():
        return set()
    names = ("peer", "method", "data", "workload", "seed", "epsilon")
    with out.open(newline="") as file:
        return {tuple(row[name] for name in names) for row in csv.DictReader(file)}


def _append(row: dict[str, object], out: Path) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    is_new = not out.exists()
    with out.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if is_new:
            writer.writeheader()
        writer.writerow(row)


def _names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    data = os.environ.get("COUNTERPOISE_DATA")
    parser.add_argument("--data", type=Path, default=data, required=data is None)
    parser.add_argument("--jobs", type=_names, default=list(METHODS), help="mst,privbayes,aim")
    parser.add_argument("--sets", type=_names, default=["compas", "heart", "adult", "breast"])
    parser.add_argument("--peers", type=_names, default=list(PEERS))
    parser.add_argument("--workloads", type=_names, default=["2", "3"], help="for AIM: 2,3")
    parser.add_argument("--seeds", type=int, default=1, help="how many: 0, ..., SEEDS - 1")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--limit", type=float, default=1800, help="wall seconds a job may take")
    parser.add_argument("--memory", type=float, default=12_000, help="MB a job may take")
    parser.add_argument("--out", type=Path, default=Path("results/peers.csv"))
    chosen = parser.parse_args()
    # Termination becomes an exception, so that `_watch` can end the peer that is running.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    for given, known in (
        (chosen.jobs, METHODS),
        (chosen.sets, {name for sets in SETS.values() for name in sets}),
        (chosen.peers, PEERS),
        (chosen.workloads, ("2", "3")),
    ):
        if unknown := set(given) - set(known):
            parser.error(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(known)}")
    jobs = plan(
        chosen.jobs,
        chosen.sets,
        range(chosen.seeds),
        [int(degree) for degree in chosen.workloads],
        chosen.peers,
        chosen.epsilon,
    )
    benchmark(jobs, chosen.data, chosen.out, limit_seconds=chosen.limit, limit_mb=chosen.memory)


if __name__ == "__main__":
    main()
