"""The part that every runner shares: read a job, measure fit and sampling, write the results.

A runner is started as `python -m peer_runners.<peer> JOB`, where JOB is a JSON object with the
keys of `Job`. It writes the synthetic table to `synthetic` (CSV) and its cost to `result`
(JSON). This module needs only the standard library and pandas, which every peer brings.
"""

from __future__ import annotations

import json
import platform
import resource
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import pandas as pd


@dataclass(frozen=True)
class Job:
    method: str
    table: str  # path of a CSV file of integer codes
    domain: str  # path of a JSON file, column name to number of codes
    epsilon: float
    delta: float
    seed: int
    workload: int  # columns in the largest marginal the peer should model
    synthetic: str  # path to write the synthetic table to
    result: str  # path to write the cost to


Synthesize = Callable[[Job, pd.DataFrame, dict[str, int]], pd.DataFrame]


def main(synthesize: Synthesize, packages: Sequence[str]) -> None:
    """Run `synthesize` on the job given on the command line, and measure it."""
    job = Job(**json.loads(sys.argv[1]))
    table = pd.read_csv(job.table)
    domain = {column: int(size) for column, size in json.loads(_text(job.domain)).items()}
    domain = {column: domain[column] for column in table.columns}

    cpu, wall = _cpu_seconds(), time.perf_counter()
    synthetic = synthesize(job, table, domain)
    cost = {"cpu_seconds": _cpu_seconds() - cpu, "wall_seconds": time.perf_counter() - wall}

    synthetic[list(table.columns)].astype(int).to_csv(job.synthetic, index=False)
    versions = {"python": platform.python_version(), **{name: version(name) for name in packages}}
    result = {**cost, "peak_mb": _peak_mb(), "versions": versions}
    Path(job.result).write_text(json.dumps(result))


def _text(path: str) -> str:
    return Path(path).read_text()


def _cpu_seconds() -> float:
    """CPU seconds of all threads of this process, and of the child processes it has ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def _peak_mb() -> float:
    """Largest resident set of this process, or of one of its children if that was larger."""
    kilobytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    status = Path("/proc/self/status")
    if status.exists():
        # ru_maxrss would also count the process this one was started from.
        high_water = next(line for line in _text(str(status)).splitlines() if "VmHWM" in line)
        return max(kilobytes, int(high_water.split()[1])) / 1024
    return max(kilobytes, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) / 1024
