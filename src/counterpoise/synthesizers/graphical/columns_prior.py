"""Independent columns with likely counts: a prior for fits in which single columns were measured.

Noisy counts y_j = c_j + noise of a column's cells also say how the counts c_j are spread: most of
them near zero and one large, or all about alike. Empirical Bayes takes a prior of the counts from
the cells themselves, by maximum likelihood (Kiefer and Wolfowitz 1956), and each cell's posterior
mean is its likely count (Robbins 1956). Columns of many cells lose most of their noise by it;
with few cells there is little to learn from, and the counts stay near where they were.
It is arithmetic on noisy numbers, and free.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from counterpoise.synthesizers.graphical.domain import Columns
from counterpoise.synthesizers.graphical.factor import Array

if TYPE_CHECKING:
    from counterpoise.synthesizers.graphical.fit import Measurement

# Counts that the prior may have, in noise scales: steps up to the largest that noise could hide.
STEP, LARGEST = 0.25, 8.0
# Above so many noise scales a cell tells more of itself than others do, and its answer is one.
OWN = 6.0
# Steps of EM. The likelihood is flat at its top, where the prior would follow the noise.
STEPS = 10
# The least a cell has, as a part of the mean: no cell is ruled out.
LEAST = 1e-3


def towards_columns(
    measurements: Sequence[Measurement], total: float
) -> tuple[list[Measurement], dict[Columns, Array]]:
    """The measurements, single columns half way to their likely counts, and potentials of these.

    Half way: the fit filters noise by itself, and with few cells likely counts can be worse.
    """
    counts = {
        part.columns: likely_counts(part.values, part.scale, total)
        for part in measurements
        if len(part.columns) == 1
    }
    answers = [
        replace(part, values=(part.values + counts[part.columns]) / 2)
        if part.columns in counts
        else part
        for part in measurements
    ]
    return answers, {columns: np.log(own / own.mean()) for columns, own in counts.items()}


def likely_counts(noisy: Array, scale: float, total: float) -> Array:
    """The posterior means of counts that sum to `total`, under a prior taken from all of them.

    >>> likely_counts(np.array([960.0, 25.0, -20.0, 10.0, -15.0]), 20.0, 1000.0).round()
    array([968.,  12.,   6.,   9.,   6.])
    """
    mean = total / noisy.size
    # The counts sum to the total: what the answers are beyond it is noise.
    values, place, times = np.unique(
        noisy + (mean - noisy.mean()), return_inverse=True, return_counts=True
    )
    is_large = values > OWN * scale
    atoms = np.concatenate(
        [[mean], np.arange(0.0, LARGEST * scale, STEP * scale), values[is_large]]
    )
    exponent = -0.5 * ((values[:, None] - atoms) / scale) ** 2
    likelihood = np.exp(exponent - exponent.max(axis=1, keepdims=True))
    # EM from half a belief that all cells are alike.
    prior = np.full(len(atoms), 0.5 / len(atoms))
    prior[0] += 0.5
    for _ in range(STEPS):
        prior = times @ _posterior(likelihood, prior) / noisy.size
    posterior = _posterior(likelihood, prior)
    means = posterior @ atoms
    # What is missing from the total goes where most is unknown. A large cell has its own noise.
    spread = np.where(is_large, scale**2, posterior @ atoms**2 - means**2 + 1e-6 * scale**2)
    missing = total - times @ means
    counts = np.maximum(means + missing * spread / (times @ spread), LEAST * mean)
    counts *= total / (times @ counts)
    return np.asarray(counts[place].reshape(noisy.shape))


def _posterior(likelihood: Array, prior: Array) -> Array:
    joint = likelihood * prior
    return np.asarray(joint / joint.sum(axis=1, keepdims=True))
