"""Inference: all columns of a person but one are known, and that one is read off the nearest row.

The released row that is nearest in all other columns, and with weights the likeliest, tells the
secret: a category exactly, a number within 5% of the width of the private rows. Much can be
inferred about anybody by how columns hang together, which is what a release is for; a disclosure
is only what is inferred better of people in the private table than of the hold-out's. Reference:
Article 29 Data Protection Working Party, opinion 05/2014. The column with the largest excess is
the largest of many, so its intervals are as wide as that takes (Bonferroni).
"""

from __future__ import annotations

import numpy as np

from counterpoise.evaluation.attacks.finding import (
    KNOWLEDGE,
    NO_HOLDOUT,
    Finding,
    Risk,
    compared,
    percent,
)
from counterpoise.evaluation.attacks.rates import CONFIDENCE, Rate
from counterpoise.evaluation.attacks.scene import Scene, are_right, values_of
from counterpoise.evaluation.attacks.space import Space, costs
from counterpoise.schema import Coded

NAME = "inference"
MEASURES = ("mean over columns", "column with the largest excess")
MOST_PEOPLE, MOST_COLUMNS = 1000, 16


def inference(scene: Scene) -> Finding:
    """How often a secret column is guessed, over all columns and for the worst one.

    >>> import pandas as pd, counterpoise as cp
    >>> from counterpoise.evaluation.attacks import set_scene
    >>> schema = cp.Schema([cp.Column.integer("age", 0, 99), cp.Column.boolean("ill")])
    >>> rows = pd.DataFrame({"age": range(100), "ill": [False, True] * 50})
    >>> found = inference(set_scene(cp.release(rows, schema, 1.0, seed=1), rows[:50], rows[50:]))
    >>> found.risks[0].measure
    'mean over columns'
    """
    if len(scene.released.schema) == 1:
        return Finding.missing(NAME, MEASURES, "Not available: there is a single column.")
    members, strangers = scene.people(MOST_PEOPLE)
    secrets = scene.generator("secrets").permutation(len(scene.released.schema))[:MOST_COLUMNS]
    secrets = np.sort(secrets)
    hits = _hits(scene, members, secrets)
    if strangers is not None:
        others = _hits(scene, strangers, secrets)
        who, mark = "of people who are not", ""
    else:
        others, who = _luck(scene, members, secrets), "by a released row at random"
        mark = NO_HOLDOUT
    risks: list[Risk] = []
    for columns, found, baseline in zip(KNOWLEDGE, hits, others, strict=True):
        risks += _risks(scene, columns, secrets, found, baseline, who, mark)
    return Finding(NAME, tuple(risks))


def _risks(
    scene: Scene,
    columns: str,
    secrets: np.ndarray,
    hits: np.ndarray,
    others: np.ndarray,
    who: str,
    mark: str,
) -> tuple[Risk, Risk]:
    """`hits` and `others` are people x secret columns."""

    def overall(found: np.ndarray) -> Rate:
        return Rate.of_rows(found.sum(axis=1), np.full(len(found), float(len(secrets))))

    mean, chance = overall(hits), overall(others)
    worst = int((hits.mean(axis=0) - others.mean(axis=0)).argmax())
    sure = 1 - (1 - CONFIDENCE) / len(secrets)
    there = Rate.of(hits[:, worst].sum(), len(hits), sure)
    here = Rate.of(others[:, worst].sum(), len(others), sure)
    name = scene.released.schema.names[int(secrets[worst])]
    said = (
        f"Knowing all columns but one of somebody in the private table, that one would be guessed "
        f"in {percent(mean.value)} of the cases; {who} in {percent(chance.value)}: "
        f"{compared(mean, chance)}.{mark}"
    )
    most = (
        f"The column {name!r} gains most: {percent(there.value)} of its values would be guessed; "
        f"{who} {percent(here.value)}: {compared(there, here)}, given that it is the worst of "
        f"{len(secrets)}.{mark}"
    )
    return (
        Risk.of(NAME, MEASURES[0], columns, mean, chance, said),
        Risk.of(NAME, MEASURES[1], columns, there, here, most),
    )


def _hits(scene: Scene, people: Coded, secrets: np.ndarray) -> np.ndarray:
    """Whether each secret of each person is guessed: without and with weights."""
    space = scene.space
    singles = [Space(scene.released, [position]) for position in secrets.tolist()]
    placed = [single.place(people) for single in singles]
    hits = np.zeros((len(KNOWLEDGE), len(people), len(secrets)), dtype=bool)
    lightness = costs(np.zeros(len(space.points)), 1.0, scene.weights).astype(np.float32)
    values = [values_of(scene.released, position) for position in secrets.tolist()]
    for part, squared in space.blocks(space.place(people)):
        some = people.take(np.arange(part.start, min(part.stop, len(people))))
        for place, position in enumerate(secrets.tolist()):
            # The distance in the other columns is the whole one but for this column's part.
            _, own = next(singles[place].blocks(placed[place].take(part)))
            np.subtract(squared, own, out=own)
            for knows_weights in (0, 1):
                if knows_weights:
                    own *= 1 / (2 * space.bandwidth)
                    own += lightness
                guess = values[place][own.argmin(axis=1)]
                hits[knows_weights, part, place] = are_right(scene, some, position, guess)
    return hits


def _luck(scene: Scene, people: Coded, secrets: np.ndarray) -> np.ndarray:
    """Whether a released row at random tells each secret of each person."""
    drawn = scene.generator("anyone").integers(0, len(scene.released), len(people))
    right = [
        are_right(scene, people, position, values_of(scene.released, position)[drawn])
        for position in secrets.tolist()
    ]
    return np.broadcast_to(np.stack(right, axis=1), (len(KNOWLEDGE), len(people), len(secrets)))
