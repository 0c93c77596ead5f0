"""An evaluation: what a release is worth and what it gives away, as tidy frames. Confidential.

A value, made by `evaluate`, that holds no private row, but exact figures of them: it is printed,
drawn and saved with a notice that says so, and refuses to be saved into a release.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from counterpoise.analysis.text import aligned
from counterpoise.arguments import one_of, whole_number
from counterpoise.disk import plainly
from counterpoise.evaluation.attacks.finding import briefly
from counterpoise.evaluation.confidential import (
    NOTICE,
    check_outside_releases,
    csv_text,
    write_text,
)
from counterpoise.evaluation.measured import LOWER

PAGE = "confidential.html"
FOLDER = "confidential-evaluation"
SUMMARY = "confidential.txt"
# Of these lists the worst are shown first.
COLUMNS, PAIRS, TRIPLES, MODELS = KINDS = ("columns", "pairs", "triples", "models")
DEGREES = {COLUMNS: 1, PAIRS: 2, TRIPLES: 3}
WORST = 10
# Of the measures of a model, the first that it has is what it is ranked by.
RANKED = ("ROC-AUC", "R²")


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """A release against private rows, as frames that share the names of their columns.

    `private` is what the private rows say, `unweighted` and `weighted` what the release says, and
    `floor` how much two real samples differ.

    - `distances`: measure, unweighted, weighted, floor, better, says
    - `marginals`: columns, degree, unweighted, weighted, floor: total variation
    - `statistics`: column, kind, measure, private, unweighted, weighted
    - `shares`: column, kind, cell, private, unweighted, weighted, rare
    - `correlations`: left, right, measure, private, unweighted, weighted
    - `utility`: target, model, measure, private, unweighted, weighted
    - `coefficients`: target, term, and of each side the value with `_low` and `_high`; overlaps
    - `certificates`: target, loss, norm, measure, unweighted, weighted: excess risk and its bounds
    - `attacks`: attack, measure, columns, value, low, high, baseline, ..., says

    `about` says what was compared, and how.
    """

    about: dict[str, Any]
    distances: pd.DataFrame
    marginals: pd.DataFrame
    statistics: pd.DataFrame
    shares: pd.DataFrame
    correlations: pd.DataFrame
    utility: pd.DataFrame
    coefficients: pd.DataFrame
    certificates: pd.DataFrame
    attacks: pd.DataFrame

    def worst(self, kind: str = COLUMNS, most: int = WORST) -> pd.DataFrame:
        """The "columns", "pairs", "triples" or "models" by which it misleads most, worst first.

        Sets of columns are ranked by how far their total variation, weighted or not, whichever is
        larger, is above its floor: tables of many cells are apart between real samples too. Models
        are by what they lose against one of real rows, of ROC-AUC or R².
        """
        kind, most = one_of("kind", kind, KINDS), whole_number("most", most)
        if kind == MODELS:
            found = self.losses
            order = found[["unweighted", "weighted"]].max(axis=1)
        else:
            found = self.marginals[self.marginals["degree"] == DEGREES[kind]]
            order = found[["unweighted", "weighted"]].max(axis=1) - found["floor"]
        ranked = found.loc[order.sort_values(ascending=False, kind="stable").index]
        return ranked.head(most).reset_index(drop=True)

    @property
    def losses(self) -> pd.DataFrame:
        """What a model of synthetic rows loses against one of real rows: target, model, losses."""
        found = self.utility[self.utility["measure"].isin(RANKED)]
        lost = found.assign(
            unweighted=found["private"] - found["unweighted"],
            weighted=found["private"] - found["weighted"],
        )
        return lost.reset_index(drop=True)

    @property
    def exceeding(self) -> pd.DataFrame:
        """The lines of `attacks` whose whole interval is above that of their baseline.

        One of many may be so by luck; several, or one by far, are not. Without a hold-out baselines
        know nothing of a person, and what exceeds them need not be anybody's row.
        """
        found = self.attacks
        known = found[["low", "baseline_high"]].astype(float)
        return found[known["low"] > known["baseline_high"]].reset_index(drop=True)

    def to_html(self, path: str | Path = PAGE) -> Path:
        """Write the confidential page, one file; it refuses a place in a release."""
        from counterpoise.evaluation.page import confidential_page

        target = check_outside_releases(path)
        write_text(target, confidential_page(self))
        return target

    def save(self, path: str | Path = FOLDER) -> Path:
        """Write the page, the summary and a CSV a frame to a folder; never one of a release."""
        folder = check_outside_releases(path)
        with plainly(folder):
            folder.mkdir(parents=True, exist_ok=True)
        self.to_html(folder / PAGE)
        write_text(folder / SUMMARY, f"{self}\n")
        for name, frame in self.frames():
            write_text(folder / f"confidential-{name}.csv", csv_text(frame))
        return folder

    def frames(self) -> Iterator[tuple[str, pd.DataFrame]]:
        """The frames by their names."""
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, pd.DataFrame):
                yield each.name, value

    def __str__(self) -> str:
        return "\n".join([NOTICE, *_lines(self)])

    def __repr__(self) -> str:
        rows, columns = self.about["private_rows"], self.about["columns"]
        return f"<Evaluation, CONFIDENTIAL: {columns} columns against {rows:,} private rows>"


def _lines(found: Evaluation) -> Iterator[str]:
    """The evaluation in words and small tables."""
    about = found.about
    yield (
        f"{about['released_rows']:,} released rows against {about['private_rows']:,} private ones, "
        f"{about['columns']} columns; the floor is of {about['floor']}"
    )
    yield ""
    better = [
        closer(line["unweighted"], line["weighted"], line["better"])
        for line in found.distances.to_dict("records")
    ]
    yield (
        f"distances: with its weights the release is closer by {sum(better)} of {len(better)} "
        "measures"
    )
    lines: list[tuple[str, ...]] = [("", "unweighted", "weighted", "floor", "better")]
    for line in found.distances.to_dict("records"):
        cells = (text(line[side]) for side in ("unweighted", "weighted", "floor"))
        lines.append((line["measure"], *cells, line["better"]))
    yield aligned(lines, 1)
    for kind, said in (
        (COLUMNS, "the columns furthest off beyond the floor, by total variation"),
        (PAIRS, "the pairs furthest off beyond the floor, by total variation"),
        (MODELS, "the models that lose most against real rows"),
    ):
        worst = found.worst(kind, 5)
        if not len(worst):
            continue
        yield f"\n{said}"
        names = (
            worst["columns"]
            if kind != MODELS
            else worst["target"] + " by " + worst["model"] + ", " + worst["measure"]
        )
        sides = ("unweighted", "weighted", *(() if kind == MODELS else ("floor",)))
        lines = [("", *sides)]
        for name, line in zip(names, worst.to_dict("records"), strict=True):
            lines.append((name, *(text(line[side]) for side in sides)))
        yield aligned(lines, 1)
    if about.get("chosen_from") is not None:
        yield "\nits rows were chosen by weight: unweighted, they carry most of the correction"
    if len(found.attacks):
        beyond = found.exceeding
        yield "\nattacks: " + "; ".join(filter(None, [said_of_attacks(found), caveat(found)]))
        for line in beyond.to_dict("records"):
            says = briefly(line["says"])
            yield f"  {line['attack']}, {line['measure']}, {line['columns']}: {says}"


def said_of_attacks(found: Evaluation) -> str:
    """How many attacks exceed their baselines, in a sentence without a full stop."""
    return (
        f"{len(found.exceeding)} of {_known(found)} figures are above their baselines by more than "
        "both intervals"
    )


def caveat(found: Evaluation) -> str:
    """What attacks cannot tell for want of a hold-out, without a full stop; empty where not so."""
    if found.about["holdout_rows"] is not None:
        return ""
    return (
        "without a hold-out these baselines know nothing of a person, and what exceeds them "
        f"need not be anybody's row ({len(found.attacks) - _known(found)} figures need a hold-out)"
    )


def _known(found: Evaluation) -> int:
    return int(found.attacks["value"].astype(float).notna().sum())


def closer(unweighted: float, weighted: float, better: str = LOWER) -> bool:
    """Whether the weights bring a measure closer to where it should be.

    >>> closer(0.2, 0.1), closer(500.0, 400.0, "higher")
    (True, False)
    """
    return bool(weighted < unweighted if better == LOWER else weighted > unweighted)


def text(value: Any) -> str:
    """A figure to three digits; nothing where there is none.

    >>> text(0.123456), text(987.654), text(float("nan")), text(float("inf"))
    ('0.123', '988', '', '∞')
    """
    number = float(value)
    return "" if np.isnan(number) else "∞" if number == np.inf else f"{number:.3g}"
