"""Oracle weights: a density ratio that is known, for simulations. Free.

In a simulation both the private and the synthetic law are known, and so is the ratio of their
densities. These weights say what the best weighting could do; they ask nothing of the vault. A
ratio that was worked out from private rows is not known in this sense, and not private.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from counterpoise.errors import MethodError
from counterpoise.vault import Share, Vault
from counterpoise.weights.debias import average_to_one
from counterpoise.weights.protocol import WEIGHTERS, Redrawable
from counterpoise.weights.weights import Weights

if TYPE_CHECKING:
    from counterpoise.weights.replicates import Redraws

LogRatio = Callable[[Any], Any]


def equal_densities(table: Any) -> np.ndarray:
    """The log-ratio of a law and itself: zero for every row."""
    return np.zeros(len(table))


@WEIGHTERS.register("oracle")
@dataclass(frozen=True, init=False, eq=False)
class Oracle:
    """Weights from a function of a table: the log-ratio of the densities at each of its rows.

    >>> import pandas as pd
    >>> table = pd.DataFrame({"x": [1.0, 2.0, 3.0]})
    >>> model = Oracle(lambda table: np.log(table["x"])).fit(None, table)
    >>> model.weigh(table).normalised
    array([0.5, 1. , 1.5])
    """

    is_free = True
    # The ledger cannot tell what the ratio was worked out from; the card of a release says so.
    stated_by_caller = True
    only_as_instance = (
        "an oracle needs a log density ratio; give it as an instance in Python, Oracle(log_ratio)"
    )

    def __init__(self, log_ratio: LogRatio = equal_densities):
        # Not a field: a function is no parameter that a release's card could state.
        object.__setattr__(self, "_model", OracleModel(log_ratio))

    def fit(
        self,
        vault: Vault | None,
        synthetic: Any,
        share: Share | None = None,
        synthesizer: Redrawable | None = None,
    ) -> "OracleModel":
        """Ask nothing."""
        return self._model  # type: ignore[attr-defined,no-any-return]


@dataclass(frozen=True)
class OracleModel:
    """The known ratio."""

    log_ratio: LogRatio

    def weigh(self, synthetic: Any) -> Weights:
        """The ratio at each row."""
        answer = self.log_ratio(synthetic)
        try:
            found = np.asarray(answer, dtype=float)
        except (TypeError, ValueError):
            raise MethodError("log_ratio: expected numbers, one a row of the table") from None
        if found.shape != (len(synthetic),):
            raise MethodError("log_ratio: expected one number a row of the table")
        if np.isnan(found).any() or np.isposinf(found).any():
            raise MethodError(
                "log_ratio: expected numbers, or minus infinity for a row that cannot be private; "
                "it is NaN or infinite for some row"
            )
        if len(found) and not np.isfinite(found).any():
            raise MethodError(
                "log_ratio: expected a number for some row; it is minus infinity for all, so that "
                "none would have a weight"
            )
        return Weights(found)

    def replicate(self, synthetic: Any, redraws: "Redraws") -> np.ndarray:
        """The same weights in every replicate but for the base weights: there is no noise."""
        log_weights = self.weigh(synthetic).log_weights[:, None]
        return average_to_one(np.broadcast_to(log_weights, redraws.base.shape), redraws.base)

    def to_arrays(self) -> NoReturn:
        """Refused: a function is not data."""
        raise MethodError("an oracle is a function and cannot be saved; save its weights")
