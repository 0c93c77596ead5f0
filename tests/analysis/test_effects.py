"""Average effects: adjusted for what goes with the treatment, and wide without overlap."""

import re

import numpy as np
import pandas as pd
import pytest

import counterpoise as cp
from counterpoise.errors import AnalysisError, MethodError
from counterpoise.formulas.effects import augmented_score

SCHEMA = cp.Schema(
    [
        cp.Column.categorical("arm", ["control", "drug"]),
        cp.Column.continuous("risk", -9, 9),
        cp.Column.continuous("gain", -99, 99, nullable=True),
        cp.Column.boolean("well"),
    ]
)


ASKED = ("arm", "gain", "risk")


def trial(rows, seed, steep=1.0):
    """An effect of 2 on average, 1 where risk is low, hidden by who is treated."""
    generator = np.random.default_rng(seed)
    risk = np.clip(generator.normal(size=rows), -9, 9)
    treated = generator.random(rows) < 1 / (1 + np.exp(-steep * risk))
    gain = 3 * risk + treated * (2 + risk) + generator.normal(size=rows)
    well = generator.random(rows) < 1 / (1 + np.exp(-risk - treated))
    arm = np.where(treated, "drug", "control")
    return pd.DataFrame({"arm": arm, "risk": risk, "gain": gain, "well": well})


def release(table, replicates=None, weights=1.0):
    return cp.Release(table.assign(weight=weights), SCHEMA, card={}, replicates=replicates)


def test_the_effect_is_found_behind_who_is_treated():
    table = trial(40_000, 0)
    naive = table.groupby("arm")["gain"].mean().diff().iloc[-1]
    assert naive > 4
    assert release(table).effect("arm", "gain", "risk").value == pytest.approx(2, abs=0.05)


def test_one_right_model_is_enough():
    """The truth of one beside nonsense for the other, in either way; of both, it is no answer."""
    table = trial(100_000, 1)
    risk, treated = table["risk"].to_numpy(), (table["arm"] == "drug").to_numpy(dtype=float)
    propensity, nonsense = 1 / (1 + np.exp(-risk)), np.full(len(risk), 0.3)
    means, none = (3 * risk, 4 * risk + 2), (0 * risk, 0 * risk)

    def average(chance, both):
        return augmented_score(treated, table["gain"].to_numpy(), chance, *both).mean()

    assert average(propensity, none) == pytest.approx(2, abs=0.1)
    assert average(nonsense, means) == pytest.approx(2, abs=0.03)
    assert abs(average(nonsense, none) - 2) > 1


def test_weights_stand_for_repeated_rows():
    table = trial(600, 2)
    weights = np.random.default_rng(0).integers(1, 4, len(table))
    repeated = table.loc[np.repeat(table.index, weights)].reset_index(drop=True)
    whole = release(repeated).effect("arm", "gain", "risk").value
    # A weight of 3 is three rows.
    assert release(table, weights=weights / weights.mean()).effect(
        "arm", "gain", "risk"
    ).value == pytest.approx(whole, rel=1e-6)


def test_the_interval_is_that_of_the_replicates():
    table = trial(2000, 3)
    generator = np.random.default_rng(0)
    drawn = [np.bincount(generator.integers(0, 2000, 2000), minlength=2000) for _ in range(40)]
    found = release(table, np.stack(drawn, axis=1).astype(float)).effect("arm", "gain", "risk")
    # Var(score) / n is about (1 + Var(risk) + ...) / n
    assert 0.03 < found.standard_error < 0.12
    low, high = found.interval()
    assert low < 2 < high


def test_true_and_false_are_an_outcome_too():
    found = release(trial(40_000, 4)).effect("arm", "well", "risk").value
    risk = np.random.default_rng(9).normal(size=100_000)
    truth = (1 / (1 + np.exp(-risk - 1)) - 1 / (1 + np.exp(-risk))).mean()
    assert found == pytest.approx(truth, abs=0.02)


def test_rows_with_nulls_are_left_out():
    table = trial(2000, 5)
    holes = table.assign(gain=table["gain"].mask(np.arange(2000) % 4 == 0))
    whole = release(table[np.arange(2000) % 4 != 0].reset_index(drop=True))
    assert release(holes).effect("arm", "gain", "risk").value == pytest.approx(
        whole.effect("arm", "gain", "risk").value
    )


def test_a_lack_of_overlap_is_said():
    assert "next to no chance" not in release(trial(3000, 6, steep=0.5)).effect(*ASKED).note
    for steep in (4.0, 9.0):
        found = release(trial(3000, 6, steep)).effect(*ASKED)
        assert "of the rows have next to no chance to be in one of the arms" in found.note
    assert re.search(r"[6-9]\d% of the rows", found.note)


def treated_by(ward, treated):
    """An effect of 2 on average, 1 where risk is low, and its estimate given risk and ward."""
    generator = np.random.default_rng(8)
    risk = np.clip(generator.normal(size=3000), -9, 9)
    gain = 3 * risk + treated * (2 + risk) + generator.normal(size=3000)
    table = pd.DataFrame(
        {"risk": risk, "gain": gain, "well": gain > 0, "ward": ward, "weight": 1.0}
    )
    table["arm"] = np.where(treated, "drug", "control")
    schema = cp.Schema([*SCHEMA, cp.Column.categorical("ward", ["b", "alone"])])
    # As the Bayesian bootstrap has them, which is as far as another sample would go.
    redrawn = generator.exponential(size=(3000, 40))
    given = "risk" if len(set(ward)) == 1 else "risk + ward"
    found = cp.Release(table, schema, {}, redrawn).effect("arm", "gain", given)
    assert "next to no chance" in found.note
    return table, found, found.interval()


def test_a_rare_treatment_has_an_effect_as_wide_as_its_rows_tell():
    treated = np.arange(3000) % 100 == 0
    _, found, (low, high) = treated_by(np.full(3000, "b"), treated)
    assert low < 2 < high and "hardly any" not in found.note
    # Thirty rows, whose gains have a deviation of one around their regression.
    assert 0.7 < (high - low) / (2 * 1.96 / np.sqrt(30)) < 2


def test_where_everybody_is_treated_an_effect_is_as_wide_as_the_prior():
    ward = np.where(np.arange(3000) % 5 < 3, "alone", "b")
    treated = (ward == "alone") | (np.arange(3000) % 2 == 0)
    table, found, (low, high) = treated_by(ward, treated)
    assert low < 2 < high and "hardly any rows tell 'ward[T.alone]'" in found.note
    # Six rows in ten of 2.5 deviations of a gain, which nothing else makes wider.
    prior = 2 * 1.96 * 0.6 * 2.5 * table["gain"].std()
    assert 0.8 < (high - low) / prior < 1.3


@pytest.mark.parametrize("outcome", ["gain", "well"])
def test_a_category_without_rows_in_one_arm_is_held_and_told(outcome):
    schema = cp.Schema([*SCHEMA, cp.Column.categorical("ward", ["a", "b", "closed"])])
    table = trial(3000, 6)
    generator = np.random.default_rng(6)
    ward = generator.choice(np.array(["a", "b"], dtype=object), 3000)
    ward[np.flatnonzero(table["arm"] == "drug")[:20]] = "closed"
    table = table.assign(ward=ward, weight=1.0)
    table.loc[ward == "closed", "well"] = False
    redrawn = generator.gamma(4.0, 0.25, size=(3000, 12))
    found = cp.Release(table, schema, {}, redrawn).effect("arm", outcome, "risk + ward")
    assert "hardly any rows tell 'ward[T.closed]'" in found.note
    others = np.flatnonzero(ward != "closed")
    plain = cp.Release(
        table.iloc[others].reset_index(drop=True), schema, {}, redrawn[others]
    ).effect("arm", outcome, "risk + ward")
    assert found.value == pytest.approx(plain.value, abs=plain.standard_error)
    # Twenty of 3,000 rows whose outcome nobody knows: 1% of 2.5 deviations of the outcome.
    assert plain.standard_error < found.standard_error < 3 * plain.standard_error


def test_an_outcome_that_is_the_same_in_one_arm_has_an_effect():
    table = trial(2000, 7)
    table["well"] &= table["arm"] == "drug"
    redrawn = np.random.default_rng(0).gamma(4.0, 0.25, size=(2000, 12))
    found = release(table, redrawn).effect("arm", "well", "risk")
    assert 0.4 < found.value < 0.9 and found.standard_error > 0


def test_one_arm_alone_is_refused():
    with pytest.raises(AnalysisError, match="one arm"):
        release(trial(50, 7).assign(arm="drug")).effect("arm", "gain", "risk")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("gain", "well", "risk"), "true or false"),
        (("arm", "arm", "risk"), "different"),
        (("arm", "gain", "shoe"), "no column 'shoe'"),
        (("shoe", "gain", "risk"), "no column 'shoe'"),
        (("well", "arm", "risk"), "has no mean"),
        (("arm", "gain", "risk + arm"), "neither its treatment"),
        (("arm", "gain", ""), "expected"),
    ],
)
def test_what_is_no_effect_is_refused(words, why):
    with pytest.raises(MethodError) as refused:
        release(trial(50, 8)).effect(*words)
    assert why in str(refused.value)


def measured(counts, **card):
    table = trial(600, 3)
    redrawn = np.random.default_rng(0).gamma(4.0, 0.25, size=(len(table), 12))
    stated = {"measured": {"counts": counts, "cells": [], "products": []}, **card}
    return cp.Release(table.assign(weight=1.0), SCHEMA, stated, replicates=redrawn)


def test_an_effect_is_measured_as_its_relations_are():
    pairs = [["arm", "risk"], ["risk", "gain"], ["arm", "gain"], ["well"]]
    found = measured(pairs).effect("arm", "gain", "risk")
    assert (found.support, found.interval() is not None) == ("measured", True)
    unknown = release(trial(600, 3)).effect("arm", "gain", "risk")
    assert unknown.support == "unknown"


def test_an_effect_that_nothing_measured_has_no_interval():
    apart = [["arm", "risk"], ["risk", "gain"], ["well"]]
    found = measured(apart).effect("arm", "gain", "risk")
    assert (found.support, found.interval()) == ("never", None)
    assert "never measured" in found.note
    asked = [{"question": "effect(arm) on gain given risk", "measured": True}]
    found = measured(apart, questions=asked).effect("arm", "gain", "risk")
    assert (found.support, found.interval() is not None) == ("measured", True)
    # Another effect was not asked for, and weights that are set aside match nothing.
    assert measured(apart, questions=asked).effect("arm", "well", "risk").support == "never"
    uniform = measured(apart, questions=asked, weights={"method": "uniform"})
    assert uniform.effect("arm", "gain", "risk").support == "never"
