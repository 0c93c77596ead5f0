"""New rows from a saved release, and what has to be true of a method for that."""

import importlib.metadata
import sys
import types
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

import counterpoise as cp
from counterpoise.bundle.models import model_type
from counterpoise.errors import BundleError, MethodError
from counterpoise.synthesizers import SYNTHESIZERS, Independent, IndependentModel
from counterpoise.weights import WEIGHTERS, Oracle, Uniform, UniformModel
from tests.shorter import shorter

# These know one table only, or are functions.
CANNOT_BE_SAVED = {"oracle", "logistic-outputs"}


def made(table, schema, **options):
    return cp.release(table, schema, 2.0, 1e-6, **({"rows": 80, "replicates": 3} | options))


@pytest.mark.parametrize("synthesizer", sorted(SYNTHESIZERS))
def test_a_loaded_release_draws_the_same_rows_as_the_one_that_was_saved(
    table, schema, tmp_path, synthesizer
):
    schema = schema.select(["sex", "grade", "income"])
    seed = 1 if getattr(SYNTHESIZERS.get(synthesizer), "needs_seed", False) else None
    release = made(table, schema, synthesizer=shorter(synthesizer), weights="uniform", seed=seed)
    loaded = cp.load(release.save(tmp_path / "out"))
    ours, theirs = release.sample(50, seed=4), loaded.sample(50, seed=4)
    pd.testing.assert_frame_equal(ours.table, theirs.table)
    assert ours.replicates == pytest.approx(theirs.replicates, rel=1e-3)


@pytest.mark.parametrize("weights", sorted(set(WEIGHTERS) - CANNOT_BE_SAVED))
def test_new_rows_are_weighed_as_the_weight_model_weighs_them(table, schema, tmp_path, weights):
    method = WEIGHTERS.get(weights)
    synthesizer = shorter("dpgan") if getattr(method, "needs_critic", False) else "independent"
    seed = 1 if getattr(method, "needs_seed", False) else None
    release = made(table, schema, synthesizer=synthesizer, weights=weights, seed=seed)
    drawn = cp.load(release.save(tmp_path / "out")).sample(60, seed=1)
    assert len(drawn.table) == drawn.card["rows"] == 60
    expected = release.models.weights.weigh(drawn.table[list(schema.names)]).normalised
    if weights == "moments":
        # The rows were chosen by these weights, out of four times as many: none is left to weigh.
        expected = np.ones(60)
    assert drawn.weights == pytest.approx(expected)
    assert drawn.replicates.shape == (60, 3)
    assert drawn.replicates.mean(axis=0) == pytest.approx(np.ones(3), abs=1e-4)
    diagnosed = drawn.card["weights"]["effective_sample_size"]
    assert diagnosed == pytest.approx(expected.sum() ** 2 / (expected**2).sum())


def test_new_rows_cost_nothing_and_can_be_saved_again(table, schema, tmp_path):
    release = cp.load(made(table, schema).save(tmp_path / "first"))
    again = cp.load(release.sample(20).save(tmp_path / "second"))
    assert again.card["ledger"] == release.card["ledger"]
    assert len(cp.load(release.save(tmp_path / "third")).sample(5).table) == 5
    assert len(again.sample(30).table) == 30


@pytest.mark.parametrize("weights", [Oracle(), "logistic-outputs"], ids=["oracle", "outputs"])
def test_a_release_whose_model_cannot_be_saved_says_so(table, schema, tmp_path, weights):
    release = made(table, schema, weights=weights, synthesizer="independent")
    loaded = cp.load(release.save(tmp_path / "out"))
    assert not (tmp_path / "out" / "model.npz").exists()
    assert not loaded.card["model"]["saved"]
    for one in (release, loaded):
        with pytest.raises(MethodError, match=r"no model to draw .*: .*(saved|rows alone)"):
            one.sample(10)


def test_a_model_that_was_changed_after_loading_is_refused(table, schema, tmp_path):
    release = cp.load(made(table, schema).save(tmp_path / "out"))
    file = tmp_path / "out" / "model.npz"
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    with pytest.raises(BundleError, match=r"model\.npz was changed"):
        release.sample(10)
    file.unlink()
    with pytest.raises(BundleError, match="no longer there"):
        release.sample(10)


@pytest.mark.parametrize("rows", [0, 1.5, True])
def test_an_impossible_number_of_new_rows_is_refused(table, schema, rows):
    with pytest.raises(MethodError, match="rows"):
        made(table, schema).sample(rows)


def test_a_release_without_its_weights_has_no_model_either(table, schema, tmp_path):
    plain = made(table, schema).unweighted()
    assert cp.load(plain.save(tmp_path / "out")).replicates is None
    with pytest.raises(MethodError, match="set aside"):
        plain.sample(10)


def test_every_registered_method_names_the_class_of_its_model():
    for registry in (SYNTHESIZERS, WEIGHTERS):
        for name in registry:
            assert model_type(registry.get(name)) is not None, name


@dataclass(frozen=True)
class Borrowed(Independent):
    """A third party's synthesizer, which names its model's class in the other way."""

    model_type = IndependentModel


@dataclass(frozen=True)
class Even(Uniform):
    """A third party's weights, whose `fit` says what it returns."""

    def fit(self, vault, synthetic, share=None, synthesizer=None) -> "EvenModel":
        return EvenModel()


class EvenModel(UniformModel):
    pass


@pytest.fixture
def installed(monkeypatch):
    """A distribution that declares the two methods above by entry point."""
    module = types.ModuleType("third_party")
    for kind in (Borrowed, Even):
        monkeypatch.setattr(kind, "__module__", "third_party")
        setattr(module, kind.__name__, kind)
    module.EvenModel = EvenModel
    monkeypatch.setitem(sys.modules, "third_party", module)
    known = importlib.metadata.entry_points

    def entry_points(**chosen):
        ours = [
            importlib.metadata.EntryPoint(
                "borrowed", "third_party:Borrowed", f"{GROUP}synthesizers"
            ),
            importlib.metadata.EntryPoint("even", "third_party:Even", f"{GROUP}weighters"),
        ]
        return known(**chosen) or importlib.metadata.EntryPoints(ours).select(**chosen)

    monkeypatch.setattr("counterpoise.registry.entry_points", entry_points)


GROUP = "counterpoise."


@pytest.mark.usefixtures("installed")
def test_a_third_partys_methods_are_saved_and_found_again(table, schema, tmp_path):
    release = made(table, schema, synthesizer="borrowed", weights="even")
    assert release.card["synthesizer"]["method"] == "borrowed"
    loaded = cp.load(release.save(tmp_path / "out"))
    pd.testing.assert_frame_equal(loaded.sample(9, seed=1).table, release.sample(9, seed=1).table)


def test_a_release_loads_where_its_method_is_not_installed(table, schema, tmp_path):
    release = made(table, schema, synthesizer=Borrowed(), weights="uniform")
    assert "there is no method 'Borrowed'" in release.card["model"]["reason"]
    assert len(cp.load(release.save(tmp_path / "out")).table) == 80
