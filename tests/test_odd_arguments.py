"""Whatever a curator's call is given, it answers, or refuses in the words of our family.

Each argument in turn is replaced by some sixty odd values; the others stay sound. An answer is as
good as a refusal: numpy's numbers and a path of another kind are meant, and taken. The tables are
tiny, so that what is legal is quick.
"""

from functools import partial

import numpy as np
import pandas as pd
import pytest

import counterpoise as cp
from counterpoise import evaluation, weights
from counterpoise.curation import release as release_module
from counterpoise.curation.plan import plan_release, plan_weigh
from counterpoise.errors import CounterpoiseError, TableError
from counterpoise.registry import Registry
from counterpoise.synthesizers import SYNTHESIZERS, Aim, Histogram, Marginals, Mst, PrivBayes
from counterpoise.vault import Budget, Vault
from counterpoise.weights import WEIGHTERS, Logistic, LogisticOutputs, Moments, Weights, features
from counterpoise.weights.replicates import replicate_weights
from tests.odd import foreign_errors

SCHEMA = cp.Schema([cp.Column.boolean("a"), cp.Column.integer("n", 0, 3)])
TABLE = pd.DataFrame({"a": [True, False] * 10, "n": [0, 1, 2, 3] * 5})
CODED = SCHEMA.encode(TABLE)
BUDGET = Budget(1.0, 1e-6)
WEIGHED = Weights(np.linspace(-1, 1, 20))
CHOSEN = Registry("things")


def opened():
    return Vault(TABLE, SCHEMA, BUDGET, seed=1)


def fitted(method, room):
    with opened() as vault:
        if room is SYNTHESIZERS:
            return room.make(method).fit(vault, vault.budget.whole)
        return room.make(method).fit(vault, TABLE, vault.budget.whole)


# Stands for a vault that is opened anew for each call: one for all would soon be spent.
FRESH_VAULT = object()


def with_vault(arguments, vault):
    """The arguments with a vault where a fresh one is meant."""
    return {
        name: vault if value is FRESH_VAULT else value
        for name, value in ({"vault": FRESH_VAULT} | arguments).items()
    }


def in_vault(method):
    """A call of `fit` on a vault that is open."""

    def call(**arguments):
        with opened() as vault:
            return method.fit(**with_vault({"share": BUDGET.whole} | arguments, vault))

    return call


def calibrated(**arguments):
    with opened() as vault:
        return weights.calibrate_privately(**with_vault(arguments, vault))


def first(rows):
    return np.zeros(len(rows))


# The budget is the vault's to check.
BOUGHT = {"epsilon": 1.0, "delta": 1e-6}
RELEASE = {
    "table": TABLE,
    "schema": SCHEMA,
    "synthesizer": "independent",
    "weights": "uniform",
    "rows": 5,
    "split": 0.5,
    "replicates": 2,
    "target": None,
    "seed": 1,
    "progress": False,
}
WEIGH = {
    "private": TABLE,
    "synthetic": TABLE,
    "schema": SCHEMA,
    "method": "uniform",
    "target": None,
    "replicates": 2,
    "seed": 1,
    "progress": False,
}
PLAN = {key: RELEASE[key] for key in ("schema", "synthesizer", "weights", "rows", "split")}
PAIR = {"left": CODED, "right": CODED, "left_weights": None, "right_weights": None}
ONE_SIDED = {"left": CODED, "right": CODED, "left_weights": None}
LEARN = {"train": CODED, "target": "a", "weights": None}
SAMPLE = {"rows": 3, "seed": 1, "format": "pandas"}

CALLS = {
    "release": (partial(cp.release, **BOUGHT), RELEASE),
    "weigh": (partial(cp.weigh, **BOUGHT), WEIGH),
    "plan_release": (plan_release, PLAN | {"budget": BUDGET, "target": None}),
    "plan_weigh": (plan_weigh, {"schema": SCHEMA, "budget": BUDGET, "method": "moments"}),
    "plan_release.target": (plan_release, {"schema": SCHEMA, "budget": BUDGET, "target": "a"}),
    "plan_weigh.target": (plan_weigh, {"schema": SCHEMA, "budget": BUDGET, "target": "a"}),
    "error_bound": (
        fitted("aim", SYNTHESIZERS).error_bound,
        {"columns": ["a"], "confidence": 0.9},
    ),
    "describe": (
        plan_release(SCHEMA, BUDGET).describe,
        {"private_rows": 100, "replicates": 2},
    ),
    "registry": (SYNTHESIZERS.get, {"name": "aim"}),
    "registry.make": (WEIGHTERS.make, {"method": "moments"}),
    "registry.name_of": (WEIGHTERS.name_of, {"method": Moments()}),
    "registry.parameters": (SYNTHESIZERS.make, {"method": "aim", "degree": 2}),
    "registry.register": (lambda name: CHOSEN.register(name)(Aim), {"name": "x"}),
    "Aim": (
        Aim,
        {
            "degree": 2,
            "target": "a",
            "workload": [("a", "n")],
            "rounds": 3,
            "first_part": 0.5,
            "most_cells": 100,
        },
    ),
    "Histogram": (Histogram, {"most_cells": 10}),
    "Histogram.check": (Histogram().check, {"schema": SCHEMA}),
    "Marginals": (Marginals, {"degree": 1, "workload": [("a",)], "most_cells": 10}),
    "Mst": (Mst, {"parts": (1, 1, 1), "most_cells": 10}),
    "PrivBayes": (PrivBayes, {"usefulness": 1.0, "most_parents": 1, "most_cells": 9}),
    **{
        f"{name}.fit": (
            in_vault(SYNTHESIZERS.make(name)),
            {"vault": FRESH_VAULT, "share": BUDGET.whole},
        )
        for name in SYNTHESIZERS.by_name()
    },
    "MarginalModel.sample": (
        fitted("histogram", SYNTHESIZERS).sample,
        SAMPLE | {"given": {"a": True}, "method": "plain"},
    ),
    "MarginalModel.marginal": (fitted("histogram", SYNTHESIZERS).marginal, {"columns": ["a"]}),
    "IndependentModel.sample": (fitted("independent", SYNTHESIZERS).sample, SAMPLE),
    "Logistic": (
        Logistic,
        {
            "noise": "laplace",
            "debias": True,
            "features": features.Linear(),
            "regularisation": 1.0,
            "published_epsilon": 1.0,
        },
    ),
    "LogisticOutputs": (
        LogisticOutputs,
        {
            "noise": "laplace",
            "rows": 3,
            "most_noise": 1.0,
            "features": features.Linear(),
            "regularisation": 1.0,
        },
    ),
    "Moments": (Moments, {"target": "a", "blocks": (features.Linear(),)}),
    **{
        f"{name}.fit": (
            in_vault(method),
            {"vault": FRESH_VAULT, "synthetic": TABLE, "share": BUDGET.whole, "synthesizer": None},
        )
        for name, method in {
            "uniform": WEIGHTERS.make("uniform"),
            "moments": Moments(),
            "logistic": Logistic(),
            "logistic-outputs": LogisticOutputs(rows=3),
        }.items()
    },
    **{
        f"{name}.weigh": (fitted(name, WEIGHTERS).weigh, {"synthetic": TABLE})
        for name in ("uniform", "moments", "logistic")
    },
    "replicate_weights": (
        replicate_weights,
        {
            "model": fitted("uniform", WEIGHTERS),
            "synthetic": TABLE,
            "count": 2,
            "population": 20.0,
            "synthesizer": None,
            "seed": 1,
        },
    ),
    "Products": (features.Products, {"target": "a"}),
    "PairProducts": (features.PairProducts, {"pairs": (("a", "n"),)}),
    "Cells": (features.Cells, {"pairs": (("a", "n"),), "most": 3}),
    "PrincipalComponents": (features.PrincipalComponents, {"count": 1}),
    "RandomFourier": (features.RandomFourier, {"count": 1, "width": 1.0, "seed": 0}),
    "temper": (weights.temper, {"weights": WEIGHED, "power": 0.5}),
    "truncate": (weights.truncate, {"weights": WEIGHED, "most": 2.0}),
    "smooth": (weights.smooth, {"weights": WEIGHED}),
    "tail_shape": (weights.tail_shape, {"weights": WEIGHED}),
    "diagnose": (weights.diagnose, {"weights": WEIGHED}),
    "finite_variance_test": (weights.finite_variance_test, {"weights": WEIGHED}),
    "fitted_sample_size": (
        weights.fitted_sample_size,
        {"weights": WEIGHED, "gradients": np.ones((20, 1)), "curvature": np.eye(1)},
    ),
    "calibrate": (
        weights.calibrate,
        {"held_out": WEIGHED, "synthetic": WEIGHED, "caution": 1.0},
    ),
    "calibrate_privately": (
        calibrated,
        {
            "vault": FRESH_VAULT,
            "log_weights": first,
            "synthetic": CODED,
            "share": BUDGET.whole,
            "most": 4.0,
            "deviation": 100.0,
        },
    ),
    "BetaCalibration": (
        weights.BetaCalibration,
        {"power_below": 1.0, "power_above": 1.0, "shift": 0.0, "origin": 0.0, "deviation": 0.0},
    ),
    "BetaCalibration()": (weights.BetaCalibration(1.0, 1.0, 0.0), {"weights": WEIGHED}),
    "Weights": (
        lambda **given: Weights(**given).diagnostics(),
        {"log_weights": np.zeros(3), "reached": 1.0},
    ),
    "coordinates": (evaluation.coordinates, {"table": CODED}),
    "equal_points": (evaluation.equal_points, {"table": CODED, "weights": None, "count": 3}),
    "mean_error": (evaluation.mean_error, PAIR),
    "total_variation": (evaluation.total_variation, PAIR | {"columns": ["a"]}),
    "marginal_error": (evaluation.marginal_error, PAIR | {"degree": 2}),
    "wasserstein": (evaluation.wasserstein, PAIR | {"points": 10}),
    "sliced_wasserstein": (evaluation.sliced_wasserstein, PAIR | {"directions": 2, "seed": 0}),
    "mmd": (evaluation.mmd, PAIR | {"points": 10}),
    "discrepancy": (
        evaluation.discrepancy,
        ONE_SIDED | {"estimator": "miw", "points": 10, "bandwidth": 1.0, "groups": 2, "seed": 0},
    ),
    "energy_distance": (evaluation.energy_distance, PAIR | {"points": 10}),
    "neighbour_divergence": (
        evaluation.neighbour_divergence,
        ONE_SIDED | {"neighbours": 2, "points": 10},
    ),
    "k_marginal_score": (
        evaluation.k_marginal_score,
        PAIR | {"degree": 2, "most": 1, "seed": 0},
    ),
    "tell_apart": (evaluation.tell_apart, PAIR | {"points": 10, "seed": 0}),
    "train_and_test": (
        evaluation.train_and_test,
        LEARN | {"test": CODED, "model": "linear", "rows": 10, "seed": 0},
    ),
    "fit_linear": (evaluation.fit_linear, LEARN | {"penalty": 1.0}),
    "LinearModel.score": (evaluation.fit_linear(CODED, "a").score, {"test": CODED}),
    "linear_score": (evaluation.linear_score, LEARN | {"test": CODED, "penalty": 1.0}),
    "coefficient_error": (evaluation.coefficient_error, LEARN | {"test": CODED, "penalty": 1.0}),
    "mlp_score": (evaluation.mlp_score, LEARN | {"test": CODED, "points": 10, "seed": 0}),
}

EVERY = [(name, argument) for name, (_, sound) in CALLS.items() for argument in sound]


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    """A working folder that is called something odd is made here."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.filterwarnings("ignore::counterpoise.CounterpoiseWarning")
@pytest.mark.parametrize("name", CALLS)
def test_what_is_sound_is_answered(name):
    call, sound = CALLS[name]
    call(**sound)


@pytest.mark.filterwarnings("ignore::counterpoise.CounterpoiseWarning")
@pytest.mark.parametrize(("name", "argument"), EVERY)
def test_an_odd_argument_is_taken_or_refused_in_our_words(name, argument):
    call, sound = CALLS[name]
    assert not foreign_errors(call, sound, argument)


BARE = {
    "one column": (pd.DataFrame({"a": [True, False] * 10}), cp.Column.boolean("a")),
    "a constant": (pd.DataFrame({"k": [3] * 20}), cp.Column.integer("k", 3, 3)),
    "one category": (pd.DataFrame({"c": ["only"] * 20}), cp.Column.categorical("c", ["only"])),
    "all null": (pd.DataFrame({"n": [None] * 20}), cp.Column.integer("n", 0, 3, nullable=True)),
    "no private row": (pd.DataFrame({"a": []}), cp.Column.boolean("a")),
    "one private row": (pd.DataFrame({"n": [2]}), cp.Column.integer("n", 0, 3)),
}


def asks_critic(weighter):
    return getattr(WEIGHTERS.get(weighter), "needs_critic", False)


@pytest.mark.parametrize("bare", BARE)
@pytest.mark.parametrize(
    ("synthesizer", "weighter"),
    [(name, "moments") for name in SYNTHESIZERS.by_name()]
    + [("dpgan" if asks_critic(name) else "independent", name) for name in WEIGHTERS.by_name()],
)
def test_the_least_that_can_be_asked_of_the_least_table(synthesizer, weighter, bare):
    table, column = BARE[bare]
    options = {"synthesizer": synthesizer, "weights": weighter, "rows": 1, "replicates": 1}
    try:
        made = cp.release(table, cp.Schema([column]), 1.0, 1e-6, seed=1, **options)
    except CounterpoiseError as error:
        if synthesizer in ("cgan", "dpcgan"):
            # They are given a column of categories, and say so where there is none.
            assert "no column of categories" in str(error)
            return
        # The noise on a row's own log-weight leaves nothing of so few.
        assert weighter == "logistic-outputs", error
        assert "most_noise" in str(error)
    else:
        assert np.isfinite(made.weights).all()
        assert made.replicates.shape == (1, 1)


@pytest.mark.parametrize("weighter", WEIGHTERS.by_name())
def test_a_synthetic_table_without_rows_is_refused_before_anything_is_paid(weighter):
    if asks_critic(weighter):
        pytest.skip("a table that was made elsewhere has no critic, and is refused for that")
    with pytest.raises(TableError, match="no rows to weigh"):
        cp.weigh(TABLE, TABLE.iloc[:0], SCHEMA, 1.0, 1e-6, method=weighter, seed=1)


def test_of_rows_that_noise_invented_no_more_are_drawn_than_fit_into_memory(monkeypatch):
    """A million rows a person: the noisy number of rows once asked for 18 GB."""
    assert release_module.MOST_DRAWN == 1_000_000
    monkeypatch.setattr(release_module, "MOST_DRAWN", 50)
    giant = {"max_rows_per_person": 1_000_000, "seed": 2, "replicates": 2}
    made = cp.release(TABLE, SCHEMA, 1.0, 1e-6, synthesizer="independent", **giant)
    assert len(made.table) == 50
    assert made.card["population"] > 10**6
    stated = cp.release(TABLE, SCHEMA, 1.0, 1e-6, synthesizer="independent", rows=60, **giant)
    assert len(stated.table) == 60


def test_what_is_in_the_place_of_an_argument_is_not_shown_when_it_may_be_private():
    private = pd.DataFrame({"name": ["Ada Lovelace"] * 3})
    for given in (private, private["name"], private["name"].to_numpy(), list(private["name"])):
        for call in (
            lambda wrong: Aim(degree=wrong),
            lambda wrong: SYNTHESIZERS.make("independent").fit(wrong, BUDGET.whole),
            lambda wrong: Moments().fit(wrong, TABLE, BUDGET.whole),
            lambda wrong: plan_release(SCHEMA, BUDGET, target=wrong),
            lambda wrong: plan_release(SCHEMA, BUDGET, weights=wrong),
            lambda wrong: evaluation.mean_error(wrong, CODED),
            lambda wrong: weights.temper(wrong, 0.5),
        ):
            with pytest.raises(CounterpoiseError) as refused:
                call(given)
            assert "Ada" not in str(refused.value)
