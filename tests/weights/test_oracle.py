"""A known density ratio: exact, free, and no data to save."""

import json
import math
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest

from counterpoise.errors import MethodError
from counterpoise.vault import Budget, Vault
from counterpoise.weights import Oracle
from tests.weights.test_logistic import SCHEMA, made, redraws

SYNTHETIC = made(20_000, seed=1)


def tilt(table: pd.DataFrame) -> pd.Series:
    """The log-ratio of the density exp(2 x) / const to the uniform one."""
    return 2 * table["x"] - math.log(math.expm1(2.0) / 2)


def test_a_known_ratio_gives_the_private_mean():
    with Vault(made(10, 2.0), SCHEMA, Budget(1.0)) as vault:
        model = Oracle(tilt).fit(vault, SYNTHETIC)
        assert vault.ledger.spends == ()
    weights = model.weigh(SYNTHETIC)
    # E x = 1 / (1 - exp(-2)) - 1/2, and the error of 20,000 weighted rows is about 0.003.
    mean = 1 / (1 - math.exp(-2)) - 1 / 2
    assert np.average(SYNTHETIC["x"], weights=weights.normalised) == pytest.approx(mean, abs=0.015)
    assert np.exp(weights.log_weights).mean() == pytest.approx(1, abs=0.02)


def test_replicates_are_the_weights_times_their_base():
    model = Oracle(tilt).fit(None, SYNTHETIC)
    base = np.random.default_rng(0).gamma(1.0, size=(len(SYNTHETIC), 3))
    weights = model.weigh(SYNTHETIC).normalised
    found = model.replicate(SYNTHETIC, redraws(base, weights, 1))
    assert found.mean(axis=0) == pytest.approx(np.ones(3))
    assert found[:, 0] / found[0, 0] == pytest.approx(
        weights * base[:, 0] / (weights * base[:, 0])[0]
    )


def test_its_parameters_can_be_written_on_a_card():
    assert json.dumps(asdict(Oracle(tilt))) == "{}"


def test_a_function_is_not_saved_and_has_to_answer_for_every_row():
    with pytest.raises(MethodError, match="cannot be saved"):
        Oracle(tilt).fit(None, SYNTHETIC).to_arrays()
    with pytest.raises(MethodError, match="one number a row"):
        Oracle(lambda table: 0.0).fit(None, SYNTHETIC).weigh(SYNTHETIC)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (math.nan, "log_ratio: .*NaN or infinite"),
        (math.inf, "log_ratio: .*NaN or infinite"),
        (-math.inf, "log_ratio: .*minus infinity for all"),
        ("much", "log_ratio: expected numbers"),
    ],
)
def test_a_ratio_that_gives_no_weights_is_refused(value, words):
    model = Oracle(lambda table: np.full(len(table), value)).fit(None, SYNTHETIC)
    with pytest.raises(MethodError, match=words):
        model.weigh(SYNTHETIC)


def test_a_row_that_cannot_be_private_has_no_weight():
    model = Oracle(lambda table: np.where(np.arange(len(table)) == 0, -np.inf, 0.0))
    weights = model.fit(None, SYNTHETIC).weigh(SYNTHETIC[:3]).normalised
    assert weights.tolist() == pytest.approx([0.0, 1.5, 1.5])
