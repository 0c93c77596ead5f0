import warnings

import numpy as np
import pytest

from counterpoise.errors import AnalysisError, CounterpoiseWarning
from tests.analysis.releases import make_release


def release_with(level, **more):
    return make_release(weights={"verdict": {"level": level, "reason": "few rows count", **more}})


def test_caution_is_said_once_a_release():
    release = release_with("caution", way_out="look at the diagnostics")
    with pytest.warns(CounterpoiseWarning, match=r"few rows count; look at") as caught:
        release.mean("age")
    assert caught[0].filename == __file__  # the warning points at the analyst's line
    release.mean("age")
    release.crosstab("ward", "ill")


ANALYSES = {
    "mean": lambda release: release.mean("age"),
    "total": lambda release: release.total("age"),
    "proportion": lambda release: release.proportion("ward"),
    "quantile": lambda release: release.quantile("age"),
    "histogram": lambda release: release.histogram("age"),
    "crosstab": lambda release: release.crosstab("ward", "ill"),
    "corr": lambda release: release.corr("age", "dose"),
    "cov": lambda release: release.cov("age", "dose"),
    "fit": lambda release: release.fit(_ridge(), "age"),
    "cross_validate": lambda release: release.cross_validate(_ridge(), "age"),
    "glm": lambda release: release.glm("age ~ ill"),
    "resample": lambda release: release.resample(10),
    "duplicate": lambda release: release.duplicate(),
    "bootstrap": lambda release: release.bootstrap(lambda table, weights: weights.sum()),
}


def _ridge():
    from sklearn.linear_model import Ridge

    return Ridge()


@pytest.mark.parametrize("name", ANALYSES)
def test_every_analysis_refuses_weights_that_should_not_be_used(name):
    release = release_with("do not use", way_out="ask for more rows")
    with pytest.raises(AnalysisError, match=r"few rows count; ask for more rows\. Go on without"):
        ANALYSES[name](release)
    assert ANALYSES[name](release.use_weights()) is not None
    assert ANALYSES[name](release.unweighted()) is not None


def test_going_on_without_weights_gives_the_unweighted_estimate():
    release = release_with("do not use")
    plain = release.unweighted()
    assert plain.mean("age").value == pytest.approx(release.table["age"].mean())
    assert plain.mean("age").standard_error is None
    assert np.all(plain.weights == 1)
    assert release.card["weights"]["verdict"]["level"] == "do not use"


def test_accepted_weights_are_used_without_another_word():
    release = release_with("caution").use_weights()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        release.mean("age")


@pytest.mark.parametrize("card", [{}, {"weights": {}}, {"weights": {"verdict": {"level": "fine"}}}])
def test_a_card_without_a_verdict_is_fine(card):
    make_release(**card).mean("age")
