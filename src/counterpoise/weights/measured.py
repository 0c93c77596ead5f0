"""What a release measured: sets of columns counted by its synthesizer, or summed by its weights.

Public facts of the method, which go on the card, so that whoever has the release can tell what was
measured together from what was taken as unrelated. Three lists, since they say different things:
tables that the synthesizer counted; tables of which the weights summed every cell; and products of
values, which say how two columns go together on their scales, and no more. Where there are any, a
fourth has the pairs of which one trend was summed: it relates them, and measures nothing of them.
Only moment weights sum what they match; a penalised fit to the same features measures none of them.

What was summed is measured only if the sum carries the estimate. The posterior mean T d, with
d = theta + e, misses theta by (T - I) theta + T e. The laws of e and, where the synthesizer counted
the columns, of theta are those of noise, and known; elsewhere theta is assumed to be what shrinkage
takes it for, and what weights miss of T d is left to the synthesizer. In white coordinates, with S
the covariance of e and V that of theta (`moments`), these have the variances

    K = T S T' + (I - T) V_1 (I - T)' + c    and    A = (I - T) V_0 (I - T)' + missed^2,

V_1 and V_0 the parts of V that the synthesizer's noise explains and does not, and c = 1/n where the
synthetic rows follow the private sample, whose chance is in e elsewhere. Of one difference by
itself the part A / (A + K) is 1 - T. What is open between laws of several widths is of both, and in
neither. Where the second is larger, over the features of a sum, the columns are in a fifth list,
with the part of the variance that is assumption: they are related, and were not measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from counterpoise.formulas.questions import Question
from counterpoise.schema import Schema
from counterpoise.weights.asked_blocks import AskedBlock
from counterpoise.weights.feature_blocks import (
    Block,
    CellsBlock,
    ColumnsBlock,
    ProductsBlock,
    TrendsBlock,
)
from counterpoise.weights.moment_model import MomentModel

# A sum carries an estimate whose variance is assumption up to this part: most of it is not.
MOST_ASSUMED = 0.5


def describe_measured(synthesizer: Any, weight_model: Any) -> dict[str, Any]:
    """The lists as the card has them; `counts` is None where the synthesizer does not tell.

    >>> from counterpoise.weights import UniformModel
    >>> describe_measured(None, UniformModel())
    {'counts': None, 'cells': [], 'products': []}
    """
    counts = getattr(synthesizer, "measured_columns", None)
    found: dict[str, list[tuple[str, ...]]] = {"cells": [], "products": [], "trends": []}
    assumed: dict[tuple[str, ...], float] = {}
    if isinstance(weight_model, MomentModel):
        for (kind, columns), part in _assumed_of_sums(weight_model).items():
            if kind == "trends" or part <= MOST_ASSUMED:
                found[kind].append(columns)
            else:
                assumed[columns] = max(part, assumed.get(columns, 0.0))
    # Columns that were measured as a part of more were measured.
    more = list(map(frozenset, (*(counts or ()), *found["cells"], *found["products"])))
    left = [
        [list(columns), round(part, 2)]
        for columns, part in assumed.items()
        if not any(each.issuperset(columns) for each in more)
    ]
    return {
        "counts": None if counts is None else largest(counts),
        **{kind: largest(sets) for kind, sets in found.items() if sets or kind != "trends"},
        **({"assumed": left} if left else {}),
    }


def assumed_questions(
    questions: Iterable[str], schema: Schema, synthesizer: Any, weight_model: Any
) -> dict[str, float]:
    """The questions that what was summed for them does not carry, and the part that is assumption.

    Those of columns whose table the synthesizer counted are measured anyway.
    """
    if not isinstance(weight_model, MomentModel):
        return {}
    assumed, known = _variances(weight_model)
    asked = weight_model.standardised.asked
    parts: dict[str, float] = {}
    tables: dict[frozenset[str], float] = {}
    for block, places in _places(weight_model):
        part = _part(assumed[places], known[places])
        if places.start >= asked:
            break
        if isinstance(block, AskedBlock):
            parts[block.question] = part
        else:
            tables.update((frozenset(columns), part) for columns in set(block.columns))
    counts = list(map(frozenset, getattr(synthesizer, "measured_columns", None) or ()))
    found = {}
    for text in questions:
        joined = frozenset(Question.read(text).joined(schema))
        part = parts.get(text, tables.get(joined, 0.0))
        if part > MOST_ASSUMED and not any(each >= joined for each in counts):
            found[text] = part
    return found


def _assumed_of_sums(model: MomentModel) -> dict[tuple[str, tuple[str, ...]], float]:
    """Every sum of the weights, by kind and columns, with the part that is assumption."""
    assumed, known = _variances(model)
    found: dict[tuple[str, tuple[str, ...]], np.ndarray] = {}
    for block, places in _places(model):
        sets = [frozenset(columns) for columns in block.columns]
        for kind, columns in _sums(block):
            own = np.array([each == frozenset(columns) for each in sets])
            # A block of another kind may be of features of whole rows.
            own = own if own.any() else np.ones(len(sets), dtype=bool)
            both = np.array([assumed[places][own].sum(), known[places][own].sum()])
            found[kind, columns] = found.get((kind, columns), 0.0) + both
    return {key: _part(*both) for key, both in found.items()}


def _part(assumed: np.ndarray, known: np.ndarray) -> float:
    """The part of the variance that is assumption; all of it where nothing was matched."""
    assumption, whole = float(np.sum(assumed)), float(np.sum(assumed) + np.sum(known))
    return assumption / whole if whole > 0 else 1.0


def _variances(model: MomentModel) -> tuple[np.ndarray, np.ndarray]:
    """For each feature, the variance of its mean that is assumption, and that whose law is known.

    A difference of white means is one of L times it in the features, L their loadings.
    """
    directions, loadings = model.whitening.directions, model.whitening.loadings
    # Coordinates that are white have a sampling variance of 1/n each.
    drawn = np.where(model.follows, 0.0, 1 / model.population)
    # S = s^2 D' D + diag(drawn) = Q' Q, so that T S T' = (Q T')' (Q T')
    root = np.vstack([model.noise_scale * directions, np.diag(np.sqrt(drawn))]) @ model.trust.T
    propagated = ((root @ loadings.T) ** 2).sum(axis=0)
    sampling = loadings**2 @ (1 / model.population - drawn)
    left = (loadings - loadings @ model.trust) ** 2
    assumption = left @ np.where(model.follows, 0.0, model.prior)
    assumption += loadings**2 @ model.missed**2
    return assumption, propagated + sampling + left @ np.where(model.follows, model.prior, 0.0)


def _places(model: MomentModel) -> Iterator[tuple[Block, slice]]:
    """The blocks, and where the features of each are."""
    blocks = model.standardised.features.blocks
    ends = np.cumsum([0, *(len(block.names) for block in blocks)]).tolist()
    yield from zip(blocks, (slice(*each) for each in pairwise(ends)), strict=True)


def largest(sets: Iterable[Iterable[str]]) -> list[list[str]]:
    """Every set once, and none that is a part of another.

    >>> largest([("a",), ("b", "a"), ("a", "b"), ("c",)])
    [['b', 'a'], ['c']]
    """
    by_size = sorted((list(dict.fromkeys(each)) for each in sets), key=len, reverse=True)
    kept: list[list[str]] = []
    # A set that holds another holds its first column: of many pairs, few have to be compared.
    holding: dict[str, list[set[str]]] = {}
    for each in by_size:
        if each and not any(other.issuperset(each) for other in holding.get(each[0], [])):
            kept.append(each)
            own = set(each)
            for name in each:
                holding.setdefault(name, []).append(own)
    return kept


def _sums(block: Block) -> Iterator[tuple[str, tuple[str, ...]]]:
    """What the features of a block add up to; a function of whole rows tells of no columns."""
    if isinstance(block, ColumnsBlock):
        for column in block.schema:
            if column.kind != "categorical":
                yield "products", (column.name,)
            elif block.one_hot:
                yield "cells", (column.name,)
    elif isinstance(block, ProductsBlock):
        for pair in block.pairs:
            # Products of indicators, with how frequent each is, are the table of the two.
            yield ("cells" if _are_nominal(block.schema, pair) else "products"), pair
    elif isinstance(block, TrendsBlock):
        for pair in block.pairs:
            yield "trends", pair
    elif isinstance(block, CellsBlock):
        for pair in block.pairs:
            yield "cells", pair
    else:
        # A block of another kind may say by itself which tables and products it adds up.
        yield from getattr(block, "measures", ())


def _are_nominal(schema: Schema, names: tuple[str, ...]) -> bool:
    return all(schema[name].kind == "categorical" for name in names)
