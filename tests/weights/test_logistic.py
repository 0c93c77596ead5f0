"""Logistic weights: unbiased over the noise, charged truthfully, one where the tables are equal."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from counterpoise.errors import BudgetError, MethodError
from counterpoise.schema import Column, Schema
from counterpoise.vault import Budget, Vault
from counterpoise.vault.noise import Noise
from counterpoise.weights import Logistic, LogisticModel
from counterpoise.weights.debias import redraw
from counterpoise.weights.features import Linear, Squares
from counterpoise.weights.replicates import Redraws, replicate_weights
from tests.audits.audit import audited_vault

SCHEMA = Schema([Column.continuous("x", 0, 1), Column.categorical("group", ["a", "b"])])
BUDGET = Budget(1.0, 1e-6)


def redraws(base: np.ndarray, weights: np.ndarray, seed: int) -> Redraws:
    """Redraws in which the private rows stay as they were."""
    same = np.repeat(weights[:, None], base.shape[1], axis=1)
    return Redraws(base, same, weights, np.ones(len(base)), np.random.default_rng(seed))


def made(rows: int, tilt: float = 0.0, seed: int = 0) -> pd.DataFrame:
    """x has a density proportional to exp(tilt x); the groups are even."""
    generator = np.random.default_rng(seed)
    uniform = generator.uniform(size=rows)
    x = uniform if tilt == 0 else np.log1p(uniform * math.expm1(tilt)) / tilt
    return pd.DataFrame({"x": x, "group": generator.choice(["a", "b"], rows)})


def fitted(private, synthetic, method=None, budget=BUDGET, seed: int | None = 1) -> LogisticModel:
    with Vault(private, SCHEMA, budget, seed=seed) as vault:
        return (method or Logistic()).fit(vault, synthetic, vault.budget.whole)


PRIVATE, SYNTHETIC = made(3000, tilt=1.5, seed=1), made(3000, seed=2)


def test_the_weights_are_the_ratio_of_the_densities():
    """The log-ratio is linear here, so a rich budget finds it, with its constant."""
    private, synthetic = made(30_000, tilt=1.0, seed=3), made(60_000, seed=4)
    model = fitted(private, synthetic, budget=Budget(100.0, 1e-6))
    log_ratio = synthetic["x"] - math.log(math.expm1(1.0))
    # The sampling error of a coefficient of 30,000 rows is about 0.02.
    assert model.weigh(synthetic).log_weights == pytest.approx(log_ratio, abs=0.1)


@pytest.mark.parametrize("copies", [1, 4])
@pytest.mark.parametrize("noise", ["gaussian", "l2-laplace", "laplace"])
def test_equal_tables_have_weights_of_one(noise, copies):
    synthetic = pd.concat([PRIVATE] * copies)
    model = fitted(PRIVATE, synthetic, Logistic(noise), Budget(1e4, 1e-6, "replace"))
    assert np.exp(model.weigh(synthetic).log_weights) == pytest.approx(1, abs=0.05)


def test_the_order_of_private_and_synthetic_rows_does_not_matter():
    model = fitted(PRIVATE, SYNTHETIC)
    other = fitted(PRIVATE.iloc[::-1], SYNTHETIC.sample(frac=1, random_state=1))
    assert other.coefficients == pytest.approx(model.coefficients, abs=1e-5)


def noised_models(law: str, count: int, debias: bool) -> tuple[LogisticModel, list[LogisticModel]]:
    """A fit without noise, and `count` of it as the noise of a law would have made them."""
    exact = fitted(made(400, 1.5, 1), SYNTHETIC[:300], Logistic(None))
    scale = {"gaussian": 0.5, "laplace": 0.3, "l2-laplace": 0.2}[law]
    noise = redraw(law, scale, len(exact.coefficients), count, np.random.default_rng(7))
    noisy = replace(exact, law=law, scale=scale, debias=debias)
    return exact, [replace(noisy, coefficients=exact.coefficients + z) for z in noise.T]


def importance_estimates(models: list[LogisticModel], rows: pd.DataFrame) -> np.ndarray:
    """I_N(h | w) for h(x) = x: the mean of w(x) x, not self-normalised."""
    coded = SCHEMA.encode(rows)
    return np.array(
        [float(np.mean(np.exp(m.weigh(coded).log_weights) * coded.units[:, 0])) for m in models]
    )


LAWS = pytest.mark.parametrize("law", ["gaussian", "laplace", "l2-laplace"])


@LAWS
def test_noised_weights_are_biased_and_debiased_ones_are_not_and_vary_less(law):
    """Propositions 1 and 2, over 2000 seeded draws; the bias is more than ten standard errors."""
    rows = SYNTHETIC[:300]
    exact, noised = noised_models(law, 2000, debias=False)
    debiased = [replace(model, debias=True) for model in noised]
    [truth] = importance_estimates([exact], rows)
    biased, unbiased = (importance_estimates(models, rows) for models in (noised, debiased))
    error = unbiased.std() / math.sqrt(2000)
    assert abs(unbiased.mean() - truth) < 4 * error
    assert biased.mean() - truth > 4 * biased.std() / math.sqrt(2000)
    assert unbiased.var() < biased.var()


@LAWS
def test_debiased_weights_average_to_the_fitted_ratio(law):
    """Through the vault: 300 fits with seeded noise, and a bias that would show without care."""
    private, synthetic = made(200, 1.5, 1), made(100, seed=2)
    method = Logistic(law, regularisation=0.2)
    budget = Budget({"gaussian": 1.0, "laplace": 3.0, "l2-laplace": 1.8}[law], 1e-6, "replace")
    exact = fitted(private, synthetic, replace(method, noise=None), budget).weigh(synthetic)
    vault = audited_vault(private, SCHEMA, budget, Noise(seed=5))
    models = [method.fit(vault, synthetic, budget.whole) for _ in range(300)]
    assert {model.law for model in models} == {law}

    def ratios(models):
        logs = np.array([model.weigh(synthetic).log_weights for model in models])
        return np.exp(logs - exact.log_weights)

    debiased = ratios(models)
    error = debiased.std(axis=0) / math.sqrt(300)
    assert (np.abs(debiased.mean(axis=0) - 1) < 4 * error).all()
    noised = ratios([replace(model, debias=False) for model in models])
    assert (noised.mean(axis=0) - 1 > 4 * error).any()


def test_replicates_vary_around_the_weights_as_the_noise_does():
    model = fitted(PRIVATE, SYNTHETIC, budget=Budget(2.0, 1e-6))
    weights = model.weigh(SYNTHETIC).normalised
    found = model.replicate(SYNTHETIC, redraws(np.ones((3000, 400)), weights, 3))
    assert found.mean(axis=0) == pytest.approx(np.ones(400))
    means = (found * SYNTHETIC["x"].to_numpy()[:, None]).mean(axis=0)
    # What the law of the noise says of the weighted mean of x, by the delta method.
    matrix = model.features(SCHEMA.encode(SYNTHETIC))
    estimate = np.average(SYNTHETIC["x"], weights=weights)
    slope = np.mean(weights[:, None] * (SYNTHETIC["x"].to_numpy() - estimate)[:, None] * matrix, 0)
    expected = model.scale * float(np.linalg.norm(slope))
    assert math.sqrt(np.mean((means - estimate) ** 2)) == pytest.approx(expected, rel=0.15)


def test_replicates_vary_as_fits_to_fresh_tables_do():
    """Without noise: 80 pairs of tables drawn anew, against the replicates of one pair."""

    def estimate(weights, synthetic):
        return np.average(synthetic["x"], weights=weights)

    method = Logistic(None, regularisation=0.01)
    fresh = []
    for seed in range(80):
        private, synthetic = made(500, 1.5, seed), made(1000, seed=1000 + seed)
        weights = fitted(private, synthetic, method).weigh(synthetic).normalised
        fresh.append(estimate(weights, synthetic))
    model = fitted(private, synthetic, method)
    found = replicate_weights(model, synthetic, 300, population=500, seed=1)
    spread = np.std([estimate(column, synthetic) for column in found.T])
    # The deviation of 80 numbers is known to within 8%.
    assert spread == pytest.approx(np.std(fresh), rel=0.25)


def test_replicates_answer_to_the_base_weights_as_a_fit_does():
    """More synthetic rows at large x are counted more often, and weigh less each."""
    method, budget = Logistic(None, regularisation=0.01), Budget(1.0, 1e-6, "replace")

    def fitted_to(times):
        repeated = SYNTHETIC.loc[np.repeat(np.arange(3000), times)]
        return fitted(PRIVATE, repeated, method, budget)

    times = 9 + np.rint(2 * SYNTHETIC["x"]).astype(int).to_numpy()
    model, again = fitted_to(10), fitted_to(times)
    weights = model.weigh(SYNTHETIC).normalised
    base = times[:, None] / 10
    found = model.replicate(SYNTHETIC, redraws(base, weights, 1))[:, 0]
    expected = np.exp(again.weigh(SYNTHETIC).log_weights) * times
    assert found == pytest.approx(expected / expected.mean(), rel=0.01)
    assert np.average(SYNTHETIC["x"], weights=weights * times) > 0.01 + np.average(
        SYNTHETIC["x"], weights=found
    )


@LAWS
def test_a_saved_model_weighs_as_before(law, tmp_path):
    method = Logistic(law, features=Linear() + Squares())
    model = fitted(PRIVATE, SYNTHETIC, method)
    np.savez(tmp_path / "model.npz", **model.to_arrays())
    with np.load(tmp_path / "model.npz", allow_pickle=False) as arrays:
        again = LogisticModel.from_arrays(SCHEMA, arrays)
    assert (
        again.weigh(SYNTHETIC).log_weights.tolist() == model.weigh(SYNTHETIC).log_weights.tolist()
    )
    assert again.private is model.private is False
    assert again.law == model.law


def test_the_number_of_rows_is_paid_for_only_where_it_is_private():
    for neighbours, queries in [("add-remove", 2), ("replace", 1)]:
        with Vault(PRIVATE, SCHEMA, Budget(1.0, 1e-6, neighbours), seed=1) as vault:
            model = Logistic().fit(vault, SYNTHETIC, vault.budget.whole)
            assert len(vault.ledger.spends) == queries
            assert 0.99 < vault.ledger.epsilon_spent <= 1
        assert (model.population == 3000) is (neighbours == "replace")
        assert abs(model.population - 3000) < 300


@pytest.mark.parametrize("noise", ["l2-laplace", "laplace"])
def test_a_pure_budget_is_spent_on_pure_noise(noise):
    with Vault(PRIVATE, SCHEMA, Budget(1.0), seed=1) as vault:
        Logistic(noise).fit(vault, SYNTHETIC, vault.budget.whole)
        assert vault.ledger.epsilon_spent == pytest.approx(1.0)


def test_gaussian_noise_under_a_pure_budget_is_refused_for_free():
    with Vault(PRIVATE, SCHEMA, Budget(1.0), seed=1) as vault:
        with pytest.raises(BudgetError, match="l2-laplace"):
            Logistic().fit(vault, SYNTHETIC, vault.budget.whole)
        assert vault.ledger.spends == ()


def test_a_fit_without_noise_needs_a_vault_that_is_not_private():
    with Vault(PRIVATE, SCHEMA, BUDGET) as vault:
        with pytest.raises(MethodError, match="seed"):
            Logistic(noise=None).fit(vault, SYNTHETIC, vault.budget.whole)
        assert vault.ledger.spends == ()
    assert fitted(PRIVATE, SYNTHETIC, Logistic(noise=None)).private is False


def test_noise_without_a_moment_gives_way_to_gaussian_noise_or_to_an_error():
    """So little regularisation that weights would have no mean."""
    method = Logistic("laplace", regularisation=0.0005)
    assert fitted(PRIVATE, SYNTHETIC, method).law == "gaussian"
    assert fitted(PRIVATE, SYNTHETIC, replace(method, debias=False)).law == "laplace"
    with pytest.raises(MethodError, match="heavy-tailed"):
        fitted(PRIVATE, SYNTHETIC, method, Budget(1.0))


def test_the_published_scale_is_charged_what_it_costs():
    """Scale D2 / epsilon on p coefficients costs sqrt(p) epsilon; here p = 3."""
    method = Logistic("laplace", regularisation=0.1, published_epsilon=0.5)
    with Vault(PRIVATE, SCHEMA, Budget(1.0, 0.0, "replace"), seed=1) as vault:
        model = method.fit(vault, SYNTHETIC, vault.budget.whole)
        assert vault.ledger.epsilon_spent == pytest.approx(math.sqrt(3) * 0.5)
    # b = 2 sqrt(d + 1) / (n lambda epsilon)
    assert model.scale == pytest.approx(2 * math.sqrt(3) / (3000 * 0.1 * 0.5), rel=1e-4)
    with Vault(PRIVATE, SCHEMA, Budget(1.0, 0.0, "replace"), seed=1) as vault:
        with pytest.raises(BudgetError, match="larger share"):
            replace(method, published_epsilon=0.6).fit(vault, SYNTHETIC, vault.budget.whole)
        assert vault.ledger.spends == ()


def test_regularisation_falls_with_the_number_of_rows_and_the_share():
    def noise(rows, epsilon):
        private = made(rows, 1.5, 1)
        return fitted(private, SYNTHETIC, budget=Budget(epsilon, 1e-6, "replace")).scale

    assert noise(4000, 1.0) < noise(1000, 1.0) < noise(1000, 0.3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"noise": "uniform"}, "noise"),
        ({"regularisation": 0.0}, "regularisation"),
        ({"published_epsilon": 1.0}, "laplace"),
        ({"noise": "laplace", "published_epsilon": -1.0}, "published_epsilon"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    with pytest.raises(MethodError, match=message):
        Logistic(**options)


def test_a_share_and_a_synthetic_row_are_needed():
    with Vault(PRIVATE, SCHEMA, BUDGET, seed=1) as vault:
        with pytest.raises(BudgetError, match="share"):
            Logistic().fit(vault, SYNTHETIC, None)
        with pytest.raises(MethodError, match="at least one synthetic row"):
            Logistic().fit(vault, SYNTHETIC[:0], vault.budget.whole)
        assert vault.ledger.spends == ()
