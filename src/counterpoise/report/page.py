"""The released page: what a release holds and what it cost, in one self-contained file.

Computed from the release alone, so there is nothing private in it; no scripts, nothing loaded
from elsewhere, and a policy by which a browser holds it to that. It says how far the weights can be
trusted in plain words, shows every column with and without them, and how to go on in Python, R and
SQL. However wide the table and fine its bins, it stays a page: bins are drawn together, and lists
end with how many more there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jinja2
import numpy as np
from markupsafe import Markup

from counterpoise.analysis.price import said
from counterpoise.analysis.retarget import described, margin_lines
from counterpoise.analysis.support import IMPLIED, MEASURED, NEVER, UNKNOWN, assumption
from counterpoise.analysis.text import show_range
from counterpoise.arguments import visible
from counterpoise.bundle.card import CHOSEN_FROM, RETARGETED, rows_counted
from counterpoise.bundle.persons import persons_counted
from counterpoise.report.charts import (
    STAGE_COLOURS,
    budget_bar,
    heat_map,
    pair_of_bars,
    shade,
    support_mark,
    weights_histogram,
)
from counterpoise.report.columns import (
    MOST_LETTERS,
    column_card,
    cut,
    known,
    null_shares,
    sample_rows,
)
from counterpoise.report.relations import Relations, relations
from counterpoise.report.snippets import Snippets

if TYPE_CHECKING:
    from counterpoise.bundle.release import Release

# More columns than this are not drawn, and more lines of a table not listed.
MOST_COLUMNS = 120
MOST_LINES = 300
# Of a release whose rows stay in their file, charts are of so many of them.
MOST_SHOWN = 200_000

# A smaller change of a relation is not worth a line.
LEAST_CHANGE = 0.02

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
    count = release.replicate_count
    listed = release.schema.settled.columns[:MOST_LINES]
    # Of very many rows, a part is as good to look at.
    stays = release.stored is not None and release.stored.is_large
    shown = release.part(MOST_SHOWN) if stays else release
    found = relations(shown)
    page = _environment.get_template("release.html").render(
        guarantee=release.guarantee,
        protects=release.protects,
        counted=rows_counted(release.card),
        persons=persons_counted(release.card),
        seeded=not ledger.private,
        rows=release.rows,
        shown=shown.rows,
        columns=[
            column_card(shown, column) for column in release.schema.plain.columns[:MOST_COLUMNS]
        ],
        known=[known(column) | {"nulls": null_shares(shown, column)} for column in listed],
        sample=sample_rows(shown),
        width=len(release.schema),
        budget=ledger.budget.to_dict(),
        spent=ledger.epsilon_spent,
        tighter=ledger.tighter_epsilon,
        spends=[
            spend | {"query": cut(str(spend["query"]), 4 * MOST_LETTERS)}
            for spend in ledger.to_frame().head(MOST_LINES).to_dict("records")
        ],
        looks=len(ledger.to_frame()),
        bar=budget_bar(stages, ledger.budget.epsilon),
        stages=[
            (stage, epsilon, STAGE_COLOURS[place % len(STAGE_COLOURS)])
            for place, (stage, epsilon) in enumerate(stages.items())
        ],
        weights=_weights(release, count),
        heat=_heat(shown, found),
        relations=_changed(found),
        replicates=count,
        snippets=Snippets(release.schema.plain, count, release.replicate_part),
        card=release.card,
        target=_target(release),
        price=said(release.card),
    )
    return visible(page, lines=True)


def _target(release: Release) -> dict[str, Any] | None:
    """What the weights were turned to since, in words, and the margins; None for nothing."""
    steps = described(release.card)
    if not steps:
        return None
    stated = release.card[RETARGETED]
    lines = [tuple(map(cut, line)) for line in margin_lines(release.card)]
    size = stated["population"]
    return {
        "steps": [_sentence(f"its weights were {step}") for step in steps],
        "size": None if size is None else f"{size:,.0f}",
        "lines": lines[:MOST_LINES],
        "more": max(0, len(lines) - MOST_LINES),
    }


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
    card, weights, rows = release.card["weights"], release.weights, release.rows
    differ = _differ(release)
    verdict = card.get("verdict") or {}
    kind, headline = _VERDICTS.get(verdict.get("level", ""), ("none", "There is no verdict."))
    drawn = release.card.get(CHOSEN_FROM)
    if kind == "fine" and not differ:
        headline = "All weights are equal: they change nothing."
        if drawn is not None:
            headline = "The rows carry the correction: they were chosen by weight."
    effective = float(card["effective_sample_size"])
    facts = [f"Weighted, the {rows:,} rows tell as much as {effective:,.0f} equal ones would."]
    if drawn is not None:
        facts.insert(0, f"The rows were chosen by weight from {drawn:,} that were drawn.")
    if differ:
        low, middle, high = np.quantile(weights, [0.05, 0.5, 0.95])
        facts.append(
            f"Nine rows of ten have a weight of {show_range(f'{low:.2g}', f'{high:.2g}')}; the "
            f"middle one is {middle:.2g}, the largest {weights.max():.3g}."
        )
        facts.append(f"The heaviest row carries {card['largest_share']:.2%} of all the weight.")
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
        "differ": differ,
        "chart": weights_histogram(weights) if differ else None,
    }


def _differ(release: Release) -> bool:
    """Whether some rows weigh more than others: else there is one table to show, and not two."""
    return release.rows > 0 and bool(np.ptp(release.weights) > 1e-9)


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
            f"The middle one of these counts as {found['median_effective_sample_size']:,.0f} equal "
            f"rows; the worst of them counts as {found['worst_effective_sample_size']:,.0f} rows."
        )
    if found.get("bounded"):
        facts.append(
            f"{found['bounded']} of them counted as too few rows (the worst as "
            f"{found['worst_before_bounding']:,.1f}) and were pulled towards the weights: "
            "intervals may be too narrow."
        )
    return facts


def _heat(release: Release, found: Relations) -> dict[str, Any] | None:
    """Heat maps of all pairs, with the strongest ones in words; None for a single column."""
    if len(found.names) < 2 or not release.rows:
        return None
    names = [cut(name) for name in found.names]
    differ = _differ(release)
    said = "{0.plain:.2f} unweighted, {0.weighted:.2f} weighted" if differ else "{0.plain:.2f}"
    strongest = [
        f"{' × '.join(map(cut, pair.columns))} ({said.format(pair)})" for pair in found.strongest()
    ]
    maps = [("The synthetic rows as they are", found.plain)]
    if differ:
        maps.append(("With their weights", found.weighted))
    said = f"Heat map of {len(names)} columns. The strongest pairs: {'; '.join(strongest)}"
    return {
        "maps": [
            (title, heat_map(strengths, names, said, found.supports)) for title, strengths in maps
        ],
        "support": _support(found),
        "strongest": strongest,
        "scale": [(f"{part:.2g}", shade(part)) for part in (0.0, 0.1, 0.25, 0.5, 1.0)],
        "more": len(release.schema) - len(names),
    }


def _support(found: Relations) -> dict[str, Any]:
    """How many pairs were measured together, in words, and the marks of those that were not."""
    supports = [pair.support for pair in found.pairs]
    counts = {support: supports.count(support) for support in (MEASURED, IMPLIED, NEVER)}
    unknown = supports.count(UNKNOWN)
    said = {
        MEASURED: "were measured together",
        IMPLIED: "follow from smaller measurements, and assume no relation beyond them"
        + _carried_little(found),
        NEVER: "were never measured: the release takes their columns as unrelated, whatever they "
        "are in private",
    }
    told = [f"{count:,} {said[support]}" for support, count in counts.items() if count]
    if unknown:
        told.append(f"of {unknown:,} nothing says whether they were measured")
    marks = [
        (text, support_mark(support, 7, 7, 4))
        for support, text in ((IMPLIED, "implied"), (NEVER, "never measured"))
        if counts[support]
    ]
    return {"said": f"Of {len(supports):,} pairs, {'; '.join(told)}.", "marks": marks}


def _carried_little(found: Relations) -> str:
    """Of how many implied pairs something was summed, and what part is assumption all the same."""
    parts = [pair.assumed for pair in found.pairs if pair.assumed is not None]
    if not parts:
        return ""
    return (
        f" (of {len(parts):,} something was summed, which does not carry it: {assumption(parts)})"
    )


def _changed(found: Relations) -> list[tuple[str, Markup, float, float, str]]:
    """The pairs that the weights change most, with a chart each; none when they change nothing."""
    pairs = found.most_changed()
    scale = max([each for pair in pairs for each in (pair.plain, pair.weighted)], default=0.0)
    return [
        (
            " × ".join(map(cut, pair.columns)),
            pair_of_bars(pair.plain / scale, pair.weighted / scale),
            pair.plain,
            pair.weighted,
            pair.support,
        )
        for pair in pairs
        if abs(pair.weighted - pair.plain) >= LEAST_CHANGE
    ]


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "." if text else ""
