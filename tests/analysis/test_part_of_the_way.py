"""Replicates that go a part of the way: every standard error is that of the whole way."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import counterpoise as cp
from counterpoise.report.columns import _errors

ROWS, COUNT, PART = 600, 12, 0.25
SCHEMA = cp.Schema(
    [
        cp.Column.integer("age", 0, 99, bins=5),
        cp.Column.continuous("dose", 0, 10, bins=5),
        cp.Column.boolean("ill"),
        cp.Column.boolean("treated"),
    ]
)


def release(part: float, slope: float = 0.0) -> cp.Release:
    """The same moves of the weights, of which replicates go a part; small ones, but for a slope's.

    `slope` is how far the weights of older people who are ill move together.
    """
    generator = np.random.default_rng(3)
    age = generator.integers(20, 90, ROWS)
    table = pd.DataFrame(
        {
            "age": age,
            "dose": np.clip(generator.normal(age / 20, 1), 0, 10),
            "ill": generator.random(ROWS) < age / 150,
            "treated": generator.random(ROWS) < 0.5,
            "weight": 1.0,
        }
    )
    moves = 0.02 * generator.normal(size=(ROWS, COUNT)) * (1 + (age[:, None] > 50))
    together = (age - 55) / 35 * np.where(table["ill"], 1, -1)
    moves += slope * np.outer(together, np.linspace(-1, 1, COUNT))
    moves -= moves.mean(axis=0)
    card = {"population": 1000.0, "population_is_public": True}
    card["replicates"] = {"count": COUNT, "part": part}
    return cp.Release(table, SCHEMA, card, 1 + part * moves)


def share_of_ill(table, weights) -> float:
    return float(np.average(table["ill"], weights=weights))


ASKED = {
    "mean": lambda r: r.mean("age"),
    "mean by": lambda r: r.mean("age", by="ill")[True],
    "total": lambda r: r.total("dose"),
    "proportion": lambda r: r.proportion("ill", True),
    "shares": lambda r: r.histogram("age").members[2],
    "crosstab": lambda r: r.crosstab("ill", "treated").members[0],
    "corr": lambda r: r.corr("age", "dose"),
    "glm": lambda r: r.glm("ill ~ age + dose")["age"],
    "effect": lambda r: r.effect("treated", "dose", "age"),
    "bootstrap": lambda r: r.bootstrap(share_of_ill),
    "cross_validate": lambda r: r.cross_validate(LogisticRegression(), "ill").score,
}


@pytest.mark.parametrize("name", ASKED)
def test_every_standard_error_is_that_of_the_whole_way(name):
    whole, part = (ASKED[name](release(each)) for each in (1.0, PART))
    assert part.value == pytest.approx(whole.value)
    assert part.standard_error == pytest.approx(whole.standard_error, rel=0.05)


def test_covariances_quantiles_and_bars_of_the_page_are_those_of_the_whole_way():
    whole, part = release(1.0), release(PART)
    formula = "ill ~ age + dose"
    assert np.diag(part.glm(formula).covariance) == pytest.approx(
        np.diag(whole.glm(formula).covariance), rel=0.1
    )
    assert part.quantile("dose").interval() == whole.quantile("dose").interval()
    groups = (whole.table["age"] > 50).to_numpy().astype(int)
    assert _errors(part, groups, 2) == pytest.approx(_errors(whole, groups, 2), rel=0.05)


def test_posteriors_are_spread_by_the_whole_way():
    own, whole, part = (
        release(each, 0.6)
        .posterior("ill ~ age", replicates=replicates, seed=1)
        .to_frame()
        .loc["age", "deviation"]
        for each, replicates in ((1.0, False), (1.0, True), (PART, True))
    )
    assert whole > 1.5 * own
    assert part == pytest.approx(whole, rel=0.15)
