"""Categories as numbers: one feature for each, or contrasts between them.

Where a term would repeat what others hold already, such as the intercept, a factor of L
categories has L - 1 features: by default each category against the first (treatment), or one of
R's other contrasts, by `C(ward, Sum)`, `C(ward, Treatment("b"))` and so on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from counterpoise.errors import AnalysisError
from counterpoise.formulas.bases import Options, learn_basis
from counterpoise.formulas.terms import CONTRASTS
from counterpoise.schema.expression_trees import Call, Name, Node, Number

_MARKS = {"treatment": "T.", "sas": "T.", "sum": "S.", "helmert": "H.", "diff": "D.", "poly": ""}


@dataclass(frozen=True)
class Coding:
    """The categories of a factor, and the contrasts between them where it is reduced.

    >>> coding = Coding(("a", "b", "c"), "sum")
    >>> coding.labels(reduced=True), coding.matrix(reduced=True).tolist()
    (('S.a', 'S.b'), [[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
    """

    levels: tuple[Any, ...]
    contrast: str = "treatment"
    base: int = 0  # the category that treatment compares with

    def labels(self, reduced: bool) -> tuple[str, ...]:
        """A label for each feature."""
        if not reduced:
            return tuple(map(str, self.levels))
        count = len(self.levels)
        if self.contrast == "poly":
            named = {1: ".L", 2: ".Q", 3: ".C"}
            return tuple(named.get(degree, f"^{degree}") for degree in range(1, count))
        left_out = {"treatment": self.base, "sas": self.base, "sum": count - 1}
        dropped = left_out.get(self.contrast, 0)
        mark = _MARKS[self.contrast]
        return tuple(f"{mark}{each}" for place, each in enumerate(self.levels) if place != dropped)

    def matrix(self, reduced: bool) -> np.ndarray:
        """Categories x features."""
        count = len(self.levels)
        whole = np.eye(count)
        if not reduced or count == 1:
            return whole[:, : count - reduced]
        if self.contrast in ("treatment", "sas"):
            return np.delete(whole, self.base, axis=1)
        if self.contrast == "sum":
            return np.vstack([whole[:-1, :-1], -np.ones(count - 1)])
        if self.contrast == "helmert":
            return np.tril(np.diag(np.arange(1.0, count), -1)[:, :-1]) - np.triu(
                np.ones((count, count - 1))
            )
        if self.contrast == "diff":
            steps = np.tile(np.arange(1, count) / count, (count, 1))
            return np.asarray(steps - np.triu(np.ones((count, count - 1))))
        scores = np.arange(float(count))
        call = Call("poly", (Name("level"), Number(count - 1)))
        return learn_basis(call, scores).features(scores)

    def features(self, values: Any, reduced: bool) -> np.ndarray:
        """Rows x features; a category that is not among them has none, which is NaN."""
        levels = pd.Index(list(self.levels), dtype=object)
        codes = levels.get_indexer(pd.Index(np.asarray(values, dtype=object), dtype=object))
        matrix = self.matrix(reduced)
        found = matrix[np.maximum(codes, 0)] if len(matrix) else np.empty((len(codes), 0))
        return np.where((codes >= 0)[:, None], found, np.nan)


def learn_coding(call: Call, levels: tuple[Any, ...]) -> Coding:
    """The coding that `C(ward, ...)` asks for, of a column with these categories."""
    contrast = call.arguments[1] if len(call.arguments) > 1 else None
    named = dict(call.options)
    contrast = named.pop("contrasts", contrast)
    options = Options(Call("C", call.arguments[:1], tuple(named.items())), ("levels",))
    if len(call.arguments) > 2:
        options.refuse("expected a column, contrasts and levels")
    stated = options.get("levels")
    if stated is not None:
        if not isinstance(stated, list) or len({*map(_key, stated)}) < len(stated) or not stated:
            options.refuse("levels: expected different categories in brackets")
        missing = [each for each in levels if each not in stated]
        if missing:
            options.refuse(f"levels: {missing[0]!r} has rows and is not among them")
        levels = tuple(stated)
    if contrast is None:
        return Coding(levels)
    kind, base = _contrast(contrast, options)
    if len(levels) > 100 and kind == "poly":
        options.refuse("polynomials are for at most 100 categories")
    place = len(levels) - 1 if kind == "sas" else 0
    if base is not None:
        if base not in levels:
            raise AnalysisError(f"formula: C: there is no category {base!r} to compare with")
        place = levels.index(base)
    return Coding(levels, kind, place)


def _contrast(node: Node, options: Options) -> tuple[str, Any]:
    """The kind of a contrast, and the category that it states to compare with."""
    name = node.name if isinstance(node, Name) else node.function if isinstance(node, Call) else ""
    if name not in CONTRASTS:
        options.refuse(f"expected contrasts such as {', '.join(sorted(CONTRASTS)[:5])}")
    kind = CONTRASTS[name]
    if not isinstance(node, Call):
        return kind, None
    option = {"Treatment": "reference"}.get(name, "base")
    takes = (option,) if kind in ("treatment", "sas") else ()
    # The column is the first argument of other calls, and missing here.
    return kind, Options(Call(name, (Name(""), *node.arguments), node.options), takes).get(option)


def _key(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
