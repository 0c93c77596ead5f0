"""Releases on the command line, killed at random moments until they come out; `make kills`.

After each kill, or gentler signal, the same command is given again. Every run has to end with a
whole release within its budget, or with the word that a lost answer can no longer be paid for, and
leave nothing else behind. Not a test of the suite: it takes minutes, and what it hits depends on
the machine.
"""

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd

import counterpoise as cp

EPSILON = 2.0


def prepare(folder: Path) -> None:
    generator = np.random.default_rng(0)
    rows = 4000
    pd.DataFrame(
        {
            "ward": generator.choice(list("ABC"), rows),
            "age": generator.integers(0, 99, rows),
            "stay": generator.integers(0, 30, rows),
        }
    ).to_csv(folder / "rows.csv", index=False)
    schema = cp.Schema(
        [
            cp.Column.categorical("ward"),
            cp.Column.integer("age", 0, 99),
            cp.Column.integer("stay", 0, 30),
        ]
    ).pay("ward")
    schema.write(folder / "schema.json")


def one_run(
    source: Path, folder: Path, longest: float, chance: random.Random, sent: signal.Signals
) -> tuple[str, int]:
    """How a run ended, and after how many kills."""
    shell = "from counterpoise.cli import main; main()"
    command = [sys.executable, "-c", shell, "release", str(source / "rows.csv")]
    command += ["--schema", str(source / "schema.json"), "--epsilon", str(EPSILON)]
    command += ["--delta", "1e-6", "--rows", "300", "--replicates", "8", "--quiet"]
    command += ["--out", str(folder / "out")]
    kills = 0
    while True:
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        try:
            _, said = process.communicate(timeout=chance.uniform(0.2, longest))
        except subprocess.TimeoutExpired:
            process.send_signal(sent)
            process.communicate()
            kills += 1
            if (folder / "out").exists():
                cp.load(folder / "out")  # there in full, or not at all
            continue
        break
    if process.returncode == 0:
        made = cp.load(folder / "out")
        assert made.ledger.epsilon_spent <= EPSILON
        litter = sorted(file.name for file in folder.iterdir() if file.name != "out")
        return (f"litter: {litter}" if litter else "released"), kills
    if "its answer is lost" in said:
        return "said that a lost answer cannot be paid for", kills
    return f"failed: {said.strip()[-300:]}", kills


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=16)
    parser.add_argument("--longest", type=float, default=0.0, help="seconds; measured if not given")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--signal", default="SIGKILL", help="SIGTERM, SIGHUP and SIGINT lose nothing"
    )
    asked = parser.parse_args()
    sent = signal.Signals[asked.signal]
    chance, ends, kills = random.Random(asked.seed), Counter(), 0
    with tempfile.TemporaryDirectory() as place:
        source = Path(place)
        prepare(source)
        longest = asked.longest
        if not longest:
            began = time.monotonic()
            (source / "first").mkdir()
            one_run(source, source / "first", 600.0, random.Random(1), sent)
            longest = 1.1 * (time.monotonic() - began)
        for number in range(asked.runs):
            folder = source / f"run-{number}"
            folder.mkdir()
            end, times = one_run(source, folder, longest, chance, sent)
            ends[end] += 1
            kills += times
            print(f"run {number + 1}: {end} after {times} kills", flush=True)
    print(f"{kills} kills; " + "; ".join(f"{count} {end}" for end, count in ends.items()))
    return int(any(end.startswith(("failed", "litter")) for end in ends))


if __name__ == "__main__":
    sys.exit(main())
