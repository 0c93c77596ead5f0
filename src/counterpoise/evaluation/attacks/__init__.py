"""Attacks on a release: what it would tell somebody about the people in the private table.

`attack_all` makes all of them. One by one, `set_scene` codes what they start from, and each attack
is a function of the scene that returns a `Finding`: risks with intervals and baselines, without
and with the weights, which are released too. All of it looks at exact private rows, spends no
privacy, and is confidential. That attacks fail proves nothing; the ledger of a release does.
"""

from counterpoise.evaluation.attacks.attribute import attribute
from counterpoise.evaluation.attacks.density_ratio import density_ratio
from counterpoise.evaluation.attacks.finding import Finding, Risk
from counterpoise.evaluation.attacks.inference import inference
from counterpoise.evaluation.attacks.linkability import linkability
from counterpoise.evaluation.attacks.presence import presence
from counterpoise.evaluation.attacks.scene import Scene, set_scene
from counterpoise.evaluation.attacks.shadow import rehearsal, shadow
from counterpoise.evaluation.attacks.singling_out import singling_out
from counterpoise.evaluation.attacks.together import attack_all

__all__ = [
    "Finding",
    "Risk",
    "Scene",
    "attack_all",
    "attribute",
    "density_ratio",
    "inference",
    "linkability",
    "presence",
    "rehearsal",
    "set_scene",
    "shadow",
    "singling_out",
]
