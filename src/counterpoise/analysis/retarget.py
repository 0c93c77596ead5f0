"""Retargeting: a release of one population made to speak for another, by its weights. Free.

What is known of the target may be margins, a modifier, or labelled rows; in one call factors come
first and margins last, so that these hold. The weight and every replicate are changed alike: a
factor multiplies each, and each is raked to the same margins, so that an estimate varies over the
replicates as it would had the whole been done again, and a margin that was stated does not vary at
all (K. M. Wolter, Introduction to Variance Estimation, 2007, on replicates of calibrated weights).
What was done is a value on the card, and is done again to new rows. What cannot be mended is a
combination that no row has: weights multiply rows, they make none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from counterpoise.analysis.labelled import LABELLED, Learned, learn
from counterpoise.analysis.margins import people_of, shown_cell
from counterpoise.analysis.modifiers import MODIFIER, Modifier, read_modifier
from counterpoise.analysis.raked import MARGINS, Raking, Weighed, empty_like, raked
from counterpoise.analysis.stated_margins import read_margins
from counterpoise.arguments import real_number, seed_or_none
from counterpoise.bundle.assemble import derived_seed, judgement
from counterpoise.bundle.card import PRICE, RETARGETED
from counterpoise.bundle.rules import MOST_PEOPLE, refused
from counterpoise.bundle.weight_columns import WEIGHT
from counterpoise.errors import AnalysisError
from counterpoise.weights import Weights
from counterpoise.weights.diagnostics import Verdict
from counterpoise.weights.judge_replicates import judge_replicates

if TYPE_CHECKING:
    from counterpoise.bundle.release import Release

Step = Modifier | Learned | Raking

# Replicates that lack rows which the target needs: more than this part is worth a word.
FEW_LENT = 0.1


def retarget(
    release: Release,
    margins: Any = None,
    modifier: Any = None,
    labelled: Any = None,
    label: Any = None,
    population: Any = None,
    seed: int | None = None,
) -> Release:
    """The release with its weights and replicates turned to a target; see `Release.retarget`.

    >>> import pandas as pd, counterpoise as cp
    >>> table = pd.DataFrame({"sex": ["F", "M", "M", "M"], "age": [60, 20, 30, 40]})
    >>> schema = cp.Schema([cp.Column.categorical("sex", ["F", "M"]),
    ...                     cp.Column.integer("age", 0, 99)])
    >>> release = cp.Release(table.assign(weight=1.0), schema, card={})
    >>> found = retarget(release, margins={"sex": {"F": 0.5, "M": 0.5}})
    >>> found.weights.round(3).tolist(), round(found.mean("age").value, 3)
    ([2.0, 0.667, 0.667, 0.667], 45.0)
    """
    if not len(release.table):
        raise AnalysisError("the release has no rows, so there is nothing to retarget")
    if (labelled is None) != (label is None):
        raise AnalysisError("label: state labelled rows and the name of their label, or neither")
    if population is not None:
        population = real_number(
            "population",
            population,
            "the number of people in the target",
            AnalysisError,
            above=0,
            below=MOST_PEOPLE,
        )
    seed = seed_or_none(seed)
    steps: list[Step] = []
    if modifier is not None:
        steps.append(read_modifier(modifier, release))
    if labelled is not None:
        steps.append(learn(release, labelled, label))
    if margins is not None:
        known = read_margins(margins, release)
        counted = people_of(known)
        population = counted if population is None else population
        steps.append(Raking(known))
    if not steps:
        raise AnalysisError("retarget: state margins, a modifier, or labelled rows")
    return _retargeted(release, steps, population, seed)


def follow(release: Release, card: Mapping[str, Any], seed: int | None) -> Release:
    """A release of new rows, retargeted as the card says that the old ones were."""
    stated = card.get(RETARGETED)
    if stated is None:
        return release
    for place, step in enumerate(stated["steps"]):
        with refused("what the card says of retargeting"):
            read = _read_step(step, release)
        release = _retargeted(release, [read], stated["population"], derived_seed(seed, 2 + place))
    return release


def described(card: Mapping[str, Any]) -> list[str]:
    """What was done to the weights of a release, step by step, in words; empty for nothing."""
    return [_in_words(step) for step in (card.get(RETARGETED) or {}).get("steps", ())]


def margin_lines(card: Mapping[str, Any], last: int | None = None) -> list[tuple[str, ...]]:
    """The margins of a card as text: which, of what, before, and as it was stated.

    `last` is of how many of the last steps; None is all.
    """
    steps = (card.get(RETARGETED) or {}).get("steps", [])
    return [
        line
        for step in steps[0 if last is None else len(steps) - last :]
        for margin in step.get("margins", ())
        for line in _lines(margin)
    ]


def _lines(margin: Mapping[str, Any]) -> list[tuple[str, ...]]:
    name = " x ".join(margin["columns"])
    if "mean" in margin:
        return [(name, "mean", _short(margin["before"]), _short(margin["mean"]))]
    cells = [each if isinstance(each, list) else [each] for each in margin["cells"]]
    return [
        (name, shown_cell(cell), _short(before), _short(share))
        for cell, before, share in zip(cells, margin["before"], margin["shares"], strict=True)
    ]


def _short(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:,.4g}"


def _in_words(step: Mapping[str, Any]) -> str:
    named = [" x ".join(each) for each in step.get("columns", ())]
    listed = ", ".join(named[:6]) + (f" and {len(named) - 6} more" if len(named) > 6 else "")
    if step["kind"] == MARGINS:
        return f"raked to known margins of {listed}"
    if step["kind"] == MODIFIER:
        return f"multiplied by {step.get('expression') or step.get('given')}"
    if step["kind"] == LABELLED:
        columns = ", ".join(name for each in step["columns"] for name in each[:6])
        return f"multiplied by factors learned from {step['rows']:,} labelled rows, by {columns}"
    return "replaced by others"


def _read_step(step: Mapping[str, Any], release: Release) -> Step:
    if step["kind"] == MARGINS:
        return Raking(read_margins(list(step["margins"]), release))
    if step["kind"] == LABELLED:
        return Learned.from_dict(step, release)
    if step["kind"] == MODIFIER and "expression" in step:
        return read_modifier(step["expression"], release)
    raise AnalysisError(f"{_in_words(step)}, which cannot be done again")


def _retargeted(
    release: Release, steps: Sequence[Step], population: float | None, seed: int | None
) -> Release:
    found, made = _weighed(release), []
    generator = np.random.default_rng(seed)
    for step in steps:
        written = step.to_dict(release)
        if isinstance(step, Raking):
            found, before = raked(release, step, found)
            pairs = zip(written["margins"], before, strict=True)
            written["margins"] = [margin | {"before": own} for margin, own in pairs]
        else:
            found = _multiplied(release, step, found, generator)
        made.append(written)
    problems = [step.problem for step in steps if step.problem is not None]
    return _with_weights(release, found, made, population, problems)


def _weighed(release: Release) -> Weighed:
    rows = len(release.table)
    replicates = np.empty((rows, 0)) if release.replicates is None else release.replicates
    if len(replicates) != rows:
        raise AnalysisError("replicates: expected one row for every row of the table")
    return Weighed(release.weights.astype(float), replicates)


def _multiplied(
    release: Release, step: Modifier | Learned, found: Weighed, generator: np.random.Generator
) -> Weighed:
    """All weights times the factors of rows; those of a learned modifier differ by replicate."""
    if isinstance(step, Learned):
        every = step.factors(release, generator, found.replicates.shape[1])
        own, others = every[:, 0], every[:, 1:]
    else:
        own = step.factors(release)
        others = np.broadcast_to(own[:, None], found.replicates.shape)
    # Whatever the scale of factors, sums of them stay within what a float has room for.
    largest = float(own.max())
    weights = found.weights * (own / largest if largest > 0 else 0.0)
    if not weights.sum() > 0:
        raise AnalysisError(
            f"{step.kind}: its factors leave no row any weight; the target is empty"
        )
    weights = weights / weights.mean()
    made, lent = empty_like(found.replicates), found.lent
    for place in range(made.shape[1]):
        column = found.replicates[:, place].astype(float) * (others[:, place] / largest)
        if not column.sum() > 0:
            # None of the rows that a replicate is made of is in the target.
            column, lent = weights, lent + 1
        made[:, place] = column / column.mean()
    return Weighed(weights, made, lent)


def _with_weights(
    release: Release,
    found: Weighed,
    steps: list[dict[str, Any]],
    population: float | None,
    problems: list[str],
) -> Release:
    """The release with weights that were found, judged anew, and a card that says what was done."""
    has_replicates = release.replicates is not None
    count = found.replicates.shape[1]
    # Both keep the margins, and so does a mixture of the two: bounding a replicate breaks none.
    judged = (
        judge_replicates(found.weights, found.replicates, release.replicate_part)
        if has_replicates
        else None
    )
    card, made = release.card, release.card.get("weights", {})
    with np.errstate(divide="ignore"):
        weights = Weights(np.log(found.weights), reached=made.get("reached", 1.0))
    also = None
    if found.lent > FEW_LENT * count:
        also = Verdict(
            "caution",
            f"the error bars rest on few rows: {found.lent} of the {count} replicate weights lack "
            "rows that the target needs, and borrow them from the weights",
            "merge small categories of the margins, or draw more rows",
        )
    earlier = card.get(RETARGETED) or {"steps": [], "effective_part": 1.0}
    part = earlier["effective_part"] * _effective_part(release.weights, found.weights)
    retargeted = {
        "population": population,
        "effective_part": min(part, 1.0),
        "replicates_lent": found.lent,
        "steps": [*earlier["steps"], *steps],
    }
    # The price was that of another population.
    again = {RETARGETED: retargeted, PRICE: None}
    card = card | judgement(made, weights, judged, also) | again
    models = release.models
    if problems:
        card, models = card | {"model": {"saved": False, "reason": problems[0]}}, None
    return replace(
        release,
        table=release.table.assign(**{WEIGHT: found.weights}),
        card=card,
        replicates=None if judged is None else judged.columns,
        accepted=False,
        models=models,
    )


def _effective_part(before: np.ndarray, after: np.ndarray) -> float:
    """The part of the private rows' information that is left: Kish's size of the factors.

    (sum b f)^2 / (sum b sum b f^2), for rows of weight b whose weight is multiplied by f.
    """
    used = before > 0
    factor = after[used] / before[used]
    own = before[used]
    # Of rows that had no weight nothing is known, and they have none still.
    return float((own @ factor) ** 2 / (own.sum() * (own @ factor**2)))
