"""A modifier learned from a handful of labelled rows: which of them belong to the target.

Rows with true or false are fitted by logistic regression, and a row's factor is the probability
that it belongs to the target; rows with a number above zero, a factor each, by linear regression of
its logarithm (`importance.regression`). The features are those of the schema: categories one-hot,
numbers and their squares, nulls; each column's features are scaled to a total variance of one in
the release. What few rows leave open is in the replicates: each takes coefficients of its own from
their posterior. Coefficients and their spread are kept, the labelled rows are not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.special import expit

from counterpoise.analysis.columns import one_column
from counterpoise.analysis.modifiers import checked_factors
from counterpoise.arguments import column_name, number_array, shown
from counterpoise.errors import AnalysisError, CounterpoiseError
from counterpoise.importance.regression import LOG_LINEAR, LOGISTIC, fit_labels
from counterpoise.schema import Coded, Schema
from counterpoise.schema.tables import read_table
from counterpoise.weights.feature_blocks import ColumnsBlock, InterceptBlock, SquaresBlock
from counterpoise.weights.features import Features
from counterpoise.weights.standardise import Standardised, chunks

if TYPE_CHECKING:
    from counterpoise.bundle.release import Release

LABELLED = "labelled"
# Each feature is a line of a matrix on the card.
MOST_FEATURES = 100
FEWEST_ROWS = 4
# No factor is larger than e to this power times another.
MOST_LOG_FACTOR = 30.0
# What is longer names no file that is there.
_LONGEST = 500


@dataclass(frozen=True, eq=False)
class Learned:
    """A learned modifier: coefficients of standardised features, the first that of the constant.

    `root` is a square root of their covariance, a column a direction.
    """

    columns: tuple[str, ...]
    link: str
    features: Standardised
    coefficients: np.ndarray
    root: np.ndarray
    rows: int
    kind: str = LABELLED
    problem: None = None

    def factors(self, release: Release, generator: np.random.Generator, count: int) -> np.ndarray:
        """The factors of a release's rows: by the coefficients, and by `count` draws of them.

        The draws go as far from the coefficients as the release's replicates do from its weights.
        """
        moved = (self.root @ generator.normal(size=(self.root.shape[1], count))).T
        drawn = self.coefficients + release.replicate_part * moved
        every = np.vstack([self.coefficients, drawn]).T
        coded = _coded(release, self.columns, release.table)
        found = np.concatenate(
            [self.features(chunk) @ every for chunk in chunks(coded)] or [np.zeros((0, count + 1))]
        )
        if self.link == LOGISTIC:
            return np.asarray(expit(found))
        return np.asarray(np.exp(np.clip(found - found.max(axis=0), -MOST_LOG_FACTOR, 0.0)))

    def to_dict(self, release: Release) -> dict[str, Any]:
        """The step as the card has it; `from_dict` reads it."""
        return {
            "kind": self.kind,
            "columns": [list(self.columns)],
            "link": self.link,
            "rows": self.rows,
            "centre": self.features.centre.tolist(),
            "scale": self.features.scale.tolist(),
            "coefficients": self.coefficients.tolist(),
            "root": self.root.tolist(),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], release: Release) -> Learned:
        """The step that a card describes."""
        [names] = values["columns"]
        columns = tuple(one_column(release, name, LABELLED).name for name in names)
        schema = release.schema.plain.select(columns)
        features = _features(schema)
        size = len(features.names)
        keys = ("centre", "scale", "coefficients", "root")
        centre, scale, coefficients, root = (number_array(key, values[key]) for key in keys)
        shapes = [each.shape for each in (centre, scale, coefficients, root)]
        finite = all(np.isfinite(each).all() for each in (centre, scale, coefficients, root))
        if shapes != [(size,), (size,), (size,), (size, size)] or not finite:
            raise AnalysisError(f"{LABELLED}: the card does not have a number for each feature")
        if not (scale > 0).all() or values["link"] not in (LOGISTIC, LOG_LINEAR):
            raise AnalysisError(f"{LABELLED}: the card describes no regression")
        made = Standardised(features, centre, scale, bound=math.inf)
        return cls(columns, values["link"], made, coefficients, root, int(values["rows"]))


def learn(release: Release, rows: Any, label: Any) -> Learned:
    """A modifier from labelled rows: a frame with some of the release's columns, and the label."""
    label = column_name("label", label, AnalysisError)
    try:
        frame = read_table(rows)
    except CounterpoiseError as error:
        said = str(error) if len(str(error)) < _LONGEST else "expected a table, or its file"
        raise AnalysisError(f"{LABELLED}: {said}") from None
    if label not in frame:
        raise AnalysisError(f"label: the labelled rows have no column {shown(label)}")
    names = tuple(name for name in release.schema.plain.names if name in frame and name != label)
    if not names:
        raise AnalysisError(f"{LABELLED}: expected rows with columns of the release")
    if len(frame) < FEWEST_ROWS:
        raise AnalysisError(f"{LABELLED}: expected at least {FEWEST_ROWS} rows")
    _check_values(release, names, frame)
    link, target = _labels(frame[label])
    coded = _coded(release, names, release.table)
    standardised = _standardised(_features(coded.schema), coded)
    if len(standardised.names) > MOST_FEATURES:
        raise AnalysisError(
            f"{LABELLED}: {', '.join(map(repr, names[:4]))} and the others have "
            f"{len(standardised.names)} features, more than {MOST_FEATURES}; give fewer columns"
        )
    matrix = standardised(_coded(release, names, frame))
    groups = len(set(standardised.features.groups)) - 1
    coefficients, root = fit_labels(matrix, target, link, groups)
    return Learned(names, link, standardised, coefficients, root, len(frame))


def _check_values(release: Release, names: tuple[str, ...], frame: pd.DataFrame) -> None:
    """Refuse values that the schema has no place for: coded, they would be taken for others."""
    schema = release.schema.plain.select(names)
    # As if all might be null and none had another category: what has no place is null then.
    strict = Schema(
        [replace(each.ungrouped, nullable=True, other=None) for each in schema],
        schema.missing_values,
    )
    no_place = strict.encode(frame[list(names)]).codes == [column.cells for column in strict]
    for place, column in enumerate(schema):
        values = frame[column.name]
        is_null = (values.isna() | values.isin(schema.words_for_null(column))).to_numpy()
        odd = no_place[:, place] & ~(is_null & column.nullable)
        if column.other is None and odd.any():
            raise AnalysisError(
                f"{LABELLED}: column {column.name!r} has values that the release has no place for, "
                "or nulls where it has none"
            )


def _labels(values: pd.Series) -> tuple[str, np.ndarray]:
    """The link, and the labels as numbers: true and false, or 0 and 1, or factors above zero."""
    if values.isna().any():
        raise AnalysisError("label: expected a label in every row")
    if values.dtype == object or isinstance(values.dtype, pd.StringDtype):
        # Text of a file
        words = values.astype(str).str.strip().str.casefold()
        truths = words.map({"true": 1.0, "false": 0.0})
        values = pd.to_numeric(words, errors="coerce") if truths.isna().any() else truths
        if values.isna().any():
            raise AnalysisError("label: expected true and false, 0 and 1, or factors above 0")
    numbers = checked_factors(values, len(values), "label")
    if set(np.unique(numbers)) <= {0.0, 1.0}:
        if len(np.unique(numbers)) < 2:
            raise AnalysisError(
                "label: expected rows of both sorts, in the target and not; rows of one sort do "
                "not tell them apart"
            )
        return LOGISTIC, numbers
    if not (numbers > 0).all():
        raise AnalysisError(
            "label: expected factors above 0, or nothing but 0 and 1 for rows out of the target "
            "and in it"
        )
    return LOG_LINEAR, np.log(numbers)


def _coded(release: Release, names: tuple[str, ...], table: pd.DataFrame) -> Coded:
    return release.schema.plain.select(names).encode(table[list(names)])


def _features(schema: Schema) -> Features:
    blocks = InterceptBlock(), ColumnsBlock(schema, one_hot=True), SquaresBlock(schema)
    return Features(blocks)


def _standardised(features: Features, coded: Coded) -> Standardised:
    """Centred and scaled by a release's rows, the constant as it is, and nothing cut off."""
    found = Standardised.over(features, coded)
    centre, scale = found.centre.copy(), found.scale.copy()
    centre[0], scale[0] = 0.0, 1.0
    return replace(found, centre=centre, scale=scale, bound=math.inf)
