"""Coefficients of a regression: from real rows, from synthetic ones, and how their intervals meet.

A logistic or linear regression of a column on all others, with the most common category of each as
the one that others are compared with, and a slight penalty. Intervals of real and of unweighted
rows are those that an analyst would take: the sandwich's. Those of weighted rows come from the
replicate weights, one Newton step each, where the release has them. The overlap of two intervals
is the part of each that is in both, averaged: 1 for equal ones, below 0 for ones apart (Karr et
al., A framework for evaluating the utility of data altered to protect confidentiality, 2006).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import expit, stdtrit

from counterpoise.analysis.replication import multiplier
from counterpoise.evaluation.compared import Compared
from counterpoise.evaluation.utility import is_regression, is_stated, split_target
from counterpoise.schema import Coded, Schema

LEVEL = 0.95
PENALTY = 1e-4
STEPS, CLOSE = 40, 1e-9


@dataclass(frozen=True, eq=False)
class Fitted:
    """Coefficients and their standard errors; `multiplier` makes half an interval of an error."""

    values: np.ndarray
    errors: np.ndarray
    multiplier: float

    @property
    def low(self) -> np.ndarray:
        """The lower ends of the intervals."""
        return self.values - self.multiplier * self.errors

    @property
    def high(self) -> np.ndarray:
        """The upper ends of the intervals."""
        return self.values + self.multiplier * self.errors


def compare_coefficients(compared: Compared, target: str) -> pd.DataFrame:
    """A line a term: its coefficient and interval in private, unweighted and weighted, and overlap.

    Of a target of more than two categories, the most common one is told from the rest.
    """
    schema = compared.schema
    place = schema.index(target)
    counts = np.bincount(compared.private.codes[:, place], minlength=schema[target].size)
    # Of two categories the second is predicted.
    code = schema[target].cells - 1 if schema[target].cells == 2 else int(counts.argmax())
    names, kept = _terms(compared.private, target)
    sides = {
        "private": (compared.private, None, None),
        "unweighted": (compared.synthetic, None, None),
        "weighted": (compared.synthetic, compared.weights, compared.replicates),
    }
    found = {
        side: _fit(table, target, code, kept, weights, replicates, compared.part)
        for side, (table, weights, replicates) in sides.items()
    }
    columns: dict[str, object] = {"target": [target] * len(names), "term": names}
    for side, fitted in found.items():
        columns[side] = fitted.values
        columns[f"{side}_low"], columns[f"{side}_high"] = fitted.low, fitted.high
    for side in ("unweighted", "weighted"):
        columns[f"overlap_{side}"] = overlap(found["private"], found[side])
    return pd.DataFrame(columns)


def overlap(one: Fitted, other: Fitted) -> np.ndarray:
    """The overlap of intervals, term by term.

    >>> one, other = Fitted(np.zeros(1), np.ones(1), 1.0), Fitted(np.ones(1), np.ones(1), 1.0)
    >>> overlap(one, other).tolist()
    [0.5]
    """
    # (1/2) [(u - l) / (U1 - L1) + (u - l) / (U2 - L2)], l and u the ends of what both have
    inside = np.minimum(one.high, other.high) - np.maximum(one.low, other.low)
    widths = [np.maximum(each.high - each.low, 1e-300) for each in (one, other)]
    return np.asarray((inside / widths[0] + inside / widths[1]) / 2)


def _terms(table: Coded, target: str) -> tuple[list[str], np.ndarray]:
    """The names of the terms and the features that they are, beside the intercept."""
    others = Schema([column for column in table.schema if column.name != target])
    features, _ = split_target(table, target)
    names, kept, place = [], [], 0
    for column in others:
        labels = column.code_labels() if column.kind == "categorical" else ()
        means = features[:, place : place + len(labels)].mean(axis=0)
        reference = int(means.argmax()) if len(labels) else -1
        for code, label in enumerate(labels):
            if code != reference and means[code] > 0:
                names.append(f"{column.name}={label}")
                kept.append(place + code)
        place += len(labels)
        if not labels:
            if np.ptp(features[:, place]) > 0:
                names.append(column.name)
                kept.append(place)
            place += 1
        if column.nullable:
            if features[:, place].any():
                names.append(f"{column.name} is null")
                kept.append(place)
            place += 1
    return ["Intercept", *names], np.array(kept, dtype=np.int64)


def _fit(
    table: Coded,
    target: str,
    code: int,
    kept: np.ndarray,
    weights: np.ndarray | None,
    replicates: np.ndarray | None,
    part: float,
) -> Fitted:
    rows = is_stated(table, target)
    features, outcome = split_target(table.take(rows), target)
    design = np.column_stack([np.ones(len(features)), features[:, kept]])
    is_linear = is_regression(table.schema, target)
    y = outcome if is_linear else (outcome == code).astype(float)
    own = np.ones(len(y)) if weights is None else weights[rows]
    own = own / own.sum()
    ridge = PENALTY * np.eye(design.shape[1])
    # The intercept is held by a hair, for tables in which a class is not there.
    ridge[0, 0] = 1e-9
    theta = np.zeros(design.shape[1])
    for _ in range(STEPS):
        fitted, slopes = _fitted(design @ theta, is_linear)
        hessian = (design.T * (own * slopes)) @ design + ridge
        step = np.linalg.solve(hessian, design.T @ (own * (y - fitted)) - ridge @ theta)
        theta = theta + step
        if np.abs(step).max() < CLOSE:
            break
    fitted, slopes = _fitted(design @ theta, is_linear)
    hessian = (design.T * (own * slopes)) @ design + ridge
    if replicates is not None and replicates.shape[1] > 1:
        return _by_replicates(design, y - fitted, theta, hessian, ridge, replicates[rows], part)
    scores = design * (own * (y - fitted))[:, None]
    # H^-1 (sum_i s_i s_i^T) H^-1
    spread = np.linalg.solve(hessian, scores.T)
    return Fitted(theta, np.sqrt((spread**2).sum(axis=1)), float(stdtrit(1e9, (1 + LEVEL) / 2)))


def _by_replicates(
    design: np.ndarray,
    residuals: np.ndarray,
    theta: np.ndarray,
    hessian: np.ndarray,
    ridge: np.ndarray,
    replicates: np.ndarray,
    part: float,
) -> Fitted:
    sums = replicates.sum(axis=0, dtype=float)
    gradients = design.T @ (residuals[:, None] * replicates) / sums
    # theta_r - theta = H^-1 (gradient with the replicate), one step of Newton's
    moved = np.linalg.solve(hessian, gradients - (ridge @ theta)[:, None])
    errors = np.sqrt((moved**2).mean(axis=1)) / part
    return Fitted(theta, errors, multiplier(LEVEL, replicates.shape[1]))


def _fitted(scores: np.ndarray, is_linear: bool) -> tuple[np.ndarray, np.ndarray]:
    """Fitted values, and their slopes in the scores."""
    if is_linear:
        return scores, np.ones(len(scores))
    chances = expit(scores)
    return chances, chances * (1 - chances)
