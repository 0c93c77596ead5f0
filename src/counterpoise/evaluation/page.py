"""The confidential page: where a release misleads, and what it gives away, for the curator's eyes.

One self-contained file in the look of the released page, without scripts, and with a policy that
keeps a browser from loading anything. What matters comes first: the columns, pairs and models that
are furthest off, then everything else. Every figure carries its full value beside what is shown.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import jinja2
import numpy as np
import pandas as pd
from markupsafe import Markup

from counterpoise.analysis.text import show_range
from counterpoise.arguments import visible
from counterpoise.evaluation.attacks.finding import briefly
from counterpoise.evaluation.confidential import NOTICE
from counterpoise.evaluation.measured import HIGHER
from counterpoise.evaluation.plots import bars, cloud, spans, ticks
from counterpoise.evaluation.result import (
    COLUMNS,
    MODELS,
    PAIRS,
    TRIPLES,
    caveat,
    closer,
    said_of_attacks,
    text,
)
from counterpoise.report.charts import categories, heat_map, shade
from counterpoise.report.columns import cut

if TYPE_CHECKING:
    from counterpoise.evaluation.result import Evaluation

# More lines of a list, columns of a chart, or cells of a column than these are not drawn.
MOST_LINES, MOST_COLUMNS, MOST_MAPPED, MOST_CELLS = 300, 60, 40, 12
# Rare categories, and coefficients, of which the worst are shown.
MOST_RARE, MOST_TERMS = 10, 10

CHOSEN = (
    " Its rows were chosen by weight, so that the unweighted ones carry most of the correction."
)

# Without a hold-out an excess is nothing to be cautious of.
_CAUTION = {True: "caution", False: "none"}
_ENDS = ("low", "high")

_environment = jinja2.Environment(
    loader=jinja2.ChoiceLoader(
        [
            jinja2.PackageLoader("counterpoise.evaluation"),
            jinja2.PackageLoader("counterpoise.report"),
        ]
    ),
    autoescape=True,
    trim_blocks=True,
)
_environment.filters["figure"] = text
_environment.filters["briefly"] = briefly
_environment.filters["range"] = show_range


def confidential_page(found: Evaluation) -> str:
    """The page of an evaluation, as HTML."""
    page = _environment.get_template("confidential.html").render(
        notice=NOTICE,
        about=found.about,
        summary=_summary(found),
        columns=_ranked(found.worst(COLUMNS)),
        pairs=_ranked(found.worst(PAIRS)),
        models=_models(found.worst(MODELS)),
        distances=_distances(found),
        attacks=_attacks(found),
        cards=_cards(found),
        rare=_rare(found.shares),
        heat=_heat(found.marginals),
        relations=_relations(found.correlations),
        utility=_utility(found.utility),
        coefficients=_coefficients(found.coefficients),
        certificates=_certificates(found.certificates),
        statistics=found.statistics.head(MOST_LINES).to_dict("records"),
        more=max(0, len(found.statistics) - MOST_LINES),
        triples=_ranked(found.worst(TRIPLES)),
    )
    return visible(page, lines=True)


def _summary(found: Evaluation) -> list[str]:
    """What the page says in a few sentences."""
    lines = found.distances.to_dict("records")
    won = sum(closer(line["unweighted"], line["weighted"], line["better"]) for line in lines)
    said = [f"With its weights the release is closer by {won} of {len(lines)} distances."]
    if found.about.get("chosen_from") is not None:
        said[0] += CHOSEN
    for kind, word in ((COLUMNS, "column"), (PAIRS, "pair")):
        worst = found.worst(kind, 1).to_dict("records")
        if worst:
            line = worst[0]
            said.append(
                f"The {word} that is furthest off is {cut(line['columns'])}: "
                f"{line['weighted']:.1%} of the weighted rows would have to be others, and "
                f"{line['unweighted']:.1%} of the unweighted ones; two real samples differ by "
                f"{line['floor']:.1%}."
            )
    worst = found.worst(MODELS, 1).to_dict("records")
    if worst:
        line = worst[0]
        said.append(
            f"The model that loses most predicts {cut(line['target'])} by {line['model']}: "
            f"{line['measure']} falls short of one of real rows by {line['weighted']:.3f} "
            f"weighted, and {line['unweighted']:.3f} unweighted."
        )
    if len(found.attacks):
        said.append(f"Attacks: {said_of_attacks(found)}.")
    return said


def _ranked(worst: pd.DataFrame) -> list[dict[Hashable, Any]]:
    longest = float(worst[["unweighted", "weighted", "floor"]].max().max()) if len(worst) else 1.0
    return [
        line
        | {
            "name": cut(line["columns"]),
            "chart": bars(line["unweighted"], line["weighted"], line["floor"], longest),
        }
        for line in worst.to_dict("records")
    ]


def _models(worst: pd.DataFrame) -> list[dict[Hashable, Any]]:
    longest = float(worst[["unweighted", "weighted"]].max().max()) if len(worst) else 1.0
    return [
        line
        | {
            "target": cut(line["target"]),
            "chart": bars(line["unweighted"], line["weighted"], 0.0, max(longest, 1e-9)),
        }
        for line in worst.to_dict("records")
    ]


def _distances(found: Evaluation) -> list[dict[Hashable, Any]]:
    lines = []
    for line in found.distances.to_dict("records"):
        values = [line["unweighted"], line["weighted"], line["floor"]]
        # The square may be below zero, and a two-sample AUC begins at one half.
        low = min(0.0, *values) if line["measure"] != "two-sample AUC" else min(0.5, *values)
        high = max(*values, 1e-12)
        if line["better"] == HIGHER:
            low = min(values) - 0.2 * (high - min(values) + 1e-9)
        unweighted, weighted, floor = (value - low for value in values)
        chart = bars(unweighted, weighted, floor, max(high - low, 1e-12))
        lines.append(line | {"chart": chart})
    return lines


def _attacks(found: Evaluation) -> dict[str, Any] | None:
    """The attacks one by one, each with its measures; a chart's scale is that of its measure."""
    if not len(found.attacks):
        return None
    figures = ["value", "low", "high", "baseline", "baseline_low", "baseline_high"]
    beyond = found.exceeding
    groups = []
    for attack, lines in found.attacks.head(MOST_LINES).groupby("attack", sort=False):
        drawn = []
        for _, same in lines.groupby("measure", sort=False):
            known = same[figures].to_numpy(dtype=float)
            known = known[np.isfinite(known)]
            # From zero on, with some room beyond what is largest.
            scale = (min([0.0, *known]), 1.2 * max([1e-9, *known]))
            drawn += [line | {"chart": _span(line, *scale)} for line in same.to_dict("records")]
        groups.append({"attack": attack, "lines": drawn})
    return {
        "groups": groups,
        "said": said_of_attacks(found),
        "caveat": caveat(found),
        "kind": "fine" if not len(beyond) else _CAUTION[found.about["holdout_rows"] is not None],
        "beyond": beyond.to_dict("records"),
    }


def _span(line: dict[Hashable, Any], low: float, high: float) -> Markup:
    baseline, attack = (
        [float(line[name]) for name in names]
        for names in (("baseline_low", "baseline", "baseline_high"), ("low", "value", "high"))
    )
    return spans(baseline, attack, low, high)


def _cards(found: Evaluation) -> list[dict[Hashable, Any]]:
    """A chart a column, the worst first."""
    cards = []
    for line in found.worst(COLUMNS, MOST_COLUMNS).to_dict("records"):
        own = found.shares[found.shares["column"] == line["columns"]]
        chart, drawn = _cells(own, cut(line["columns"]))
        kind = str(own["kind"].iloc[0])
        cards.append(line | {"name": cut(line["columns"]), "kind": kind, "drawn": drawn} | chart)
    return cards


def _cells(own: pd.DataFrame, name: str) -> tuple[dict[str, Markup], str]:
    """The cells of a column; of very many those that are furthest off."""
    drawn = ""
    if len(own) > MOST_CELLS:
        off = (own[["unweighted", "weighted"]].sub(own["private"], axis=0)).abs().max(axis=1)
        chosen = off.sort_values(ascending=False, kind="stable").index[:MOST_CELLS]
        drawn = f", the {MOST_CELLS} of {len(own):,} cells that are furthest off"
        own = own[own.index.isin(chosen)]
    largest = own.assign(off=(own["weighted"] - own["private"]).abs()).nlargest(1, "off").iloc[0]
    said = (
        f"Shares of {name}; the weighted share of {largest['cell']} is furthest off: "
        f"{largest['weighted']:.1%} against {largest['private']:.1%} in private"
    )
    plain, weighted, truth = (
        own[side].to_numpy(dtype=float) for side in ("unweighted", "weighted", "private")
    )
    labels = [cut(str(cell)) for cell in own["cell"]]
    return {"chart": categories(plain, weighted, labels, None, said, truth)}, drawn


def _rare(shares: pd.DataFrame) -> dict[str, Any]:
    """Rare categories in words, and those that the release gets wrong by the largest factor."""
    rare = shares[shares["rare"] & (shares["private"] > 0)]
    lost = int((rare["weighted"] == 0).sum())
    tiny = 1e-6
    ratio = (rare["weighted"] + tiny) / (rare["private"] + tiny)
    order = np.argsort(-np.abs(np.log(ratio.to_numpy(dtype=float))), kind="stable")
    worst = rare.iloc[order[:MOST_RARE]]
    longest = float(worst[["private", "unweighted", "weighted"]].max().max()) if len(worst) else 1
    return {
        "count": len(rare),
        "lost": lost,
        "lines": [
            line
            | {
                "name": cut(f"{line['column']} = {line['cell']}"),
                "chart": bars(line["unweighted"], line["weighted"], line["private"], longest),
            }
            for line in worst.to_dict("records")
        ],
    }


def _heat(marginals: pd.DataFrame) -> dict[str, Any] | None:
    """The distances of all pairs as two maps, with one scale."""
    names = marginals.loc[marginals["degree"] == 1, "columns"].tolist()[:MOST_MAPPED]
    pairs = marginals[marginals["degree"] == 2]
    if len(names) < 2:
        return None
    full = max(float(pairs[["unweighted", "weighted"]].max().max()), 1e-9)
    places = {name: place for place, name in enumerate(names)}
    maps = []
    for side, title in (("unweighted", "Without weights"), ("weighted", "With weights")):
        strengths = np.zeros((len(names), len(names)))
        for left, right, value in _pairs(pairs, side, places):
            strengths[left, right] = strengths[right, left] = value
        worst = pairs.nlargest(1, side)["columns"].iloc[0]
        said = f"Heat map of the distance of every pair; the largest is {worst}"
        shown = [cut(name) for name in names]
        maps.append((title, heat_map(strengths, shown, said, full=full)))
    scale = [(f"{part * full:.2g}", shade(part)) for part in (0.0, 0.25, 0.5, 1.0)]
    return {"maps": maps, "scale": scale}


def _pairs(pairs: pd.DataFrame, side: str, places: dict[str, int]) -> list[tuple[int, int, float]]:
    # A name may hold the sign that joins two of them, so pairs are made again from the names.
    known = {
        f"{left} × {right}": (places[left], places[right]) for left in places for right in places
    }
    return [
        (*known[columns], float(value))
        for columns, value in zip(pairs["columns"], pairs[side], strict=True)
        if columns in known
    ]


def _relations(found: pd.DataFrame) -> dict[str, Any] | None:
    if not len(found):
        return None
    sides = [found[side].to_numpy(dtype=float) for side in ("private", "unweighted", "weighted")]
    off = [np.abs(side - sides[0]) for side in sides[1:]]
    worst = int(np.maximum(*off).argmax())
    line = found.iloc[worst]
    return {
        "chart": cloud(sides[0], sides[1], sides[2], f"{len(found)} pairs of columns"),
        "mean": [float(each.mean()) for each in off],
        "worst": f"{cut(line['left'])} × {cut(line['right'])}",
        "line": line.to_dict(),
        "pairs": len(found),
    }


def _utility(found: pd.DataFrame) -> list[dict[Hashable, Any]]:
    lines = []
    for line in found.head(MOST_LINES).to_dict("records"):
        values = [float(line[side]) for side in ("private", "unweighted", "weighted")]
        known = [value for value in values if np.isfinite(value)]
        low, high = min(known), max(known)
        room = max(0.15 * (high - low), 0.01)
        chart = ticks(values[1], values[2], values[0], low - room, high + room)
        lines.append(line | {"target": cut(line["target"]), "chart": chart})
    return lines


def _certificates(found: pd.DataFrame) -> list[dict[Hashable, Any]]:
    longest = float(found[["unweighted", "weighted"]].max().max()) if len(found) else 1.0
    return [
        line | {"chart": bars(line["unweighted"], line["weighted"], 0.0, max(longest, 1e-12))}
        for line in found.to_dict("records")
    ]


def _coefficients(found: pd.DataFrame) -> list[dict[Hashable, Any]]:
    """The terms whose intervals, weighted, meet those of private rows least."""
    if "overlap_weighted" not in found:
        return []
    lines = []
    for line in found.sort_values("overlap_weighted").head(MOST_TERMS).to_dict("records"):
        ends = [
            line[f"{side}_{end}"] for side in ("private", "weighted") for end in ("low", "high")
        ]
        low, high = min(ends), max(ends)
        chart = spans(
            (line["private_low"], line["private"], line["private_high"]),
            (line["weighted_low"], line["weighted"], line["weighted_high"]),
            *(low, high),
        )
        lines.append(line | {"term": cut(line["term"]), "chart": chart})
    return lines
