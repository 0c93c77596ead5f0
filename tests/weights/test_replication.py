"""What is drawn for the replicates of some rows, applied to others of the same release."""

import numpy as np
import pandas as pd
import pytest

from counterpoise.schema import Column, Schema
from counterpoise.synthesizers import Independent, Mst
from counterpoise.vault import Budget, Vault
from counterpoise.weights import Logistic, Moments, Uniform
from counterpoise.weights.replicates import (
    Redraws,
    can_replicate_in_parts,
    replicate_first,
    replicate_weights,
)

SCHEMA = Schema(
    [
        Column.categorical("ward", ["a", "b", "c"]),
        Column.boolean("ill"),
        Column.continuous("dose", 0, 10, bins=6, nullable=True),
    ]
)
COUNT = 6


def people(rows: int, seed: int) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    ward = generator.choice(3, rows, p=[0.6, 0.3, 0.1])
    dose = np.clip(generator.gamma(2, 1 + ward), 0, 10)
    return pd.DataFrame(
        {
            "ward": np.array(["a", "b", "c"])[ward],
            "ill": generator.random(rows) < 0.2 + 0.2 * ward,
            "dose": np.where(generator.random(rows) < 0.1, np.nan, dose),
        }
    )


def fitted(synthesizer, weighter):
    """Two blocks of rows, the model they are from, and that of their weights."""
    with Vault(people(3_000, 0), SCHEMA, Budget(2.0, 1e-6), seed=1) as vault:
        whole = vault.budget.whole
        model = synthesizer.fit(vault, whole.part(0.5))
        first, second = model.sample(2_000, seed=2), model.sample(1_500, seed=3)
        share = None if weighter.is_free else whole.part(0.4)
        weights = weighter.fit(vault, first, share, model)
    return model, weights, first, second


@pytest.fixture(scope="module", params=[(Mst(), Moments()), (Independent(), Uniform())], ids=str)
def release(request):
    model, weights, first, second = fitted(*request.param)
    columns, replication = replicate_first(
        weights, first, COUNT, population=3_000.0, synthesizer=model, seed=4
    )
    return model, weights, first, second, columns, replication


def test_the_first_rows_have_the_replicates_that_they_have_alone(release):
    model, weights, first, _, columns, _ = release
    alone = replicate_weights(weights, first, COUNT, population=3_000.0, synthesizer=model, seed=4)
    assert np.array_equal(columns, alone)


def test_other_rows_have_the_tables_of_the_redrawn_synthesizer(release):
    # Up to the tilt, which is there to move them, and has to be undone to see it.
    *_, second, _, replication = release
    base = np.ones((len(second), COUNT), dtype=np.float32)
    codes = SCHEMA.encode(second).codes
    found = replication.tables.weights(codes, base)
    tables = replication.tables
    places, shape, counts = tables.columns[-1], tables.shapes[-1], tables.counts[-1]
    cells = np.ravel_multi_index(tuple(codes[:, place] for place in places), shape)
    there = np.bincount(cells, minlength=len(counts)) > 0
    for replicate in range(COUNT):
        own = np.bincount(cells, found[:, replicate], minlength=len(counts))[there]
        wanted = counts[there, replicate]
        assert own / own.sum() == pytest.approx(wanted / wanted.sum(), abs=2e-3)


def test_replicates_of_other_rows_average_to_one_and_move_as_those_of_the_first(release):
    _, weights, first, second, columns, replication = release
    others = replication.weights(second, np.random.default_rng(5))
    assert others.shape == (len(second), COUNT) and others.dtype == np.float32
    assert others.mean(axis=0) == pytest.approx(np.ones(COUNT), rel=1e-5)
    # The noise of a share is the same in both, but for the rows that were drawn.
    shares = []
    for rows, each in ((first, columns), (second, others)):
        own = weights.weigh(rows).normalised @ (rows["ward"] == "c").to_numpy() / len(rows)
        shares.append(each.T @ (rows["ward"] == "c").to_numpy() / len(rows) - own)
    assert np.corrcoef(*shares)[0, 1] > 0.8


def test_tilts_of_the_same_base_weights_are_the_replicates():
    _, weights, first, _ = fitted(Mst(), Moments())
    generator = np.random.default_rng(6)
    base = generator.gamma(4.0, 0.25, size=(len(first), COUNT)).astype(np.float32)
    resample = generator.gamma(4.0, 0.25, size=(len(first), COUNT)).astype(np.float32)
    own = weights.weigh(first).normalised
    start = np.ones(len(first))
    redraws = Redraws(base.copy(), resample, own, start, np.random.default_rng(7))
    made, tilts = weights.replicating(first, redraws)
    assert tilts.weights(first, base) == pytest.approx(made, rel=1e-3)


def test_replicates_go_a_part_of_the_way_and_where_nothing_moves_are_the_weights(monkeypatch):
    _, weights, first, _ = fitted(Mst(), Moments())
    own = weights.weigh(first).normalised
    still = np.repeat(own[:, None], 2, axis=1).astype(np.float32)
    start = np.ones(len(first))

    def spread(part: float) -> tuple[np.ndarray, np.ndarray]:
        monkeypatch.setattr(type(weights), "replicate_part", part)
        redraws = Redraws(np.ones_like(still), still.copy(), own, start, np.random.default_rng(7))
        made = weights.replicating(first, redraws)[0]
        ill = first["ill"].to_numpy(dtype=float) / len(first)
        return made, made.T @ ill - own @ ill

    assert spread(1e-4)[0] == pytest.approx(still, rel=0.005)
    # As far as means are concerned, the part is all that it changes.
    half, fifth = spread(0.5)[1] / 0.5, spread(0.2)[1] / 0.2
    assert half == pytest.approx(fifth, abs=0.3 * np.abs(half).max())


def test_methods_that_need_all_rows_at_once_are_known(release):
    _, weights, *_ = release
    assert can_replicate_in_parts(weights)
    assert not can_replicate_in_parts(Logistic)
