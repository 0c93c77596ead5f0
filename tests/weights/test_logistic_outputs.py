"""Log-weights noised directly: for as many rows as the noise allows, and for no others."""

import math

import numpy as np
import pytest

from counterpoise.errors import BudgetError, MethodError
from counterpoise.vault import Budget, Share, Vault, operator_norm
from counterpoise.vault.noise import Noise
from counterpoise.weights import LogisticOutputs, LogisticOutputsModel, Weights
from counterpoise.weights.classification import Classification
from counterpoise.weights.features import Linear
from counterpoise.weights.logistic_outputs import largest_feasible_rows, outputs_noise
from tests.audits.audit import audited_vault
from tests.weights.test_logistic import PRIVATE, SCHEMA, SYNTHETIC, fitted, made, redraws

RICH = Budget(20.0, 1e-6, "replace")


def task(share: Share, budget: Budget = RICH) -> Classification:
    with Vault(PRIVATE, SCHEMA, budget, seed=1) as vault:
        return Classification.of(vault, SYNTHETIC, share, Linear(), "gaussian")


def test_only_the_first_rows_have_weights():
    model = fitted(PRIVATE, SYNTHETIC, LogisticOutputs(rows=40), RICH)
    weights = model.weigh(SYNTHETIC)
    assert np.isfinite(weights.log_weights[:40]).all()
    assert (weights.normalised[40:] == 0).all()
    assert weights.normalised.mean() == pytest.approx(1)


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_the_noise_pays_for_the_operator_norm(law):
    question = task(RICH.whole)
    noise = outputs_noise(question, 0.1, law, 25)
    norm = operator_norm(question.matrix[:25])
    # The vector of log-weights has D2 = operator_norm(F) 2R / (n lambda).
    sensitivity = norm * 2 * math.sqrt(3) / (3000 * 0.1)
    assert noise.sensitivity == pytest.approx(sensitivity, rel=1e-4)
    # It is less than 25 separate releases would cost together.
    assert norm < math.sqrt(25) * question.bound
    if law == "gaussian":
        assert noise.scale == pytest.approx(
            sensitivity / math.sqrt(2 * RICH.whole.amount), rel=1e-4
        )
    else:
        assert noise.scale == pytest.approx(5 * sensitivity / RICH.whole.epsilon, rel=1e-4)


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_the_largest_feasible_number_of_rows_is_the_largest(law):
    question = task(RICH.whole)
    rows = largest_feasible_rows(question, 0.05, law, 0.3)
    assert 1 < rows < 3000
    assert outputs_noise(question, 0.05, law, rows).deviation <= 0.3
    assert outputs_noise(question, 0.05, law, rows + 1).deviation > 0.3


def test_all_rows_are_feasible_with_enough_budget_and_none_with_too_little():
    assert largest_feasible_rows(task(Share(1e6, pure=False)), 0.1, "gaussian", 0.5) == 3000
    with pytest.raises(MethodError, match="most_noise"):
        largest_feasible_rows(task(Share(1e-9, pure=False)), 0.1, "gaussian", 0.5)


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_the_weights_are_unbiased_over_the_noise(law):
    """Corollaries 1 and 2, over 400 fits with seeded noise; noise alone would bias by a tenth."""
    private, synthetic = made(300, 1.5, 1), made(150, seed=2)
    method = LogisticOutputs(law, rows=10, regularisation=0.2)
    vault = audited_vault(private, SCHEMA, RICH, Noise(seed=3))
    share = Share(0.5 if law == "gaussian" else 5.0, pure=False)
    models = [method.fit(vault, synthetic, share) for _ in range(400)]
    found = np.exp([model.weigh(synthetic).log_weights[:10] for model in models])
    quiet = method.fit(vault, synthetic, Share(1e9, pure=False)).weigh(synthetic)
    ratios = found / np.exp(quiet.log_weights[:10])
    error = ratios.std(axis=0) / math.sqrt(400)
    assert (np.abs(ratios.mean(axis=0) - 1) < 4 * error).all()
    noised = np.exp([model.noised for model in models]) / np.exp(quiet.log_weights[:10])
    assert noised.mean() - 1 > 4 * noised.std() / math.sqrt(4000)


def test_it_refuses_to_weigh_other_rows():
    model = fitted(PRIVATE, SYNTHETIC, LogisticOutputs(rows=5), RICH)
    for other in (made(3000, seed=9), SYNTHETIC[:100], SYNTHETIC[::-1]):
        with pytest.raises(MethodError, match="no other rows"):
            model.weigh(other)
    assert len(model.weigh(SYNTHETIC[:0])) == 0


def test_replicates_vary_as_the_noise_does():
    model = fitted(PRIVATE, SYNTHETIC[:30], LogisticOutputs(rows=30), RICH)
    base = np.ones((30, 3000))
    found = model.replicate(SYNTHETIC[:30], redraws(base, np.ones(30), 1))
    assert found.mean(axis=0) == pytest.approx(np.ones(3000))
    logs = np.log(found)
    difference = logs[0] - logs[1]
    assert difference.std() == pytest.approx(math.sqrt(2) * model.scale, rel=0.05)
    weights: Weights = model.weigh(SYNTHETIC[:30])
    expected = weights.log_weights[0] - weights.log_weights[1]
    assert difference.mean() == pytest.approx(expected, abs=5 * model.scale / math.sqrt(1500))


def test_a_saved_model_weighs_as_before(tmp_path):
    model = fitted(PRIVATE, SYNTHETIC, LogisticOutputs("laplace", rows=5), RICH)
    np.savez(tmp_path / "model.npz", **model.to_arrays())
    with np.load(tmp_path / "model.npz", allow_pickle=False) as arrays:
        again = LogisticOutputsModel.from_arrays(SCHEMA, arrays)
    assert (
        again.weigh(SYNTHETIC).log_weights.tolist() == model.weigh(SYNTHETIC).log_weights.tolist()
    )


def test_what_cannot_work_is_refused():
    for options in ({"noise": "l2-laplace"}, {"rows": 0}, {"rows": 2.5}, {"most_noise": -1.0}):
        with pytest.raises(MethodError, match=next(iter(options))):
            LogisticOutputs(**options)
    with Vault(PRIVATE, SCHEMA, RICH, seed=1) as vault:
        with pytest.raises(MethodError, match="fewer than 9999"):
            LogisticOutputs(rows=9999).fit(vault, SYNTHETIC, vault.budget.whole)
        assert not vault.ledger.spends
    with pytest.raises(BudgetError, match="delta > 0"):
        fitted(PRIVATE, SYNTHETIC, LogisticOutputs(), Budget(1.0))
    # Laplace noise of scale one or more has no unbiased shift.
    with pytest.raises(MethodError, match="heavy-tailed"):
        fitted(PRIVATE, SYNTHETIC, LogisticOutputs("laplace", rows=500), Budget(1.0))
