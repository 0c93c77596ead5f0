"""How quickly noise is drawn: our table sampler beside OpenDP's, on one core, in one run.

python benchmarks/noise.py
"""

import time
from collections.abc import Callable

import numpy as np

from counterpoise.vault.noise.entropy import SystemEntropy
from counterpoise.vault.noise.integers import _through_opendp, add_gaussian, add_laplace


def seconds(work: Callable, *arguments: object) -> float:
    start = time.perf_counter()
    work(*arguments)
    return time.perf_counter() - start


def main() -> None:
    million, sample = np.zeros(1_000_000, dtype=np.int64), np.zeros(20_000, dtype=np.int64)
    print(f"{'law':<10}{'scale':>8}{'a million, s':>14}{'OpenDP, s':>12}{'ratio':>8}")
    for law, draw in (("gaussian", add_gaussian), ("laplace", add_laplace)):
        for scale in (1.0, 30.0, 1000.0):
            ours = seconds(draw, million, scale, SystemEntropy())
            theirs = 50 * seconds(_through_opendp, law, sample, scale)
            print(f"{law:<10}{scale:>8g}{ours:>14.3f}{theirs:>12.2f}{theirs / ours:>8.0f}")


if __name__ == "__main__":
    main()
