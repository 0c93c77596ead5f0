"""Membership by shadows: rehearse the release on others, and learn what membership looks like.

The attacker knows by which methods and with what budget a release was made, because its card says
so, and knows some people of the population (the second half of the hold-out; where those are few,
released rows stand in). Shadow releases are made of some of them by the same methods, with noise
from a seed. How near released rows are to people who were in a shadow, and to those who were not,
teaches a logistic regression to tell them apart; it is then asked about the real release. Features
are standardised within each release, because shadows are smaller and their rows further apart. It
costs as many releases of a small table as there are shadows: with AIM, on fifteen columns, about
five to ten seconds each. Reference: Stadler, Oprisanu and Troncoso (2022); shadows are theirs and
those of Shokri et al. (2017).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from counterpoise.bundle.release import Release
from counterpoise.bundle.weight_columns import WEIGHT
from counterpoise.curation.rehearse import methods_of
from counterpoise.curation.release import release as make_release
from counterpoise.errors import CounterpoiseError, CounterpoiseWarning
from counterpoise.evaluation.attacks.finding import (
    KNOWLEDGE,
    NEEDS_HOLDOUT,
    WITH_WEIGHTS,
    Finding,
    Risk,
)
from counterpoise.evaluation.attacks.membership import MEASURES, judge_scores, roc_curve
from counterpoise.evaluation.attacks.scene import NEIGHBOURS, Scene, certain_weights
from counterpoise.evaluation.attacks.space import Space, log_density
from counterpoise.schema import Coded

NAME = "membership by shadow releases"
SHADOWS, SHADOW_ROWS = 2, 500
# People known of, below which released rows stand in for them.
LEAST_KNOWN = 300
REPLICATES = 8

Rehearse = Callable[[pd.DataFrame, int], Release]


def shadow(
    scene: Scene,
    rehearse: Rehearse | None = None,
    *,
    shadows: int = SHADOWS,
    rows: int = SHADOW_ROWS,
) -> Finding:
    """How well somebody who rehearsed the release tells who is in it.

    `rehearse` makes a release of a table by a seed, and is by default what the card says.

    >>> import pandas as pd, counterpoise as cp
    >>> from counterpoise.evaluation.attacks import set_scene
    >>> schema = cp.Schema([cp.Column.integer("age", 0, 99)])
    >>> rows = pd.DataFrame({"age": range(100)})
    >>> made = cp.release(rows, schema, 1.0, seed=1, replicates=8)
    >>> len(shadow(set_scene(made, rows[:50], rows[50:]), shadows=1).risks)
    6
    """
    if scene.strangers is None or scene.known is None:
        return Finding.missing(NAME, MEASURES, NEEDS_HOLDOUT)
    try:
        rehearse = rehearse or rehearsal(scene.release)
        taught = [_lesson(scene, rehearse, number, rows) for number in range(shadows)]
    except CounterpoiseError as error:
        return Finding.missing(NAME, MEASURES, f"Not available: no shadow could be made ({error}).")
    known = scene.space.among(scene.known)
    people = [scene.members, scene.strangers]
    asked = _features(scene.space, known, scene.weights, people)
    outcome = np.concatenate([np.repeat([1, 0], [len(a), len(b)]) for (a, b) in taught])
    risks: list[Risk] = []
    curves = {}
    for columns in KNOWLEDGE:
        used = slice(None) if columns == WITH_WEIGHTS else slice(_PLAIN)
        features = np.concatenate([half[:, used] for both in taught for half in both])
        model = LogisticRegression(C=1.0).fit(features, outcome)
        scores = [model.decision_function(each[:, used]) for each in asked]
        risks += judge_scores(scene, NAME, columns, *scores)
        curves[columns] = roc_curve(*scores)
    return Finding(NAME, tuple(risks), curves)


def rehearsal(release: Release) -> Rehearse:
    """What makes releases by the methods and the budget that a card names.

    A release that was not made by methods of its card alone cannot be rehearsed.
    """
    synthesizer, weighter = methods_of(release)
    card = release.card
    budget = card["ledger"]["budget"]

    def rehearse(table: pd.DataFrame, seed: int) -> Release:
        with warnings.catch_warnings():
            # A verdict on a shadow's weights is nobody's concern.
            warnings.simplefilter("ignore", CounterpoiseWarning)
            return make_release(
                table,
                release.schema,
                budget["epsilon"],
                budget["delta"],
                synthesizer=synthesizer,
                weights=weighter,
                rows=len(table),
                split=card.get("split"),
                replicates=0 if release.replicates is None else REPLICATES,
                neighbours=budget["neighbours"],
                max_rows_per_person=budget["max_rows_per_person"],
                seed=seed,
                progress=False,
            )

    return rehearse


def _lesson(
    scene: Scene, rehearse: Rehearse, number: int, rows: int
) -> tuple[np.ndarray, np.ndarray]:
    """The features of those who were in a shadow, and of those who were not."""
    generator = scene.generator(f"shadow {number}")
    people, frame = scene.known, scene.known_frame
    assert people is not None
    if len(people) < LEAST_KNOWN:
        people, frame = scene.released, scene.release.table.drop(columns=WEIGHT)
    order = generator.permutation(len(people))[: 3 * rows]
    inside, outside, others = np.array_split(order, 3)
    seed = int(generator.integers(2**31))
    made = rehearse(frame.iloc[inside].reset_index(drop=True), seed)
    released = scene.released.schema.encode(made.table)
    space = Space(released)
    known = space.among(people.take(others))
    halves = [people.take(inside), people.take(outside)]
    inner, outer = _features(space, known, certain_weights(made), halves)
    return inner, outer


# The features that need no weights come first.
_PLAIN = 3


def _features(
    space: Space, known: Space, weights: np.ndarray, people: list[Coded]
) -> list[np.ndarray]:
    """What is seen of people around whom there are released rows, standardised over all of them.

    The logarithm of the distance to the nearest, the logarithm of the density, and that over the
    density of people; then the weighted density, the same over the density of people, and the
    weight of the nearest.
    """
    made = []
    for each in people:
        found = space.nearest(space.place(each), NEIGHBOURS)
        away = log_density(
            known.nearest(known.place(each), NEIGHBOURS).squared, space.bandwidth, None
        )
        near = weights[found.rows]
        plain = log_density(found.squared, space.bandwidth, None)
        weighted = log_density(found.squared, space.bandwidth, near)
        nearest = log_density(found.squared[:, :1], space.bandwidth, None)
        columns = [nearest, plain, plain - away, weighted, weighted - away, np.log(near[:, 0])]
        made.append(np.stack(columns, axis=1))
    every = np.concatenate(made)
    middle, deviation = every.mean(axis=0), every.std(axis=0)
    deviation[deviation < 1e-12] = 1.0
    return [(each - middle) / deviation for each in made]
