"""Weights: one number a synthetic row, that puts the synthesizer's bias right.

Kept as log-weights, and normalised so that they average to one: a constant factor changes no
weighted estimate. The effective sample size is Kish's: the number of equally weighted rows that
would estimate a mean as precisely.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp


@dataclass(frozen=True, eq=False)
class Weights:
    """Log-weights of synthetic rows, up to a constant.

    >>> weights = Weights(np.log([1.0, 1.0, 2.0]))
    >>> weights.normalised
    array([0.75, 0.75, 1.5 ])
    >>> round(weights.effective_sample_size, 2)
    2.67
    """

    log_weights: np.ndarray
    # The part of the difference between the tables, as far as it is known, that they make up for.
    reached: float = 1.0

    def __len__(self) -> int:
        return len(self.log_weights)

    @property
    def normalised(self) -> np.ndarray:
        """The weights, averaging to one."""
        if len(self) == 0:
            return np.empty(0)
        return np.exp(self.log_weights - logsumexp(self.log_weights) + np.log(len(self)))

    @property
    def effective_sample_size(self) -> float:
        """(sum w)^2 / sum w^2."""
        weights = self.normalised
        return float(weights.sum() ** 2 / (weights**2).sum()) if len(self) else 0.0

    @property
    def largest_share(self) -> float:
        """The part of the total weight that the heaviest row has."""
        return float(self.normalised.max() / len(self)) if len(self) else 0.0

    def diagnostics(self) -> dict[str, Any]:
        """What one should look at before trusting the weights, as JSON values; see `diagnose`."""
        from counterpoise.weights.diagnostics import diagnose

        return diagnose(self).to_dict()
