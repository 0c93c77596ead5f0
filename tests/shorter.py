"""Methods that train for long, in so few steps that a test can afford them: rules hold anyhow."""

from typing import Any

from counterpoise.synthesizers import Cgan, DpCgan, DpGan, Gan, MmdGan, PateGan
from counterpoise.weights import Mlp

SHORTER = {
    "cgan": Cgan(steps=5),
    "dpcgan": DpCgan(steps=20, start_steps=5),
    "dpgan": DpGan(steps=20, start_steps=5, snapshots=2),
    "gan": Gan(steps=5),
    "mlp": Mlp(steps=30),
    "mmdgan": MmdGan(steps=5),
    "pategan": PateGan(rounds=10, start_steps=5),
}


def shorter(name: str) -> Any:
    """A registered method in few steps, or the name of one that is quick."""
    return SHORTER.get(name, name)
