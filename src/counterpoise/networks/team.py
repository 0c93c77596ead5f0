"""Teams: many networks of one description, each with rows of its own, in one pass.

What a member becomes depends on its own parameters and rows alone: the products of a pass are one
matrix product a member, of a shape that is the same for all.
"""

from __future__ import annotations

import numpy as np

from counterpoise.networks.dense import Network, activation_functions
from counterpoise.networks.losses import loss_slopes


def initial_team(network: Network, members: int, seed: int) -> np.ndarray:
    """Parameters to start from, one vector a member; they differ, and the seed decides them all."""
    generator = np.random.default_rng(seed)
    return np.stack([network.initial(generator) for _ in range(members)])


def team_outputs(network: Network, parameters: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """What each member says of rows: of its own, where they have three axes, or of the same ones.

    >>> network = Network((3, 4, 1))
    >>> team_outputs(network, initial_team(network, 5, seed=0), np.zeros((2, 3))).shape
    (5, 2)
    """
    _seen, made = _forward(network, parameters, rows)
    found: np.ndarray = made[-1][:, :, 0]
    return found


def team_gradient(
    network: Network,
    parameters: np.ndarray,
    rows: np.ndarray,
    loss: str,
    labels: np.ndarray,
    multiples: np.ndarray,
) -> np.ndarray:
    """Each member's sum of the gradients of its rows, every row multiplied by its own number."""
    _, slope = activation_functions(network.activation)
    seen, made = _forward(network, parameters, rows)
    layers = _layers(network, parameters)
    shape = made[-1].shape[:2]
    slopes = loss_slopes(loss, made[-1].reshape(-1, 1), np.broadcast_to(labels, shape).ravel())
    error = slopes.reshape(*shape, 1) * multiples[:, :, None]
    found = np.empty_like(parameters)
    into = _layers(network, found)
    for place in range(len(layers) - 1, -1, -1):
        into[place][0][...] = error.transpose(0, 2, 1) @ seen[place]
        into[place][1][...] = error.sum(axis=1)
        if place:
            error = (error @ layers[place][0]) * slope(made[place - 1], seen[place])
    return found


def _forward(
    network: Network, parameters: np.ndarray, rows: np.ndarray
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """What each layer saw and made."""
    function, _ = activation_functions(network.activation)
    layers = _layers(network, parameters)
    seen, made = [rows], []
    for place, (matrices, offsets) in enumerate(layers):
        made.append(seen[-1] @ matrices.transpose(0, 2, 1) + offsets[:, None, :])
        if place < len(layers) - 1:
            seen.append(function(made[-1]))
    return seen, made


def _layers(network: Network, parameters: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """The matrices and offsets of each layer, as views of all members' vectors."""
    found, place = [], 0
    for before, after in zip(network.units[:-1], network.units[1:], strict=True):
        matrices = parameters[:, place : place + before * after].reshape(-1, after, before)
        place += before * after
        found.append((matrices, parameters[:, place : place + after]))
        place += after
    return found
