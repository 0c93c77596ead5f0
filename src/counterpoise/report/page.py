"""The released page: what a release holds and what it cost, in one self-contained file.

Computed from the release alone, so there is nothing private in it; no scripts, nothing loaded
from elsewhere. It says how far the weights can be trusted in plain words, shows every column with
and without them, and how to go on in Python, R and SQL.
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

if TYPE_CHECKING:
    from counterpoise.bundle.release import Release
    from counterpoise.schema import Column

# More categories than this are shown as the largest, and the others together.
MOST_CATEGORIES = 8

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
        private=release.private,
        rows=len(release.table),
        columns=[_column(release, column) for column in release.schema],
        budget=ledger.budget.to_dict(),
        spent=ledger.epsilon_spent,
        tighter=ledger.tighter_epsilon,
        spends=ledger.to_frame().to_dict("records"),
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
    facts.append(
        f"{replicates} replicate weights give every estimate an interval that includes the "
        "privacy noise."
        if replicates
        else "There are no replicate weights, and so no honest intervals."
    )
    return {
        "kind": kind,
        "headline": headline,
        "reason": _sentence(verdict.get("reason", "")),
        "way_out": _sentence(verdict.get("way_out", "")),
        "facts": facts,
        "chart": weights_histogram(weights) if differ else None,
    }


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
        "name": name,
        "kind": column.kind,
        "domain": _domain(column),
        "nullable": column.nullable,
        "paid": [key for key, source in column.sources if source == "paid"],
        "chart": _chart(column, plain[: column.cells], weighted[: column.cells]),
        "null_shares": (
            (float(plain[column.cells]), float(weighted[column.cells])) if column.nullable else None
        ),
        # total variation: the part of the rows that the weights move to other values
        "moved": float(np.abs(plain - weighted).sum() / 2),
    }


def _chart(column: Column, plain: np.ndarray, weighted: np.ndarray) -> Markup:
    labels = column.code_labels()
    if column.is_numeric:
        return histogram(plain, weighted, labels, (str(column.minimum), str(column.maximum)))
    if len(labels) <= MOST_CATEGORIES:
        return categories(plain, weighted, labels)
    largest = np.sort(np.argsort(-weighted, kind="stable")[: MOST_CATEGORIES - 1])
    others = np.setdiff1d(np.arange(len(labels)), largest)
    return categories(
        np.append(plain[largest], plain[others].sum()),
        np.append(weighted[largest], weighted[others].sum()),
        [*(labels[place] for place in largest), f"{len(others)} others"],
    )


def _domain(column: Column) -> str:
    if column.is_numeric:
        return f"{column.minimum} to {column.maximum}, {column.cells} bins"
    return f"{column.cells} categories"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "." if text else ""
