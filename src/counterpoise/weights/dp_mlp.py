"""DP-MLP weights: the logit of a network trained under private gradient descent.

Algorithm 1 of Ghalebikesabi and others (2022), "Relaxed DP-SGD", made sound: private rows are
Poisson-sampled at a public rate, every gradient is clipped, noise is added once a step, always, and
the sum is divided by a public number; synthetic rows are public and cost nothing. Steps, lots and
the pace follow from the noisy number of rows and the share, so that the noise moves a logit by no
more than 0.6, and the network trains at 500 rows and epsilon 1 as it does at 50,000. Charge: the
number of rows, 5% of the share under add/remove, and T steps of a Poisson-sampled Gaussian, the
rest. [PRIVACY: relaxed DP-SGD]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from counterpoise.arguments import real_number, settle, whole_number
from counterpoise.errors import MethodError
from counterpoise.networks import Network
from counterpoise.schema import Schema
from counterpoise.vault import ADD_REMOVE, Budget, DescentPlan, Share, Vault
from counterpoise.weights.network_ratio import (
    MOST_STEPS,
    Comparison,
    NetworkModel,
    pace_within_noise,
    steps_within_noise,
)
from counterpoise.weights.protocol import WEIGHTERS, Redrawable, check_request


@WEIGHTERS.register("dp-mlp")
@dataclass(frozen=True)
class DpMlp:
    """Weights from a network, trained privately.

    `hidden` are the units of the hidden layers, none for a linear logit. `steps` is T; None takes
    as many as the noise allows, up to 150. Log-weights are cut at plus and minus `limit`.

    >>> import numpy as np, pandas as pd
    >>> from counterpoise.schema import Column, Schema
    >>> from counterpoise.vault import Budget
    >>> schema = Schema([Column.continuous("x", 0, 1)])
    >>> generator = np.random.default_rng(0)
    >>> private = pd.DataFrame({"x": generator.beta(3, 2, 2000)})
    >>> synthetic = pd.DataFrame({"x": generator.uniform(size=2000)})
    >>> with Vault(private, schema, Budget(1.0, 1e-6), seed=1) as vault:
    ...     model = DpMlp().fit(vault, synthetic, vault.budget.whole)
    >>> weights = model.weigh(synthetic).normalised
    >>> before, after = synthetic["x"].mean(), np.average(synthetic["x"], weights=weights)
    >>> bool(abs(after - private["x"].mean()) < 0.3 * abs(before - private["x"].mean()))
    True
    """

    hidden: tuple[int, ...] = (64,)
    activation: str = "relu"
    steps: int | None = None
    limit: float = 4.0

    is_free = False
    needs_delta = True
    needs_rows = True

    def __post_init__(self) -> None:
        settle_network(self)

    def check_plan(self, schema: Schema, budget: Budget) -> None:
        """Refuse a budget that the method cannot be fitted with; nothing is asked."""
        if budget.neighbours is not ADD_REMOVE:
            raise MethodError(
                "'dp-mlp' samples rows, which is accounted for under neighbours='add-remove' "
                "alone; choose that, or the weights 'moments'"
            )

    def fit(
        self,
        vault: Vault,
        synthetic: Any,
        share: Share | None,
        synthesizer: Redrawable | None = None,
    ) -> NetworkModel:
        """Pay for the number of rows, where it is private, and for all steps in advance."""
        check_request(vault, share, synthesizer)
        self.check_plan(vault.schema, vault.budget)
        task = Comparison.of(vault, synthetic, share, self.hidden, self.activation)
        rows = vault.budget.max_rows_per_person
        steps = self.steps or steps_within_noise(task.population, task.share, rows)
        plan = DescentPlan.within(vault, task.share, steps=steps, **task.sampling)
        return task.train(vault, plan, pace_within_noise(plan, rows), self.limit)


def settle_network(method: Any) -> None:
    """Check what the networks of `dp-mlp` and `mlp` are made with."""
    hidden = method.hidden
    if not isinstance(hidden, tuple | list):
        raise MethodError(
            "hidden: expected the number of units of each hidden layer, such as (64,)"
        )
    units = tuple(whole_number("hidden", number, 1, 4096) for number in hidden)
    network = Network((1, *units, 1), method.activation)
    steps = method.steps
    settle(
        method,
        hidden=units,
        activation=network.activation,
        steps=None if steps is None else whole_number("steps", steps, 1, 100 * MOST_STEPS),
        limit=real_number("limit", method.limit, "a positive number", above=0),
    )
