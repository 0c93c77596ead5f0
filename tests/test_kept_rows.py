"""Nobody keeps a coded row: what storage gives away is gone when the query is done.

First the watch itself: ten private rows are planted in real feature maps, weight models and
releases, by reference and by copy, and are found. Then every query, synthesizer, weighter and
release under that watch.
"""

import dataclasses
import functools

import numpy as np
import pandas as pd
import pytest

import counterpoise as cp
from counterpoise.errors import CounterpoiseError
from counterpoise.networks import Inputs, Network
from counterpoise.schema import Coded, Column, Schema
from counterpoise.synthesizers import SYNTHESIZERS
from counterpoise.testing.trials import WeighterTrial
from counterpoise.vault import (
    Budget,
    Dependence,
    DescentPlan,
    MarginalError,
    Share,
    TeacherPlan,
    Vault,
)
from counterpoise.weights import WEIGHTERS, Moments
from counterpoise.weights.features import Linear
from tests import canary, kept_rows
from tests.shorter import shorter

BUDGET = Budget(1.0, 1e-9)
SEED = 2

# How ten rows may be kept by one who was shown a batch.
WAYS = {
    "the batch": lambda rows: rows,
    "a view of the units": lambda rows: rows.units[:10],
    "a copy of the units": lambda rows: rows.units[:10].copy(),
    "numbers in a list": lambda rows: rows.units[:10, 4:].tolist(),
    "one number": lambda rows: float(rows.units[3, 5]),
    "numbers of half the bits": lambda rows: rows.units[:10, 4:].astype(np.float32),
    "a coded table of ten": lambda rows: rows.take(np.arange(10)),
    "a copy of the codes": lambda rows: rows.codes[:10].copy(),
    "the codes the other way round": lambda rows: rows.codes[:10].T.copy(),
    "one row of codes": lambda rows: rows.codes[7].tolist(),
    "codes of a column": lambda rows: rows.codes[20:30, 2].astype(np.int8),
    "codes as floats": lambda rows: rows.codes[:10].astype(float),
    "codes in a list": lambda rows: rows.codes[:10, 1].tolist(),
    "raw bytes": lambda rows: b"x" + rows.units[:10].tobytes(),
    "a frame": lambda rows: pd.DataFrame(rows.units[:10]),
    "a closure": lambda rows: lambda: rows.units[:10],
    "a partial function": lambda rows: functools.partial(print, rows.units[:10].copy()),
    "a generator": lambda rows: (row for row in rows.units[:10].copy()),
}


def private() -> Coded:
    return kept_rows.WIDE.encode(kept_rows.table())


@dataclasses.dataclass
class Keeping:
    """A feature map that keeps something of the rows that it is shown."""

    inner: object
    keep: object
    kept: object = None

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def __call__(self, rows):
        if len(rows) == 600:
            self.kept = self.keep(rows)
        return self.inner(rows)


def synthetic() -> pd.DataFrame:
    return kept_rows.table(300, seed=9)


def linear() -> object:
    return Linear().over(kept_rows.WIDE.encode(synthetic()))


@pytest.mark.parametrize("keep", WAYS.values(), ids=WAYS)
def test_ten_rows_kept_by_a_feature_map_are_found(keep):
    features = Keeping(linear(), keep)
    with kept_rows.watch(private()) as seen:
        with Vault(kept_rows.table(), kept_rows.WIDE, BUDGET, seed=SEED) as vault:
            answer = vault.sums(features, 3.0, vault.budget.whole)
        assert seen.search(answer) == []
        assert seen.search(features) != []
        assert seen.search([features.kept]) != []


@pytest.mark.parametrize("name", ["the batch", "a view of the units"])
def test_rows_kept_by_reference_are_alive_wherever_they_are(name):
    features = Keeping(linear(), WAYS[name])
    with kept_rows.watch() as seen:
        with Vault(kept_rows.table(), kept_rows.WIDE, BUDGET, seed=SEED) as vault:
            vault.sums(features, 3.0, vault.budget.whole)
        assert "batches" in seen.alive()
        del features
        assert seen.alive() == []


def test_features_of_private_rows_are_found():
    kept = []

    class KeepsFeatures(Keeping):
        def __call__(self, rows):
            values = self.inner(rows)
            kept.append(values[:10].copy())
            return values

    with kept_rows.watch() as seen:
        with Vault(kept_rows.table(), kept_rows.WIDE, BUDGET, seed=SEED) as vault:
            vault.sums(KeepsFeatures(Doubled(linear()), None), 6.0, vault.budget.whole)
        assert seen.search(kept) != []


class Doubled:
    """Features whose numbers are no unit values."""

    def __init__(self, inner):
        self.inner, self.names = inner, inner.names

    def __call__(self, rows):
        return 2 * self.inner(rows) - 0.7


@pytest.mark.parametrize("name", ["a copy of the units", "a copy of the codes", "the batch"])
def test_ten_rows_kept_in_a_weight_model_and_its_release_are_found(name, tmp_path, monkeypatch):
    fit = Moments.fit

    def keeping(self, vault, synthetic, share, synthesizer=None):
        model = fit(self, vault, synthetic, share, synthesizer)
        [rows] = vault._storage.batches(600)
        object.__setattr__(model, "kept", WAYS[name](rows))
        return model

    monkeypatch.setattr(Moments, "fit", keeping)
    with kept_rows.watch(private()) as seen:
        with Vault(kept_rows.table(), kept_rows.WIDE, BUDGET, seed=SEED) as vault:
            model = WEIGHTERS.make("moments").fit(vault, synthetic(), vault.budget.whole)
        assert seen.search(model) != []
        np.savez(tmp_path / "model.npz", kept=model.kept if name != "the batch" else 0)
        assert bool(seen.search_files(tmp_path)) == (name != "the batch")


def test_exact_counts_are_found():
    with kept_rows.watch() as seen:
        with Vault(kept_rows.table(), kept_rows.WIDE, BUDGET, seed=SEED) as vault:
            answer = vault.counts([("a",)], vault.budget.whole)
            [exact] = vault._storage.counts([("a",)])
            kept = {"table": exact.astype(float)}
            del exact
        assert seen.search(answer) == []
        assert seen.search(kept) == ["exact counts"]
        assert seen.alive() == []


def test_a_table_from_elsewhere_is_not_taken_for_a_copy():
    with kept_rows.watch(private()) as seen:
        other = kept_rows.table(3000, seed=77)
        assert seen.search([other, kept_rows.WIDE.encode(other)]) == []


class Features:
    names = ("e", "a")

    def __call__(self, rows):
        return rows.units[:, [4, 0]]


def descend(vault: Vault, part: Share) -> object:
    inputs = Inputs(vault.schema)
    network = Network((inputs.size, 4, 1))
    plan = DescentPlan.within(
        vault,
        part,
        inputs=inputs,
        network=network,
        loss="logistic",
        rate=0.3,
        lot=100.0,
        clip=1.0,
        steps=3,
    )
    with vault.descent(plan) as descent:
        found = [descent.gradient(np.zeros(network.size)) for _ in range(3)]
    return found, descent


def vote(vault: Vault, part: Share) -> object:
    inputs = Inputs(vault.schema)
    plan = TeacherPlan.within(
        vault, part, queries=9, inputs=inputs, network=Network((inputs.size, 4, 1)), teachers=3
    )
    with vault.teachers(plan) as teachers:
        teachers.train(np.zeros((9, inputs.size)), 3)
        return teachers.votes(np.zeros((9, inputs.size))), teachers


def test_the_rows_of_every_query_are_let_go(tmp_path):
    kept_rows.table().to_parquet(tmp_path / "table.parquet")
    score = MarginalError([np.zeros(16)] * 2, np.ones(2), np.zeros(2))
    queries = {
        "counts": lambda vault, part: vault.counts([("a",), ("b", "e")], part),
        "total": lambda vault, part: vault.total(part),
        "sums": lambda vault, part: vault.sums(Features(), 2.0, part),
        "minimise": lambda vault, part: vault.minimise(
            Features(), 2.0, kept_rows.WIDE.encode(synthetic()), part, rows=600, regularisation=0.1
        ),
        "minimise_perturbed": lambda vault, part: vault.minimise_perturbed(
            Features(), 2.0, kept_rows.WIDE.encode(synthetic()), part, rows=600, regularisation=0.1
        ),
        "errors": lambda vault, part: vault.select([("a",), ("b",)], score, part),
        "dependence": lambda vault, part: vault.select(
            [("a", "b"), ("c", "e")], Dependence(), part
        ),
        "quantiles": lambda vault, part: vault.quantiles("e", [0.5, 0.9], part),
        "descent": descend,
        "teachers": vote,
    }
    for source, storage in ((kept_rows.table(), "memory"), (tmp_path / "table.parquet", "duckdb")):
        with kept_rows.watch(private()) as seen:
            answers = []
            with Vault(source, kept_rows.WIDE, BUDGET, storage=storage, seed=SEED) as vault:
                for ask in queries.values():
                    answers.append(ask(vault, vault.budget.whole.part(0.1)))
                    # Tables of counts are remembered by the storage until it is closed.
                    assert set(seen.alive()) <= {"counts"}
            assert seen.alive() == []
            assert seen.search([answers, vars(vault)]) == []


def test_the_rows_behind_a_paid_domain_are_let_go():
    schema = Schema([Column.categorical("a"), Column.continuous("e")]).pay("a").pay("e")
    with kept_rows.watch(private()) as seen:
        with Vault(kept_rows.table(), schema, Budget(9.0, 1e-6), seed=SEED) as vault:
            learnt = vault.learn_domain(vault.budget.whole.part(0.8), 1e-7)
            assert seen.alive() == []
        assert seen.search([learnt, vars(vault)]) == []


def schema_for(synthesizer: str) -> Schema:
    return kept_rows.NARROW if synthesizer == "histogram" else kept_rows.WIDE


@pytest.mark.parametrize("name", sorted(SYNTHESIZERS))
def test_a_model_keeps_no_rows(name):
    schema = schema_for(name)
    with kept_rows.watch(schema.encode(kept_rows.table())) as seen:
        with Vault(kept_rows.table(), schema, BUDGET, seed=SEED) as vault:
            model = SYNTHESIZERS.make(shorter(name)).fit(vault, vault.budget.whole)
        assert seen.search([model, model.to_arrays(), model.sample(500, seed=1)]) == []
        assert seen.alive() == []


@pytest.mark.parametrize("name", sorted(WEIGHTERS))
def test_a_weight_model_keeps_no_rows(name):
    method = WEIGHTERS.make(shorter(name))
    with kept_rows.watch(private()) as seen:
        with Vault(kept_rows.table(), kept_rows.WIDE, BUDGET, seed=SEED) as vault:
            model = WeighterTrial(method).fit_on(vault, synthetic(), vault.budget.whole)
        assert seen.search([model, model.weigh(synthetic())]) == []
        if name != "oracle":  # a function of the caller's, which is not saved
            assert seen.search(model.to_arrays()) == []
        assert seen.alive() == []


@pytest.mark.parametrize("synthesizer", ["independent", "aim"])
def test_a_release_its_bundle_and_the_folder_of_its_work_keep_no_rows(synthesizer, tmp_path):
    with kept_rows.watch(private()) as seen:
        release = cp.release(
            kept_rows.table(),
            kept_rows.WIDE,
            1.0,
            1e-9,
            synthesizer=synthesizer,
            rows=400,
            replicates=3,
            seed=SEED,
            work=tmp_path / "work",
        )
        assert any((tmp_path / "work").iterdir())
        assert seen.search_files(tmp_path) == []
        release.save(tmp_path / "out", csv=True)
        assert seen.search(release) == []
        assert seen.search_files(tmp_path) == []
        assert seen.alive() == []


def test_an_error_keeps_no_rows():
    class Failing(Features):
        def __call__(self, rows):
            raise CounterpoiseError("the features fail")

    class Narrow(Features):
        def __call__(self, rows):
            return rows.units[:, :1].copy()

    with kept_rows.watch(private()) as seen:
        for features in (Failing(), Narrow()):
            with (
                Vault(kept_rows.table(), kept_rows.WIDE, BUDGET, seed=SEED) as vault,
                pytest.raises(CounterpoiseError) as caught,
            ):
                vault.sums(features, 2.0, vault.budget.whole)
            assert canary.search(caught.value) == []
            assert seen.search(caught.value) == []
            # Not even the frames of the error, which is still held, hold any.
            assert seen.alive() == []
