"""One call compares everything, weighted and not, and reads private rows as a vault does."""

import sys
import threading
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

import counterpoise as cp
from counterpoise.errors import CounterpoiseError, CounterpoiseWarning
from counterpoise.evaluation import evaluate as module
from counterpoise.evaluation import excess_risk, mmd, total_variation
from counterpoise.evaluation.compared import compare, plain_frame
from counterpoise.evaluation.evaluate import _done
from counterpoise.evaluation.measured import DISTANCES, TAKEN
from counterpoise.evaluation.models import MODELS, train_and_test
from tests.evaluation.evaluations import SCHEMA, evaluated, made, people
from tests.odd import contrary


def test_every_distance_and_every_table_is_there_weighted_and_not():
    found = evaluated()
    assert found.distances["measure"].tolist() == [each.name for each in DISTANCES]
    assert np.isfinite(found.distances[["unweighted", "weighted", "floor"]]).all(axis=None)
    assert found.marginals["degree"].value_counts().to_dict() == {1: 5, 2: 10, 3: 10}
    assert len(found.correlations) == 10
    assert {"private", "unweighted", "weighted"} <= {*found.utility, *found.statistics}


def test_figures_are_those_of_the_functions_of_the_room():
    found, compared = evaluated(), compare(made(), people(300, 0), people(120, 1))
    tables = compared.synthetic, compared.private
    line = found.distances.set_index("measure").loc["MMD"]
    assert line["weighted"] == mmd(*tables, compared.weights)
    assert line["unweighted"] == mmd(*tables) != line["weighted"]
    assert line["floor"] == mmd(compared.holdout, compared.private)
    pair = found.marginals.set_index("columns").loc["age × ill"]
    assert pair["weighted"] == total_variation(*tables, ["age", "ill"], compared.weights)
    forest = found.utility.set_index(["model", "measure"]).loc["random forest", "ROC-AUC"]
    expected = train_and_test(
        compared.synthetic, compared.holdout, "ill", "random forest", compared.weights
    )
    assert forest["weighted"] == expected["ROC-AUC"]


def test_all_models_predict_the_target_and_the_linear_one_every_column():
    utility = evaluated().utility
    assert set(utility.loc[utility["target"] == "ill", "model"]) == set(MODELS)
    assert set(utility.loc[utility["target"] != "ill", "model"]) == {"linear"}
    assert set(utility["target"]) == set(SCHEMA.names)
    measures = utility[utility["target"] == "ill"]
    assert {"coefficient MSE", "interval overlap", "accuracy", "log score"} <= {
        *measures["measure"]
    }
    losses = evaluated().losses.set_index(["target", "model"])
    scores = utility.set_index(["target", "model", "measure"])
    line = scores.loc["ill", "linear", "ROC-AUC"]
    assert losses.loc[("ill", "linear"), "weighted"] == line["private"] - line["weighted"]


def test_certificates_bound_the_excess_risk_weighted_and_not():
    found = evaluated().certificates.set_index("measure")[["unweighted", "weighted"]]
    assert (found.loc["excess risk"] >= -1e-9).all()
    assert (found.loc["excess risk"] <= found.loc["bound by private moments"]).all()
    rows = people(300, 0)
    expected = excess_risk(made().use_weights(), rows, "ill")
    assert found.loc["excess risk", "weighted"] == pytest.approx(expected)
    assert (found.loc["excess risk"] <= found.loc["bound that may be published"]).all()
    assert found.loc["excess risk", "weighted"] != found.loc["excess risk", "unweighted"]


def test_a_warning_that_one_thread_ignores_is_ignored_in_all():
    """Filters of warnings are shared: whoever leaves first takes everybody's away."""
    second_is_in, first_is_out = threading.Event(), threading.Event()

    def first():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            second_is_in.wait(10)
        first_is_out.set()

    def second():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            second_is_in.set()
            first_is_out.wait(10)
            warnings.warn("few steps", ConvergenceWarning, stacklevel=1)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _done({("first",): first, ("second",): second}, 2, lambda *_: None)


def test_the_worst_come_first_by_the_worse_of_weighted_and_unweighted():
    worst = evaluated().worst("models", 4)
    assert worst[["unweighted", "weighted"]].max(axis=1).is_monotonic_decreasing
    assert len(worst) == 4
    for degree, kind in enumerate(("columns", "pairs", "triples"), 1):
        own = evaluated().marginals
        own = own[own["degree"] == degree]
        worst = evaluated().worst(kind, 4)
        above = worst[["unweighted", "weighted"]].max(axis=1) - worst["floor"]
        assert above.is_monotonic_decreasing
        assert len(worst) == 4
        # What two real samples differ by, which many cells do, makes nothing worse.
        least = (own[["unweighted", "weighted"]].max(axis=1) - own["floor"]).nlargest(4).min()
        assert above.min() == pytest.approx(least)


def test_threads_change_nothing(monkeypatch):
    calls = []
    # Those that take longest are as independent of each other as the others.
    monkeypatch.setattr(module, "MODELS", ("linear", "random forest"))
    monkeypatch.setattr(
        module, "TAKEN", {name: take for name, take in TAKEN.items() if name != "classifier"}
    )
    known = [each for each in DISTANCES if each.name not in ("pMSE", "two-sample AUC")]
    monkeypatch.setattr(module, "DISTANCES", known)
    found = cp.evaluate(
        made(),
        people(300, 0),
        people(120, 1),
        attacks=False,
        workers=2,
        progress=lambda stage, done: calls.append((stage, done)),
    )
    for name, frame in found.frames():
        whole = getattr(evaluated(), name)
        if "model" in whole:
            whole = whole[whole["model"].isin(["linear", "random forest"])]
        if "better" in whole:
            whole = whole[~whole["measure"].isin(["pMSE", "two-sample AUC"])]
        pd.testing.assert_frame_equal(frame, whole.reset_index(drop=True))
    assert calls[-1][1] == 1.0
    assert [done for _, done in calls] == sorted(done for _, done in calls)


def test_private_rows_are_read_by_the_schema_that_the_release_was_made_with(tmp_path):
    rows = people(300, 0)
    spelled = rows.assign(
        dose=rows["dose"].map(lambda value: "?" if np.isnan(value) else f"{value:.6f}"),
        seen=rows["seen"].dt.strftime("%d.%m.%Y"),
    )
    spelled["dose"] = spelled["dose"].str.replace(".", ",")
    spelled.to_csv(tmp_path / "people.csv", sep=";", index=False)
    stated = cp.Schema.from_dict(
        {
            "fields": [
                {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 99}},
                {"name": "ward", "type": "string", "constraints": {"enum": ["surgery"]}},
                {"name": "dose", "type": "number", "decimalChar": ",", "missingValues": ["", "?"]},
                {"name": "seen", "type": "date", "format": "%d.%m.%Y"},
                {"name": "ill", "type": "boolean"},
            ],
            "dialect": {"delimiter": ";"},
        }
    )
    plain = compare(made(), rows)
    read = compare(made(), tmp_path / "people.csv", schema=stated)
    assert (read.private.codes == plain.private.codes).all()
    assert max(read.unplaced.values()) == 0
    assert np.allclose(read.private.units, plain.private.units, atol=1e-7)


def test_values_that_the_schema_has_no_place_for_are_told_of(recwarn):
    strange = people(300, 0).assign(seen="yesterday")
    with pytest.warns(CounterpoiseWarning, match="'seen'"):
        module._warn_of_strange_values(compare(made(), strange))
    assert compare(made(), strange).unplaced == dict.fromkeys(SCHEMA.names, 0.0) | {"seen": 1.0}
    module._warn_of_strange_values(compare(made(), people(300, 0)))


def test_a_value_that_raises_when_it_is_compared_is_compared_as_one_without_a_place():
    doses = [contrary(float, 1.5), *people(300, 0)["dose"][1:]]
    rows = people(300, 0).assign(dose=pd.Series(doses, dtype=object))
    assert 0 <= compare(made(), rows).unplaced["dose"] <= 1 / 300


def test_a_plain_frame_is_read_as_the_rows_it_was_made_of():
    compared = compare(made(), people(300, 0))
    again = compared.schema.encode(plain_frame(compared.private))
    assert (again.codes == compared.private.codes).all()
    assert np.allclose(again.units, compared.private.units)


def test_without_a_hold_out_the_floor_is_of_two_halves():
    compared = compare(made(), people(301, 0))
    assert sorted(map(len, compared.floor)) == [150, 151]
    both = np.concatenate([half.units[:, 0] for half in compared.floor])
    assert np.array_equal(np.sort(both), np.sort(compared.private.units[:, 0]))


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        ("release", {"release": people(30, 0)}),
        ("lacks columns", {"private": people(30, 0).drop(columns="age")}),
        ("private table", {"private": people(3, 0)}),
        ("hold-out", {"holdout": people(3, 0)}),
        ("a table is the path", {"private": 7}),
        ("no column 'nothing'", {"targets": "nothing"}),
        ("targets", {"targets": [7]}),
        ("seed", {"seed": -1}),
        ("workers", {"workers": 0}),
        ("attacks", {"attacks": "no"}),
        ("schema", {"schema": 7}),
    ],
)
def test_what_cannot_be_compared_is_refused_in_words(words, arguments):
    usual = {"release": made(), "private": people(60, 0), "workers": 1, "progress": False}
    with pytest.raises(CounterpoiseError, match=words):
        cp.evaluate(**usual | arguments)


def test_a_release_for_another_population_is_refused():
    turned = made().retarget({"ill": {True: 0.5, False: 0.5}})
    with pytest.raises(CounterpoiseError, match="another population"):
        cp.evaluate(turned, people(60, 0))


def test_attacks_get_the_release_and_rows_that_its_schema_reads(monkeypatch):
    asked = {}

    def attack(release, private, holdout, *, seed=0, progress=None):
        asked.update(release=release, private=private, holdout=holdout, seed=seed)
        return pd.DataFrame(columns=list(module.ATTACK_COLUMNS))

    attacks = SimpleNamespace(attack_all=attack)
    monkeypatch.setitem(sys.modules, "counterpoise.evaluation.attacks", attacks)
    module._attacks(made(), people(60, 0), None, 3)
    assert asked["release"] is made()
    assert asked["holdout"] is None
    assert list(asked["private"]) == list(SCHEMA.names)
