"""Models from scikit-learn, fitted with the weights of a release and ready for raw tables.

The features are those of the schema's coding (categories one-hot, numbers between 0 and 1, an
indicator for null), made by the first step of the pipeline that is returned, so that a fitted
model takes a table as it is. An estimator that takes sample weights gets them; another is fitted
on rows drawn in proportion to theirs, with a warning. Weighted fits and scores estimate those on
the private population as far as the weights are right.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import sklearn
from sklearn.base import BaseEstimator, TransformerMixin, clone, is_classifier, is_regressor
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV, KFold, RandomizedSearchCV, StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from counterpoise.analysis.columns import codes, numbers, one_column, several_columns
from counterpoise.analysis.replication import Design, truth
from counterpoise.analysis.resampling import drawn_rows
from counterpoise.analysis.result import Estimate, counting, estimate
from counterpoise.analysis.support import IMPLIED, NEVER, Measured
from counterpoise.analysis.verdict import warn
from counterpoise.arguments import seed_or_none, shown, whole_number
from counterpoise.errors import AnalysisError
from counterpoise.schema import Schema

if TYPE_CHECKING:
    from counterpoise.bundle.release import Release

# The most numbers that features of rows in a file may be, in double precision: 0.8 GB.
MOST_FEATURES = 100_000_000
_SEARCHES = (GridSearchCV, RandomizedSearchCV)
_COMMITTEES = (StackingClassifier, StackingRegressor, VotingClassifier, VotingRegressor)


class SchemaCoder(TransformerMixin, BaseEstimator):
    """A scikit-learn transformer from raw tables to the features that a schema gives.

    With `encode=False` it only picks the columns and gives them the schema's dtypes, for
    estimators that do their own preprocessing.

    >>> from counterpoise.schema import Column
    >>> coder = SchemaCoder(Schema([Column.categorical("ward", ["a", "b"])]))
    >>> coder.transform(pd.DataFrame({"ward": ["b"], "other": [1]}))
    array([[0., 1.]])
    >>> coder.get_feature_names_out().tolist()
    ['ward=a', 'ward=b']
    """

    def __init__(self, schema: Schema, encode: bool = True):
        self.schema = schema
        self.encode = encode

    def fit(self, table: Any, target: Any = None) -> SchemaCoder:
        """There is nothing to learn: the schema says it all."""
        return self

    def transform(self, table: Any) -> Any:
        """The features of a table that has at least the columns of the schema."""
        if not self.encode:
            return self.schema.restore(table)[list(self.schema.names)]
        return self.schema.encode(table).one_hot()[0]

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """A name for every feature."""
        if not self.encode:
            return np.array(self.schema.names, dtype=object)
        empty = pd.DataFrame({name: [] for name in self.schema.names})
        return np.array(self.schema.encode(empty).one_hot()[1], dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return True


@dataclass(frozen=True)
class CrossValidation:
    """The score of an estimator on rows it was not fitted on.

    The standard error, from the replicate weights, is that of the score of the models as fitted:
    it knows the noise of the rows they were scored on, not of those they were fitted on. It is
    iterated over the scores of its folds.
    """

    metric: str
    score: Estimate
    folds: tuple[float, ...]

    def __iter__(self) -> Iterator[float]:
        return iter(self.folds)

    def __len__(self) -> int:
        return len(self.folds)

    def __str__(self) -> str:
        return f"{self.metric} {self.score} over {len(self.folds)} folds"

    __repr__ = __str__


def fit(
    release: Release,
    estimator: Any,
    target: str,
    features: Sequence[str] | None = None,
    encode: bool = True,
    seed: int | None = None,
) -> Pipeline:
    """Fit a copy of a scikit-learn estimator or pipeline with the weights of the release.

    Returns a pipeline of the schema's coding and the fitted estimator: `model.predict(table)`
    takes a raw table, and `model["model"]` is the estimator; `model.support_` says of each feature
    whether it was measured together with the target. `features` are columns, by default
    all but the target; rows whose target is null are left out. `seed` is for the rows drawn for
    an estimator that takes no weights.

    >>> import counterpoise as cp
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> table = pd.DataFrame({
    ...     "age": [20, 20, 70, 70], "ill": [False, True, False, True], "weight": [2, 0, 1, 1.5]
    ... })
    >>> columns = [cp.Column.integer("age", 0, 99), cp.Column.boolean("ill")]
    >>> release = cp.Release(table, cp.Schema(columns), card={})
    >>> model = fit(release, DecisionTreeClassifier(), "ill")
    >>> model.predict(pd.DataFrame({"age": [10, 80]})).tolist()
    [False, True]
    """
    design = Design.of(release)
    coder, rows, goal = _prepare(release, estimator, target, features, encode)
    x, weights = _features(release, coder, rows), design.weights[rows]
    generator = np.random.default_rng(seed_or_none(seed))
    fitted = _fit_weighted(estimator, x, goal, weights, generator)
    made = Pipeline([("schema", coder), ("model", fitted)])
    measured = Measured.of_release(release)
    made.support_ = {name: measured.of({target, name}) for name in coder.schema.names}
    return made


def cross_validate(
    release: Release,
    estimator: Any,
    target: str,
    features: Sequence[str] | None = None,
    folds: int = 5,
    metric: Any = None,
    encode: bool = True,
    seed: int | None = None,
) -> CrossValidation:
    """Score an estimator on folds of the release, with the weights in the fits and the scores.

    `metric` is a scikit-learn scorer or its name; by default accuracy, or r2 for a regressor.
    `unweighted` in the result is the same without weights, in the fits as in the scores.
    """
    design = Design.of(release)
    coder, rows, goal = _prepare(release, estimator, target, features, encode)
    folds, seed = whole_number("folds", folds, 2, len(rows), AnalysisError), seed_or_none(seed)
    if is_classifier(estimator) and folds > np.unique(goal, return_counts=True)[1].max():
        raise AnalysisError("folds: expected no more than the rows of the largest category")
    name = ("accuracy" if is_classifier(estimator) else "r2") if metric is None else metric
    scorer, label = _scorer(name)
    x = coder.transform(release.table.iloc[rows])
    splitter = (StratifiedKFold if is_classifier(estimator) else KFold)(
        folds, shuffle=True, random_state=0 if seed is None else seed % 2**32
    )
    weightings = [weights[rows] for weights in design.each()]
    results = []
    for train, test in splitter.split(np.zeros(len(rows)), goal):
        scores = []
        models: list[Any] = []
        for place, weights in enumerate(weightings):
            # Two fits a fold, with weights and without; the replicates score the former.
            if place < 2:
                generator = np.random.default_rng(seed)
                fitted = _fit_weighted(
                    estimator, _take(x, train), goal[train], weights[train], generator
                )
                models.append(_Remembered(fitted))
            model = models[1 if place == 1 else 0]
            scores.append(_score(scorer, label, model, _take(x, test), goal[test], weights[test]))
        results.append(scores)
    by_fold = np.array(results)
    scored = estimate(design.whole_way(by_fold.mean(axis=0)))
    score = counting(release, replace(scored, support=_support(release, target, coder)))
    return CrossValidation(label, score, tuple(by_fold[:, 0].tolist()))


def _support(release: Release, target: str, coder: SchemaCoder) -> str:
    """The support of predictions: never where none of the features is connected with the target."""
    measured, features = Measured.of_release(release), coder.schema.names
    whole = measured.of({target, *features})
    each = {measured.of({target, name}) for name in features}
    return IMPLIED if whole == NEVER and each != {NEVER} else whole


def weight_parameter(estimator: Any) -> str | None:
    """The keyword under which `fit` passes weights to where they count, or None.

    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.preprocessing import StandardScaler
    >>> from sklearn.pipeline import make_pipeline
    >>> weight_parameter(make_pipeline(StandardScaler(), Ridge()))
    'ridge__sample_weight'
    """
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        inner = None if isinstance(last, str) else weight_parameter(last)
        return None if inner is None else f"{name}__{inner}"
    if isinstance(estimator, _SEARCHES):
        return weight_parameter(estimator.estimator)
    if isinstance(estimator, TransformedTargetRegressor):
        base = estimator.regressor
        return "sample_weight" if base is None else weight_parameter(base)
    if isinstance(estimator, _COMMITTEES):
        members = [each for _, each in estimator.estimators if not isinstance(each, str)]
        members.append(getattr(estimator, "final_estimator", None))
    elif has_fit_parameter(estimator, "sample_weight"):
        # Bagging, boosting and calibration hand weights on, if what they hold takes them.
        members = [getattr(estimator, "estimator", None)]
    else:
        return None
    takes = (weight_parameter(each) == "sample_weight" for each in members if each is not None)
    return "sample_weight" if all(takes) else None


class _Remembered:
    """A fitted model that predicts the same rows once, however often it is scored on them."""

    def __init__(self, model: Any):
        self._model = model
        self._answers: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._model, name)
        if name not in ("predict", "predict_proba", "decision_function", "predict_log_proba"):
            return found

        @functools.wraps(found)
        def remembered(x: Any) -> Any:
            if name not in self._answers:
                self._answers[name] = found(x)
            return self._answers[name]

        return remembered


def _prepare(
    release: Release, estimator: Any, target: str, features: Sequence[str] | None, encode: bool
) -> tuple[SchemaCoder, np.ndarray, np.ndarray]:
    """The coder of the features, the rows whose target is known, and their targets."""
    if not hasattr(estimator, "fit") or isinstance(estimator, type):
        raise AnalysisError("estimator: expected a scikit-learn estimator, such as Ridge()")
    encode = truth("encode", encode)
    column = one_column(release, target, "target")
    target = column.name
    if features is None:
        # What is derived from others adds nothing to them, and may give the target away.
        features = [name for name in release.schema.modelled.names if name != target]
    features = several_columns(release, features, "features")
    if target in features:
        raise AnalysisError(f"features: {target!r} is the target, so it cannot be a feature")
    if not features:
        raise AnalysisError("features: expected at least one column besides the target")
    if release.read(target)[target].isna().all():
        raise AnalysisError(f"target: no synthetic row has a value of {target!r}")
    coder = SchemaCoder(release.schema.plain.select(features), encode)
    if column.is_numeric:
        if is_classifier(estimator) and column.kind != "integer":
            raise AnalysisError(
                f"target: {target!r} is {column.kind}, and a classifier needs categories"
            )
        found = numbers(release, target)
        rows = np.flatnonzero(found.present)
        goal = found.values[rows]
        return coder, rows, goal.astype(np.int64) if column.kind == "integer" else goal
    coded = codes(release, target)
    rows = np.flatnonzero(coded.codes >= 0)
    if is_regressor(estimator) and column.category_type != "boolean":
        raise AnalysisError(f"target: {target!r} is {column.kind}, and a regressor needs numbers")
    goal = np.array(coded.labels)[coded.codes[rows]]
    return coder, rows, goal.astype(float) if is_regressor(estimator) else goal


def _features(release: Release, coder: SchemaCoder, rows: np.ndarray) -> Any:
    """The features of some rows; those that stay in their file are read if they are few enough."""
    width = len(coder.get_feature_names_out())
    if release.stored is not None and release.rows * width > MOST_FEATURES:
        raise AnalysisError(
            f"features: {release.rows:,} rows of {width} features would fill the memory; fit a "
            "part, release.part(1_000_000).fit(...), or state fewer features"
        )
    return coder.transform(release.read(*coder.schema.names).iloc[rows])


def _fit_weighted(
    estimator: Any, x: Any, goal: np.ndarray, weights: np.ndarray, generator: np.random.Generator
) -> Any:
    copy = clone(estimator)
    parameter = weight_parameter(copy)
    # Under metadata routing these keywords would mean something else.
    with sklearn.config_context(enable_metadata_routing=False):
        if parameter is not None:
            return copy.fit(x, goal, **{parameter: weights})
        # Equal weights need no drawing, so they cost no precision.
        if np.ptp(weights) <= 1e-12:
            return copy.fit(x, goal)
        warn(
            f"{type(copy).__name__} takes no sample_weight: it was fitted on rows drawn in "
            "proportion to their weights, which adds noise that one which takes it does not have"
        )
        rows = generator.permutation(drawn_rows(weights, len(goal), generator))
        return copy.fit(_take(x, rows), goal[rows])


def _take(x: Any, rows: np.ndarray) -> Any:
    return x.iloc[rows] if isinstance(x, pd.DataFrame) else x[rows]


def _scorer(metric: Any) -> tuple[Any, str]:
    if callable(metric):
        return metric, getattr(metric, "__name__", "score")
    try:
        return get_scorer(metric if isinstance(metric, str) else ""), str(metric)
    except (ValueError, TypeError):
        raise AnalysisError(
            f"metric: {shown(metric)} is no scikit-learn scorer; "
            "sklearn.metrics.get_scorer_names() lists them"
        ) from None


def _score(scorer: Any, label: str, model: Any, x: Any, goal: np.ndarray, weights: Any) -> float:
    with sklearn.config_context(enable_metadata_routing=False):
        try:
            return float(scorer(model, x, goal, sample_weight=weights))
        except TypeError as error:
            if "sample_weight" not in str(error):
                raise
            raise AnalysisError(f"metric: {label!r} takes no weights; choose another") from None
