"""A posterior's density as a sampler climbs it: its height and gradient, thousands of times.

The target enters a logistic or a multinomial likelihood by one sum alone, its gradient at zero:

    sum_i w_i log f(x_i | theta) = D . theta - sum_i w_i g(eta_i) + constant,

with eta_i = x_i theta, D = sum_i w_i grad log f(x_i | 0), and g(eta) = log(1 + sum_k exp(eta_k))
less the mean of 0, eta_1, eta_2 and so on, whose gradient is how far the probabilities are from
being all alike. So rows that have the same features are one row with their weights added, whatever
their targets. The rows are held in single precision, which is as fast again, and summed in double,
a block that stays in the processor's cache at a time. The rows of a linear model are folded into
p + 1. All of it is the density of `posterior_density`, up to that rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from counterpoise.analysis.no_u_turn import Surface
from counterpoise.analysis.posterior_density import Task, expand, likelihood_of, prior_height

_ROWS_AT_ONCE = 32_768


def surface_of(family: str, task: Task) -> Surface:
    """The log-density of a posterior, up to a constant that does not depend on theta."""
    if family == "linear":
        folded = folded_rows(task)
        return lambda theta: expand(family, theta, folded)[:2]
    return _Rows.of(family, task)


def folded_rows(task: Task) -> Task:
    """The posterior of a linear model by p + 1 rows."""
    # The rows enter by their number and sum w (y - x beta)^2 alone. With sqrt(w) (X, y) = Q R,
    # that is the sum over the rows of sqrt(m/W) R, each of weight W/m.
    root = np.sqrt(task.weights)[:, None]
    triangle = np.linalg.qr(root * np.column_stack([task.features, task.target]), mode="r")
    share = task.weights.sum() / len(triangle)
    triangle = triangle / np.sqrt(share)
    return task._replace(
        features=triangle[:, :-1], target=triangle[:, -1], weights=np.full(len(triangle), share)
    )


class _Block(NamedTuple):
    """Some rows: features in lines, which products take fastest, and weights twice."""

    features: np.ndarray  # p x rows, float32; halved where there are two categories
    weights: np.ndarray
    single: np.ndarray  # the weights as float32


@dataclass(frozen=True, eq=False)
class _Rows:
    """The distinct rows of a logistic or a multinomial posterior, and what their targets add."""

    family: str
    task: Task
    blocks: tuple[_Block, ...]
    pull: np.ndarray  # D

    @classmethod
    def of(cls, family: str, task: Task) -> _Rows:
        model = likelihood_of(family, task)
        pull = model.slope(model.predictor(np.zeros(task.size)), task.weights)
        features, weights = _distinct(task.features, task.weights)
        if task.size == features.shape[1]:
            features = features / 2
        count = -(-len(weights) // _ROWS_AT_ONCE)
        blocks = (
            _Block(
                np.ascontiguousarray(features[rows].T), weights[rows], weights[rows].astype("f4")
            )
            for rows in np.array_split(np.arange(len(weights)), max(count, 1))
        )
        return cls(family, task, tuple(blocks), pull)

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        height, slope = prior_height(self.family, theta, self.task)
        lines = theta.astype(np.float32).reshape(-1, len(self.blocks[0].features))
        excess_of = _excess_of_two if len(lines) == 1 else _excess_of_many
        total, moments = 0.0, np.zeros(lines.shape)
        for features, weights, single in self.blocks:
            excess, shares = excess_of(lines @ features)
            total += float(weights @ excess)
            shares *= single
            moments += shares @ features.T
        return height + float(self.pull @ theta) - total, slope + self.pull - moments.ravel()


def _excess_of_two(half: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """g of every row for two categories, given eta / 2, and its derivative by that."""
    # g(eta) = log(2 cosh(eta / 2)), and log(2 cosh(h)) = |h| + log(1 + e), its derivative
    # tanh(h) = sign(h) (1 - e) / (1 + e), with e = exp(-2 |h|). Exponentials and logarithms are
    # quick on every processor, which log1p and tanh are not; what they would add is below the
    # rounding of |h| and of one.
    size = np.abs(half)
    rest = np.multiply(size, np.float32(-2))
    np.exp(rest, out=rest)
    whole = rest + np.float32(1)
    slope = np.copysign((np.float32(1) - rest) / whole, half)
    size += np.log(whole, out=whole)
    return size[0], slope


def _excess_of_many(eta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """g of every row, given a line for each category but the first, and its gradient."""
    categories = np.float32(len(eta) + 1)
    most = np.maximum(eta.max(axis=0), np.float32(0))
    shares = np.exp(eta - most)
    sums = shares.sum(axis=0) + np.exp(-most)
    shares /= sums
    shares -= 1 / categories
    return most + np.log(sums) - eta.sum(axis=0) / categories, shares


def _distinct(features: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each row once in single precision, its weights added; rows of no weight are left out."""
    kept = weights > 0
    single = np.asarray(features[kept], dtype=np.float32)
    found, places = np.unique(single, axis=0, return_inverse=True)
    return found, np.bincount(places.ravel(), weights[kept], len(found))
