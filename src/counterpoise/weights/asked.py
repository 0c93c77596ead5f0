"""What questions stated in advance ask of the moment weights: features, and relations.

A model, a mean and an effect have a block of their own (`asked_blocks`), a table of two columns
its products. Beside them every pair of columns that a question joins is asked for like the
relations of a target, so that what the estimate depends on to second order is right as well: of a
linear model these are its sufficient statistics. A question that the synthetic rows cannot answer
has no block, and the reason is kept for the card.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from counterpoise.errors import AnalysisError
from counterpoise.formulas.questions import Question
from counterpoise.schema import Coded, Schema
from counterpoise.weights.asked_blocks import MOST_ASKED, EffectBlock, MeanBlock, ScoreBlock
from counterpoise.weights.feature_blocks import Block, ProductsBlock
from counterpoise.weights.features import Features
from counterpoise.weights.standardise import spread

# Rows enough to learn a model from that is but where another is expanded.
MOST_LEARNT = 50_000


@dataclass(frozen=True, eq=False)
class Asked:
    """The features of questions, and why some have none."""

    features: Features
    reasons: dict[str, str]


def ask(questions: Iterable[str], rows: Coded) -> Asked:
    """The features of questions, with all that has to be known of a table read off public rows.

    >>> import pandas as pd
    >>> from counterpoise.schema import Column
    >>> schema = Schema([Column.boolean("ill"), Column.boolean("man"), Column.integer("age", 0, 9)])
    >>> table = pd.DataFrame({"ill": [True, False] * 5, "man": [True] * 10, "age": range(10)})
    >>> asked = ask(["mean(age) by ill", "man ~ age"], schema.encode(table))
    >>> asked.features.names, list(asked.reasons)
    (('mean(age) by ill [0]', 'mean(age) by ill [1]'), ['man ~ age'])
    """
    some = rows.take(spread(len(rows), MOST_LEARNT))
    blocks: list[Block] = []
    reasons: dict[str, str] = {}
    for text in questions:
        try:
            blocks.append(_block(Question.read(text), some))
        except AnalysisError as reason:
            reasons[text] = str(reason)
    return Asked(Features(tuple(blocks)), reasons)


def asked_pairs(questions: Iterable[str], schema: Schema) -> set[tuple[str, str]]:
    """Every two columns that some question joins, in the order of the schema."""
    joined = [Question.read(text).joined(schema) for text in questions]
    return {pair for columns in joined for pair in combinations(columns, 2)}


def _block(question: Question, rows: Coded) -> Block:
    if question.kind == "model":
        return ScoreBlock.over(question, rows)
    if question.kind == "mean":
        return MeanBlock.over(question, rows)
    if question.kind == "effect":
        return EffectBlock.over(question, rows)
    row, column = question.columns
    made = ProductsBlock.over(rows.spread(), [(row, column)])
    if len(made.names) > MOST_ASKED:
        raise AnalysisError(f"it has {len(made.names):,} cells, and at most {MOST_ASKED} fit")
    if not np.ptp(made(rows.spread()), axis=0).any():
        raise AnalysisError("one of its columns has one value in the synthetic rows")
    return made
