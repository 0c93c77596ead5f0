"""Support points of mixtures in two dimensions, as pictures: figures 5.1 to 5.7 of a dissertation.

M. Diesendruck 2019, section 5.7.1: 200 rows of a mixture of normal clusters within the unit box,
whose centres keep four deviations from its sides, and 10 points. Records are replaced, budgets are
pure, and the sensitivity is the sound one.

    python benchmarks/support_points_pictures.py [--out results] [--figures 1,2]

1. Support points (green) of mixtures of 2, 4 and 8 clusters, narrow and wide.
2. Private points by the budget: the exact sampler (blue) and the chain (red), and support points.
3. A chain at epsilon 5,000: its energy after each sweep, the law of its energies, and its last set.
4. Rows of a kernel density around private points, with 4, 1 and 1/4 times the clusters' deviation.
5. The likelihood of bandwidths given private points, and rows with a private bandwidth, four times.
6. Private points drawn over and over, each set with its part of the budget.
7. Chains from four starts: their energies, and the variances between and within chains with R-hat.

Figures 3 and 7 show what a vault never lets out: a chain's scores are of the rows. Here these are
nobody's.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import counterpoise as cp
from counterpoise.evaluation import ChainDiagnostics, chain_diagnostics
from counterpoise.importance import energy, support_points
from counterpoise.schema import Coded
from counterpoise.synthesizers import SupportPoints
from weights_report import pyplot

ROWS, POINTS, CLUSTERS = 200, 10, 4
GRAY, GREEN, RED, BLUE = "0.7", "tab:green", "tab:red", "tab:blue"
SCHEMA = cp.Schema([cp.Column.continuous("x", 0, 1), cp.Column.continuous("y", 0, 1)])
NARROW, WIDE = 0.03, 0.08


@dataclass(frozen=True, eq=False)
class Mixture:
    """Rows of a mixture, and the deviation of its clusters."""

    rows: pd.DataFrame
    deviation: float

    @property
    def units(self) -> np.ndarray:
        return self.rows.to_numpy()

    @property
    def coded(self) -> Coded:
        return SCHEMA.encode(self.rows)


def mixture(clusters: int = CLUSTERS, deviation: float = NARROW, seed: int = 0) -> Mixture:
    """Rows of clusters with uneven shares, all within the unit box."""
    generator = np.random.default_rng(seed)
    centres = generator.uniform(4 * deviation, 1 - 4 * deviation, (clusters, 2))
    shares = generator.dirichlet(np.full(clusters, 3.0))
    drawn = centres[generator.choice(clusters, ROWS, p=shares)]
    rows = np.clip(drawn + deviation * generator.normal(size=(ROWS, 2)), 0, 1)
    return Mixture(pd.DataFrame(rows, columns=["x", "y"]), deviation)


def private(
    made: Mixture, epsilon: float, seed: int = 0, rows: int = POINTS, **options: Any
) -> Any:
    """Rows of a model of private points: the points themselves, if as many are asked for."""
    budget = cp.Budget(epsilon, neighbours="replace")
    with cp.Vault(made.rows, SCHEMA, budget, seed=seed) as vault:
        model = SupportPoints(POINTS, **options).fit(vault, budget.whole)
    return model.sample(rows or model.coreset, seed=seed).to_numpy(), model


def chains(made: Mixture, epsilon: float, count: int, moves: int) -> ChainDiagnostics:
    """Chains as the query would run them, with what they went through."""
    budget = cp.Budget(epsilon, neighbours="replace")
    return chain_diagnostics(made.coded, POINTS, epsilon, budget, moves=moves, chains=count, seed=0)


def show(panel: Any, made: Mixture, title: str, **sets: np.ndarray) -> None:
    """The rows in gray, and sets of points by their colours."""
    panel.scatter(*made.units.T, s=6, color=GRAY)
    for colour, points in sets.items():
        panel.scatter(*points.T, s=26 if len(points) <= 60 else 5, color=colour.replace("_", ":"))
    panel.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal", xticks=[], yticks=[])
    panel.set_title(title, fontsize=9)


def figure_1(grid: Callable[..., Any]) -> None:
    panels = grid(2, 3)
    for row, deviation in zip(panels, (NARROW, WIDE), strict=True):
        for panel, clusters in zip(row, (2, 4, 8), strict=True):
            made = mixture(clusters, deviation)
            found = support_points(made.units, POINTS, seed=0)
            title = f"{clusters} clusters, deviation {deviation:g}"
            show(panel, made, f"{title}, energy {energy(made.units, found):.4f}", tab_green=found)


def figure_2(grid: Callable[..., Any]) -> None:
    panels, budgets, made = grid(2, 5), (1, 10, 100, 1000, 10000), mixture()
    best = support_points(made.units, POINTS, seed=0)
    for row, sampler, colour in zip(
        panels, ("exact", "metropolis"), ("tab_blue", "tab_red"), strict=True
    ):
        for panel, epsilon in zip(row, budgets, strict=True):
            found, _ = private(made, epsilon, sampler=sampler, moves=20_000)
            title = f"{sampler}, epsilon {epsilon:,}, energy {energy(made.units, found):.3f}"
            show(panel, made, title, tab_green=best, **{colour: found})


def figure_3(grid: Callable[..., Any]) -> None:
    [[trace, law, last]], made = grid(1, 3), mixture()
    found = chains(made, 5000, 2, 60_000)
    energies = _energies(made, found)[0]
    trace.plot(energies, lw=0.4)
    trace.set(xlabel="sweep after the burn-in", ylabel="energy distance, squared")
    trace.set_title(f"accepted: {found.accepted:.0%}", fontsize=9)
    law.hist(energies, bins=60, color=GRAY)
    law.set_title("energies of the chain", fontsize=9)
    points, _ = private(made, 5000, sampler="metropolis", moves=60_000)
    show(last, made, "the last set of another", tab_red=points)


def figure_4(grid: Callable[..., Any]) -> None:
    [panels], made = grid(1, 3), mixture()
    for panel, times in zip(panels, (4, 1, 0.25), strict=True):
        width = times * made.deviation
        drawn, model = private(made, 1000, rows=ROWS, bandwidth=width)
        shown = model.sample(POINTS).to_numpy()
        show(panel, made, f"{times:g} deviations", tab_blue=drawn, tab_red=shown)


def figure_5(grid: Callable[..., Any]) -> None:
    [panels], made = grid(1, 6), mixture()
    points, _ = private(made, 100)
    squares = ((made.units[:, None] - points) ** 2).sum(axis=2)
    widths = np.geomspace(0.005, 0.5, 40)
    mean = [
        np.log(np.exp(-squares / (2 * w**2)).mean(axis=1) / (2 * np.pi * w**2) + 1e-300).mean()
        for w in widths
    ]
    panels[0].plot(widths, np.maximum(mean, -20))
    panels[0].axvline(made.deviation, color=GRAY)
    panels[0].set(xscale="log", xlabel="bandwidth", title="mean log-likelihood")
    show(panels[1], made, "private points, epsilon 100", tab_red=points)
    for seed, panel in enumerate(panels[2:]):
        law = ("selected", "likelihood")[seed % 2]
        drawn, model = private(made, 100, seed, rows=ROWS, bandwidth=law)
        show(panel, made, f"{law}: bandwidth {model.bandwidth:g}", tab_blue=drawn)


def figure_6(grid: Callable[..., Any]) -> None:
    [panels], made = grid(1, 4), mixture()
    for panel, (epsilon, repeats) in zip(
        panels, ((1000, 1), (1000, 20), (10000, 1), (10000, 20)), strict=True
    ):
        found, _ = private(made, epsilon, rows=0, repeats=repeats)
        sets = f"{repeats} set{'s' * (repeats > 1)}"
        title = f"epsilon {epsilon:,}, {sets}, energy {energy(made.units, found):.4f}"
        show(panel, made, title, tab_red=found)


def figure_7(grid: Callable[..., Any]) -> None:
    [[trace, spread]], made = grid(1, 2), mixture()
    energies = _energies(made, chains(made, 1000, 4, 40_000))
    trace.plot(energies.T, lw=0.4)
    trace.set(xlabel="sweep after the burn-in", ylabel="energy distance, squared")
    ends = np.arange(50, energies.shape[1] + 1, 50)
    within = np.array([energies[:, :end].var(axis=1, ddof=1).mean() for end in ends])
    between = np.array([energies[:, :end].mean(axis=1).var(ddof=1) for end in ends])
    # R-hat^2 = ((n - 1) / n W + B / n) / W, where B / n is the variance of the chains' means
    r_hat = np.sqrt((ends - 1) / ends + between / within)
    spread.plot(ends, within, label="variance within chains")
    spread.plot(ends, between, label="variance between chains")
    spread.set(yscale="log", xlabel="sweeps")
    spread.legend(fontsize=8)
    beside = spread.twinx()
    beside.plot(ends, r_hat, color="black", ls=":")
    beside.set_ylabel("R-hat (dotted)")


def _energies(made: Mixture, found: ChainDiagnostics) -> np.ndarray:
    """Squared energy distances: scores lack the part of the rows alone, and are in diameters."""
    alone = energy(made.units, made.units[:1]) - 2 * np.mean(
        np.linalg.norm(made.units - made.units[0], axis=1)
    )
    return -np.sqrt(2) * found.scores + alone


FIGURES = dict(enumerate((figure_1, figure_2, figure_3, figure_4, figure_5, figure_6, figure_7), 1))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument(
        "--figures", type=lambda text: [*map(int, text.split(","))], default=list(FIGURES)
    )
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    plots = pyplot()
    for place in chosen.figures:
        made: dict[str, Any] = {}

        def grid(rows: int, columns: int, made: dict[str, Any] = made) -> Any:
            size = (3.0 * columns, 3.2 * rows)
            made["figure"], panels = plots.subplots(rows, columns, figsize=size, squeeze=False)
            return panels

        FIGURES[place](grid)
        made["figure"].tight_layout()
        made["figure"].savefig(chosen.out / f"support_points_{place}.png", dpi=90)
        plots.close(made["figure"])
        print(f"figure {place}", flush=True)


if __name__ == "__main__":
    main()
