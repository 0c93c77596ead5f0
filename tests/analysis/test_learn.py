import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, mean_squared_error
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import counterpoise as cp
from counterpoise.analysis.learn import weight_parameter
from counterpoise.errors import AnalysisError, CounterpoiseWarning, SchemaError
from tests.analysis.releases import make_release, repeated

EXACT = LogisticRegression(C=1e6, tol=1e-10, max_iter=2000)
FEATURES = ["age", "ward", "dose"]


def probabilities(model, table):
    return model.predict_proba(table)[:, 1]


def fitted_on_repeated_rows(release, estimator):
    rows = repeated(release)
    x = release.schema.select(FEATURES).encode(rows).one_hot()[0]
    new = release.schema.select(FEATURES).encode(release.table).one_hot()[0]
    return clone(estimator).fit(x, rows["ill"]).predict_proba(new)[:, 1]


@pytest.mark.parametrize(
    "estimator",
    [EXACT, make_pipeline(StandardScaler(with_mean=False), EXACT)],
    ids=["estimator", "pipeline"],
)
def test_a_weighted_fit_is_that_of_the_repeated_rows(estimator):
    release = make_release()
    model = release.fit(estimator, "ill", features=FEATURES)
    expected = fitted_on_repeated_rows(release, EXACT)
    assert probabilities(model, release.table) == pytest.approx(expected, abs=1e-3)
    plain = release.unweighted().fit(estimator, "ill", features=FEATURES)
    assert np.abs(probabilities(plain, release.table) - expected).max() > 0.02


def test_weights_reach_the_estimator_whatever_the_routing_of_metadata():
    release = make_release()
    estimator = make_pipeline(StandardScaler(with_mean=False), EXACT)
    expected = probabilities(release.fit(estimator, "ill", FEATURES), release.table)
    with sklearn.config_context(enable_metadata_routing=True):
        model = release.fit(estimator, "ill", FEATURES)
    assert probabilities(model, release.table) == pytest.approx(expected)


def test_a_model_takes_raw_tables_and_can_be_cloned_and_pickled():
    release = make_release()
    model = release.fit(LogisticRegression(), "ward", features=["age", "pain"])
    raw = pd.DataFrame({"age": ["41", "999"], "pain": ["some", None], "unused": [1, 2]})
    assert set(model.predict(raw)) <= {"surgery", "medicine"}
    again = pickle.loads(pickle.dumps(model))
    assert again.predict_proba(raw) == pytest.approx(model.predict_proba(raw))
    assert model["schema"].get_feature_names_out().tolist() == ["age", "pain", "pain is null"]
    assert model["model"].coef_.shape == (1, 3)
    refitted = clone(model).fit(release.table, release.table["ward"])
    assert refitted.predict(raw).shape == (2,)


def test_the_estimator_that_is_handed_over_is_not_changed():
    estimator = LogisticRegression()
    make_release().fit(estimator, "ill")
    assert not hasattr(estimator, "coef_")


@pytest.mark.parametrize(
    ("estimator", "keyword"),
    [
        (LogisticRegression(), "sample_weight"),
        (make_pipeline(StandardScaler(), Ridge()), "ridge__sample_weight"),
        (GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}), "sample_weight"),
        (GridSearchCV(make_pipeline(Ridge()), {"ridge__alpha": [1.0]}), "ridge__sample_weight"),
        (TransformedTargetRegressor(Ridge()), "sample_weight"),
        (VotingClassifier([("a", LogisticRegression())]), "sample_weight"),
        (StackingClassifier([("a", LogisticRegression())]), "sample_weight"),
        (BaggingClassifier(LogisticRegression(), 3), "sample_weight"),
        (KNeighborsClassifier(), None),
        (make_pipeline(StandardScaler(), KNeighborsClassifier()), None),
        (GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [3]}), None),
        (VotingClassifier([("a", LogisticRegression()), ("b", KNeighborsClassifier())]), None),
        (VotingClassifier([("a", make_pipeline(LogisticRegression()))]), None),
        (make_pipeline(StandardScaler(), "passthrough"), None),
    ],
)
def test_where_weights_go(estimator, keyword):
    assert weight_parameter(estimator) == keyword


@pytest.mark.parametrize(
    ("estimator", "target"),
    [
        (GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=3), "ill"),
        (TransformedTargetRegressor(Ridge()), "age"),
        (VotingClassifier([("a", LogisticRegression()), ("b", DecisionTreeClassifier())]), "ill"),
        (StackingClassifier([("a", LogisticRegression())], cv=3), "ill"),
        (BaggingClassifier(LogisticRegression(), 3, random_state=0), "ill"),
    ],
)
def test_estimators_that_hold_others_are_fitted_with_weights_and_without_a_warning(
    estimator, target
):
    release = make_release(rows=150)
    model = release.fit(estimator, target, features=["children", "ward"])
    assert len(model.predict(release.table)) == 150


def test_an_estimator_without_weights_is_fitted_on_resampled_rows_and_says_so():
    table = make_release(rows=2000).table
    older = table.assign(weight=np.where(table["age"] >= 50, 1.8, 0.2))
    release = cp.Release(older, make_release().schema, {})
    with pytest.warns(CounterpoiseWarning, match="KNeighborsRegressor takes no") as caught:
        # All rows are neighbours, so that the prediction is the mean of those it was fitted on.
        model = release.fit(KNeighborsRegressor(2000), "age", features=["children"], seed=0)
    assert caught[0].filename == __file__
    found = release.mean("age")
    assert found.value - found.unweighted > 10
    assert model.predict(release.table[:1])[0] == pytest.approx(found.value, abs=1.0)


def test_equal_weights_need_no_resampling():
    release = make_release().unweighted()
    model = release.fit(KNeighborsRegressor(300), "age", features=["children"])
    assert model.predict(release.table[:1])[0] == pytest.approx(release.table["age"].mean())


def test_estimators_may_do_their_own_preprocessing():
    release = make_release()
    own = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["ward"]), remainder="passthrough"),
        LinearRegression(),
    )
    model = release.fit(own, "age", features=["ward", "children"], encode=False)
    expected = release.glm("age ~ ward + children").predict(release.table)
    assert model.predict(release.table) == pytest.approx(expected)


def test_rows_without_a_target_are_left_out():
    release = make_release()
    model = release.fit(LinearRegression(), "dose", features=["age"])
    expected = release.glm("dose ~ age").predict(release.table)
    assert model.predict(release.table) == pytest.approx(expected)


def test_a_target_that_is_always_null_is_refused():
    release = make_release()
    nothing = release.schema.restore(release.table.assign(dose=np.nan))
    with pytest.raises(AnalysisError, match="no synthetic row has a value of 'dose'"):
        cp.Release(nothing, release.schema, {}).fit(Ridge(), "dose")


def test_cross_validation_weighs_fits_and_scores():
    release = make_release(replicates=4)
    found = release.cross_validate(EXACT, "ill", features=["age"], folds=3, seed=0)
    assert found.metric == "accuracy"
    assert len(found.folds) == 3
    assert found.score.value == pytest.approx(np.mean(found.folds))

    regression = release.cross_validate(
        LinearRegression(), "age", ["children"], 3, "neg_mean_squared_error", seed=0
    )
    x = release.schema.select(["children"]).encode(release.table).one_hot()[0]
    y, folds = release.table["age"].to_numpy(float), KFold(3, shuffle=True, random_state=0)

    def score(fit_weights, weights):
        scores = []
        for train, test in folds.split(x):
            model = LinearRegression().fit(x[train], y[train], sample_weight=fit_weights[train])
            predicted = model.predict(x[test])
            scores.append(-mean_squared_error(y[test], predicted, sample_weight=weights[test]))
        return np.mean(scores)

    full = score(release.weights, release.weights)
    assert regression.score.value == pytest.approx(full)
    assert regression.score.unweighted == pytest.approx(score(np.ones(300), np.ones(300)))
    squares = [(score(release.weights, each) - full) ** 2 for each in release.replicates.T]
    assert regression.score.standard_error == pytest.approx(np.sqrt(np.mean(squares)))


@pytest.mark.parametrize("metric", ["roc_auc", "neg_log_loss", "f1"])
def test_scores_of_classifiers_and_their_printing(metric):
    found = make_release(replicates=3).cross_validate(
        LogisticRegression(), "ill", features=["age"], folds=3, metric=metric
    )
    assert str(found).startswith(f"{metric} ")
    assert str(found).endswith("over 3 folds")
    assert found.score.standard_error > 0


def test_a_metric_of_ones_own_is_given_the_weights():
    def weighted(estimator, x, y, sample_weight):
        return accuracy_score(y, estimator.predict(x), sample_weight=sample_weight)

    release = make_release(replicates=3)
    ours = release.cross_validate(LogisticRegression(), "ill", ["age"], 3, weighted)
    assert (
        ours.score.value
        == release.cross_validate(LogisticRegression(), "ill", ["age"], 3).score.value
    )


@pytest.mark.parametrize(
    ("ask", "error", "words"),
    [
        (lambda release: release.fit(LogisticRegression(), "il"), SchemaError, "'ill'"),
        (lambda release: release.fit(LogisticRegression, "ill"), AnalysisError, "estimator"),
        (lambda release: release.fit(LogisticRegression(), "dose"), AnalysisError, "categories"),
        (lambda release: release.fit(Ridge(), "ward"), AnalysisError, "needs numbers"),
        (lambda release: release.fit(Ridge(), "age", ["age"]), AnalysisError, "is the target"),
        (lambda release: release.fit(Ridge(), "age", []), AnalysisError, "at least one"),
        (lambda release: release.cross_validate(Ridge(), "age", folds=1), AnalysisError, "folds"),
        (
            lambda release: release.cross_validate(Ridge(), "age", metric="r3"),
            AnalysisError,
            "get_scorer_names",
        ),
        (
            lambda release: release.cross_validate(Ridge(), "age", metric=lambda m, x, y: 1.0),
            AnalysisError,
            "takes no weights",
        ),
    ],
)
def test_what_cannot_be_fitted_is_refused(ask, error, words):
    with pytest.raises(error, match=words):
        ask(make_release(rows=60))
