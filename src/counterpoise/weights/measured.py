"""What a release measured: sets of columns counted by its synthesizer, or summed by its weights.

Public facts of the method, which go on the card, so that whoever has the release can tell what was
measured together from what was taken as unrelated. Three lists, since they say different things:
tables that the synthesizer counted; tables of which the weights summed every cell; and products of
values, which say how two columns go together on their scales, and no more. Where there are any, a
fourth has the pairs of which one trend was summed: it relates them, and measures nothing of them.
Only moment weights sum what they match; a penalised fit to the same features measures none of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from counterpoise.schema import Schema
from counterpoise.weights.feature_blocks import (
    Block,
    CellsBlock,
    ColumnsBlock,
    ProductsBlock,
    TrendsBlock,
)
from counterpoise.weights.moment_model import MomentModel


def describe_measured(synthesizer: Any, weight_model: Any) -> dict[str, Any]:
    """The lists as the card has them; `counts` is None where the synthesizer does not tell.

    >>> from counterpoise.weights import UniformModel
    >>> describe_measured(None, UniformModel())
    {'counts': None, 'cells': [], 'products': []}
    """
    counts = getattr(synthesizer, "measured_columns", None)
    found: dict[str, list[tuple[str, ...]]] = {"cells": [], "products": [], "trends": []}
    if isinstance(weight_model, MomentModel):
        for block in weight_model.standardised.features.blocks:
            for kind, columns in _sums(block):
                found[kind].append(columns)
    return {
        "counts": None if counts is None else largest(counts),
        **{kind: largest(sets) for kind, sets in found.items() if sets or kind != "trends"},
    }


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
