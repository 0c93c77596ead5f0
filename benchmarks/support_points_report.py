"""The tables and the plot of the study of few points, from the rows that `support_points.py` wrote.

Points are better than their rivals in a setting where their upper quartile is below the lower one
of each of them, worse where their lower one is above the upper one of some, and else level. A
setting counts where all of them were run; a histogram may have been too large.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from weights_report import pyplot

BUDGETS, PUBLISHED_BUDGETS = (1, 10, 100, 1000, 10000), (100, 1000, 10000)
SIZES, FOLDS = (0.05, 0.1, 0.2), 5
DISTANCES = ("mean_error", "energy")

NOT_PRIVATE = ("full", "constant", "support", "kme")
# What the dissertation's private support points are compared with, and what all is.
PUBLISHED_RIVALS = ("histogram", "kme-weighted", "kme-uniform")
RIVALS = (*PUBLISHED_RIVALS, "aim", "aim-support")
JUDGED = ("metropolis", "exact", "coreset")
PRIVATE = (*PUBLISHED_RIVALS, *JUDGED, "aim", "aim-support")
METHODS = (*NOT_PRIVATE, *PRIVATE)
# Methods that make one set, whatever the size that is asked for; it stands as 1.
OF_ANY_SIZE = ("full", "constant", "histogram")


def quartiles(results: pd.DataFrame, measure: str = "mse") -> pd.DataFrame:
    """The lower quartile, the median and the upper quartile of each setting, over its folds."""
    grouped = results.groupby(["data", "method", "epsilon", "size"], sort=False)[measure]
    found = grouped.quantile([0.25, 0.5, 0.75]).unstack()
    return found.set_axis(["low", "median", "high"], axis=1)


def sizes_of(results: pd.DataFrame) -> list[float]:
    """The sizes that were run, in parts of the rows."""
    return sorted(set(results["size"]) - {1.0})


def of_setting(found: pd.DataFrame, data: str, method: str, epsilon: float, size: float) -> Any:
    """The quartiles of a method in a setting, or None where it was not run or did not fit."""
    key = (
        data,
        method,
        0 if method in NOT_PRIVATE else epsilon,
        1.0 if method in OF_ANY_SIZE else size,
    )
    if key not in found.index or found.loc[key].isna().any():
        return None
    return found.loc[key]


def verdict(
    found: pd.DataFrame, data: str, method: str, epsilon: float, size: float, rivals: tuple
) -> str:
    """Better than all rivals, worse than one, or level: quartiles apart count, and no overlap."""
    own = of_setting(found, data, method, epsilon, size)
    others = [of_setting(found, data, rival, epsilon, size) for rival in rivals]
    others = [other for other in others if other is not None]
    if any(own["low"] > other["high"] for other in others):
        return "worse"
    return "better" if all(own["high"] < other["low"] for other in others) else "level"


def lines(results: pd.DataFrame) -> Iterator[str]:
    """The tables, as lines of Markdown."""
    found = quartiles(results)
    yield f"Folds: {results['fold'].nunique()} of {FOLDS}. Quartiles in brackets."
    for data in results["data"].unique():
        fixed = [
            f"{method} {of_setting(found, data, method, 0, 1.0)['median']:.4f}"
            for method in ("full", "constant")
        ]
        yield f"\n## {data}: median held-out MSE; {', '.join(fixed)}\n"
        shown = [m for m in METHODS if m not in ("full", "constant") and m in set(results.method)]
        yield "| epsilon | size | " + " | ".join(shown) + " |"
        yield "| --- " * (2 + len(shown)) + "|"
        for epsilon in sorted(set(results["epsilon"]) - {0}):
            for size in sizes_of(results):
                cells = []
                for method in shown:
                    each = of_setting(found, data, method, epsilon, size)
                    cells.append(
                        ""
                        if each is None
                        else f"{each['median']:.4f} ({each['low']:.4f}-{each['high']:.4f})"
                    )
                yield f"| {epsilon:g} | {size:.0%} | " + " | ".join(cells) + " |"
    yield from distance_lines(results)
    yield from verdict_lines(results, found)


def distance_lines(results: pd.DataFrame) -> Iterator[str]:
    """All measures by method and budget: medians over folds, and those over tables and sizes."""
    key = ["data", "method", "epsilon", "size"]
    constant = results[results["method"] == "constant"].groupby("data")["mse"].median()
    for measure, title in (
        ("mse", "MSE in parts of that of the constant"),
        ("mean_error", "absolute error of the means of columns"),
        ("energy", "squared energy distance"),
    ):
        yield f"\n## {title}, median over tables and sizes of medians over folds\n"
        medians = results.groupby(key)[measure].median()
        if measure == "mse":
            medians = medians / constant.reindex(medians.index.get_level_values("data")).to_numpy()
        shown = medians.groupby(["method", "epsilon"]).median().unstack()
        yield "| | " + " | ".join(f"{epsilon:g}" for epsilon in shown.columns) + " |"
        yield "| --- " * (1 + shown.shape[1]) + "|"
        for method in (each for each in METHODS if each in shown.index):
            cells = ["" if np.isnan(each) else f"{each:.4f}" for each in shown.loc[method]]
            yield f"| {method} | " + " | ".join(cells) + " |"


def verdict_lines(results: pd.DataFrame, found: pd.DataFrame) -> Iterator[str]:
    """How often points are better than, level with and worse than their rivals."""
    yield "\n## Better, level, worse\n"
    yield "| points | rivals | budgets | better | level | worse | lowest median |"
    yield "| --- " * 7 + "|"
    for method in JUDGED:
        for rivals, name in ((PUBLISHED_RIVALS, "the dissertation's"), (RIVALS, "and AIM's")):
            for budgets in (PUBLISHED_BUDGETS, tuple(set(BUDGETS) - set(PUBLISHED_BUDGETS))):
                settings = [
                    (data, epsilon, size)
                    for data in results["data"].unique()
                    for epsilon in budgets
                    for size in sizes_of(results)
                    if _is_there(found, data, (method, *rivals), epsilon, size)
                ]
                if not settings:
                    continue
                said = [verdict(found, d, method, e, s, rivals) for d, e, s in settings]
                first = sum(
                    _is_lowest(found, data, method, epsilon, size, rivals)
                    for data, epsilon, size in settings
                )
                counts = [str(said.count(each)) for each in ("better", "level", "worse")]
                shown = ", ".join(f"{each:,}" for each in sorted(budgets))
                yield f"| {method} | {name} | {shown} | " + " | ".join(counts) + f" | {first} |"


def _is_there(
    found: pd.DataFrame, data: str, methods: tuple[str, ...], epsilon: float, size: float
) -> bool:
    """Whether all were run there; a histogram may have been too large."""
    needed = (method for method in methods if method != "histogram")
    return all(of_setting(found, data, method, epsilon, size) is not None for method in needed)


def _is_lowest(found: pd.DataFrame, data: str, method: str, *setting: Any) -> bool:
    epsilon, size, rivals = setting
    own = of_setting(found, data, method, epsilon, size)
    others = [of_setting(found, data, rival, epsilon, size) for rival in rivals]
    return all(own["median"] < other["median"] for other in others if other is not None)


def draw(results: pd.DataFrame, file: Path) -> None:
    """A panel a table and a size: errors by the budget, and those of what is not private."""
    plots = pyplot()
    found, sets, sizes = quartiles(results), list(results["data"].unique()), sizes_of(results)
    figure, axes = plots.subplots(
        len(sets), len(sizes), figsize=(13, 3.6 * len(sets)), squeeze=False, sharey="row"
    )
    for row, data in zip(axes, sets, strict=True):
        for panel, size in zip(row, sizes, strict=True):
            for place, method in enumerate(PRIVATE):
                each = [of_setting(found, data, method, epsilon, size) for epsilon in BUDGETS]
                known = [(i, one) for i, one in enumerate(each) if one is not None and len(one)]
                if not known:
                    continue
                x = np.array([i for i, _ in known]) + 0.08 * (place - len(PRIVATE) / 2)
                y, low, high = (
                    np.array([one[name] for _, one in known]) for name in ("median", "low", "high")
                )
                panel.errorbar(x, y, [y - low, high - y], marker="o", ms=4, lw=1, label=method)
            for method, style in (
                ("full", "-"),
                ("constant", ":"),
                ("support", "--"),
                ("kme", "-."),
            ):
                each = of_setting(found, data, method, 0, size)
                if each is not None:
                    panel.axhline(each["median"], color="black", lw=0.8, ls=style, label=method)
            panel.set(yscale="log", title=f"{data}, {size:.0%} of the rows", xlabel="epsilon")
            # Few points with next to no spread in a column have wild slopes, of any size.
            panel.set_ylim(top=10 * of_setting(found, data, "constant", 0, size)["median"])
            panel.set_xticks(range(len(BUDGETS)), [f"{each:,}" for each in BUDGETS])
        row[0].set_ylabel("held-out mean squared error")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=6, fontsize=9)
    figure.tight_layout(rect=(0, 0.07, 1, 1))
    figure.savefig(file, dpi=110)
