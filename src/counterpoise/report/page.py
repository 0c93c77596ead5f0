"""The released page: what a release holds and what it cost, in one self-contained file.

Computed from the release alone, so there is nothing private in it; no scripts, nothing loaded
from elsewhere. It says how far the weights can be trusted in plain words, shows every column with
and without them, and how to go on in Python, R and SQL. However wide the table and fine its bins,
it stays a page: bins are drawn together, and lists end with how many more there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jinja2
import numpy as np
from markupsafe import Markup

from counterpoise.report.charts import (
    STAGE_COLOURS,
    budget_bar,
    categories,
    histogram,
    pair_of_bars,
    weights_histogram,
)
from counterpoise.report.relations import changed_relations
from counterpoise.report.snippets import Snippets
from counterpoise.schema.bins import labels as bin_labels

if TYPE_CHECKING:
    from counterpoise.bundle.release import Release
    from counterpoise.schema import Column

# More categories than this are shown as the largest, and the others together.
MOST_CATEGORIES = 8

# More bins than this are drawn as so many bars, each of about as many neighbours.
MOST_BARS = 100
# More columns than this are not drawn, and more lines of a table not listed.
MOST_COLUMNS = 120
MOST_LINES = 300
# Longer texts, such as names of categories, are cut.
MOST_LETTERS = 120

# A smaller change of a relation is not worth a line.
LEAST_CHANGE = 0.005

_VERDICTS = {
    "fine": ("fine", "The weights can be used."),
    "caution": ("caution", "Use the weights with caution."),
    "do not use": ("refuse", "Do not use the weights."),
}

_environment = jinja2.Environment(
    loader=jinja2.PackageLoader("counterpoise.report"), autoescape=True, trim_blocks=True
)


def release_page(release: Release) -> str:
    """The page of a release, as HTML."""
    ledger = release.ledger
    stages = _by_stage(release)
    count = 0 if release.replicates is None else release.replicates.shape[1]
    return _environment.get_template("release.html").render(
        guarantee=release.guarantee,
        seeded=not ledger.private,
        rows=len(release.table),
        columns=[_column(release, column) for column in release.schema.columns[:MOST_COLUMNS]],
        known=[_known(column) for column in release.schema.columns[:MOST_LINES]],
        width=len(release.schema),
        budget=ledger.budget.to_dict(),
        spent=ledger.epsilon_spent,
        tighter=ledger.tighter_epsilon,
        spends=[
            spend | {"query": _cut(str(spend["query"]), 4 * MOST_LETTERS)}
            for spend in ledger.to_frame().head(MOST_LINES).to_dict("records")
        ],
        looks=len(ledger.to_frame()),
        bar=budget_bar(stages, ledger.budget.epsilon),
        stages=[
            (stage, epsilon, STAGE_COLOURS[place % len(STAGE_COLOURS)])
            for place, (stage, epsilon) in enumerate(stages.items())
        ],
        weights=_weights(release, count),
        relations=_relations(release),
        replicates=count,
        snippets=Snippets(release.schema, count),
        card=release.card,
    )


def _by_stage(release: Release) -> dict[str, float]:
    """Epsilon so far, cut into what each stage added to it."""
    added: dict[str, float] = {}
    before = 0.0
    for spend in release.ledger.to_frame().to_dict("records"):
        stage, so_far = str(spend["stage"]), float(spend["epsilon so far"])
        added[stage] = added.get(stage, 0.0) + so_far - before
        before = so_far
    return added


def _weights(release: Release, replicates: int) -> dict[str, Any]:
    """The weights in plain words, and a chart of them where they differ."""
    card, weights, rows = release.card["weights"], release.weights, len(release.table)
    differ = rows > 0 and bool(np.ptp(weights) > 1e-9)
    verdict = card.get("verdict") or {}
    kind, headline = _VERDICTS.get(verdict.get("level", ""), ("none", "There is no verdict."))
    if kind == "fine" and not differ:
        headline = "All weights are equal: they change nothing."
    effective = float(card["effective_sample_size"])
    facts = [f"The {rows:,} rows, weighted, count as {effective:,.0f} equally weighted ones."]
    if differ:
        low, middle, high = np.quantile(weights, [0.05, 0.5, 0.95])
        facts.append(
            f"Nine rows of ten have a weight between {low:.2g} and {high:.2g}; the middle one is "
            f"{middle:.2g}, the largest {weights.max():.3g}."
        )
        facts.append(f"The heaviest row has {card['largest_share']:.2%} of all the weight.")
    zeros = int((weights == 0).sum())
    if zeros:
        facts.append(f"{zeros:,} rows have the weight zero and are not used.")
    facts.extend(_replicates(release.card.get("replicates") or {}, replicates))
    return {
        "kind": kind,
        "headline": headline,
        "reason": _sentence(verdict.get("reason", "")),
        "way_out": _sentence(verdict.get("way_out", "")),
        "facts": facts,
        "chart": weights_histogram(weights) if differ else None,
    }


def _replicates(found: dict[str, Any], count: int) -> list[str]:
    """The replicate weights in plain words."""
    if not count:
        return ["There are no replicate weights, and so no honest intervals."]
    facts = [
        f"{count} replicate weights give every estimate an interval that includes the privacy "
        "noise."
    ]
    if "worst_effective_sample_size" in found:
        facts.append(
            "Of these, the middle one counts as "
            f"{found['median_effective_sample_size']:,.0f} equally weighted rows, and the worst of "
            f"them counts as {found['worst_effective_sample_size']:,.0f} rows."
        )
    if found.get("bounded"):
        facts.append(
            f"{found['bounded']} of them counted as too few rows (the worst as "
            f"{found['worst_before_bounding']:,.1f}) and were pulled towards the weights: "
            "intervals may be too narrow."
        )
    return facts


def _relations(release: Release) -> list[tuple[str, Markup, float, float]]:
    """The pairs that the weights change most, with a chart each; none when they change nothing."""
    found = changed_relations(release)
    scale = max([each for pair in found for each in (pair.plain, pair.weighted)], default=0.0)
    return [
        (
            " × ".join(pair.columns),
            pair_of_bars(pair.plain / scale, pair.weighted / scale),
            pair.plain,
            pair.weighted,
        )
        for pair in found
        if abs(pair.weighted - pair.plain) >= LEAST_CHANGE
    ]


def _column(release: Release, column: Column) -> dict[str, Any]:
    """A column of the synthetic table over its codes, without weights and with them."""
    name = column.name
    codes = release.schema.select([name]).encode(release.table).codes[:, 0]
    plain = np.bincount(codes, minlength=column.size) / max(len(codes), 1)
    weighted = np.bincount(codes, weights=release.weights, minlength=column.size)
    weighted = weighted / max(weighted.sum(), 1e-300)
    return {
        **_known(column),
        "drawn": (
            f", drawn as {MOST_BARS} bars" if column.is_numeric and column.cells > MOST_BARS else ""
        ),
        "chart": _chart(column, plain[: column.cells], weighted[: column.cells]),
        "null_shares": (
            (float(plain[column.cells]), float(weighted[column.cells])) if column.nullable else None
        ),
        # total variation: the part of the rows that the weights move to other values
        "moved": float(np.abs(plain - weighted).sum() / 2),
    }


def _known(column: Column) -> dict[str, Any]:
    """What is publicly known of a column."""
    return {
        "name": _cut(column.name),
        "kind": column.kind,
        "domain": _domain(column),
        "nullable": column.nullable,
        "paid": [key for key, source in column.sources if source == "paid"],
    }


def _chart(column: Column, plain: np.ndarray, weighted: np.ndarray) -> Markup:
    if column.is_numeric:
        return _bars(column, plain, weighted)
    labels = [_cut(label) for label in column.code_labels()]
    if len(labels) <= MOST_CATEGORIES:
        return categories(plain, weighted, labels)
    largest = np.sort(np.argsort(-weighted, kind="stable")[: MOST_CATEGORIES - 1])
    others = np.setdiff1d(np.arange(len(labels)), largest)
    return categories(
        np.append(plain[largest], plain[others].sum()),
        np.append(weighted[largest], weighted[others].sum()),
        [*(labels[place] for place in largest), f"{len(others):,} others"],
    )


def _bars(column: Column, plain: np.ndarray, weighted: np.ndarray) -> Markup:
    """A histogram of the bins, or of neighbouring bins together where they are very many."""
    count = min(column.cells, MOST_BARS)
    starts = np.arange(count) * column.cells // count
    edges = column.edges[np.append(starts, column.cells)]
    return histogram(
        np.add.reduceat(plain, starts),
        np.add.reduceat(weighted, starts),
        bin_labels(column.kind, edges),
        (str(column.minimum), str(column.maximum)),
    )


def _domain(column: Column) -> str:
    if column.is_numeric:
        return f"{column.minimum} to {column.maximum}, {column.cells:,} bins"
    return f"{column.cells:,} categories"


def _cut(text: str, most: int = MOST_LETTERS) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "." if text else ""
