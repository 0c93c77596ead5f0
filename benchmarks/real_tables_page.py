"""Answers of releases beside the truth, as tables of a question each, for a terminal or a page.

Errors are means over seeds. Of the three quantiles the worst counts; "within" says of how many
columns it is no more than 3% of the 10-90 range. A mean is answered when it is within 15%, or when
its 95% interval holds the truth. Intervals are judged against the law that the private tables were
drawn from, sampling included, and against the private table's own value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np
import pandas as pd

import awkward_tables
from release_errors import DISTANCE, MEAN, QUANTILES, RANKS, SHARE

WITHIN_QUANTILE, WITHIN_MEAN = 0.03, 0.15
SETTING = ["columns", "rows", "epsilon", "wide", "coding"]
# A few tables of each of many settings say something of intervals only together.
POOLED = ["coding", "family"]
CAUTIOUS_PART = 0.1
# Where columns are shown one by one, if it is among the settings.
SHOWN_ROWS, SHOWN_EPSILON = 20_000, 1.0
KINDS = (MEAN, *QUANTILES, SHARE)

Tables = dict[str, pd.DataFrame]


def grid(releases: pd.DataFrame, found: pd.DataFrame) -> Tables:
    """What generated tables showed."""
    judged = against_law(found)
    here = (judged["rows"] == SHOWN_ROWS) & (judged["epsilon"] == SHOWN_EPSILON)
    shown = judged[here] if here.any() else judged
    return {
        "How far off are quantiles, and means?": _overall(judged, SETTING),
        "How far off are the quantiles of each column?": _by_column(shown, QUANTILES),
        "How far off is the mean of each column?": _by_column(shown, (MEAN,)),
        "Do 95% intervals hold the law's value?": _coverage(judged, "held_law", POOLED),
        "Do 95% intervals hold the private table's value?": _coverage(judged, "held", POOLED),
        "What do weights and replicates rest on?": _weights(releases, SETTING),
        "Are relations kept?": _relations(judged, SETTING),
        "What does a release cost?": _costs(releases, SETTING),
    }


def coverage(releases: pd.DataFrame, found: pd.DataFrame) -> Tables:
    """How often intervals of generated tables hold the truth, by family and statistic."""
    judged, each = against_law(found), [*SETTING, "family"]
    return {
        "Do 95% intervals of all families together hold the law's value?": _coverage(
            judged, "held_law", SETTING
        ),
        "Do 95% intervals hold the law's value?": _coverage(judged, "held_law", each),
        "Do 95% intervals hold the private table's value?": _coverage(judged, "held", each),
        "How wide are they, as a part of what errors are measured by?": _by_kind(
            judged, lambda here: _short(here["width"].median()), each
        ),
        "What do weights and replicates rest on?": _weights(releases, SETTING),
    }


def public(releases: pd.DataFrame, found: pd.DataFrame) -> Tables:
    """What public tables showed; their law is not known."""
    setting = ["source", "epsilon", "coding"]
    judged = with_errors(found)
    scores = releases[releases["score"].notna()].groupby(setting, sort=False, as_index=False)
    scored = scores[["score", "score_alone"]].agg("mean").round(1)
    question = "What is the 3-marginal score of the census excerpt, of 1000?"
    return {
        "How far off are quantiles, and means?": _overall(judged, setting),
        "How far off are the quantiles of each column?": _by_column(judged, QUANTILES),
        "How far off is the mean of each column?": _by_column(judged, (MEAN,)),
        **({} if scored.empty else {question: scored}),
        "What do weights and replicates rest on?": _weights(releases, setting),
        "Are relations kept?": _relations(judged, setting),
        "What does a release cost?": _costs(releases, setting),
    }


def with_errors(found: pd.DataFrame) -> pd.DataFrame:
    """Errors with weights and alone, whether the interval holds the table's value, its width."""
    kinds = found["statistic"].where(~found["statistic"].str.startswith(SHARE), SHARE)
    return found.assign(
        kind=kinds,
        error=(found["value"] - found["truth"]).abs() / found["scale"],
        error_alone=(found["alone"] - found["truth"]).abs() / found["scale"],
        has_interval=found["low"].notna(),
        held=(found["low"] <= found["truth"]) & (found["truth"] <= found["high"]),
        width=(found["high"] - found["low"]) / found["scale"],
    )


def against_law(found: pd.DataFrame) -> pd.DataFrame:
    """The same, with the family of each column, and whether the interval holds the law's value."""
    laws = pd.concat(awkward_tables.law(wide).assign(wide=wide) for wide in found["wide"].unique())
    laws = laws.rename(columns={"truth": "law"}).drop(columns="scale")
    joined = with_errors(found).merge(laws, how="left", on=["wide", "column", "statistic"])
    families = {name: each.family for name, each in awkward_tables.FAMILIES.items()}
    return joined.assign(
        family=joined["column"].map(families),
        held_law=(joined["low"] <= joined["law"]) & (joined["law"] <= joined["high"]),
    )


def markdown(tables: Tables, releases: pd.DataFrame) -> str:
    """A page of the tables."""
    seeds = releases.groupby([c for c in ("source", *SETTING) if c in releases])["seed"].nunique()
    lines = ["# Real tables", "", (__doc__ or "").split("\n\n", 1)[1].strip(), ""]
    lines += [f"{int(seeds.min())} to {int(seeds.max())} tables a setting."]
    for question, table in tables.items():
        lines += ["", f"## {question}", "", _row(table.columns)]
        lines += [_row(["---"] * len(table.columns))]
        lines += [_row(cells) for cells in table.astype(str).itertuples(index=False)]
    return "\n".join(lines) + "\n"


def _overall(judged: pd.DataFrame, setting: list[str]) -> pd.DataFrame:
    rows = []
    for key, here in judged.groupby(setting, sort=False):
        quantiles = here[here["kind"].isin(QUANTILES)]
        worst = quantiles.groupby(["column", "kind"])[["error", "error_alone"]].mean()
        worst = worst.groupby("column").max()
        means = here[here["kind"] == MEAN]
        close = means["error"] <= WITHIN_MEAN
        rows.append(
            dict(zip(setting, key, strict=True))
            | {
                "quantiles within": _of(worst["error"] <= WITHIN_QUANTILE),
                "alone": _of(worst["error_alone"] <= WITHIN_QUANTILE),
                "median column": _short(worst["error"].median()),
                "worst column": _short(worst["error"].max()),
                "it is": worst["error"].idxmax(),
                "means within 15%": _part(close),
                "or held": _part(close | means["held"]),
                "means' median error": _short(means["error"].median()),
                "alone, too": _short(means["error_alone"].median()),
            }
        )
    return pd.DataFrame(rows)


def _by_column(judged: pd.DataFrame, statistics: Iterable[str]) -> pd.DataFrame:
    """The worst error of the statistics of each column, a pair of columns for each coding."""
    here = judged[judged["kind"].isin(statistics)]
    index = [c for c in ("source", "columns", "rows", "epsilon", "wide") if here[c].nunique() > 1]
    keys = [*index, "column", "coding"]
    errors = here.groupby([*keys, "kind"], sort=False)[["error", "error_alone"]].mean()
    worst = errors.groupby(keys, sort=False).max()
    shown = pd.DataFrame(index=worst.index.droplevel("coding").unique())
    for coding in dict.fromkeys(here["coding"]):
        one = worst.xs(coding, level="coding")
        shown[coding] = one["error"].map(_short)
        shown[f"{coding}, alone"] = one["error_alone"].map(_short)
    return shown.fillna("").reset_index()


def _coverage(judged: pd.DataFrame, held: str, index: list[str]) -> pd.DataFrame:
    """Parts of the intervals that hold the truth; those that are not there do not count.

    The standard error is binomial, by the number of tables, as answers of one table hang together.
    It is of (k + 2) / (n + 4), so that none is zero.
    """

    def cell(here: pd.DataFrame) -> str:
        there = here[here["has_interval"]]
        if there.empty:
            return "no interval"
        part, count = there[held].mean(), _tables(there)
        centre = (part * count + 2) / (count + 4)
        error = math.sqrt(centre * (1 - centre) / (count + 4))
        none = 1 - len(there) / len(here)
        return f"{part:.2f} ± {error:.2f}" + (f" ({none:.0%} none)" if none else "")

    return _by_kind(judged, cell, index)


def _by_kind(
    judged: pd.DataFrame, cell: Callable[[pd.DataFrame], str], index: list[str]
) -> pd.DataFrame:
    rows = []
    for key, here in judged[judged["kind"].isin(KINDS)].groupby(index, sort=False):
        line = dict(zip(index, key, strict=True)) | {"tables": _tables(here)}
        for kind in KINDS:
            asked = here[here["kind"] == kind]
            line[kind] = cell(asked) if len(asked) else ""
        rows.append(line)
    return pd.DataFrame(rows)


def _weights(releases: pd.DataFrame, setting: list[str]) -> pd.DataFrame:
    rows = []
    for key, here in releases.groupby(setting, sort=False):
        parts = here["worst_before_bounding"] / here["effective_rows"]
        low = parts < CAUTIOUS_PART
        verdicts = here["verdict"].value_counts()
        rows.append(
            dict(zip(setting, key, strict=True))
            | {
                "effective rows": _percent((here["effective_rows"] / here["made_rows"]).median()),
                "worst replicate, of these": _percent(parts.min()),
                "below a tenth": _part(low),
                "and called fine": int((low & (here["verdict"] == "fine")).sum()),
                "verdicts": ", ".join(f"{count} {level}" for level, count in verdicts.items()),
            }
        )
    return pd.DataFrame(rows)


def _relations(judged: pd.DataFrame, setting: list[str]) -> pd.DataFrame:
    rows = []
    for key, here in judged.groupby(setting, sort=False):
        ranks, distances = here[here["kind"] == RANKS], here[here["kind"] == DISTANCE]
        rows.append(
            dict(zip(setting, key, strict=True))
            | {
                "rank correlations": f"{ranks['error'].mean():.3f}",
                "alone": f"{ranks['error_alone'].mean():.3f}",
                "worst": f"{ranks['error'].max():.3f}",
                "worst alone": f"{ranks['error_alone'].max():.3f}",
                "categories' distance": f"{distances['error'].mean():.3f}",
                "distance alone": f"{distances['error_alone'].mean():.3f}",
                "largest distance": f"{distances['error'].max():.3f}",
            }
        )
    return pd.DataFrame(rows)


def _costs(releases: pd.DataFrame, setting: list[str]) -> pd.DataFrame:
    costs = releases.groupby(setting, sort=False).agg(
        seconds=("seconds", "mean"), slowest=("seconds", "max"), peak_mb=("peak_mb", "max")
    )
    shown = costs.round(1).rename(columns={"seconds": "CPU s", "peak_mb": "peak MB"})
    return shown.reset_index()


def _tables(found: pd.DataFrame) -> int:
    return len(found[[*SETTING, "seed"]].drop_duplicates())


def _of(claims: pd.Series) -> str:
    return f"{int(claims.sum())} of {len(claims)}"


def _part(claims: pd.Series) -> str:
    return f"{claims.mean():.0%}"


def _percent(part: float) -> str:
    return f"{part:.1%}"


def _short(number: float) -> str:
    """Three decimals, or fewer where a number is large."""
    if np.isnan(number):
        return ""
    return f"{number:.3f}" if number < 10 else f"{number:,.0f}"


def _row(cells: Iterable[object]) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"
