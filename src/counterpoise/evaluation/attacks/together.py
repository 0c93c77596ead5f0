"""All attacks on a release, in one table: for each measure its value, interval and baseline.

Whether several intervals out of twenty-odd pairs exceed their baselines matters; that one does may
be luck, at a chance of well below one in twenty each, as both intervals have to be passed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pandas as pd

from counterpoise.bundle.release import Release
from counterpoise.evaluation.attacks.attribute import attribute
from counterpoise.evaluation.attacks.density_ratio import density_ratio
from counterpoise.evaluation.attacks.finding import Finding, Risk
from counterpoise.evaluation.attacks.inference import inference
from counterpoise.evaluation.attacks.linkability import linkability
from counterpoise.evaluation.attacks.presence import presence
from counterpoise.evaluation.attacks.scene import Scene, set_scene
from counterpoise.evaluation.attacks.shadow import Rehearse, shadow
from counterpoise.evaluation.attacks.singling_out import singling_out

Progress = Callable[[str, float], None]


def attack_all(
    release: Release,
    private: Any,
    holdout: Any = None,
    *,
    seed: int = 0,
    progress: Progress | None = None,
    rehearse: Rehearse | None = None,
) -> pd.DataFrame:
    """Every attack on a release, each with and without its weights: a line a measure.

    `private` is the table that the release was made of, `holdout` rows of the same population
    that it was not made of, or None; without them some risks are nan, and others have a weaker
    baseline, as `says` tells. `progress` is called with the name of each attack and the part of
    the work done. `rehearse` makes shadow releases, by default as the card of the release says.
    What it returns is about private rows, and confidential as they are.

    >>> import pandas as pd, counterpoise as cp
    >>> schema = cp.Schema([cp.Column.integer("age", 0, 99), cp.Column.boolean("ill")])
    >>> rows = pd.DataFrame({"age": range(100), "ill": [False, True] * 50})
    >>> found = attack_all(cp.release(rows[:60], schema, 1.0, seed=1), rows[:60], rows[60:])
    >>> found.columns.tolist()[:4], found["attack"].nunique()
    (['attack', 'measure', 'columns', 'value'], 7)
    """
    say = progress or (lambda stage, done: None)
    scene = set_scene(release, private, holdout, seed=seed)
    attacks: tuple[tuple[str, float, Callable[[Scene], Finding]], ...] = (
        ("presence", 0.0, presence),
        ("attributes", 0.15, attribute),
        ("linkability", 0.25, linkability),
        ("inference", 0.35, inference),
        ("singling out", 0.5, singling_out),
        ("density ratio", 0.6, density_ratio),
        ("shadow releases", 0.65, lambda scene: shadow(scene, rehearse)),
    )
    risks: list[Risk] = []
    for name, before, attack in attacks:
        say(name, before)
        risks += attack(scene).risks
    say("attacks", 1.0)
    return pd.DataFrame([asdict(risk) for risk in risks])
