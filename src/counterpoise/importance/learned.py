"""A weight function learned from few labelled points: what they leave open is known as well.

Points with true or false are fitted by logistic regression, and a weight is the probability of
true; points with a number above zero, a weight each, by regression of its logarithm. Features are
the coordinates and their squares, standardised by the points that the function will be used on.
Weights are known up to a scale, as "sniw" takes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from counterpoise.arguments import number_array, seed_or_none, whole_number
from counterpoise.errors import MethodError
from counterpoise.importance.regression import LOG_LINEAR, LOGISTIC, fit_labels

FEWEST_ROWS = 4


@dataclass(frozen=True, eq=False)
class WeightFunction:
    """Weights of points, by coefficients of standardised features, the first of the constant."""

    link: str
    centre: np.ndarray
    scale: np.ndarray
    coefficients: np.ndarray
    root: np.ndarray

    def __call__(self, points: Any) -> np.ndarray:
        """The weights of points."""
        return self._weights(points, self.coefficients[:, None])[:, 0]

    def draw(self, points: Any, count: int, seed: int | None = None) -> np.ndarray:
        """The weights as they may be, given the labels: points x count, a draw a column."""
        count = whole_number("count", count)
        noise = np.random.default_rng(seed_or_none(seed)).normal(size=(len(self.root), count))
        return self._weights(points, self.coefficients[:, None] + self.root @ noise)

    def _weights(self, points: Any, coefficients: np.ndarray) -> np.ndarray:
        found = _features(_points("points", points), self.centre, self.scale) @ coefficients
        if self.link == LOGISTIC:
            return np.asarray(expit(found))
        return np.asarray(np.exp(np.clip(found, -300, 300)))


def learn_weights(points: Any, labels: Any, among: Any = None) -> WeightFunction:
    """A weight function from labelled points; `among` are points that it will be used on.

    >>> generator = np.random.default_rng(0)
    >>> points = generator.normal(size=(200, 1))
    >>> inside = generator.random(200) < 1 / (1 + np.exp(-2 * points[:, 0]))
    >>> low, high = learn_weights(points, inside)([[-1.0], [1.0]])
    >>> bool(low < 0.25 and high > 0.75)
    True
    """
    found, target = _points("points", points), number_array("labels", labels)
    others = found if among is None else _points("among", among)
    if target.shape != (len(found),) or len(found) < FEWEST_ROWS:
        raise MethodError(f"labels: expected one a point, of {FEWEST_ROWS} points or more")
    if others.shape[1] != found.shape[1]:
        raise MethodError("among: expected as many columns as the labelled points have")
    if not (np.isfinite(target).all() and (target >= 0).all()):
        raise MethodError("labels: expected true and false, or weights above 0")
    link = LOGISTIC if set(np.unique(target)) <= {0.0, 1.0} else LOG_LINEAR
    if link == LOGISTIC and len(np.unique(target)) < 2:
        raise MethodError("labels: expected points of both sorts")
    if link == LOG_LINEAR:
        if not (target > 0).all():
            raise MethodError("labels: expected weights above 0, or nothing but 0 and 1")
        target = np.log(target)
    raw = np.hstack([others, others**2])
    centre, scale = raw.mean(axis=0), np.maximum(raw.std(axis=0), 1e-12)
    matrix = _features(found, centre, scale)
    coefficients, root = fit_labels(matrix, target, link, groups=raw.shape[1])
    return WeightFunction(link, centre, scale, coefficients, root)


def _features(points: np.ndarray, centre: np.ndarray, scale: np.ndarray) -> np.ndarray:
    raw = np.hstack([points, points**2])
    if raw.shape[1] != len(centre):
        raise MethodError("points: expected as many columns as the labelled points have")
    return np.hstack([np.ones((len(raw), 1)), (raw - centre) / scale])


def _points(name: str, value: Any) -> np.ndarray:
    found = number_array(name, value)
    if found.ndim != 2 or not len(found) or not np.isfinite(found).all():
        raise MethodError(f"{name}: expected finite points, rows x columns")
    return found
