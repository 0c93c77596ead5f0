"""Losses by name: what a network's single output costs, row by row, and its slope there.

`logistic` is the cross-entropy of a logit, log(1 + exp(-s t)) for a label s of 1 or -1.
`wasserstein` is -s t: the critic's half of the Wasserstein distance (Arjovsky and others 2017),
whose size only a bound on the network holds.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import expit


def _logistic(margins: np.ndarray) -> np.ndarray:
    return np.logaddexp(0.0, -margins)


def _logistic_slope(margins: np.ndarray) -> np.ndarray:
    return np.asarray(-expit(-margins))


def _wasserstein(margins: np.ndarray) -> np.ndarray:
    return -margins


def _wasserstein_slope(margins: np.ndarray) -> np.ndarray:
    return -np.ones_like(margins)


_LOSSES: dict[
    str, tuple[Callable[[np.ndarray], np.ndarray], Callable[[np.ndarray], np.ndarray]]
] = {
    "logistic": (_logistic, _logistic_slope),
    "wasserstein": (_wasserstein, _wasserstein_slope),
}
LOSSES = tuple(_LOSSES)


def loss_values(loss: str, outputs: np.ndarray, labels: np.ndarray | float) -> np.ndarray:
    """The loss of each row; labels are 1 for private and -1 for public rows.

    >>> loss_values("logistic", np.zeros((2, 1)), np.array([1.0, -1.0])).round(3)
    array([0.693, 0.693])
    """
    return _LOSSES[loss][0](outputs[:, 0] * labels)


def loss_slopes(loss: str, outputs: np.ndarray, labels: np.ndarray | float) -> np.ndarray:
    """The slope of each row's loss in its output, as a column.

    >>> loss_slopes("wasserstein", np.zeros((2, 1)), np.array([1.0, -1.0])).tolist()
    [[-1.0], [1.0]]
    """
    # d loss(s t) / d t = s loss'(s t)
    return (labels * _LOSSES[loss][1](outputs[:, 0] * labels))[:, None]
