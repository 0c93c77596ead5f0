"""What the features of a formula are made of: the factors and the categories behind each.

A layout names its features and computes them; for the support of a coefficient one has to know
which columns its feature depends on, and which categories it compares.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

from counterpoise.formulas.contrasts import Coding
from counterpoise.formulas.layout import Layout, Learnt
from counterpoise.formulas.terms import Factor
from counterpoise.schema.expression_trees import Call, Name

Categories = tuple[tuple[str, Any], ...]  # columns with a category of each


@dataclass(frozen=True)
class Feature:
    """The factors that a feature is a product of, and the categories that it compares."""

    factors: tuple[Factor, ...]
    categories: Categories


def features_of(layout: Layout) -> list[Feature]:
    """The features of a layout, in its order; that of the intercept has no factors."""
    found = []
    for part, _ in layout.parts:
        factors = tuple(layout.factors[name].factor for name, _ in part)
        each = [_categories(layout.factors[name], reduced) for name, reduced in part]
        # The first factor's features change fastest, as in the layout's matrix.
        for chosen in itertools.product(*reversed(each)):
            found.append(Feature(factors, tuple(itertools.chain(*chosen))))
    return found


def compared(coding: Coding, reduced: bool) -> list[tuple[Any, ...]]:
    """For each feature of a coding, the categories whose rows its coefficient compares.

    >>> compared(Coding(("a", "b", "c")), reduced=True)
    [('b', 'a'), ('c', 'a')]
    """
    if not reduced:
        return [(level,) for level in coding.levels]
    if coding.contrast in ("treatment", "sas"):
        base = coding.levels[coding.base]
        return [(level, base) for level in coding.levels if level != base]
    return [coding.levels] * len(coding.labels(reduced))


def _categories(learnt: Learnt, reduced: bool) -> list[Categories]:
    """The categories that each feature of a factor compares; none of a number."""
    tree = learnt.factor.tree
    column = tree.arguments[0] if isinstance(tree, Call) and tree.arguments else tree
    if learnt.coding is None or not isinstance(column, Name):
        return [() for _ in learnt.names(reduced)]
    name = column.name
    return [tuple((name, level) for level in each) for each in compared(learnt.coding, reduced)]
