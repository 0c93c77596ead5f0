"""Membership by density: where a release is denser than the population, somebody may be in it.

A release that remembers rows puts mass near them which the population does not have. The score is
log p(x) - log q(x), with p the density of the released rows and q that of people whom the attacker
knows of (the second half of the hold-out), each by a sharp kernel over the twenty nearest rows.
With weights, p is the weighted density. Reference: van Breugel et al. (2023).
"""

from __future__ import annotations

from counterpoise.evaluation.attacks.finding import (
    KNOWLEDGE,
    NEEDS_HOLDOUT,
    WITH_WEIGHTS,
    Finding,
    Risk,
)
from counterpoise.evaluation.attacks.membership import MEASURES, judge_scores, roc_curve
from counterpoise.evaluation.attacks.scene import NEIGHBOURS, Scene
from counterpoise.evaluation.attacks.space import log_density

NAME = "membership by density ratio"


def density_ratio(scene: Scene) -> Finding:
    """How well the densities of the release and of the population tell who is in it.

    >>> import pandas as pd, counterpoise as cp
    >>> from counterpoise.evaluation.attacks import set_scene
    >>> schema = cp.Schema([cp.Column.integer("age", 0, 99)])
    >>> rows = pd.DataFrame({"age": range(100)})
    >>> scene = set_scene(cp.release(rows, schema, 1.0, seed=1), rows[:50], rows[50:])
    >>> sorted(density_ratio(scene).roc)
    ['table', 'table and weights']
    """
    if scene.strangers is None or scene.known is None:
        return Finding.missing(NAME, MEASURES, NEEDS_HOLDOUT)
    space = scene.space
    known = space.among(scene.known)
    away = [
        log_density(known.nearest(known.place(people), NEIGHBOURS).squared, space.bandwidth, None)
        for people in (scene.members, scene.strangers)
    ]
    risks: list[Risk] = []
    curves = {}
    for columns in KNOWLEDGE:
        weights = scene.weights_for(columns == WITH_WEIGHTS)
        scores = []
        for found, expected in zip((scene.of_members, scene.of_strangers), away, strict=True):
            near = None if weights is None else weights[found.rows]
            scores.append(log_density(found.squared, space.bandwidth, near) - expected)
        risks += judge_scores(scene, NAME, columns, *scores)
        curves[columns] = roc_curve(*scores)
    return Finding(NAME, tuple(risks), curves)
