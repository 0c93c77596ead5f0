"""Attribute disclosure: half of the columns of a person are known, and the others are guessed.

The guess is an average of the five released rows that are nearest in the known columns: the mean
of numbers, the most frequent of categories, nearer rows counting for more (1 / d^2, as a copy
should not be outvoted). Both halves of the columns take their turn in being known. A guess of a
number is right within 5% of the width between the private rows' 1st and 99th percentiles, others
exactly. A guess is claimed where four fifths of the five agree with it. Sensitivity is the part of
all unknown values that are claimed and right; precision the part of the claims that are. Both
depend on how columns hang together far more than on who is in the table, so the baseline is the
same attack on people of the hold-out. Reference: section 4.3 of the dissertation, whose "within 5%
of the true value" depends on where zero is, and is not taken over.
"""

from __future__ import annotations

import numpy as np

from counterpoise.evaluation.attacks.finding import (
    KNOWLEDGE,
    NO_HOLDOUT,
    WITH_WEIGHTS,
    Finding,
    Risk,
    compared,
    percent,
)
from counterpoise.evaluation.attacks.rates import Rate
from counterpoise.evaluation.attacks.scene import MOST_HALVED, Scene, are_right, values_of
from counterpoise.evaluation.attacks.space import SHARPNESS, Neighbours, Space, costs
from counterpoise.schema import Coded

NAME = "attribute disclosure"
MEASURES = ("sensitivity", "precision")
VOTERS = 5
AGREEMENT = 0.8


def attribute(scene: Scene) -> Finding:
    """How many unknown values are claimed and right, and how many claims are right.

    >>> import pandas as pd, counterpoise as cp
    >>> from counterpoise.evaluation.attacks import set_scene
    >>> schema = cp.Schema([cp.Column.integer("age", 0, 99), cp.Column.boolean("ill")])
    >>> rows = pd.DataFrame({"age": range(100), "ill": [False, True] * 50})
    >>> found = attribute(set_scene(cp.release(rows, schema, 1.0, seed=1), rows[:50], rows[50:]))
    >>> [risk.measure for risk in found.risks[:2]]
    ['sensitivity', 'precision']
    """
    if not scene.halves:
        return Finding.missing(NAME, MEASURES, "Not available: there is a single column.")
    members, strangers = scene.people(MOST_HALVED)
    risks: list[Risk] = []
    for columns in KNOWLEDGE:
        weights = scene.weights_for(columns == WITH_WEIGHTS)
        found = _rates(scene, members, scene.members_by_half, weights)
        if strangers is None:
            baseline, who = (
                _rates(scene, members, _anyone(scene, members), weights),
                "with five rows at random",
            )
            mark = NO_HOLDOUT
        else:
            baseline, who = (
                _rates(scene, strangers, scene.strangers_by_half, weights),
                "of people who are not",
            )
            mark = ""
        said = (
            "Knowing half of the columns of somebody in the private table, "
            f"{percent(found[0].value)} of the other values would be claimed and right; {who} "
            f"{percent(baseline[0].value)}: {compared(found[0], baseline[0])}.{mark}"
        )
        right = (
            f"Of the values that would be claimed {percent(found[1].value)} are right; {who} "
            f"{percent(baseline[1].value)}: {compared(found[1], baseline[1])}.{mark}"
        )
        for place, says in enumerate((said, right)):
            risks.append(
                Risk.of(NAME, MEASURES[place], columns, found[place], baseline[place], says)
            )
    return Finding(NAME, tuple(risks))


def _anyone(scene: Scene, people: Coded) -> tuple[Neighbours, ...]:
    """Five released rows at random for every person, all of them equally near."""
    drawn = scene.generator("anyone").integers(0, len(scene.released), (2, len(people), VOTERS))
    return tuple(Neighbours(rows, np.ones(rows.shape)) for rows in drawn)


def _rates(
    scene: Scene, people: Coded, neighbours: tuple[Neighbours, ...], weights: np.ndarray | None
) -> tuple[Rate, Rate]:
    """Sensitivity and precision, by the neighbours in one half of the columns and the other."""
    claims, hits = np.zeros(len(people)), np.zeros(len(people))
    turns = zip(scene.halves, scene.halves[::-1], neighbours, strict=True)
    for known, unknown, found in turns:
        rows, votes = _voters(known, found, weights)
        for position in unknown.columns:
            guess, share = _guess(scene, position, rows, votes)
            is_claimed = share >= AGREEMENT
            claims += is_claimed
            hits += is_claimed & are_right(scene, people, position, guess)
    every = np.full(len(people), float(len(people.schema)))
    return Rate.of_rows(hits, every), Rate.of_rows(hits, claims)


def _voters(
    space: Space, found: Neighbours, weights: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """The five released rows that are the closest, and how much each counts."""
    near = None if weights is None else weights[found.rows]
    order = np.argsort(costs(found.squared, space.bandwidth, near), axis=1, kind="stable")[
        :, :VOTERS
    ]
    rows = np.take_along_axis(found.rows, order, axis=1)
    votes = 1 / (np.take_along_axis(found.squared, order, axis=1) + SHARPNESS**2 * space.bandwidth)
    if weights is not None:
        votes *= weights[rows]
    return rows, votes / votes.sum(axis=1, keepdims=True)


def _guess(
    scene: Scene, position: int, rows: np.ndarray, votes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """A guess of a column for every person, and the part of the votes that agree with it."""
    values = values_of(scene.released, position)[rows]
    if not scene.released.schema.columns[position].is_numeric:
        return _most_voted(values, votes)
    is_null = np.isnan(values)
    null_share = (votes * is_null).sum(axis=1)
    stated = votes * ~is_null
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = (stated * np.where(is_null, 0.0, values)).sum(axis=1) / stated.sum(axis=1)
    near = ~is_null & (np.abs(values - mean[:, None]) <= scene.tolerance[position])
    is_nothing = null_share > 0.5
    share = np.where(is_nothing, null_share, (votes * near).sum(axis=1))
    return np.where(is_nothing, np.nan, mean), share


def _most_voted(values: np.ndarray, votes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The value that has most of the votes, the first one of equals, and its part of them."""
    shares = np.stack(
        [(votes * (values == values[:, [place]])).sum(axis=1) for place in range(values.shape[1])],
        axis=1,
    )
    best = shares.argmax(axis=1)[:, None]
    return np.take_along_axis(values, best, axis=1)[:, 0], np.take_along_axis(shares, best, 1)[:, 0]
