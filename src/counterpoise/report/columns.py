"""A column on the page: its chart without weights and with them, its nulls, and some of its rows.

Shares are of all rows, nulls included. Their error bars come from the replicate weights, by the
convention of every estimate, and are 95% intervals. However fine a column's bins, or many its
categories, the chart stays small: neighbours are drawn together, and so are small categories.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from markupsafe import Markup
from scipy import sparse

from counterpoise.analysis.replication import Design, multiplier, standard_errors
from counterpoise.report.charts import categories
from counterpoise.report.histograms import Bars, find_atoms, groups, histogram
from counterpoise.report.scales import Axis, axis_of, number_text
from counterpoise.schema.bins import number

if TYPE_CHECKING:
    from counterpoise.bundle.release import Release
    from counterpoise.schema import Column

# More categories than this are shown as the largest, and the others together.
MOST_CATEGORIES = 8
# A bar of a column that has a shape holds this part of its rows or less, single values aside.
SHAPE_BARS = 30
# Longer texts, such as names of categories, are cut.
MOST_LETTERS = 120
# So many rows are shown as they are, and so many of their columns and letters.
SHOWN_ROWS, SHOWN_COLUMNS, SHOWN_LETTERS = 10, 20, 24

# Rows that are added up at a time: in single precision, before they go to double.
_BLOCK = 65_536


def column_card(release: Release, column: Column) -> dict[str, Any]:
    """A column of the synthetic table over its codes, without weights and with them."""
    # The page shows every category for itself, and numbers by their shape, whatever codes they
    # share in relations.
    schema = release.schema.plain.select([column.name])
    stated, column = column, as_drawn(schema[column.name].ungrouped)
    schema = schema.replace(column)
    codes = schema.encode(release.table).codes[:, 0]
    plain = np.bincount(codes, minlength=column.size) / max(len(codes), 1)
    weighted = np.bincount(codes, weights=release.weights, minlength=column.size)
    weighted = weighted / max(weighted.sum(), 1e-300)
    draw = _numbers if column.is_numeric else _categories
    chart, drawn = draw(release, column, codes, plain, weighted)
    return {
        **known(stated),
        "drawn": drawn,
        "chart": chart,
        "nulls": (
            f"no value (null): {_both(plain[column.cells], weighted[column.cells])}"
            if column.nullable
            else ""
        ),
        # total variation: the part of the rows that the weights move to other values
        "moved": float(np.abs(plain - weighted).sum() / 2),
    }


def as_drawn(column: Column) -> Column:
    """The column in bars that follow its shape: none thinner than it has to be, none half empty."""
    shape = column.shape
    if shape is None:
        return column
    shares = np.array(shape.shares) / sum(shape.shares)
    edges, held = [shape.edges[0]], 0.0
    atoms = find_atoms(column.kind, np.array([number(edge) for edge in shape.edges]))
    for place, share in enumerate(shares[:-1], start=1):
        if share == 0 and atoms[place - 1]:
            continue  # nobody has this value, so it is no end of a bar
        held += share
        ends = (share > 0) != (shares[place] > 0)
        if ends or held >= 1 / SHAPE_BARS or share >= 1 / SHAPE_BARS <= shares[place]:
            edges.append(shape.edges[place])
            held = 0.0
    return replace(column, bins=(*edges, shape.edges[-1]), shape=None)


def known(column: Column) -> dict[str, Any]:
    """What is publicly known of a column."""
    return {
        "name": cut(column.name),
        "kind": column.kind,
        "domain": _domain(column),
        "nullable": column.nullable,
        "paid": [key for key, source in column.sources if source == "paid"],
    }


def null_shares(release: Release, column: Column) -> str:
    """The share of nulls of a column, without weights and with them, in words."""
    if not column.nullable:
        return "none"
    nulls = release.table[column.name].isna().to_numpy()
    plain = float(nulls.mean()) if len(nulls) else 0.0
    weighted = float(release.weights @ nulls / max(release.weights.sum(), 1e-300))
    return _both(plain, weighted)


def _both(plain: float, weighted: float) -> str:
    """A share of the rows, and with their weights where that is another one."""
    texts = f"{plain:.1%}", f"{weighted:.1%}"
    return texts[0] if texts[0] == texts[1] else f"{texts[0]}, weighted {texts[1]}"


def sample_rows(release: Release) -> dict[str, Any]:
    """The first rows, as texts, of the first columns, and the weight."""
    shown = release.schema.settled.columns[:SHOWN_COLUMNS]
    first = release.table.head(SHOWN_ROWS)
    texts = [[_value_text(column, value) for value in first[column.name]] for column in shown]
    weights = [number_text(float(weight)) for weight in first["weight"]]
    return {
        "names": [*(cut(column.name, 2 * SHOWN_LETTERS) for column in shown), "weight"],
        "rows": list(zip(*texts, weights, strict=True)),
        "more": len(release.schema) - len(shown),
    }


def cut(text: str, most: int = MOST_LETTERS) -> str:
    """A text, or its beginning where it is too long.

    >>> cut("abcdef", 4)
    'abc…'
    """
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _numbers(
    release: Release, column: Column, codes: np.ndarray, plain: np.ndarray, weighted: np.ndarray
) -> tuple[Markup, str]:
    edges, cells = column.edges, column.cells
    starts = groups(column.kind, edges, weighted[:cells])
    ends = edges[np.append(starts, cells)]
    group_of = np.searchsorted(starts, np.arange(column.size), side="right") - 1
    group_of[cells:] = -1
    shares, own = (np.add.reduceat(each[:cells], starts) for each in (plain, weighted))
    errors = _errors(release, group_of[codes], len(starts))
    seen = np.flatnonzero((shares > 0) | (own > 0))
    if len(seen) and ends[seen[-1] + 1] - ends[seen[0]] < (ends[-1] - ends[0]) / 2:
        # Generous bounds would leave nothing to be seen but the emptiness between them.
        part = slice(seen[0], seen[-1] + 1)
        ends, shares, own, errors = (
            ends[seen[0] : seen[-1] + 2],
            shares[part],
            own[part],
            errors[part],
        )
    bars = Bars(column.kind, ends, shares, own, errors, find_atoms(column.kind, ends))
    drawn = f", drawn as {len(starts)} bars" if len(starts) < cells else ""
    axis = axis_of(bars.kind, bars.edges, bars.weighted, bars.atoms)
    if axis.turn is not None:
        drawn += ", on a logarithmic scale"
    return histogram(bars, _numbers_said(cut(column.name), bars)), drawn


def _categories(
    release: Release, column: Column, codes: np.ndarray, plain: np.ndarray, weighted: np.ndarray
) -> tuple[Markup, str]:
    labels = [cut(label) for label in column.code_labels()]
    shown = np.arange(column.cells)
    if column.cells > MOST_CATEGORIES:
        order = np.argsort(-weighted[: column.cells], kind="stable")
        shown = np.sort(order[: MOST_CATEGORIES - 1])
    group_of = np.full(column.size, len(shown))
    group_of[shown] = np.arange(len(shown))
    group_of[column.cells :] = -1
    others = column.cells - len(shown)
    lines = [labels[place] for place in shown] + [f"{others:,} others"] * (others > 0)
    there = group_of >= 0
    grey, blue = (
        np.bincount(group_of[there], weights=each[there], minlength=len(lines))
        for each in (plain, weighted)
    )
    errors = _errors(release, group_of[codes], len(lines))
    largest = np.argsort(-blue, kind="stable")[:3]
    said = ", ".join(f"{lines[place]} {blue[place]:.0%}" for place in largest)
    said = f"Bars of {cut(column.name)}, weighted; the largest: {said}"
    return categories(grey, blue, lines, errors, said), ""


def _errors(release: Release, groups: np.ndarray, count: int) -> np.ndarray:
    """Half the 95% interval of the weighted share of every group; rows of group -1 are in none."""
    design = Design(release.weights, release.replicates, release.replicate_part)
    replicates, number = release.replicates, design.count
    if replicates is None or not replicates.size:
        return np.full(count, np.nan)
    inside, whole = np.zeros((count, 2 + number)), np.zeros(2 + number)
    for start in range(0, len(groups), _BLOCK):
        rows = slice(start, start + _BLOCK)
        block = groups[rows]
        there = block >= 0
        both = np.column_stack([release.weights[rows], np.ones(len(block)), replicates[rows]])
        belongs = sparse.csr_matrix(
            (np.ones(int(there.sum())), (block[there], np.flatnonzero(there))),
            shape=(count, len(block)),
        )
        inside += belongs @ both
        whole += both.sum(axis=0)
    shares = design.whole_way(inside / np.maximum(whole, 1e-300))
    return multiplier(0.95, number) * standard_errors(shares)


def _numbers_said(name: str, bars: Bars) -> str:
    """What a histogram shows, for those who do not see it."""
    total = float(bars.weighted.sum())
    if not total > 0:
        return f"Histogram of {name}, which has no values"
    below = np.cumsum(bars.weighted) / total
    labels = bars.labels
    low, middle, high = (
        labels[min(int(np.searchsorted(below, part)), len(labels) - 1)] for part in (0.1, 0.5, 0.9)
    )
    # The ends are labels of bars, as "20 to 24" is.
    said = f"in {low}" if low == high else f"between {low} and {high}"
    return (
        f"Histogram of {name}, weighted: the middle value is in {middle}; four fifths of the "
        f"values are {said}"
    )


def _domain(column: Column) -> str:
    unit = f" {cut(column.unit, 24)}" if column.unit else ""
    if column.kind == "identifier":
        return "made up, from nobody"
    if column.expression is not None:
        return f"= {cut(column.expression)}{unit}"
    if not column.is_numeric:
        among = f", {column.cells:,} codes in relations" if column.grouping is not None else ""
        return f"{column.ungrouped.cells:,} categories{unit}{among}"
    axis = Axis(column.kind, column.low, column.high)
    bins = "1 bin" if column.cells == 1 else f"{column.cells:,} bins"
    return f"{axis.text(column.low)} to {axis.text(column.high)}{unit}, {bins}"


def _value_text(column: Column, value: Any) -> str:
    if pd.isna(value):
        return "null"
    if column.kind in ("integer", "continuous"):
        return Axis(column.kind, column.low, column.high).text(value)
    if column.kind == "datetime":
        return str(pd.Timestamp(value).floor("s"))
    if column.kind == "date":
        return str(pd.Timestamp(value).date())
    return cut(str(value), SHOWN_LETTERS)
