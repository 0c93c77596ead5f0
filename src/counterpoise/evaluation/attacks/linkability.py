"""Linkability: do two files with other columns of the same people fit together by the release?

An attacker has half of the columns of somebody in one file and the other half in another file. If
the released rows that are nearest in the one half are among those nearest in the other, then the
release links the two halves. The private rate stands beside that of the hold-out, whose halves are
linked too where columns hang together. Rows that are equally near count as nearest on the second
side, so that a coarse half does not hide a link. Reference: Article 29 Data Protection Working
Party, opinion 05/2014 on anonymisation techniques, which names singling out, linkability and
inference as the three risks.
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
from counterpoise.evaluation.attacks.scene import MOST_HALVED, Scene
from counterpoise.evaluation.attacks.space import Neighbours, Space, costs
from counterpoise.schema import Coded

NAME = "linkability"
MEASURES = ("linked halves",)
NEAREST = 5

# Whose half it is and the neighbours in it, for both halves.
People = tuple[tuple[Coded, Neighbours], tuple[Coded, Neighbours]]


def linkability(scene: Scene) -> Finding:
    """How often two halves of a person's columns lead to the same released row.

    >>> import pandas as pd, counterpoise as cp
    >>> from counterpoise.evaluation.attacks import set_scene
    >>> schema = cp.Schema([cp.Column.integer("age", 0, 99), cp.Column.boolean("ill")])
    >>> rows = pd.DataFrame({"age": range(100), "ill": [False, True] * 50})
    >>> found = linkability(set_scene(cp.release(rows, schema, 1.0, seed=1), rows[:50], rows[50:]))
    >>> [risk.columns for risk in found.risks]
    ['table', 'table and weights']
    """
    if not scene.halves:
        return Finding.missing(NAME, MEASURES, "Not available: there is a single column.")
    members, strangers = scene.people(MOST_HALVED)
    risks = []
    for columns in KNOWLEDGE:
        weights = scene.weights_for(columns == WITH_WEIGHTS)
        risk = _rate(scene, _halved(members, scene.members_by_half), weights)
        if strangers is not None:
            baseline = _rate(scene, _halved(strangers, scene.strangers_by_half), weights)
            who, mark = "of people who are not", ""
        else:
            baseline = _rate(scene, _strange_halves(members, scene.members_by_half), weights)
            who = "of halves of two people"
            mark = NO_HOLDOUT
        says = (
            f"For {percent(risk.value)} of the people in the private table, two files with half of "
            f"the columns each would be linked by a released row; {who} "
            f"{percent(baseline.value)}: {compared(risk, baseline)}.{mark}"
        )
        risks.append(Risk.of(NAME, MEASURES[0], columns, risk, baseline, says))
    return Finding(NAME, tuple(risks))


def _halved(people: Coded, neighbours: tuple[Neighbours, ...]) -> People:
    return (people, neighbours[0]), (people, neighbours[1])


def _rate(scene: Scene, people: People, weights: np.ndarray | None) -> Rate:
    """How many are linked, by the halves of these people and the neighbours in them."""
    is_linked = np.zeros(len(people[0][0]), dtype=bool)
    for here, there in ((0, 1), (1, 0)):
        space = scene.halves[there]
        rows, _ = _closest(scene.halves[here], people[here][1], weights)
        _, limit = _closest(space, people[there][1], weights)
        reached = costs(
            space.squared(space.place(people[there][0]), rows),
            space.bandwidth,
            None if weights is None else weights[rows],
        )
        is_linked |= (reached <= limit[:, None] + 1e-6).any(axis=1)
    return Rate.of(int(is_linked.sum()), len(is_linked))


def _closest(
    space: Space, found: Neighbours, weights: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """The five closest released rows of every person, and the cost of the fifth."""
    near = None if weights is None else weights[found.rows]
    cost = costs(found.squared, space.bandwidth, near)
    order = np.argsort(cost, axis=1, kind="stable")[:, :NEAREST]
    limit = np.take_along_axis(cost, order, axis=1)[:, -1]
    return np.take_along_axis(found.rows, order, axis=1), limit


def _strange_halves(members: Coded, neighbours: tuple[Neighbours, ...]) -> People:
    """The second half is that of another person."""
    other = np.roll(np.arange(len(members)), 1)
    found = neighbours[1]
    moved = Neighbours(found.rows[other], found.squared[other])
    return (members, neighbours[0]), (members.take(other), moved)
