"""Whatever is given to an analysis, it answers or says in our words what is wrong with it."""

import inspect
import warnings
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cache, partial

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import counterpoise as cp
from counterpoise.analysis.posterior import Prior
from counterpoise.errors import CounterpoiseError, CounterpoiseWarning
from tests.analysis.releases import SCHEMA, make_release, make_table


class Hostile:
    """Neither its text nor its truth can be had, and it is equal to nothing."""

    def __repr__(self):
        raise RuntimeError("no text")

    def __bool__(self):
        raise RuntimeError("no truth")

    def __eq__(self, other):
        raise RuntimeError("no equality")

    __hash__ = None


ODD = {
    "None": None,
    "nan": float("nan"),
    "inf": float("inf"),
    "minus inf": -float("inf"),
    "zero": 0,
    "minus one": -1,
    "one": 1,
    "two": 2,
    "half": 0.5,
    "minus zero": -0.0,
    "tiny": 5e-324,
    "huge": 1.7e308,
    "bignum": 10**30,
    "enormous": 10**400,
    "minus bignum": -(10**30),
    "True": True,
    "False": False,
    "complex": 1j,
    "Decimal": Decimal("1.5"),
    "Decimal sNaN": Decimal("sNaN"),
    "Fraction": Fraction(1, 3),
    "empty text": "",
    "text": "x",
    "column": "age",
    "column of categories": "ward",
    "column of dates": "seen",
    "null word": "\x00",
    "surrogate": "\ud800",
    "long text": "x" * 100_000,
    "bytes": b"age",
    "bytearray": bytearray(b"age"),
    "empty list": [],
    "list": [1, 2],
    "names": ["age", "ill"],
    "a name twice": ["age", "age"],
    "nested list": [["age"]],
    "list of None": [None],
    "list of nan": [float("nan"), 1.0],
    "list of text and number": ["age", 1],
    "tuple": (),
    "set": {"age"},
    "dict": {},
    "dict of names": {"age": 1},
    "range": range(3),
    "generator": (each for each in ["age"]),
    "object": object(),
    "class": int,
    "hostile": Hostile(),
    "lambda": lambda *arguments, **options: 1.0,
    "module": np,
    "numpy int": np.int64(5),
    "numpy int8": np.int8(3),
    "numpy uint": np.uint64(2**63),
    "numpy float": np.float32(0.5),
    "numpy bool": np.bool_(True),
    "numpy text": np.str_("age"),
    "numpy nan": np.float64("nan"),
    "array": np.array([0.0, 50.0, 99.0]),
    "empty array": np.array([]),
    "array of texts": np.array(["age", "ill"]),
    "array of two dimensions": np.zeros((2, 2)),
    "array of no dimension": np.array(3),
    "array of objects": np.array([object(), None], dtype=object),
    "NA": pd.NA,
    "NaT": pd.NaT,
    "series": pd.Series(["age", "ill"]),
    "frame": pd.DataFrame({"age": [1]}),
    "index": pd.Index(["age"]),
    "timestamp": pd.Timestamp("2020-01-01"),
    "date": date(2020, 1, 1),
    "first date": date(1, 1, 1),
    "last date": date(9999, 12, 31),
    "datetime": datetime(9999, 12, 31, 23, 59, 59, 999_999),
    "datetime with a zone": datetime(2020, 1, 1, tzinfo=UTC),
    "timedelta": timedelta(days=1),
    "datetime64": np.datetime64("0001-01-01"),
    "numpy NaT": np.datetime64("NaT"),
    "dates": [date(1, 1, 1), date(9999, 12, 31)],
    "dates and moments": [date(2020, 1, 1), datetime(2021, 1, 1)],
    "moments with a zone": [datetime(2020, 1, 1, tzinfo=UTC), datetime(2021, 1, 1, tzinfo=UTC)],
    "frozen exception": ValueError("x"),
}

# What a call is made with when one of its arguments is odd.
CALLS = {
    "mean": [{"column": "age", "by": None}],
    "total": [{"column": "age", "category": None, "by": None}, {"column": "ward"}],
    "proportion": [{"column": "ward", "category": None, "by": None}],
    "quantile": [{"column": "age", "q": 0.5, "by": None}, {"column": "seen", "q": 0.5}],
    "histogram": [
        {"column": "age", "bins": None, "by": None},
        {"column": "seen", "bins": None},
        {"column": "left", "bins": None},
        {"column": "dose", "bins": None},
    ],
    "crosstab": [{"row": "ill", "column": "ward", "of": "all"}],
    "fit": [
        {
            "estimator": LogisticRegression(),
            "target": "ill",
            "features": ["age"],
            "encode": True,
            "seed": 0,
        }
    ],
    "cross_validate": [
        {
            "estimator": LogisticRegression(),
            "target": "ill",
            "features": ["age"],
            "folds": 2,
            "metric": None,
            "encode": True,
            "seed": 0,
        }
    ],
    "glm": [{"formula": "ill ~ age", "family": "auto"}],
    "resample": [{"rows": None, "seed": 0}],
    "duplicate": [{"factor": 1.0}],
    "bootstrap": [
        {"statistic": lambda *arguments: 1.0, "takes_weights": True, "seed": 0},
    ],
    "reweighted": [{"weights": np.ones(40), "replicates": None}],
    "sample": [{"rows": 5, "seed": 0}],
    "retarget": [
        {"margins": None, "modifier": "1 + age", "population": None, "seed": 0},
        {
            "labelled": pd.DataFrame({"age": range(9), "y": [0, 1, 0] * 3}),
            "label": "y",
            "margins": {"ill": 0.5},
        },
    ],
}
CASES = [
    (method, place, name)
    for method, calls in CALLS.items()
    for place, call in enumerate(calls)
    for name in call
]
# What the analyst hands over to be called answers for itself.
THEIRS = {
    ("retarget", "modifier"),
    ("bootstrap", "statistic"),
    ("cross_validate", "metric"),
    ("fit", "estimator"),
}


@cache
def small_release():
    return make_release(40, replicates=3, population=100)


def complaints(ask, their_own=False):
    """What comes out of calls with every odd value that is neither an answer nor our error."""
    found = {}
    for label, odd in ODD.items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                warnings.simplefilter("ignore", CounterpoiseWarning)
                result = ask(odd)
                str(result)
        except CounterpoiseError as error:
            if len(str(error)) > 1000:
                found[label] = f"a message of {len(str(error))} characters"
        except Exception as error:
            if not (their_own and callable(odd)):
                found[label] = f"{type(error).__name__}: {error}"[:200]
    return found


@pytest.mark.parametrize(("method", "place", "name"), CASES)
def test_an_odd_argument_is_answered_or_refused_in_our_words(method, place, name):
    release = small_release()
    usual = CALLS[method][place]
    theirs = (method, name) in THEIRS

    def ask(odd):
        return getattr(release, method)(**{**usual, name: odd})

    assert complaints(ask, theirs) == {}


@pytest.mark.parametrize("method", ["corr", "cov"])
def test_odd_columns_of_a_correlation_are_refused_in_our_words(method):
    release = small_release()
    assert complaints(lambda odd: getattr(release, method)(odd)) == {}
    assert complaints(lambda odd: getattr(release, method)("age", odd)) == {}
    assert complaints(lambda odd: getattr(release, method)(odd, odd, "dose")) == {}


QUICK = {"chains": 2, "draws": 4, "warmup": 0, "replicates": False, "seed": 0}


@pytest.mark.parametrize(
    "name",
    ["formula", "family", "prior", "size", "replicates", "chains", "draws", "warmup", "seed"],
)
def test_odd_arguments_of_a_posterior_are_refused_in_our_words(name, monkeypatch):
    # What follows takes long, and comes after all arguments were looked at.
    class Drawn(Exception):
        pass

    def stop(*arguments, **options):
        raise Drawn

    monkeypatch.setattr("counterpoise.analysis.posterior._sizes", stop)
    release = small_release()

    def ask(odd):
        try:
            return release.posterior(**{"formula": "ill ~ age", **QUICK, name: odd})
        except Drawn:
            return "drawn"

    assert complaints(ask) == {}


def test_odd_levels_are_refused_in_our_words():
    release = small_release()
    mean, grouped = release.mean("age"), release.mean("age", by=["ward", "ill"])
    model = release.glm("ill ~ age")
    for ask in (mean.interval, grouped.to_frame, model.to_frame, grouped.__getitem__):
        assert complaints(ask) == {}
    assert complaints(lambda odd: grouped.pivot(level=odd)) == {}
    assert complaints(grouped.pivot) == {}
    assert complaints(model.predict) == {}
    assert complaints(model.__getitem__) == {}
    for name in inspect.signature(Prior).parameters:
        assert complaints(lambda odd, name=name: Prior(**{name: odd})) == {}
    assert complaints(lambda odd: Prior(terms={"age": odd})) == {}
    assert complaints(lambda odd: Prior(terms={"age": (odd, odd)})) == {}


def test_odd_margins_are_refused_in_our_words():
    release = small_release()

    def key(odd):
        # What cannot be a key of a dictionary may stand in a list.
        return {"columns": ["age"], "cells": [[odd]], "shares": [1.0]}

    assert complaints(lambda odd: release.retarget({"ward": odd})) == {}
    assert complaints(lambda odd: release.retarget({"ill": odd, "age": odd})) == {}
    assert complaints(lambda odd: release.retarget({"seen": odd})) == {}
    assert complaints(lambda odd: release.retarget({"ill": {True: odd, False: 0.5}})) == {}
    assert complaints(lambda odd: release.retarget([odd])) == {}
    assert complaints(lambda odd: release.retarget([key(odd)])) == {}
    assert complaints(lambda odd: release.retarget([key((odd, odd))])) == {}
    assert complaints(lambda odd: release.retarget([key(odd) | {"columns": ["seen"]}])) == {}
    assert complaints(lambda odd: release.retarget([key((0, odd)) | {"columns": ["left"]}])) == {}
    assert complaints(lambda odd: release.retarget([key(odd) | {"columns": ["ward"]}])) == {}
    assert complaints(lambda odd: release.retarget([key(1) | {"columns": odd}])) == {}
    assert complaints(lambda odd: release.retarget([{"columns": ["age"], "mean": odd}])) == {}


def test_numbers_of_numpy_are_numbers():
    release = small_release()
    assert release.quantile("age", np.float32(0.5)) == release.quantile("age", 0.5)
    assert len(release.resample(np.int64(7), seed=np.uint8(1))) == 7
    assert len(release.duplicate(np.float64(2))) == len(release.duplicate(2))
    folds = release.cross_validate(LogisticRegression(), "ill", "age", folds=np.int16(2))
    assert len(folds) == 2
    grouped = release.mean("age", by=np.array(["ward"]))
    assert grouped.keys() == ["surgery", "medicine", "closed"]


NULLABLE = cp.Schema([replace(column, nullable=True) for column in SCHEMA])
APART = {"measured": {"counts": [[name] for name in SCHEMA.names], "cells": [], "products": []}}


def odd_release(rows=30, null=(), alike=False, weights=None, replicates=None, card=()):
    """A release with nobody in one ward, of which columns are null and weights as stated."""
    table = make_table(30).iloc[np.zeros(rows, dtype=int) if alike else np.arange(rows)]
    table = table.reset_index(drop=True).astype(object)
    table.loc[:, list(null)] = None
    weights = np.ones(rows) if weights is None else np.array(weights, dtype=float)
    table = NULLABLE.restore(table).assign(weight=weights)
    if replicates is None:
        replicates = np.random.default_rng(0).gamma(4.0, size=(rows, 3))
    return cp.Release(table, NULLABLE, dict(card), replicates)


# No weight but of one row, and of another one in a replicate.
FIRST, LAST = np.eye(30)[0] * 30, np.eye(30)[-1] * 30
ODD_RELEASES = {
    "all null": {"null": SCHEMA.names},
    "numbers null": {"null": ["age", "children", "dose", "seen", "left"]},
    "categories null": {"null": ["ward", "ill", "pain"]},
    "one row": {"rows": 1},
    "two rows": {"rows": 2},
    "single values": {"alike": True},
    "equal weights": {"replicates": np.ones((30, 3))},
    "weight in one row": {"weights": FIRST},
    "a replicate in one row": {"replicates": np.stack([np.ones(30), LAST], axis=1)},
    "one replicate": {"replicates": np.ones((30, 1)) + np.arange(30)[:, None]},
    "no replicates": {"replicates": np.ones((30, 0))},
}
BY_GROUPS = {
    "means": lambda release, by: [release.mean(name, by=by) for name in SCHEMA.names[3:]],
    "totals": lambda release, by: [release.total(name, by=by) for name in ("ill", "age", "dose")],
    "counts": lambda release, by: release.total("ward", "closed", by=by),
    "proportions": lambda release, by: [
        release.proportion(name, by=by) for name in ("ward", "ill", "pain")
    ],
    "a proportion": lambda release, by: release.proportion("ward", "closed", by=by),
    "quantiles": lambda release, by: [
        release.quantile(name, 0.5, by=by) for name in SCHEMA.names[2:]
    ],
    "histograms": lambda release, by: [release.histogram(name, by=by) for name in SCHEMA.names],
}
OF_ALL = {
    "crosstabs": lambda release: [
        release.crosstab("ward", "pain", of) for of in ("all", "rows", "columns")
    ],
    "covariances": lambda release: [release.cov(), release.corr()],
    "retargeted": lambda release: release.retarget({"ward": {"surgery": 0.5, "medicine": 0.5}}),
    "a mean stated": lambda release: release.retarget({"age": 50, "ill": 0.3}),
    "resampled": lambda release: [release.resample(seed=0), release.duplicate()],
    "effect on a number": lambda release: release.effect("ill", "age", "dose + ward"),
    "effect on a category": lambda release: release.effect("ill", "dose", "pain"),
} | {
    formula: lambda release, formula=formula: release.glm(formula)
    for formula in ("ill ~ age", "ill ~ ward", "age ~ dose + pain", "ward ~ ill", "dose ~ ward*ill")
}


@pytest.mark.parametrize("name", ODD_RELEASES)
@pytest.mark.parametrize("card", [{}, APART], ids=["unknown", "apart"])
def test_an_odd_release_is_answered_or_refused_in_our_words(name, card):
    release = odd_release(**ODD_RELEASES[name], card=card)
    asks = {
        f"{label} by {by}": partial(ask, by=by)
        for label, ask in BY_GROUPS.items()
        for by in (None, "ward", ["ill", "pain"])
    }
    found = {}
    for label, ask in (asks | OF_ALL).items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                warnings.simplefilter("ignore", CounterpoiseWarning)
                answers = ask(release)
                for each in answers if isinstance(answers, list) else [answers]:
                    str(each)
        except CounterpoiseError:
            pass
        except Exception as error:
            found[label] = f"{type(error).__name__}: {error}"[:200]
    assert found == {}


def test_what_no_row_has_is_undefined_and_says_so():
    release = odd_release(null=["ward", "age", "ill"], card=APART)
    for ask in (
        release.proportion("ward", "closed"),
        release.mean("age", by="pain")["none"],
        release.quantile("age", 0.5),
        release.crosstab("ward", "ill")["surgery", True],
    ):
        assert ask.interval() is None
        assert "undefined where too few synthetic rows have a value" in ask.note
