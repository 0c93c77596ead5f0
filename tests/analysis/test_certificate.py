"""Certificates: they hold, they are not idle, and they say when they are."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import counterpoise as cp
from counterpoise.analysis import certificate_moments
from counterpoise.analysis.certificate import certificate
from counterpoise.analysis.certificate_chains import (
    lower_bound,
    published_bound,
    published_distance,
    sharper_bound,
)
from counterpoise.analysis.certificate_coding import CodedFeatures
from counterpoise.analysis.certificate_growth import Landscape, largest_excess
from counterpoise.analysis.certificate_moments import MomentBounds, bound_moments
from counterpoise.analysis.constrained_fit import constrained_fit
from counterpoise.analysis.margin_losses import LOSSES
from counterpoise.analysis.polynomials import minimax
from counterpoise.errors import AnalysisError
from counterpoise.evaluation import exact_certificate, excess_risk, marginal_distance
from counterpoise.synthesizers.graphical import Measurement

SCHEMA = cp.Schema(
    [
        cp.Column.integer("age", 0, 4),
        cp.Column.categorical("ward", ["a", "b", "c"]),
        cp.Column.boolean("ill"),
    ]
)


def made_table(rows, seed=0):
    generator = np.random.default_rng(seed)
    age = generator.integers(0, 5, rows)
    ward = generator.choice(["a", "b", "c"], rows, p=[0.5, 0.3, 0.2])
    chance = 1 / (1 + np.exp(2.0 - age - 0.5 * (ward == "b")))
    return pd.DataFrame({"age": age, "ward": ward, "ill": generator.uniform(size=rows) < chance})


def made_release(table, seed=1, synthesizer="marginals", epsilon=1.0, **more):
    settings = {"delta": 1e-6, "rows": 2000, "weights": "uniform", "replicates": 0} | more
    return cp.release(
        table, SCHEMA, epsilon, synthesizer=synthesizer, seed=seed, progress=False, **settings
    )


@pytest.fixture(scope="module")
def table():
    return made_table(8000)


@pytest.fixture(scope="module")
def release(table):
    return made_release(table)


def test_certificates_hold_in_every_run_and_are_within_a_factor_of_the_truth():
    # Failure 0.05 a run, and the bounds are far from tight: 12 should see none.
    ratios = []
    for seed in range(4):
        table = made_table(6000, seed)
        release = made_release(table, seed, "marginals" if seed % 3 else "aim")
        for loss in ("logistic", "squared", "hinge"):
            found = release.certificate("ill", loss, norm=0.4)
            excess = excess_risk(release, table, "ill", loss, norm=0.4)
            exact = exact_certificate(release, table, "ill", loss, norm=0.4)
            assert -1e-6 <= excess <= exact.bound + 1e-9
            assert excess <= found.bound
            if seed % 3 and loss == "logistic":
                ratios.append(exact.bound / found.bound)
                # All pairs of 6,000 rows at epsilon 1 are enough to say something.
                assert found.bound < found.gain
    # The noisy one is no more than so many times what the true moments give.
    assert 1 < 1 / np.median(ratios) < 60


def test_bounds_on_moments_hold_together_at_the_stated_rate_and_not_at_half_their_width():
    # 400 draws of noise on all pairs; failure 0.5 leaves Chernoff little to hide behind.
    generator = np.random.default_rng(0)
    coding = CodedFeatures.of(SCHEMA, "ill", None)
    codes = SCHEMA.encode(made_table(3000)).codes
    rows, labels = coding(codes)
    both = np.column_stack([rows, labels])
    truth = both.T @ both / len(both)
    pairs = [("age", "ward"), ("age", "ill"), ("ward", "ill")]
    counts = {pair: exact_counts(codes, pair) for pair in pairs}
    held, held_at_half, whole_held = 0, 0, 0
    for _ in range(400):
        tables = [
            Measurement(pair, count + generator.normal(0, 20.0, count.shape).round(), 20.0)
            for pair, count in counts.items()
        ]
        alone, together = bound_moments(
            coding, truth, tables, law="gaussian", failure=0.5, guess=3000.0, all_pairs=20.0
        )
        # The release is the private table here, and n is N but for a factor.
        wanted = truth * (3000.0 / alone.guess - 1)
        middle, half = alone.middle, alone.half
        held += bool((np.abs(wanted - middle) <= half + 1e-12).all())
        held_at_half += bool((np.abs(wanted - middle) <= half / 2 + 1e-12).all())
        off = np.abs(wanted - together.middle) - together.half
        size = len(rows[0])
        first = np.linalg.norm(np.maximum(off[:size, size], 0))
        second = np.linalg.norm(np.maximum(off[:size, :size], 0))
        whole_held += first <= together.whole[0] and second <= together.whole[1]
    assert held >= 380
    assert whole_held >= 380
    assert held_at_half < 320


def test_single_columns_bound_their_products_by_the_deviations():
    coding = CodedFeatures.of(SCHEMA, "ill", ["age"])
    codes = SCHEMA.encode(made_table(100_000)).codes
    rows, labels = coding(codes)
    both = np.column_stack([rows, labels])
    moments = both.T @ both / len(both)
    tables = [Measurement((name,), exact_counts(codes, (name,)), 1e-3) for name in ("age", "ill")]
    [found] = bound_moments(
        coding, moments, tables, law="gaussian", failure=0.05, guess=1e5, rows=1e5
    )
    # E_r[xy] is within E[x] E[y] +- sd(x) sd(y), and the release has its own
    x, y = both[:, 1], both[:, 2]
    spread = x.std() * y.std()
    assert found.high[1, 2] + moments[1, 2] == pytest.approx(x.mean() * y.mean() + spread, abs=1e-4)
    assert found.low[1, 2] + moments[1, 2] == pytest.approx(x.mean() * y.mean() - spread, abs=1e-4)
    assert not found.is_measured[1, 2] and found.is_measured[0, 1]


def exact_counts(codes, pair):
    places = [SCHEMA.index(name) for name in pair]
    shape = SCHEMA.shape(pair)
    flat = np.ravel_multi_index(codes[:, places].T, shape)
    return np.bincount(flat, minlength=int(np.prod(shape))).reshape(shape).astype(float)


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_noise_on_a_sum_of_cells_is_within_its_bound_about_as_often_as_stated(law):
    generator = np.random.default_rng(1)
    values = np.array([1.0, -0.5, 0.25, 0.0, 1.0])
    function = certificate_moments._Function((0, 1), ("age",), (values,))
    scale, draws, failure = 8.0, 200_000, 0.02
    if law == "gaussian":
        noise = generator.normal(0, scale, (draws, 5)).round()
    else:
        ratio = np.exp(-np.sqrt(2) / scale)
        noise = generator.geometric(1 - ratio, (draws, 5)) - generator.geometric(
            1 - ratio, (draws, 5)
        )
    most = certificate_moments._most(function, scale, law, np.log(2 / failure))
    missed = (np.abs(noise @ values) > most).mean()
    assert missed <= failure
    # Half the width would break the promise, so it is no wider than that.
    assert (np.abs(noise @ values) > most / 2).mean() > failure


def test_a_certificate_needs_nothing_but_the_files(release, tmp_path):
    loaded = cp.load(release.save(tmp_path / "out"))
    assert loaded.certificate("ill").to_dict() == release.certificate("ill").to_dict()


def test_a_laplace_release_is_certified_too(table):
    release = made_release(table, epsilon=2.0, delta=0.0)
    found = release.certificate("ill", norm=0.3)
    assert excess_risk(release, table, "ill", norm=0.3) <= found.bound < found.trivial


def test_rows_are_certified_with_their_weights_and_without(release, table):
    # Weights that favour the ill of young age, which the private rows know nothing of
    favoured = np.where(release.table["ill"] & (release.table["age"] < 2), 4.0, 1.0)
    weights = favoured / favoured.mean()
    other = replace(release, table=release.table.assign(weight=weights))
    bounds = {}
    for weighted in (True, False):
        found = other.certificate("ill", norm=0.3, weighted=weighted)
        assert found.weighted is weighted
        assert excess_risk(other, table, "ill", norm=0.3, weighted=weighted) <= found.bound
        bounds[weighted] = found.bound
    assert bounds[False] == release.certificate("ill", norm=0.3).bound < bounds[True]


def test_pairs_that_nothing_measured_are_named_and_keep_what_single_columns_allow(table):
    release = made_release(table, synthesizer="independent")
    found = release.certificate("ill", norm=0.3)
    assert set(found.unmeasured) == {("ill", "age"), ("ill", "ward"), ("age", "ward")}
    assert excess_risk(release, table, "ill", norm=0.3) <= found.bound
    assert "ill x age" in found.advice and "marginals" in found.advice
    everything = made_release(table).certificate("ill", norm=0.3)
    assert everything.bound < found.bound <= found.trivial


def test_a_release_without_measured_tables_is_vacuous_and_says_so(table):
    generator = np.random.default_rng(0)
    given = table.assign(ill=generator.permutation(table["ill"]))
    release = cp.weigh(
        table, given, SCHEMA, 1.0, 1e-6, method="moments", replicates=0, seed=1, progress=False
    )
    found = release.use_weights().certificate("ill")
    assert found.is_vacuous and "this says nothing" in str(found)
    assert excess_risk(release.use_weights(), table, "ill") <= found.bound


def test_more_budget_and_a_smaller_norm_make_it_smaller(table):
    poor, rich = (made_release(table, epsilon=epsilon) for epsilon in (0.5, 8.0))
    assert rich.certificate("ill").bound < poor.certificate("ill").bound
    bounds = [rich.certificate("ill", norm=norm).bound for norm in (0.1, 0.5, 2.0)]
    assert bounds == sorted(bounds)


def test_a_certificate_is_larger_for_a_smaller_chance_of_failure(release):
    bounds = [release.certificate("ill", failure=chance).bound for chance in (0.5, 0.05, 1e-6)]
    assert bounds == sorted(bounds) and bounds[0] < bounds[2]


def test_what_cells_hide_is_in_the_bound_on_raw_numbers(table):
    schema = SCHEMA.replace(cp.Column.continuous("age", 0, 4, bins=4))
    release = cp.release(
        table, schema, 4.0, 1e-6, synthesizer="marginals", weights="uniform", replicates=0, seed=1,
        progress=False,
    )  # fmt: skip
    found = release.certificate("ill", norm=0.3)
    # Four cells of [-1, 1]: an eighth of the range on either side, twice, by the norm
    assert found.raw_bound == pytest.approx(found.bound + 2 * 0.3 * 0.25)
    rounded = made_release(table).certificate("ill", norm=0.3)
    assert rounded.raw_bound == rounded.bound


def test_the_curators_is_confidential_and_the_analysts_is_not(release, table):
    exact = exact_certificate(release, table, "ill")
    assert exact.confidential and str(exact).startswith("CONFIDENTIAL")
    assert exact.to_dict()["confidential"]
    assert not release.certificate("ill").confidential


def test_known_moments_that_agree_leave_the_polynomial_and_nothing_else():
    rows = np.random.default_rng(0).uniform(-1, 1, (500, 3))
    labels = np.sign(rows[:, 0] + 0.1)
    weights = np.full(500, 1 / 500)
    for loss in LOSSES.values():
        fitted = constrained_fit(rows, labels, weights, loss, 0.5)
        landscape = Landscape.of(
            rows, weights, fitted.coefficients, loss=loss, norm=0.5, reach=3**0.5, gap=fitted.gap
        )
        bound, _ = largest_excess(landscape, [MomentBounds.exactly(np.zeros((4, 4)), 500)])
        assert fitted.gap <= bound <= 4 * minimax(loss, 2, 0.5 * 3**0.5).error + fitted.gap + 1e-9


def test_the_constrained_fit_is_no_worse_than_any_other_model_of_its_norm():
    generator = np.random.default_rng(2)
    rows = generator.uniform(-1, 1, (300, 4))
    labels = np.sign(rows @ [1, -1, 0.5, 0] + generator.normal(0, 0.5, 300))
    weights = generator.dirichlet(np.ones(300))
    for loss in LOSSES.values():
        for norm in (0.1, 1.0, 5.0):
            fitted = constrained_fit(rows, labels, weights, loss, norm)
            assert np.linalg.norm(fitted.coefficients) <= norm * (1 + 1e-9)
            assert fitted.gap < 1e-4
            others = generator.normal(size=(200, 4))
            others *= norm / np.linalg.norm(others, axis=1, keepdims=True)
            near = fitted.coefficients + 0.01 * others
            near *= np.minimum(1, norm / np.linalg.norm(near, axis=1, keepdims=True))
            for each in (*others, *near):
                risk = weights @ loss.value(labels * (rows @ each))
                assert fitted.risk <= risk + fitted.gap + 1e-12


def test_published_bounds_in_closed_form():
    # Theorem 3.2 at m = 4, tau = 1/2, d = 3: B = 1, P = 3/8, M = (1 + ln 2) (12)^2 nu / n
    found = published_bound(LOSSES["logistic"], 0.01, features=4, order=3, norm=0.5)
    assert found == pytest.approx(4 * 0.375 + 2 * (1 + np.log(2)) * 144 * 0.01)
    # Theorem 3.1 for the hinge: P = 5/2 B / sqrt(2)
    found = published_bound(LOSSES["hinge"], 0.0, features=4, order=3, norm=0.5)
    assert found == pytest.approx(10 / np.sqrt(2))
    # Lemmas 3.3 and 3.4 at m = 4, d = 2, l = 2: 16 sets rather than 15
    found = published_distance(
        features=4, largest_domain=2, order=2, epsilon=1.0, delta=1e-5, rows=1e4, failure=0.05
    )
    sigma = 2 * np.sqrt(16 * np.log(1.25e5))
    assert found == pytest.approx(8 * np.sqrt(2 * (np.log(40) + 2 * np.log(10))) * sigma / 1e4)


def test_the_sharper_chain_is_below_the_published_one_and_above_the_truth(release, table):
    distance = marginal_distance(release, table, 2)
    shape = {"features": 4, "order": 2, "norm": 0.4}
    for loss in LOSSES.values():
        chain = sharper_bound(loss, distance, **shape)
        assert chain.bound < published_bound(loss, distance, **shape)
        # The intercept is a feature too; the indicators are within [-1, 1].
        assert excess_risk(release, table, "ill", loss.name, 0.4) <= chain.bound
    # P and M add up as they should for the squared loss, where P is nothing: B = 0.8
    found = sharper_bound(LOSSES["squared"], 0.1, **shape)
    assert found.bound == pytest.approx(2 * 0.1 * (2 * 0.8 + 0.64), rel=1e-4)


def test_the_lower_bound_needs_more_rows_than_anybody_has():
    assert not lower_bound(1e12).is_reached and lower_bound(1e16).is_reached
    found = lower_bound(1e16)
    logarithm = np.log(1e16)
    assert found.margin == pytest.approx(logarithm**-3)
    assert found.features == pytest.approx(2 * logarithm**7)
    assert found.excess == pytest.approx(logarithm**-3 / 16)


def test_features_of_every_kind_of_column():
    schema = cp.Schema(
        [
            cp.Column.continuous("x", 0, 8, bins=4, nullable=True),
            cp.Column.categorical("c", ["a", "b"], nullable=True),
            cp.Column.ordinal("o", ["low", "middle", "high"]),
            cp.Column.boolean("y"),
        ]
    )
    coding = CodedFeatures.of(schema, "y", None)
    assert coding.names == ("intercept", "x", "x is null", "c=b", "c is null", "o")
    table = pd.DataFrame(
        {"x": [1.0, None], "c": ["b", None], "o": ["low", "high"], "y": [True, False]}
    )
    rows, labels = coding(schema.encode(table).codes)
    assert rows.tolist() == [[1, -0.75, 0, 1, 0, -1], [1, 0, 1, 0, 1, 1]]
    assert labels.tolist() == [1, -1]
    assert coding.reach == 2.0
    assert coding.half_widths.tolist() == [0.25, 0, 0]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"target": "ward"}, "two classes"),
        ({"target": "nobody"}, "no column"),
        ({"loss": "absolute"}, "loss"),
        ({"norm": 0}, "norm"),
        ({"failure": 1}, "failure"),
        ({"features": []}, "features"),
        ({"features": ["ill"]}, "features"),
        ({"features": "age"}, "features"),
        ({"features": ["age", "age"]}, "features"),
    ],
)
def test_what_cannot_be_certified_is_refused_in_words(release, wrong, message):
    with pytest.raises(AnalysisError, match=message):
        certificate(release, **({"target": "ill"} | wrong))


def test_a_retargeted_release_is_refused(release):
    with pytest.raises(AnalysisError, match="another population"):
        release.retarget({"ward": {"a": 0.2, "b": 0.4, "c": 0.4}}).use_weights().certificate("ill")
