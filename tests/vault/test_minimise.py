"""The vault's minimiser: the right answer, the right charge, and no look that is not paid for."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from counterpoise.errors import BudgetError, VaultError
from counterpoise.schema import Column, Schema
from counterpoise.vault import Budget, Share, Vault, operator_norm, perturbation_for
from counterpoise.vault.events import GaussianDpEvent, PureDpEvent
from counterpoise.vault.newton import newton
from counterpoise.vault.noise import Noise
from tests.audits.audit import audited_vault

SCHEMA = Schema([Column.continuous("x", 0, 1), Column.continuous("y", 0, 1)])
BUDGET = Budget(1.0, 1e-6)
SHARE = Share(0.01, pure=False)
BOUND = math.sqrt(3)


class Affine:
    names = ("1", "x", "y")

    def __call__(self, rows):
        return np.column_stack([np.ones(len(rows)), rows.units])


def made(rows: int, power: float, seed: int) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    return pd.DataFrame({name: generator.uniform(size=rows) ** power for name in "xy"})


PRIVATE, PUBLIC = made(400, 0.5, 1), made(600, 1.0, 2)
SYNTHETIC = SCHEMA.encode(PUBLIC)


def ask(vault, share=SHARE, **options):
    options = {"rows": 400, "regularisation": 0.05} | options
    return vault.minimise(Affine(), BOUND, SYNTHETIC, share, **options)


def exact(vault, **options):
    return ask(vault, noise="none", **options).values


@pytest.fixture
def vault():
    with Vault(PRIVATE, SCHEMA, BUDGET, seed=3) as opened:
        yield opened


def test_the_minimiser_is_that_of_regularised_logistic_regression(vault):
    rows = np.concatenate([Affine()(SCHEMA.encode(PRIVATE)), Affine()(SYNTHETIC)])
    labels = np.repeat([1, 0], [400, 600])
    # scikit-learn minimises C sum(loss) + norm(b)^2 / 2, so C = 1 / (m lambda).
    other = LogisticRegression(C=1 / (400 * 0.05), fit_intercept=False, tol=1e-12, max_iter=10_000)
    assert exact(vault) == pytest.approx(other.fit(rows, labels).coef_[0], abs=1e-6)


def test_the_minimiser_is_pulled_towards_the_centre(vault):
    centre = np.array([0.3, -2.0, 5.0])
    assert exact(vault, centre=centre, regularisation=1e6) == pytest.approx(centre, abs=1e-4)
    assert exact(vault, regularisation=1e6) == pytest.approx(np.zeros(3), abs=1e-4)


def test_outputs_are_a_linear_map_of_the_minimiser(vault):
    matrix = np.array([[1.0, 2.0, 3.0], [0.0, 0.0, 1.0], [1.0, 1.0, 1.0], [5.0, 0.0, 0.0]])
    assert exact(vault, outputs=matrix) == pytest.approx(matrix @ exact(vault), abs=1e-12)


def test_a_table_out_of_core_or_in_other_order_has_the_same_minimiser(vault, tmp_path, monkeypatch):
    # Many small batches: the rows are read anew in each step.
    monkeypatch.setattr("counterpoise.vault.minimise._BATCH_CELLS", 300)
    PRIVATE.iloc[::-1].to_parquet(tmp_path / "rows.parquet")
    with Vault(tmp_path / "rows.parquet", SCHEMA, BUDGET, storage="duckdb", seed=1) as other:
        assert exact(other) == pytest.approx(exact(vault), abs=1e-6)


def test_rows_are_clipped_to_the_bound(vault):
    class Wild(Affine):
        def __call__(self, rows):
            values = super().__call__(rows)
            values[0] = [1e300, np.nan, -np.inf]
            return 1e6 * values

    noised = vault.minimise(
        Wild(), BOUND, SYNTHETIC, SHARE, rows=400, regularisation=0.05, noise="none"
    )
    assert np.isfinite(noised.values).all()
    assert np.linalg.norm(noised.values) <= 1000 * BOUND / (400 * 0.05)


def test_an_empty_table_has_a_minimiser():
    with Vault(PRIVATE.iloc[:0], SCHEMA, BUDGET, seed=1) as vault:
        assert exact(vault)[0] < 0


@pytest.mark.parametrize(
    ("neighbours", "rows_a_person", "changed"),
    [("add-remove", 1, 1), ("replace", 1, 2), ("add-remove", 3, 3), ("replace", 3, 6)],
)
def test_the_sensitivity_is_that_of_a_strongly_convex_objective(neighbours, rows_a_person, changed):
    budget = Budget(1.0, 1e-6, neighbours, rows_a_person)
    with Vault(PRIVATE, SCHEMA, budget, seed=1) as vault:
        found = ask(vault)
    # D2 = R / (m lambda), and a little for inexactness and rounding
    assert found.sensitivity == pytest.approx(changed * BOUND / (400 * 0.05), rel=1e-4)
    assert found.sensitivity > changed * BOUND / (400 * 0.05) * (1 + 1e-6)


def test_outputs_are_as_sensitive_as_the_operator_norm_says(vault):
    matrix = np.random.default_rng(0).normal(size=(20, 3))
    norm = np.linalg.norm(matrix, 2)
    assert operator_norm(matrix) == pytest.approx(norm) == operator_norm(matrix.T)
    found = ask(vault, outputs=matrix)
    assert found.sensitivity == pytest.approx(norm * BOUND / (400 * 0.05), rel=1e-4)
    assert len(found.values) == 20


def test_neighbours_never_differ_by_more_than_the_sensitivity():
    """Random neighbours and the hardest rows there are, under both relations."""
    generator = np.random.default_rng(5)
    most = {"add": 0.0, "replace": 0.0}
    for _ in range(15):
        rows = pd.DataFrame(
            generator.integers(0, 2, size=(12, 2)).astype(float), columns=["x", "y"]
        )
        found = []
        for table in (rows.iloc[:-2], rows.iloc[:-1], rows.drop(index=10)):
            with Vault(table, SCHEMA, BUDGET, seed=1) as vault:
                found.append(exact(vault, rows=10, regularisation=0.02))
        most["add"] = max(most["add"], np.linalg.norm(found[1] - found[0]))
        most["replace"] = max(most["replace"], np.linalg.norm(found[2] - found[1]))
    row = BOUND / (10 * 0.02)
    assert 0 < most["add"] <= row
    assert 0 < most["replace"] <= 2 * row


@pytest.mark.parametrize("law", ["gaussian", "l2-laplace", "laplace"])
def test_the_whole_share_is_charged_whatever_the_noise(vault, law):
    ask(vault, noise=law)
    [spend] = vault.ledger.spends
    if law == "gaussian":
        assert isinstance(spend.event, GaussianDpEvent)
        assert 1 / (2 * spend.event.noise_multiplier**2) == pytest.approx(0.01)
    else:
        # A pure epsilon is charged as epsilon^2 / 2 where the budget has a delta.
        assert isinstance(spend.event, PureDpEvent)
        assert spend.event.epsilon**2 / 2 == pytest.approx(0.01)


def test_laplace_noise_pays_for_the_l1_sensitivity(vault):
    wide, narrow = ask(vault, noise="laplace"), ask(vault, noise="l2-laplace")
    assert wide.scale == pytest.approx(math.sqrt(3) * narrow.scale)


@pytest.mark.parametrize("law", ["gaussian", "l2-laplace", "laplace"])
def test_the_noise_has_the_deviation_that_is_stated(law):
    """200 draws of three numbers; seeded, so chance fails it always or never."""
    vault = audited_vault(PRIVATE, SCHEMA, BUDGET, Noise(seed=11))
    vault.ledger.private = False
    answers = [ask(vault, noise=law) for _ in range(200)]
    noise = np.array([answer.values for answer in answers]).ravel() - np.tile(exact(vault), 200)
    stated = perturbation_for(
        BUDGET, SHARE, size=3, bound=BOUND, rows=400, regularisation=0.05, noise=law
    )
    assert answers[0].scale == stated.scale
    assert abs(noise.mean()) < 4.5 * stated.deviation / math.sqrt(600)
    assert noise.var() / stated.deviation**2 == pytest.approx(1, abs=0.3)


def test_gaussian_noise_is_refused_under_a_pure_budget_before_any_look():
    with Vault(PRIVATE, SCHEMA, Budget(1.0), seed=1) as vault:
        vault._open_storage = Untouchable()
        with pytest.raises(BudgetError, match="delta > 0"):
            ask(vault, vault.budget.whole)
        assert vault.ledger.spends == ()
        vault._open_storage = None


class Untouchable:
    """A storage that cannot be read."""

    def require_batches(self, method):
        """Tells what it is able to, without a look."""

    def __getattr__(self, name):
        raise AssertionError("the rows were looked at")


def test_an_overspend_reads_nothing(vault):
    storage, vault._open_storage = vault._open_storage, Untouchable()
    with pytest.raises(BudgetError, match="overspend"):
        ask(vault, Share(10.0, pure=False))
    vault._open_storage = storage


def test_a_scale_is_charged_for_what_it_is_or_refused(vault):
    afforded = ask(vault, noise="laplace").scale
    ask(vault, noise="laplace", scale=2 * afforded)
    assert vault.ledger.spends[-1].event.epsilon == pytest.approx(SHARE.epsilon / 2)
    with pytest.raises(BudgetError, match="larger share"):
        ask(vault, noise="laplace", scale=afforded / 2)
    assert len(vault.ledger.spends) == 2


def test_only_a_vault_that_is_not_private_gives_an_answer_without_noise(vault):
    with (
        Vault(PRIVATE, SCHEMA, BUDGET) as private,
        pytest.raises(VaultError, match="not private"),
    ):
        exact(private)
    assert private.ledger.spends == ()
    answer = ask(vault, noise="none")
    assert not answer.private
    assert "WITHOUT NOISE" in vault.ledger.spends[0].query


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"regularisation": 0.0}, "regularisation"),
        ({"regularisation": 1e-9}, "larger"),
        ({"rows": -1}, "rows"),
        ({"rows": 1e-308, "regularisation": 1e308}, "rows"),
        ({"noise": "uniform"}, "noise"),
        ({"scale": -1.0}, "scale"),
        ({"centre": np.zeros(2)}, "centre"),
        ({"centre": np.full(3, 1e9)}, "centre"),
        ({"outputs": np.zeros((2, 3))}, "outputs"),
        ({"outputs": np.ones((2, 4))}, "outputs"),
    ],
)
def test_what_cannot_work_is_refused_before_it_is_charged(vault, options, message):
    with pytest.raises(VaultError, match=message):
        ask(vault, **options)
    assert vault.ledger.spends == ()


def test_features_of_another_shape_are_refused(vault):
    class Short(Affine):
        names = ("1", "x")

    with pytest.raises(VaultError, match="one vector of 2 a row"):
        vault.minimise(Short(), BOUND, SYNTHETIC, SHARE, rows=400, regularisation=0.05)


@pytest.mark.parametrize("far", [0.0, 30.0, 900.0])
def test_newton_reaches_the_gradient_norm_from_anywhere(far):
    """Nearly separable rows and hardly any regularisation: where a full Newton step diverges."""
    rows = np.array([[1.0, 0.0], [1.0, 0.1], [-1.0, 0.05]])
    steps = []

    def derivatives(point):
        steps.append(point)
        wrong = 1 / (1 + np.exp(np.clip(rows @ point, -700, 700)))
        hessian = (rows * (wrong * (1 - wrong))[:, None]).T @ rows + 1e-3 * np.eye(2)
        return -rows.T @ wrong + 1e-3 * point, hessian

    found = newton(derivatives, np.array([-far, far]), math.sqrt(1.01), 1e-10, 1e-3)
    assert np.linalg.norm(derivatives(found)[0]) <= 1e-10
    # Where d >= 1 a step lowers J by lambda / M^2 (2 log 2 - 1) at least; far fewer are needed.
    assert len(steps) < 2000


@pytest.mark.parametrize("regularisation", [1e6, 1e9, 1e12, 1e30])
def test_a_pull_to_the_centre_of_any_strength_is_solved(vault, regularisation):
    """Far beyond it, lambda times the rounding of the centre exceeds the gradient asked for."""
    centre = np.array([0.3, -2.0, 5.0])
    options = {"regularisation": regularisation, "centre": centre}
    assert exact(vault, **options) == pytest.approx(centre, abs=2 / regularisation)
    noised = ask(vault, **options)
    # Ten deviations, and the pull of all rows; an integer that overflows would be far outside.
    reach = 10 * noised.scale + 2 * BOUND / regularisation
    assert np.abs(noised.values - centre).max() <= reach + 1e-14
    matrix = np.array([[1.0, 2.0, 3.0], [0.0, 0.0, 1.0]])
    outputs = exact(vault, **options, outputs=matrix)
    assert outputs == pytest.approx(matrix @ exact(vault, **options), abs=1e-12)


def test_what_noise_does_to_a_minimiser_does_not_depend_on_the_centre():
    """The noise is on b - c, so that a shifted problem has the shifted answer, noise and all."""
    tables = [pd.DataFrame({"x": [0.5], "y": [0.5]})] * 2
    answers = []
    for centre in (np.zeros(3), np.array([0.0, 64.0, -64.0])):  # f.c is zero at these rows
        with Vault(tables[0], SCHEMA, BUDGET, seed=3) as opened:
            answer = opened.minimise(
                Affine(),
                BOUND,
                SCHEMA.encode(tables[1]),
                SHARE,
                rows=1,
                regularisation=4.0,
                centre=centre,
            )
            answers.append(answer.values - centre)
    assert answers[1] == pytest.approx(answers[0], abs=1e-12)


def test_a_pull_beyond_floating_point_is_refused_before_the_look(vault):
    with pytest.raises(VaultError, match="regularisation"):
        ask(vault, regularisation=1e250)
    assert vault.ledger.spends == ()


def test_a_gradient_below_rounding_ends_the_search():
    def derivatives(point):
        # The gradient of 1e12 (b - 1/3)^2 / 2 is rounded to nothing better than 1e-4.
        return 1e12 * (point - 1 / 3), 1e12 * np.eye(1)

    assert newton(derivatives, np.array([50.0]), 1.0, 0.0, 1e12) == pytest.approx([1 / 3])
    restless = iter(np.tile([1e-9, -1e-9], 1000))

    def rounding(point):
        return np.array([next(restless)]), np.eye(1)

    assert newton(rounding, np.zeros(1), 1.0, 1e-12, 1.0) == pytest.approx([0.0], abs=1e-8)


def two_rows(gap, count):
    """A problem that Newton's method is slow at: two rows nearly alike, of different labels.

    Both are there `count` times, with slope R^2 / (m lambda) = 1000, and far from the centre.
    """
    rows = np.array([[math.sqrt(1 - gap**2), gap], [-math.sqrt(1 - gap**2), gap]])
    centre, convexity = np.array([0.0, -1000.0]), 1e-3
    asked = []

    def derivatives(moved):
        asked.append(moved)
        wrong = expit(-rows @ (centre + moved))
        bend = count * wrong * (1 - wrong)
        gradient = convexity * moved - count * rows.T @ wrong
        return gradient, convexity * np.eye(2) + (rows * bend[:, None]).T @ rows

    return derivatives, convexity, asked


@pytest.mark.parametrize("gap", [1.0, 1e-3, 1e-6])
def test_a_search_that_takes_too_many_steps_ends_at_the_minimum_by_others(gap):
    derivatives, convexity, asked = two_rows(gap, 2.0**30)
    found = newton(derivatives, np.zeros(2), 1.0, 5e-6, convexity)
    assert np.linalg.norm(derivatives(found)[0]) <= 5e-6
    # What comes after a thousand steps in two dimensions: 5 p^2 72 at most.
    assert len(asked) <= 1000 + 2 + 5 * 4 * 72


@pytest.mark.parametrize("size", [1, 2, 5])
def test_ellipsoids_find_what_newton_finds(size, monkeypatch):
    generator = np.random.default_rng(size)
    rows = generator.normal(size=(50, size))

    def derivatives(point):
        wrong = expit(-rows @ point)
        hessian = (rows * (wrong * (1 - wrong))[:, None]).T @ rows + 0.1 * np.eye(size)
        return 0.1 * point - rows.T @ wrong, hessian

    bounds = np.linalg.norm(rows, axis=1).max(), 1e-9, 0.1
    expected = newton(derivatives, np.zeros(size), *bounds)
    monkeypatch.setattr("counterpoise.vault.newton._MOST_STEPS", 0)
    assert newton(derivatives, np.zeros(size), *bounds) == pytest.approx(expected, abs=2e-8)


@pytest.mark.parametrize("size", [1, 2, 4])
def test_ellipsoids_close_in_on_a_point_that_hardly_any_cut_keeps(size, monkeypatch):
    """As far away as it can be, and just within each half that is left."""
    monkeypatch.setattr("counterpoise.vault.newton._MOST_STEPS", 0)
    generator = np.random.default_rng(size)
    wanted = np.eye(size)[0]

    def derivatives(centre):
        away = centre - wanted
        if np.linalg.norm(away) < 1e-6:
            return np.zeros(size), None
        other = generator.normal(size=size)
        across = other - away * (other @ away) / (away @ away)
        pull = away / np.linalg.norm(away) * (1e-3 if size > 1 else 1.0) + across
        return pull / np.linalg.norm(pull), None

    found = newton(derivatives, np.zeros(size), 1.0, 1e-9, 1.0)
    assert np.linalg.norm(found - wanted) < 1e-6


@pytest.mark.parametrize("value", [math.nan, 1e300])
def test_a_search_ends_whatever_it_sees(value):
    asked = []

    def derivatives(point):
        asked.append(point)
        return np.full(2, value), np.eye(2)

    with np.errstate(all="ignore"):
        newton(derivatives, np.zeros(2), 1.0, 1e-9, 1.0)
    assert len(asked) == 1000 + 1 + 5 * 4 * 72
