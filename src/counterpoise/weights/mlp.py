"""MLP weights: the logit of a network trained without privacy. For studies.

What `dp-mlp` would find with a budget without end, and a yardstick for it. The private rows are
looked at without noise, which only a vault with a seed allows, and everything that comes out is
stamped as not private. Under add/remove the number of rows is asked for as `dp-mlp` asks for it,
with 5% of the share; the descent itself has a line in the ledger that says "WITHOUT NOISE", and no
charge, because none would be enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from counterpoise.errors import MethodError
from counterpoise.vault import DescentPlan, Share, Vault
from counterpoise.weights.dp_mlp import settle_network
from counterpoise.weights.network_ratio import PACE, Comparison, NetworkModel
from counterpoise.weights.protocol import WEIGHTERS, Redrawable, check_request


@WEIGHTERS.register("mlp")
@dataclass(frozen=True)
class Mlp:
    """Weights from a network, trained without noise: never private, and stamped so.

    The parameters are those of `DpMlp`.

    >>> import numpy as np, pandas as pd
    >>> from counterpoise.schema import Column, Schema
    >>> from counterpoise.vault import Budget
    >>> schema = Schema([Column.continuous("x", 0, 1)])
    >>> table = pd.DataFrame({"x": np.linspace(0, 1, 200)})
    >>> with Vault(table, schema, Budget(1.0, 1e-6), seed=1) as vault:
    ...     model = Mlp().fit(vault, table, vault.budget.whole)
    >>> model.private, bool(abs(model.weigh(table).log_weights).max() < 0.2)
    (False, True)
    """

    hidden: tuple[int, ...] = (64,)
    activation: str = "relu"
    steps: int | None = None
    limit: float = 4.0

    is_free = False
    needs_delta = True
    needs_rows = True
    needs_seed = True

    def __post_init__(self) -> None:
        settle_network(self)

    def fit(
        self,
        vault: Vault,
        synthetic: Any,
        share: Share | None,
        synthesizer: Redrawable | None = None,
    ) -> NetworkModel:
        """Pay for the number of rows, where it is private, and train without noise."""
        check_request(vault, share, synthesizer)
        if vault.private:
            raise MethodError(
                "'mlp' looks at private rows without noise; open the vault with a seed, which "
                "stamps what comes out as not private, or choose 'dp-mlp'"
            )
        task = Comparison.of(vault, synthetic, share, self.hidden, self.activation)
        plan = DescentPlan(noise=0.0, steps=self.steps or STEPS, **task.sampling)
        return task.train(vault, plan, PACE, self.limit)


# Where nothing is noised, more steps tell finer differences, until they tell chance.
STEPS = 250
