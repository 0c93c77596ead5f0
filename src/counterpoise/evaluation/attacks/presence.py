"""Presence disclosure: is somebody in the private table, judged by a released row that is close?

Three sets of equal size are taken: 5% of the private rows, and two of the hold-out, one to test
with and one for the baseline. A person is claimed to be in the private table if a released row is
within a radius, and the radius is the largest for which more than 55% of the claims are right:
the most people who are found at more than a coin's odds. Choosing it on the people whom it is
judged by would find a few by luck alone, so it is chosen on one half of them and used on the
other, both ways. The baseline is how many of the third set are claimed, at the same radius. With
weights, a released row is the closer the more it weighs (see `costs`). Reference: the attack of
Choi et al. (2017), as in section 4.3 of the dissertation whose figures it gives; a small table has
more than 5% of its rows in a set, so that there is something to count.
"""

from __future__ import annotations

import numpy as np

from counterpoise.evaluation.attacks.finding import (
    KNOWLEDGE,
    NEEDS_HOLDOUT,
    WITH_WEIGHTS,
    Finding,
    Risk,
    compared,
    percent,
)
from counterpoise.evaluation.attacks.rates import Rate
from counterpoise.evaluation.attacks.scene import Scene
from counterpoise.evaluation.attacks.space import Neighbours, costs

NAME = "presence disclosure"
MEASURES = ("sensitivity", "precision")
# The part of the private rows in a set; and the fewest rows, where there are so many.
PART, LEAST = 0.05, 250
PRECISION = 0.55


def presence(scene: Scene) -> Finding:
    """How many people in the private table are found there, and how many claims are right.

    >>> import pandas as pd, counterpoise as cp
    >>> from counterpoise.evaluation.attacks import set_scene
    >>> schema = cp.Schema([cp.Column.integer("age", 0, 99)])
    >>> rows = pd.DataFrame({"age": range(100)})
    >>> found = presence(set_scene(cp.release(rows, schema, 1.0, seed=1), rows[:50], rows[50:]))
    >>> [risk.measure for risk in found.risks]
    ['sensitivity', 'precision', 'sensitivity', 'precision']
    """
    if scene.strangers is None:
        return Finding.missing(NAME, MEASURES, NEEDS_HOLDOUT)
    size = max(round(PART * len(scene.private)), LEAST)
    size = min(size, len(scene.members), len(scene.strangers) // 2)
    risks: list[Risk] = []
    for columns in KNOWLEDGE:
        weights = scene.weights_for(columns == WITH_WEIGHTS)
        members = _closeness(scene, scene.of_members, weights)[:size]
        strangers = _closeness(scene, scene.of_strangers, weights)
        risks += _risks(columns, members, strangers[:size], strangers[size : 2 * size])
    return Finding(NAME, tuple(risks))


def _closeness(scene: Scene, found: Neighbours, weights: np.ndarray | None) -> np.ndarray:
    """The cost of the closest released row of every person."""
    near = None if weights is None else weights[found.rows]
    return np.asarray(costs(found.squared, scene.space.bandwidth, near).min(axis=1))


def _risks(
    columns: str, members: np.ndarray, test: np.ndarray, others: np.ndarray
) -> tuple[Risk, Risk]:
    claims = np.zeros(3)
    for half in (0, 1):
        radius = largest_radius(members[half::2], test[half::2])
        claims += [(each[1 - half :: 2] <= radius).sum() for each in (members, test, others)]
    found, wrong, baseline = claims
    sensitivity, chance = Rate.of(found, len(members)), Rate.of(baseline, len(others))
    precision, coin = Rate.of(found, found + wrong), Rate.of(baseline, baseline + wrong)
    said = (
        f"Of the people in the private table {percent(sensitivity.value)} would be found there by "
        f"a released row that is close; of people who are not, {percent(chance.value)} would be "
        f"claimed all the same: {compared(sensitivity, chance)}."
    )
    right = (
        "Nobody is close enough to a released row to be claimed at better odds than a coin's."
        if found + wrong == 0
        else f"Of such claims {percent(precision.value)} are right, where a coin would be right in "
        "half; the radius is the largest at which about 55% are."
    )
    return (
        Risk.of(NAME, MEASURES[0], columns, sensitivity, chance, said),
        Risk.of(NAME, MEASURES[1], columns, precision, coin, right),
    )


def largest_radius(members: np.ndarray, strangers: np.ndarray) -> float:
    """The largest radius for which more than 55% of those within are members.

    >>> largest_radius(np.array([0.0, 1.0, 5.0]), np.array([2.0, 3.0, 4.0]))
    2.0
    >>> largest_radius(np.array([4.0, 5.0]), np.array([2.0, 3.0]))
    -inf
    """
    radii = np.unique(np.concatenate([members, strangers]))
    found = np.searchsorted(np.sort(members), radii, side="right")
    wrong = np.searchsorted(np.sort(strangers), radii, side="right")
    good = radii[found > PRECISION * (found + wrong)]
    return float(good[-1]) if len(good) else -np.inf
