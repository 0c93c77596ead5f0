"""What a synthesizer knows of feature means: as wrong as it is, and nothing it did not measure."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from counterpoise.schema import Column, Schema
from counterpoise.synthesizers import Independent, Marginals
from counterpoise.vault import Budget, Vault
from counterpoise.weights import Moments
from counterpoise.weights.features import Features, OneHot, Products, RandomFourier, Squares
from counterpoise.weights.knowledge import (
    LARGEST_DIFFERENCE,
    _within_cells,
    is_measured,
    plausible_variances,
)
from counterpoise.weights.standardise import Standardised

SCHEMA = Schema(
    [
        Column.continuous("x", 0, 1, bins=16),
        Column.categorical("group", ["a", "b", "c"]),
        Column.boolean("ill"),
    ]
)
RECIPE = OneHot() + Squares() + Products("ill")


def private(seed: int, rows: int = 2000) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    x = generator.beta(2, 3, rows)
    group = generator.choice(["a", "b", "c"], rows, p=[0.5, 0.3, 0.2])
    return pd.DataFrame({"x": x, "group": group, "ill": generator.random(rows) < x})


def fitted(synthesizer, seed: int, epsilon: float = 0.5):
    """A model, its rows, and the standardised features over them."""
    with Vault(private(seed), SCHEMA, Budget(epsilon, 1e-6), seed=seed) as vault:
        model = synthesizer.fit(vault, vault.budget.whole)
    rows = SCHEMA.encode(model.sample(2000, seed=1000 + seed))
    return model, rows, Standardised.over(RECIPE.over(rows), rows)


def test_every_feature_names_its_columns():
    rows = SCHEMA.encode(private(0))
    features = (RECIPE + RandomFourier(2)).over(rows)
    assert len(features.columns) == len(features.names)
    named = dict(zip(features.names, features.columns, strict=True))
    assert named["x^2"] == ("x",)
    assert named["group=b"] == ("group",)
    assert set(named["x * ill=True"]) == {"x", "ill"}
    assert set(named["cosine 1"]) == set(SCHEMA.names)
    again = Features.from_dict(SCHEMA, features.to_dict())
    assert again.columns == features.columns


def test_what_was_measured_together_is_known():
    model, _, features = fitted(Independent(), 1)
    single = [len(columns) == 1 for columns in features.features.columns]
    assert is_measured(features, model).tolist() == single
    assert not is_measured(features, None).any()
    pairs, _, features = fitted(Marginals(workload=(("x", "ill"), ("group",))), 1)
    found = dict(zip(features.names, is_measured(features, pairs), strict=True))
    assert found["x * ill=True"]
    assert found["ill=True"]
    assert not found["group=b * ill=True"]


@pytest.mark.parametrize(
    "synthesizer",
    [Independent(), Marginals(workload=(("x", "ill"), ("group",)))],
    ids=["independent", "pairs"],
)
def test_it_is_as_large_as_what_synthesizers_miss_by(synthesizer):
    """Over 30 fresh runs, seeded; their mean square is known to a quarter, so a factor of two."""
    missed, expected = [], []
    for seed in range(30):
        model, rows, features = fitted(synthesizer, seed)
        known = is_measured(features, model)
        groups = np.array([column == ("group",) for column in features.features.columns])
        own = np.eye(len(features.names))
        expected.append(plausible_variances(features, own, rows, model))
        means = [features(coded).mean(axis=0) for coded in (SCHEMA.encode(private(seed)), rows)]
        missed.append((means[0] - means[1]) ** 2)
    average = np.mean(expected, axis=0)
    # Categories have no place within a bin: nothing but the noise.
    ratio = average[groups].sum() / np.mean(missed, axis=0)[groups].sum()
    assert 0.5 < ratio < 2
    # Numbers may differ within their bins too.
    assert (average[known] > 0.5 * np.mean(missed, axis=0)[known]).all()
    assert (average[known] < 0.1).all()
    unknown = LARGEST_DIFFERENCE * features(rows).var(axis=0)
    assert (average[~known] > 0.2 * unknown[~known]).all()
    assert (average[~known] < 1.5 * unknown[~known]).all()


def test_without_a_synthesizer_anything_is_plausible():
    _, rows, features = fitted(Independent(), 1)
    own = np.eye(len(features.names))
    found = plausible_variances(features, own, rows, None)
    assert (found > 0.2 * LARGEST_DIFFERENCE * features(rows).var(axis=0)).all()


def test_features_that_hardly_differ_do_not_add_up():
    """Rows of a group are nearly all ill: the two features differ by the few that are not.

    The difference, in units of its own spread, moves by what few rows can, however far each may.
    """
    generator = np.random.default_rng(0)
    group = generator.choice(["a", "b", "c"], 4000)
    ill = (group == "b") & (generator.random(4000) < 0.99)
    table = pd.DataFrame({"x": generator.random(4000), "group": group, "ill": ill})
    rows = SCHEMA.encode(table)
    features = Standardised.over((OneHot() + Products("ill")).over(rows), rows)
    values = replace(features, bound=np.inf)(rows)
    names = list(features.names)
    pair = [names.index("group=b"), names.index("group=b * ill=True")]
    direction = np.zeros((len(names), 1))
    direction[pair, 0] = 1 / values[:, pair].std(axis=0) * [1, -1]
    left = (values @ direction)[:, 0]
    direction, left = direction / left.std(), left / left.std()
    found = plausible_variances(features, direction, rows, None)
    assert found == pytest.approx([LARGEST_DIFFERENCE * 3 / (left**4).mean()], rel=0.1)
    own = plausible_variances(features, np.eye(len(names)), rows, None)
    assert (direction.T**2 @ own)[0] > 20 * found[0]


def test_no_more_than_the_largest_difference_is_plausible():
    """Numbers are known to their bins alone, which a steep direction would make any distance of."""
    model, rows, features = fitted(Independent(), 0)
    steep = 1000 * np.eye(len(features.names))
    assert plausible_variances(features, steep, rows, model).max() == LARGEST_DIFFERENCE


def test_what_is_rare_can_differ_by_little():
    """A part p of the rows moves a standardised mean by sqrt(p) when it is doubled."""
    schema = Schema([Column.categorical("group", ["a", "b"])])
    found = []
    for part in (0.5, 0.01):
        rows = schema.encode(pd.DataFrame({"group": ["a"] * int(5000 * part) + ["b"] * 4000}))
        features = replace(Standardised.over(OneHot().over(rows), rows), bound=np.inf)
        variance = features(rows).var(axis=0)[0]
        found.append(plausible_variances(features, np.eye(2), rows, None)[0] / variance)
    assert found[0] == pytest.approx(LARGEST_DIFFERENCE)
    assert 0.3 < found[1] < 0.45  # 10 x 3 / kurtosis, of about 80


def test_weights_leave_alone_what_the_synthesizer_knows_better():
    """Seeded: nine tenths of the budget are the synthesizer's, of six columns it measures alone."""
    names = [f"flag {i}" for i in range(6)]
    schema = Schema([Column.boolean(name) for name in names])
    errors = {True: [], False: []}
    for seed in range(20):
        generator = np.random.default_rng(seed)
        table = pd.DataFrame({name: generator.random(1000) < 0.3 for name in names})
        with Vault(table, schema, Budget(0.5, 1e-6), seed=seed) as vault:
            first, second = vault.budget.whole.split(0.9, 0.1)
            model = Independent().fit(vault, first)
            synthetic = model.sample(1000, seed=seed)
            for told in errors:
                weights = (
                    Moments()
                    .fit(vault, synthetic, second.part(0.499), model if told else None)
                    .weigh(synthetic)
                    .normalised
                )
                means = weights @ synthetic.to_numpy(dtype=float) / len(synthetic)
                errors[told].append(((means - table.mean().to_numpy()) ** 2).mean())
    assert np.mean(errors[True]) < 0.8 * np.mean(errors[False])


def test_rows_of_a_cell_move_together():
    rows = SCHEMA.encode(private(3, 200))
    values = np.column_stack([rows.units[:, 0], rows.units[:, 0] ** 2])
    expected = np.zeros((2, 2))
    for code in np.unique(rows.codes[:, 0]):
        there = values[rows.codes[:, 0] == code]
        expected += (len(there) / 200) ** 2 * np.cov(there.T, bias=True)
    assert _within_cells(values, rows.codes[:, :1]) == pytest.approx(expected)
