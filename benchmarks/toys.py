"""The toy figures: what each method's weights look like where the true ratio is known.

- square: private rows are uniform on the triangle x + y < 1, synthetic rows on the unit square
  (Ghalebikesabi et al. 2022, figure 1); 100 of each.
- grid: private rows are 10,000 from 25 Gaussians of deviation 0.05 at {-2, ..., 2}^2, synthetic
  rows are from boxes of side 0.5 around the same centres, three times as many from each box of the
  two left columns as from the others (Ghalebikesabi et al. 2021, figure 1, which does not state
  its mixture of uniforms).

Above, histograms of the weights; below, the weighted density of the synthetic rows. Every
registered method that needs a share has all of the budget; the title of each panel says how far
the weighted rows are from fresh private ones (sliced Wasserstein-1) and how many rows they are
worth.

    python benchmarks/toys.py [--epsilon 1] [--seed 0] [--out results]

Writes `toy_square.png` and `toy_grid.png`. The noise is seeded, so that a figure can be repeated.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.ndimage import gaussian_filter

from counterpoise import Budget, Column, CounterpoiseError, Schema, Vault, evaluation
from counterpoise.weights import WEIGHTERS
from weights_report import pyplot

DELTA = 1e-5
CENTRES = np.array([(x, y) for x in range(-2, 3) for y in range(-2, 3)], dtype=float)
DEVIATION, SIDE, FAVOURED = 0.05, 0.5, 3.0
# Known only in a simulation, or the same for every row: shown first, and not as a method. The
# weights of a critic need rows that a network made.
NOT_COMPARED = ("discriminator", "oracle", "uniform")
# The logistic weights of the papers, by what they are called there.
PUBLISHED = {
    "LogReg (not private)": {"noise": None},
    "BetaNoised": {"noise": "laplace", "debias": False},
    "BetaDebiased": {"noise": "laplace", "debias": True},
}

LEGEND = """above:
the weights, which average to one
below:
the weighted density of the rows,
in the colours of the private rows
distance:
sliced Wasserstein-1 to fresh rows
rows:
effective sample size"""


@dataclass(frozen=True)
class Toy:
    """Two laws with a known ratio of densities, on a square of the plane."""

    name: str
    rows: int
    bounds: tuple[float, float]
    smoothing: float  # of the drawn densities, as a part of the square's side
    private: Callable[[int, np.random.Generator], np.ndarray]
    synthetic: Callable[[int, np.random.Generator], np.ndarray]
    ratio: Callable[[np.ndarray], np.ndarray]

    @property
    def schema(self) -> Schema:
        return Schema([Column.continuous(name, *self.bounds, bins=20) for name in "xy"])


def triangle(rows: int, generator: np.random.Generator) -> np.ndarray:
    points = generator.random((rows, 2))
    # The other half of the square, turned over.
    return np.where(points.sum(axis=1, keepdims=True) < 1, points, 1 - points)


def gaussians(rows: int, generator: np.random.Generator) -> np.ndarray:
    chosen = CENTRES[generator.integers(len(CENTRES), size=rows)]
    return chosen + DEVIATION * generator.normal(size=(rows, 2))


def box_chances() -> np.ndarray:
    chances = np.where(CENTRES[:, 0] < 0, FAVOURED, 1.0)
    return chances / chances.sum()


def boxes(rows: int, generator: np.random.Generator) -> np.ndarray:
    chosen = CENTRES[generator.choice(len(CENTRES), size=rows, p=box_chances())]
    return chosen + SIDE * (generator.random((rows, 2)) - 0.5)


def grid_ratio(points: np.ndarray) -> np.ndarray:
    """Density of the Gaussians over that of the boxes; a row lies in one box."""
    distances = np.linalg.norm(points[:, None] - CENTRES[None], axis=2)
    spread = np.exp(-0.5 * (distances / DEVIATION) ** 2) / (2 * np.pi * DEVIATION**2)
    box = np.abs(points[:, None] - CENTRES[None]).max(axis=2).argmin(axis=1)
    return spread.mean(axis=1) / (box_chances()[box] / SIDE**2)


TOYS = (
    Toy(
        "square",
        100,
        (0.0, 1.0),
        0.06,
        triangle,
        lambda rows, generator: generator.random((rows, 2)),
        lambda points: 2.0 * (points.sum(axis=1) < 1),
    ),
    Toy("grid", 10_000, (-2.5, 2.5), 0.012, gaussians, boxes, grid_ratio),
)


def weights_of(method: str, toy: Toy, private: Any, synthetic: Any, budget: Budget, seed: int):
    """The weights of a registered method, or the reason why there are none."""
    options = PUBLISHED.get(method)
    weighter = WEIGHTERS.make(method) if options is None else WEIGHTERS.make("logistic", **options)
    share = None if weighter.is_free else budget.whole
    try:
        with Vault(private, toy.schema, budget, seed=seed) as vault:
            return weighter.fit(vault, synthetic, share).weigh(synthetic).normalised
    except CounterpoiseError as error:
        return str(error)


def draw(toy: Toy, epsilon: float, seed: int, path: Path) -> None:
    generator = np.random.default_rng(seed)
    private, fresh = (_frame(toy.private(toy.rows, generator)) for _ in range(2))
    synthetic = _frame(toy.synthetic(toy.rows, generator))
    budget = Budget(epsilon, DELTA)
    true_ratio = toy.ratio(synthetic.to_numpy())
    found: dict[str, Any] = {
        "true ratio": true_ratio / true_ratio.mean(),
        "uniform": np.ones(len(synthetic)),
    }
    for method in (*sorted(set(WEIGHTERS) - set(NOT_COMPARED)), *PUBLISHED):
        found[method] = weights_of(method, toy, private, synthetic, budget, seed)
    test, rows = toy.schema.encode(fresh), toy.schema.encode(synthetic)
    plt = pyplot()
    figure, axes = plt.subplots(
        2, len(found) + 1, figsize=(2.5 * (len(found) + 1), 5.2), squeeze=False
    )
    # Histograms have one scale; what is beyond it is counted in the last bar.
    heaviest = max(float(w.max()) for w in found.values() if not isinstance(w, str))
    most = min(6.0, np.ceil(heaviest))
    axes[0, 0].axis("off")
    axes[0, 0].text(0.5, 0.5, LEGEND, ha="center", va="center", fontsize=7.5)
    target = _density(private, np.ones(len(private)), toy)
    _show(axes[1, 0], target, toy, target.max())
    axes[1, 0].set_title("private rows", fontsize=9)
    for (name, weights), (upper, lower) in zip(found.items(), axes.T[1:], strict=True):
        upper.set_title(name, fontsize=10)
        if isinstance(weights, str):
            upper.axis("off")
            lower.axis("off")
            upper.text(0.5, 0.5, _wrapped(weights), ha="center", va="center", fontsize=7)
            continue
        upper.hist(np.minimum(weights, most), bins=30, range=(0, most), color="#4477aa")
        upper.set_yscale("log")
        upper.set_ylim(0.7, 1.5 * len(weights))
        upper.set_xlabel("weight", fontsize=8)
        ticks = np.linspace(0, most, 4)
        upper.set_xticks(ticks, [*(f"{tick:g}" for tick in ticks[:-1]), f"≥ {most:g}"])
        upper.tick_params(labelsize=7)
        _show(lower, _density(synthetic, weights, toy), toy, target.max())
        distance = evaluation.sliced_wasserstein(rows, test, weights)
        effective = weights.sum() ** 2 / (weights**2).sum()
        lower.set_title(f"distance {distance:.4f}, {effective:,.0f} rows", fontsize=9)
    axes[0, 1].set_ylabel("rows", fontsize=8)
    figure.suptitle(
        f"{toy.name}: {toy.rows:,} private and as many synthetic rows; "
        f"private methods at epsilon {epsilon:g}, delta {DELTA:g}",
        fontsize=10,
    )
    figure.tight_layout()
    figure.savefig(path, dpi=130)
    plt.close(figure)
    print(path)


def _frame(points: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(points, columns=["x", "y"])


def _density(table: pd.DataFrame, weights: np.ndarray, toy: Toy, cells: int = 160) -> np.ndarray:
    """A kernel density on a fine grid, as a multiple of the uniform density."""
    counts, _, _ = np.histogram2d(
        table["x"], table["y"], cells, [toy.bounds, toy.bounds], weights=weights
    )
    smooth = gaussian_filter(counts, toy.smoothing * cells, mode="reflect")
    return smooth * cells**2 / weights.sum()


def _show(axis: Any, density: np.ndarray, toy: Toy, most: float) -> None:
    low, high = toy.bounds
    axis.imshow(
        density.T, origin="lower", extent=(low, high, low, high), vmin=0, vmax=most, cmap="viridis"
    )
    axis.tick_params(labelsize=7)


def _wrapped(text: str) -> str:
    import textwrap

    return "refused:\n" + "\n".join(textwrap.wrap(text, 30))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("results"))
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    for toy in TOYS:
        draw(toy, chosen.epsilon, chosen.seed, chosen.out / f"toy_{toy.name}.png")


if __name__ == "__main__":
    main()
