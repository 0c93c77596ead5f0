"""Means of clipped gradients over public rows: the free half of a relaxed private descent.

Each row's gradient is scaled down to a norm of at most C, as the private rows' are, so that neither
side outweighs the other; nothing here is noised, because nothing here is private. [Abadi and others
2016, Deep learning with differential privacy]
"""

from __future__ import annotations

import numpy as np

from counterpoise.networks.dense import Network
from counterpoise.networks.losses import loss_slopes


def clipped_gradient(
    network: Network,
    parameters: np.ndarray,
    rows: np.ndarray,
    loss: str,
    labels: np.ndarray | float = -1.0,
    clip: float = 1.0,
) -> np.ndarray:
    """The mean over rows of the gradients of their losses, each clipped to norm `clip`.

    >>> network = Network((2, 1))
    >>> row = np.array([[30.0, 40.0]])
    >>> clipped_gradient(network, np.zeros(3), row, "logistic", clip=1.0).round(3)
    array([0.6 , 0.8 , 0.02])
    """
    passed = network.forward(parameters, rows)
    errors = network.backward(parameters, passed, loss_slopes(loss, passed.outputs, labels))
    norms = np.sqrt(network.squared_norms(passed, errors))
    # min(1, C / norm), also where the norm is zero
    multiples = clip / np.maximum(norms, clip)
    return network.gradient(passed, errors, multiples) / len(rows)
