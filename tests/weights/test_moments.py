"""Moment weights: they bring back what the noise lets one see, and move nothing else."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from counterpoise.errors import BudgetError, MethodError
from counterpoise.schema import Column, Schema
from counterpoise.synthesizers import Independent
from counterpoise.vault import Budget, Vault
from counterpoise.weights import (
    MomentModel,
    Moments,
    moment_model,
    moments,
    row_blocks,
    whitening,
)
from counterpoise.weights.calibration import effective_fraction
from counterpoise.weights.diagnostics import diagnose
from counterpoise.weights.features import Linear, OneHot, PairProducts, Products, Squares
from counterpoise.weights.replicates import replicate_weights
from counterpoise.weights.shrinkage import Shrinkage
from counterpoise.weights.standardise import spread

SCHEMA = Schema(
    [
        Column.continuous("x", 0, 1),
        Column.continuous("y", 0, 1),
        Column.categorical("group", ["a", "b", "c"]),
        Column.boolean("ill"),
    ]
)
BUDGET = Budget(1.0, 1e-6)
RICH = Budget(1e4, 1e-6)


def related(rows: int, seed: int, strength: float = 1.0) -> pd.DataFrame:
    """x drives y, the group and the illness, as far as `strength` says."""
    generator = np.random.default_rng(seed)
    x = generator.beta(2, 2, rows)
    mixed = strength * x + (1 - strength) * generator.beta(2, 2, rows)
    return pd.DataFrame(
        {
            "x": x,
            "y": np.clip(0.6 * mixed + 0.4 * generator.uniform(size=rows), 0, 1),
            "group": np.array(["a", "b", "c"])[
                np.minimum(2, (3 * generator.beta(2, 2, rows) * 0.5 + 1.5 * mixed).astype(int))
            ],
            "ill": generator.uniform(size=rows) < mixed,
        }
    )


def shuffled(table: pd.DataFrame, rows: int, seed: int = 9) -> pd.DataFrame:
    """The same columns, drawn independently of each other."""
    generator = np.random.default_rng(seed)
    return pd.DataFrame(
        {name: generator.choice(table[name].to_numpy(), rows) for name in table.columns}
    )


def fitted(private, synthetic, budget=BUDGET, method=None, seed=1, schema=SCHEMA) -> MomentModel:
    with Vault(private, schema, budget, seed=seed) as vault:
        return (method or Moments()).fit(vault, synthetic, vault.budget.whole)


def correlations(table: pd.DataFrame, weights: np.ndarray | None = None) -> np.ndarray:
    numbers = table[["x", "y", "ill"]].to_numpy(dtype=float)
    covariance = np.cov(numbers.T, aweights=weights)
    deviations = np.sqrt(np.diag(covariance))
    return (covariance / np.outer(deviations, deviations))[np.triu_indices(3, 1)]


PRIVATE = related(4000, seed=1)
SYNTHETIC = shuffled(PRIVATE, 20_000)


@pytest.mark.parametrize(
    "budget",
    [BUDGET, Budget(1.0, 1e-6, "replace"), Budget(1.0), Budget(1.0, 0.0, "replace")],
    ids=["delta", "delta, replace", "pure", "pure, replace"],
)
def test_relations_that_independent_columns_lost_come_back(budget):
    weights = fitted(PRIVATE, SYNTHETIC, budget).weigh(SYNTHETIC).normalised
    truth = correlations(PRIVATE)
    assert np.abs(correlations(SYNTHETIC)).max() < 0.05  # truth is 0.46 and more
    missed = np.abs(correlations(SYNTHETIC, weights) - truth)
    # Of what was lost, less than a third stays lost; a pure budget is noisier.
    assert (missed < (0.5 if budget.is_pure else 0.33) * truth).all()


def test_equal_tables_have_weights_near_one():
    synthetic = related(8000, seed=5)
    weights = fitted(PRIVATE, synthetic).weigh(synthetic)
    assert weights.effective_sample_size > 0.97 * len(weights)
    assert weights.normalised.max() < 2.0


@pytest.mark.parametrize("seed", range(6))
def test_a_tiny_epsilon_moves_nothing(seed):
    model = fitted(PRIVATE, SYNTHETIC, Budget(1e-7, 1e-9, "replace"), seed=seed)
    assert model.weigh(SYNTHETIC).normalised == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("seed", range(6))
def test_a_total_that_is_but_noise_does_not_collapse_the_weights(seed):
    """Where n is private it may come out as one, or as a thousand million."""
    weights = fitted(PRIVATE, SYNTHETIC, Budget(0.001, 1e-9), seed=seed).weigh(SYNTHETIC)
    assert weights.effective_sample_size > 0.99 * moment_model.LEAST_FRACTION * len(weights)


def test_a_large_epsilon_matches_the_means_of_the_features():
    """Softness is least where the noise is; what is left is the sampling error of both tables."""
    private = related(40_000, seed=2, strength=0.3)
    synthetic = shuffled(private, 80_000)
    method = Moments(blocks=(OneHot() + Squares(), Products("ill")))
    model = fitted(private, synthetic, RICH, method)
    weights = model.weigh(synthetic).normalised
    features = model.standardised.features
    wanted = features(SCHEMA.encode(private)).mean(axis=0)
    before = features(SCHEMA.encode(synthetic)).mean(axis=0)
    found = weights @ features(SCHEMA.encode(synthetic)) / len(weights)
    assert np.abs(before - wanted).max() > 0.01
    assert np.abs(found - wanted).max() < 0.002


def test_the_effective_sample_size_stays_above_its_floor():
    """Tables that hardly overlap: to match them, a few rows would have to carry everything."""
    generator = np.random.default_rng(0)
    private = related(4000, seed=1).assign(x=generator.beta(20, 1, 4000))
    synthetic = related(8000, seed=2).assign(x=generator.beta(1, 20, 8000))
    weights = fitted(private, synthetic, RICH).weigh(synthetic)
    assert weights.effective_sample_size >= 0.99 * moment_model.LEAST_FRACTION * len(weights)
    assert np.average(synthetic["x"], weights=weights.normalised) > synthetic["x"].mean()


def test_the_order_of_private_and_synthetic_rows_does_not_matter():
    order = np.random.default_rng(3).permutation(len(SYNTHETIC))
    one = fitted(PRIVATE, SYNTHETIC).weigh(SYNTHETIC).normalised
    other = fitted(PRIVATE.iloc[::-1], SYNTHETIC.iloc[order]).weigh(SYNTHETIC).normalised
    assert other == pytest.approx(one, rel=0.01)


def test_a_row_weighs_the_same_whatever_rows_are_beside_it():
    model = fitted(PRIVATE, SYNTHETIC)
    whole = model.weigh(SYNTHETIC).log_weights
    assert model.weigh(SYNTHETIC[100:110]).log_weights == pytest.approx(whole[100:110], abs=1e-12)


def test_features_that_are_made_at_every_pass_give_the_same_weights(monkeypatch):
    held = fitted(PRIVATE, SYNTHETIC).weigh(SYNTHETIC).normalised
    monkeypatch.setattr(row_blocks, "MOST_HELD", 0)
    made = fitted(PRIVATE, SYNTHETIC).weigh(SYNTHETIC).normalised
    assert made == pytest.approx(held, rel=1e-3)


def test_a_part_of_the_rows_is_enough_to_make_them_white(monkeypatch):
    whole = fitted(PRIVATE, SYNTHETIC).weigh(SYNTHETIC).normalised
    monkeypatch.setattr(whitening, "PART_ROWS", len(SYNTHETIC) // 3)
    model = fitted(PRIVATE, SYNTHETIC)
    # The mean that differences are measured from is that of all rows.
    rows = model.white(SCHEMA.encode(SYNTHETIC))
    assert rows.mean(axis=0) == pytest.approx(np.zeros(rows.shape[1]), abs=1e-6)
    assert np.cov(rows.T, ddof=0) == pytest.approx(np.eye(rows.shape[1]), abs=0.2)
    assert np.abs(model.weigh(SYNTHETIC).normalised - whole).mean() < 0.02


def test_white_coordinates_are_white():
    model = fitted(PRIVATE, SYNTHETIC)
    rows = model.white(SCHEMA.encode(SYNTHETIC))
    assert rows.mean(axis=0) == pytest.approx(np.zeros(rows.shape[1]), abs=1e-6)
    assert np.cov(rows.T, ddof=0) == pytest.approx(np.eye(rows.shape[1]), abs=1e-5)


def test_a_model_is_the_same_after_saving(tmp_path):
    model = fitted(PRIVATE, SYNTHETIC)
    np.savez(tmp_path / "model.npz", **model.to_arrays())
    with np.load(tmp_path / "model.npz", allow_pickle=False) as arrays:
        again = MomentModel.from_arrays(SCHEMA, arrays)
    part = SYNTHETIC[:500]
    assert (again.weigh(part).log_weights == model.weigh(part).log_weights).all()
    assert again.private == model.private
    columns = [replicate_weights(m, part, 3, population=4000, seed=4) for m in (model, again)]
    assert (columns[0] == columns[1]).all()


def test_a_target_is_asked_for_where_other_relations_are_not():
    few = related(60, seed=1)
    names = fitted(few, shuffled(few, 300), method=Moments(target="ill")).standardised.names
    assert "x * ill=True" in names
    assert "x * y" not in names


@pytest.mark.parametrize("private_rows", [0, 1])
@pytest.mark.parametrize("synthetic_rows", [1, 2, 300])
def test_tables_of_few_rows_are_weighed(private_rows, synthetic_rows):
    synthetic = SYNTHETIC[:synthetic_rows]
    model = fitted(PRIVATE[:private_rows], synthetic)
    weights = model.weigh(synthetic).normalised
    assert np.isfinite(weights).all()
    assert weights.mean() == pytest.approx(1.0)
    columns = replicate_weights(model, synthetic, 4, population=model.population, seed=1)
    assert np.isfinite(columns).all()
    assert columns.mean(axis=0) == pytest.approx(np.ones(4), rel=1e-4)


HARD = {
    "constant": (
        [Column.integer("k", 3, 3), Column.boolean("b")],
        {"k": [3] * 99, "b": [True] * 99},
    ),
    "all null": ([Column.integer("n", 0, 9, nullable=True)], {"n": [None] * 99}),
    "one category": (
        [Column.categorical("c", ["only"]), Column.boolean("b")],
        {"c": ["only"] * 99, "b": [True, False, True] * 33},
    ),
    "a thousand categories": (
        [Column.categorical("c", list(range(1000))), Column.boolean("b")],
        {"c": list(range(99)), "b": [True, False, True] * 33},
    ),
}


@pytest.mark.parametrize("case", HARD)
@pytest.mark.parametrize("budget", [BUDGET, Budget(1.0)], ids=["delta", "pure"])
def test_columns_that_break_tools_are_weighed(case, budget):
    columns, values = HARD[case]
    schema, table = Schema(columns), pd.DataFrame(values)
    for private, synthetic in ((table, table), (table[:0], table), (table, table[:1])):
        model = fitted(private, synthetic, budget, schema=schema)
        weights = model.weigh(synthetic).normalised
        assert np.isfinite(weights).all()
        columns = replicate_weights(model, synthetic, 3, population=99, seed=0)
        assert columns.mean(axis=0) == pytest.approx(np.ones(3), rel=1e-4)


@pytest.mark.parametrize(
    ("method", "rows", "message"),
    [
        (Moments(target="shoe"), 50, "shoe"),
        (Moments(blocks=(PairProducts((("x", "shoe"),)),)), 50, "shoe"),
        (Moments(blocks=(PairProducts(()),)), 50, "no feature"),
        (Moments(), 0, "at least one synthetic row"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_anything_is_paid(method, rows, message):
    with Vault(PRIVATE, SCHEMA, BUDGET, seed=1) as vault:
        with pytest.raises(MethodError, match=message):
            method.fit(vault, SYNTHETIC[:rows], vault.budget.whole)
        with pytest.raises(BudgetError, match="share"):
            method.fit(vault, SYNTHETIC[:50], None)
        assert vault.ledger.spends == ()


def test_the_number_of_rows_is_paid_for_where_it_is_private():
    queries = {}
    for neighbours in ("add-remove", "replace"):
        with Vault(PRIVATE, SCHEMA, Budget(1.0, 1e-6, neighbours), seed=1) as vault:
            Moments(blocks=(Linear(),)).fit(vault, SYNTHETIC[:500], vault.budget.whole)
            queries[neighbours] = [spend.query for spend in vault.ledger.spends]
    assert queries["add-remove"] == ["number of rows", "sums of 4 features"]
    assert queries["replace"] == ["sums of 4 features"]


def test_doubt_about_rare_relations_leaves_the_replicates_their_rows():
    """Seeded: three columns of many rare categories, whose noisy relations say next to nothing."""
    generator = np.random.default_rng(0)
    categories = [f"c{i}" for i in range(12)]
    chances = np.geomspace(1, 0.001, 12)
    names = ["a", "b", "c"]
    private = pd.DataFrame(
        {name: generator.choice(categories, 4000, p=chances / chances.sum()) for name in names}
    ).assign(x=generator.random(4000))
    schema = Schema(
        [*(Column.categorical(name, categories) for name in names), Column.continuous("x", 0, 1)]
    )
    with Vault(private, schema, Budget(1.0, 1e-6), seed=1) as vault:
        first, second = vault.budget.whole.split(0.8, 0.2)
        synthesizer = Independent().fit(vault, first)
        synthetic = synthesizer.sample(4000, seed=1)
        model = Moments(target="a").fit(vault, synthetic, second, synthesizer)
    columns = replicate_weights(
        model, synthetic, 20, population=4000, synthesizer=synthesizer, seed=2
    ).astype(float)
    effective = columns.sum(axis=0) ** 2 / (columns**2).sum(axis=0)
    assert np.median(effective) > 1000
    assert effective.min() > 500
    means = synthetic["x"].to_numpy() @ columns / 4000
    # Three times the deviation of a mean of 4,000 private rows would be generous already.
    assert means.std() < 3 * 0.29 / 4000**0.5


def test_what_few_rows_carry_is_not_matched():
    """All but five synthetic rows are of one group, so that weights could only move those."""
    private, synthetic = related(3000, 1), related(3000, 2)
    synthetic["group"] = "a"
    synthetic.loc[:4, "group"] = "b"
    model = fitted(private, synthetic, RICH, Moments(blocks=(OneHot(),)))
    weights = model.weigh(synthetic).normalised
    assert weights[:5].mean() == pytest.approx(weights.mean(), rel=0.5)
    synthetic.loc[5:100, "group"] = "b"
    model = fitted(private, synthetic, RICH, Moments(blocks=(OneHot(),)))
    weights = model.weigh(synthetic).normalised
    assert weights[:100].mean() > 2 * weights[100:].mean()


def test_a_mean_that_is_not_believed_shows_the_chance_of_the_private_sample():
    """Nothing is believed or in doubt, and the synthetic rows follow the private sample."""
    private, synthetic = related(2000, 1), related(20_000, 2)
    model = fitted(private, synthetic)
    model = replace(
        model, trust=0 * model.trust, doubt=0 * model.doubt, follows=np.ones_like(model.follows)
    )
    columns = replicate_weights(model, synthetic, 200, population=2000, seed=3).astype(float)
    means = synthetic["x"].to_numpy() @ columns / len(synthetic)
    assert means.std() / model.replicate_part > 0.8 * private["x"].std() / 2000**0.5


def test_replicates_are_draws_of_the_posterior_of_all_differences_together():
    """T S T' + (I - T) V (I - T)' and what is open between laws, by 600 replicates."""
    private, synthetic = related(3000, 1), related(20_000, 2, strength=0.7)
    model = fitted(private, synthetic)
    assert not model.follows.any() and model.replicate_part == 1
    columns = replicate_weights(model, synthetic, 600, population=3000, seed=3).astype(float)
    means = columns.T @ model.white(SCHEMA.encode(synthetic)) / len(synthetic)
    root = model.noise_scale * model.whitening.directions
    noise = root.T @ root + np.eye(len(model.theta)) / 3000
    left = np.eye(len(model.theta)) - model.trust
    posterior = model.trust @ noise @ model.trust.T + (left * model.prior) @ left.T
    posterior += np.diag(model.beyond)
    assert np.diag(posterior) == pytest.approx(model.doubt, rel=0.01)
    spread, known = np.cov(means.T), np.sqrt(np.diag(posterior))
    assert np.sqrt(np.diag(spread)) == pytest.approx(known, rel=0.3)
    apart = ~np.eye(len(known), dtype=bool)
    found, expected = ((each / np.outer(known, known))[apart] for each in (spread, posterior))
    # Drawn one by one, differences whose noise is shared would hardly go together.
    assert np.abs(expected).max() > 0.2
    assert np.corrcoef(found, expected)[0, 1] > 0.8


def test_a_pattern_in_the_order_of_rows_does_not_matter():
    """Synthetic rows that repeat by four, as those of a panel do; some steps see but a part."""
    quarters = ["first", "second", "third", "fourth"]
    schema = Schema([Column.categorical("quarter", quarters), Column.boolean("ill")])
    generator = np.random.default_rng(0)
    private = pd.DataFrame(
        {
            "quarter": generator.choice(quarters, 40_000, p=[0.4, 0.3, 0.2, 0.1]),
            "ill": generator.random(40_000) < 0.5,
        }
    )
    synthetic = pd.DataFrame(
        {"quarter": np.resize(quarters, 80_000), "ill": generator.random(80_000) < 0.5}
    )
    weights = fitted(private, synthetic, schema=schema).weigh(synthetic).normalised
    shares = [weights[synthetic["quarter"] == name].sum() / 80_000 for name in quarters]
    assert shares == pytest.approx([0.4, 0.3, 0.2, 0.1], abs=0.01)


@pytest.mark.parametrize("period", [2, 4, 7, 8, 64])
def test_a_part_of_the_rows_has_something_of_every_pattern(period):
    counts = np.bincount(spread(80_000, 10_000) % period, minlength=period)
    assert counts == pytest.approx(np.full(period, 10_000 / period), rel=0.5)


@pytest.mark.parametrize("seed", [2, 3])
def test_the_floor_of_the_effective_sample_size_holds_for_all_rows(seed):
    """Rare rows are told badly from a part of the table."""
    generator = np.random.default_rng(seed)
    schema = Schema([Column.boolean(name) for name in "abc"])
    private = pd.DataFrame({name: generator.random(60_000) < 0.01 for name in "abc"})
    synthetic = pd.DataFrame({name: generator.random(60_000) < 0.0002 for name in "abc"})
    model = fitted(private, synthetic, RICH, schema=schema, seed=seed)
    assert model.weigh(synthetic).effective_sample_size >= 0.5 * 60_000


def test_what_the_weights_cannot_make_up_for_is_said_and_shown():
    """The tables lie too far apart for weights of half the effective size."""
    generator = np.random.default_rng(0)
    schema = Schema([Column.continuous(name, 0, 1) for name in "abcd"])
    private = pd.DataFrame({name: generator.beta(4, 2, 4000) for name in "abcd"})
    synthetic = pd.DataFrame({name: generator.beta(2, 4, 4000) for name in "abcd"})
    model = fitted(private, synthetic, schema=schema)
    weights = model.weigh(synthetic)
    assert diagnose(weights).verdict.level == "caution"
    mean = np.average(synthetic["a"], weights=weights.normalised)
    columns = replicate_weights(model, synthetic, 80, population=4000, seed=1)
    moved = synthetic["a"].to_numpy() @ columns / 4000 - mean
    error = np.sqrt(np.mean(moved**2)) / model.replicate_part
    assert abs(mean - private["a"].mean()) < 2 * error
    near = fitted(private, private.sample(4000, replace=True, random_state=1), schema=schema)
    assert near.reached == 1.0


def test_coded_rows_are_weighed_as_the_table_they_are_of():
    private, synthetic = related(2000, 1), related(2000, 2)
    model = fitted(private, synthetic)
    again = model.weigh(SCHEMA.encode(synthetic)).log_weights
    assert again == pytest.approx(model.weigh(synthetic).log_weights)


def test_what_the_synthesizer_knows_is_held_where_the_floor_is_reached():
    """Seeded: four columns that are one and the same, and a synthesizer that takes them apart."""
    generator = np.random.default_rng(0)
    private = pd.DataFrame({name: generator.integers(0, 4, 3000) for name in "a"})
    private = private.assign(**dict.fromkeys("bcd", private["a"]))
    schema = Schema([Column.categorical(name, list(range(4))) for name in "abcd"])
    with Vault(private, schema, Budget(2.0, 1e-6), seed=1) as vault:
        first, second = vault.budget.whole.split(0.8, 0.2)
        synthesizer = Independent().fit(vault, first)
        synthetic = synthesizer.sample(3000, seed=1)
        model = Moments().fit(vault, synthetic, second, synthesizer)
    assert model.reached < 1
    # Columns by themselves are the first block, those of numbers and those of lists.
    margins = model.whitening.blocks < 2
    assert np.median(model.softness[margins]) < 0.2 * np.median(model.softness[~margins])
    weights = model.weigh(synthetic).normalised
    for name in "abcd":
        shares = [weights[synthetic[name] == value].mean() for value in range(4)]
        assert shares == pytest.approx(np.ones(4), abs=0.1)


def test_the_doubt_about_a_difference_counts_what_the_others_tell_of_its_noise():
    """The error of shrunken differences, simulated: two that share most of their noise."""
    noise, prior = np.array([[1.0, 0.9], [0.9, 1.0]]), np.ones(2)
    trust = moments._joint_trust(prior, noise)
    alone = Shrinkage(np.full(2, 0.5), np.full(2, 0.5))
    doubt = moments._doubt(alone, trust, noise)
    generator = np.random.default_rng(0)
    truth = generator.normal(size=(100_000, 2))
    measured = truth + generator.multivariate_normal(np.zeros(2), noise, 100_000)
    error = ((measured @ trust.T - truth) ** 2).mean(axis=0)
    assert error.max() < 0.4
    assert doubt == pytest.approx(error, rel=0.02)


def test_what_the_synthesizer_counted_is_believed_by_the_law_of_its_noise():
    """v / (v + s) with the variance that its noise has, whatever others of the block are like."""
    plausible, noise = np.array([0.04, 0.01, 10.0, 10.0, 10.0]), np.full(5, 0.01)
    differences, follows = np.array([0.0, 0.5, 0.1, 0.0, 0.0]), np.array([True] * 3 + [False] * 2)
    found = moments._shrink(differences, noise, plausible, np.zeros(5), follows)
    # The third may be anything, which is more than such differences ever are.
    assert found.trust[:3] == pytest.approx([0.8, 0.5, 0.9])
    assert found.variance[:3] == pytest.approx([0.008, 0.005, 0.009])
    # The others are learnt from each other, and are small.
    assert found.trust[3:].max() < 0.6


@pytest.mark.parametrize("least", [0.3, 0.5, 0.9])
def test_longer_steps_end_at_the_softness_of_short_ones(monkeypatch, least):
    generator = np.random.default_rng(0)
    rows = generator.normal(size=(2000, 6))
    target, own = np.array([0.9, -0.7, 0.5, 0.3, 0.0, 0.1]), np.full(6, 1e-4)
    found = []
    for stride in (1, 4):
        monkeypatch.setattr(moment_model, "STRIDE", stride)
        found.append(moment_model._hardest(rows, target, own, np.ones(6), least))
    assert found[0][0].tolist() == found[1][0].tolist()
    assert found[0][1] == pytest.approx(found[1][1], abs=1e-4)
    assert effective_fraction(rows, found[1][1]) >= least
