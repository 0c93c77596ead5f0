"""The tables and plots of the study of weights, from the rows that `weights.py` wrote.

Methods that ran on the same seed saw the same rows, so that they are compared by the mean and the
standard error of their difference, seed by seed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd

# Each measure, whether more of it is better (1) or worse (-1), and what it is called.
MEASURES = {
    "wasserstein": (-1, "Wasserstein-1, 2,000 points"),
    "sliced_wasserstein": (-1, "sliced Wasserstein-1"),
    "mmd": (-1, "MMD, 2,000 points"),
    "mean_error": (-1, "mean absolute error of means"),
    "marginal_error": (-1, "total variation of 2-way marginals"),
    "coefficient_error": (-1, "coefficient MSE of a linear model"),
    "linear_score": (1, "AUC or R^2 of a linear model"),
    "mlp_score": (1, "AUC or R^2 of an MLP"),
    "effective_share": (1, "effective part of the rows"),
}
JUDGED = [name for name in MEASURES if name != "effective_share"]
SCORES = ("linear_score", "mlp_score")
# What the default is judged by.
DEFAULT_MEASURES = (
    "mean_error",
    "marginal_error",
    "wasserstein",
    "coefficient_error",
    "linear_score",
)

OURS, UNIFORM, DEFAULT = "moments", "uniform", "default"
WHOLE = "uniform, whole budget"
PUBLISHED = "beta-published"
CELL = ["data", "synthesizer", "epsilon", "multiple"]

NOTES = """\
Means over seeds ± standard errors, on the 20% of rows that were held out. "{whole}" is the
release without weights, whose synthesizer has all of the budget; "uniform" is the table that the
other methods weigh. **!** marks what moments is worse than by more than two standard errors of
their difference, seed by seed. Bounds and categories were read off the data, so that epsilon
describes the mechanisms alone; the synthesizer "gaussian" is not private. "{published}" spends
more than the others, as the table of epsilons says, and is not judged against.
"""


def write(results: pd.DataFrame, out: Path) -> None:
    """Write `weights.md` and `weights.png`, and print the tables."""
    labelled = _labelled(results)
    lines = ["# Weights at the same total epsilon\n", _notes(), *_epsilons(labelled)]
    for measure in MEASURES:
        lines += _table(labelled, measure)
    lines += _verdicts(labelled)
    _save(lines, out / "weights.md")
    _draw(labelled, out / "weights.png")


def write_split(results: pd.DataFrame, method: str, out: Path) -> None:
    """Write `weights_split.md` and `weights_split.png`: measures over the weights' share."""
    ok = results[results["status"] == "ok"]
    shares = ok[(ok["method"] == method) | (ok["share"] == 0)]
    studied = shares.groupby(CELL)["share"].transform("nunique") > 2
    shares = shares[studied]
    lines = [f"# {method}: weights by their share of the budget\n", _split_notes()]
    for measure in MEASURES:
        lines += _split_table(shares, measure)
    _save(lines, out / "weights_split.md")
    _draw_split(shares, out / "weights_split.png")


def write_default(results: pd.DataFrame, out: Path) -> None:
    """Write `weights_default.md`: the library's default beside its synthesizer with all budget."""
    labelled = _labelled(results)
    lines = ["# The default, and the same without weights\n", _default_notes()]
    for measure in DEFAULT_MEASURES:
        sign, title = MEASURES[measure]
        better = "more is better" if sign > 0 else "less is better"
        lines += [f"\n## {title} ({better})\n"]
        lines += [_row(["data", "epsilon", "seeds", WHOLE, DEFAULT, "gain", ""])]
        lines += [_row(["---"] * 7)]
        for (data, _, epsilon, _), wide in _cells(labelled, measure):
            gain = sign * (wide[DEFAULT] - wide[WHOLE]).dropna()
            error = gain.std() / math.sqrt(len(gain)) if len(gain) > 1 else math.nan
            verdict = "level"
            if abs(gain.mean()) > 2 * error:
                verdict = "better" if gain.mean() > 0 else "worse"
            means = [f"{wide[method].mean():.4g}" for method in (WHOLE, DEFAULT)]
            shown = f"{gain.mean():.2g} ± {error:.2g}"
            lines.append(_row([data, f"{epsilon:g}", str(len(gain)), *means, shown, verdict]))
    _save(lines, out / "weights_default.md")


def _default_notes() -> str:
    return (
        "Means over seeds; the gain is the mean difference, seed by seed, ± its standard error, "
        "above zero where the default is better; level is what is within two of them.\n"
    )


def _notes() -> str:
    return NOTES.format(whole=WHOLE, published=PUBLISHED)


def _split_notes() -> str:
    return (
        "The total epsilon is the same everywhere; the share is what the weights have of it. At "
        "the share 0 there are no weights. Means over seeds ± standard errors.\n"
    )


def _labelled(results: pd.DataFrame) -> pd.DataFrame:
    whole = (results["share"] == 0) & (results["method"] == UNIFORM)
    return results.assign(method=results["method"].mask(whole, WHOLE))


def _methods(results: pd.DataFrame) -> list[str]:
    first = [WHOLE, UNIFORM, OURS]
    there = list(dict.fromkeys(results["method"]))
    return [m for m in first if m in there] + [m for m in there if m not in first]


def _epsilons(results: pd.DataFrame) -> Iterator[str]:
    """What each method really spent, and how often it refused to run."""
    yield "\n## True epsilon of the release\n"
    budgets = sorted(set(results["epsilon"]))
    yield _row(["method", *(f"budget {budget:g}" for budget in budgets), "refused"])
    yield _row(["---"] * (len(budgets) + 2))
    private = results[results["synthesizer"] != "gaussian"]
    for method in _methods(results):
        here = private[private["method"] == method]
        spent = [here.loc[here["epsilon"] == budget, "epsilon_spent"] for budget in budgets]
        ranges = [
            "" if one.dropna().empty else f"{one.min():.3g} to {one.max():.3g}" for one in spent
        ]
        refused = (results.loc[results["method"] == method, "status"] != "ok").sum()
        yield _row([method, *ranges, str(refused)])


def _table(results: pd.DataFrame, measure: str) -> Iterator[str]:
    sign, title = MEASURES[measure]
    better = "more is better" if sign > 0 else "less is better"
    methods = _methods(results)
    yield f"\n## {title} ({better})\n"
    yield _row(["data", "synthesizer", "epsilon", "rows", *methods])
    yield _row(["---"] * (4 + len(methods)))
    for cell, wide in _cells(results, measure):
        shown = []
        for method in methods:
            text = _mean(wide[method]) if method in wide else ""
            if measure in JUDGED and _is_rival(method) and _lead(wide, method, sign) < -2:
                text += " **!**"
            shown.append(text)
        data, synthesizer, epsilon, multiple = cell
        yield _row([data, synthesizer, f"{epsilon:g}", f"{multiple} n", *shown])


def _verdicts(results: pd.DataFrame) -> Iterator[str]:
    """For every measure and rival: in how many cells moments is better, level, worse."""
    yield f"\n## {OURS} against each: cells better / within two standard errors / worse\n"
    rivals = [method for method in _methods(results) if _is_rival(method)]
    yield _row(["measure", *rivals])
    yield _row(["---"] * (1 + len(rivals)))
    worse: list[str] = []
    for measure in JUDGED:
        sign, title = MEASURES[measure]
        counts = {rival: [0, 0, 0] for rival in rivals}
        for cell, wide in _cells(results, measure):
            for rival in rivals:
                lead = _lead(wide, rival, sign)
                if math.isnan(lead):
                    continue
                counts[rival][0 if lead > 2 else 2 if lead < -2 else 1] += 1
                if lead < -2:
                    data, synthesizer, epsilon, multiple = cell
                    place = f"{data}, {synthesizer}, epsilon {epsilon:g}, {multiple} n"
                    worse.append(f"- {title}: {place}: {rival} by {-lead:.1f} standard errors")
        yield _row([title, *(" / ".join(map(str, counts[rival])) for rival in rivals)])
    yield f"\n{OURS} is worse by more than two standard errors in {len(worse)} comparisons.\n"
    yield from worse


def _is_rival(method: str) -> bool:
    # Other settings of ours are shown, but it is not judged against itself.
    return method != PUBLISHED and not method.startswith(OURS)


def _cells(results: pd.DataFrame, measure: str) -> Iterator[tuple[Any, pd.DataFrame]]:
    """Every setting with a row a seed and a column a method."""
    for cell, rows in results[results["status"] == "ok"].groupby(CELL, sort=False):
        yield cell, rows.pivot_table(index="seed", columns="method", values=measure)


def _lead(wide: pd.DataFrame, rival: str, sign: int) -> float:
    """By how many standard errors moments is better; not a number when there are too few."""
    if OURS not in wide or rival not in wide:
        return math.nan
    difference = sign * (wide[OURS] - wide[rival]).dropna()
    if len(difference) < 2:
        return math.nan
    error = difference.std(ddof=1) / math.sqrt(len(difference))
    # Equal in every seed: neither is ahead.
    return float(difference.mean() / error) if error > 0 else 0.0


def _split_table(shares: pd.DataFrame, measure: str) -> Iterator[str]:
    sign, title = MEASURES[measure]
    columns = sorted(set(shares["share"]))
    yield f"\n## {title} ({'more' if sign > 0 else 'less'} is better)\n"
    header = [f"share {share:.0%}" for share in columns]
    yield _row(["data", "synthesizer", "epsilon", "rows", *header])
    yield _row(["---"] * (4 + len(columns)))
    for cell, rows in shares.groupby(CELL, sort=False):
        data, synthesizer, epsilon, multiple = cell
        means = [_mean(rows.loc[rows["share"] == share, measure]) for share in columns]
        yield _row([data, synthesizer, f"{epsilon:g}", f"{multiple} n", *means])


def _draw(results: pd.DataFrame, path: Path) -> None:
    """A panel a measure and synthesizer: how much better than the table without weights."""
    plt = pyplot()
    shown = ["wasserstein", "mean_error", "marginal_error", "coefficient_error", *SCORES]
    most = results["multiple"].max()
    here = results[(results["status"] == "ok") & (results["multiple"] == most)]
    methods = [m for m in _methods(here) if m != UNIFORM]
    if not methods or here.empty:
        return
    synthesizers = list(dict.fromkeys(here["synthesizer"]))
    places = list(dict.fromkeys(zip(here["data"], here["epsilon"], strict=True)))
    figure, axes = plt.subplots(
        len(shown),
        len(synthesizers),
        figsize=(2 + max(2.2, 0.2 * len(places)) * len(synthesizers), 2.1 * len(shown) + 1),
        sharex=True,
        sharey="row",
        squeeze=False,
    )
    colours = dict(zip(methods, plt.get_cmap("tab10").colors, strict=False))
    for i, measure in enumerate(shown):
        for j, synthesizer in enumerate(synthesizers):
            axis = axes[i, j]
            panel = here[here["synthesizer"] == synthesizer]
            for cell, wide in _cells(panel, measure):
                if UNIFORM not in wide:
                    continue
                x = places.index((cell[0], cell[2]))
                for k, method in enumerate(m for m in methods if m in wide):
                    gain, error = _gain(wide, method, measure)
                    offset = 0.7 * ((k + 0.5) / len(methods) - 0.5)
                    axis.errorbar(
                        x + offset, gain, yerr=error, fmt="o", ms=3, lw=0.8, color=colours[method]
                    )
            axis.axhline(0, color="grey", lw=0.8, zorder=0)
            for edge in range(1, len(places)):
                axis.axvline(edge - 0.5, color="#eeeeee", lw=0.6, zorder=0)
            if i == 0:
                axis.set_title(synthesizer)
            if j == 0:
                unit = "difference" if measure in SCORES else "log2 ratio"
                axis.set_ylabel(f"{measure.replace('_', ' ')}\n({unit})", fontsize=8)
            if i == len(shown) - 1:
                labels = [f"{data} {epsilon:g}" for data, epsilon in places]
                axis.set_xticks(range(len(places)), labels, rotation=90, fontsize=7)
            axis.tick_params(labelsize=7)
            if measure not in SCORES:
                axis.set_yscale("symlog", linthresh=1)
                axis.set_yticks([-8, -3, -1, 0, 1, 3, 8], ["-8", "-3", "-1", "0", "1", "3", "8"])
            else:
                axis.set_yscale("symlog", linthresh=0.05)
                axis.set_yticks([-1, -0.1, 0, 0.1, 1], ["-1", "-0.1", "0", "0.1", "1"])
            axis.minorticks_off()
    handles = [
        plt.Line2D([], [], marker="o", ls="", color=colours[method], label=method)
        for method in methods
    ]
    figure.suptitle(
        f"Above zero: better than the same {most} n rows\nwithout weights (mean ± standard error)",
        fontsize=9,
    )
    columns = max(1, min(len(methods), int(figure.get_figwidth() / 1.7)))
    figure.legend(handles=handles, loc="lower center", ncol=columns, fontsize=8)
    figure.tight_layout(rect=(0, 0.05, 1, 0.99))
    figure.savefig(path, dpi=150)
    plt.close(figure)


def _gain(wide: pd.DataFrame, method: str, measure: str) -> tuple[float, float]:
    """How much better than uniform: a difference of scores, or a ratio of errors by doublings."""
    if measure in SCORES:
        gains = wide[method] - wide[UNIFORM]
    else:
        gains = (wide[UNIFORM] / wide[method]).map(math.log2)
    gains = gains.dropna()
    error = gains.std(ddof=1) / math.sqrt(len(gains)) if len(gains) > 1 else 0.0
    return float(gains.mean()), float(error)


def _draw_split(shares: pd.DataFrame, path: Path) -> None:
    """A panel a measure and table: a line a synthesizer and budget, over the share."""
    if shares.empty:
        return
    plt = pyplot()
    shown = ["wasserstein", "mean_error", "marginal_error", "coefficient_error", *SCORES]
    here = shares[shares["multiple"] == shares["multiple"].max()]
    sets = list(dict.fromkeys(here["data"]))
    lines = list(dict.fromkeys(zip(here["synthesizer"], here["epsilon"], strict=True)))
    synthesizers = list(dict.fromkeys(here["synthesizer"]))
    colours = dict(zip(synthesizers, plt.get_cmap("tab10").colors, strict=False))
    budgets = sorted(set(here["epsilon"]))
    styles = dict(zip(budgets, ("-", "--", ":", "-."), strict=False))
    figure, axes = plt.subplots(
        len(shown),
        len(sets),
        figsize=(1.5 + 2.6 * len(sets), 2 * len(shown) + 1),
        sharex=True,
        squeeze=False,
    )
    for i, measure in enumerate(shown):
        for j, data in enumerate(sets):
            axis = axes[i, j]
            for synthesizer, epsilon in lines:
                rows = here[
                    (here["data"] == data)
                    & (here["synthesizer"] == synthesizer)
                    & (here["epsilon"] == epsilon)
                ]
                grouped = rows.groupby("share")[measure]
                axis.errorbar(
                    grouped.mean().index,
                    grouped.mean(),
                    yerr=grouped.sem().fillna(0),
                    ls=styles[epsilon],
                    color=colours[synthesizer],
                    marker="o",
                    ms=3,
                    lw=1,
                    label=f"{synthesizer}, epsilon {epsilon:g}",
                )
            axis.tick_params(labelsize=7)
            if i == 0:
                axis.set_title(data)
            if j == 0:
                axis.set_ylabel(measure.replace("_", " "), fontsize=8)
            if i == len(shown) - 1:
                axis.set_xlabel("share of the weights", fontsize=8)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    columns = max(1, min(len(lines), int(figure.get_figwidth() / 1.7)))
    figure.legend(handles, labels, loc="lower center", ncol=columns, fontsize=8)
    figure.tight_layout(rect=(0, 0.05, 1, 1))
    figure.savefig(path, dpi=150)
    plt.close(figure)


def pyplot() -> Any:
    """matplotlib, drawing to files."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    return pyplot


def _mean(values: pd.Series) -> str:
    values = values.dropna()
    if values.empty:
        return ""
    error = f" ± {values.std(ddof=1) / math.sqrt(len(values)):.2g}" if len(values) > 1 else ""
    return f"{values.mean():.4g}{error}"


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _save(lines: Iterable[str], path: Path) -> None:
    text = "\n".join(lines) + "\n"
    path.write_text(text)
    print(text)
