import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import counterpoise as cp
from counterpoise.analysis.support import Measured
from counterpoise.weights import Logistic, Moments
from counterpoise.weights.features import (
    Cells,
    Features,
    Linear,
    OneHot,
    PairProducts,
    PrincipalComponents,
    RandomFourier,
    Recipe,
    Trends,
)
from counterpoise.weights.measured import (
    MOST_ASSUMED,
    _assumed_of_sums,
    _variances,
    describe_measured,
)

SCHEMA = cp.Schema(
    [
        cp.Column.boolean("ill"),
        cp.Column.categorical("ward", ["a", "b", "c"]),
        cp.Column.integer("age", 0, 49, bins=5),
    ]
)


def private(rows=2000):
    generator = np.random.default_rng(0)
    age = generator.integers(0, 50, rows)
    ill = generator.random(rows) < age / 50
    ward = np.where(ill, "a", generator.choice(["b", "c"], rows))
    return pd.DataFrame({"ill": ill, "ward": ward, "age": age})


def measured(weights, synthesizer="independent"):
    made = cp.release(
        private(), SCHEMA, 1.0, 1e-6, synthesizer=synthesizer, weights=weights, replicates=0, seed=1
    )
    found = made.card["measured"]
    return {
        kind: None if sets is None else {frozenset(each) for each in sets}
        for kind, sets in found.items()
        if kind != "assumed"
    }


def elsewhere(synthetic, weights, epsilon=1.0):
    """What is measured of rows of which nothing is known."""
    with warnings.catch_warnings():
        # Said once a session: that the table's own privacy cost is not in the ledger.
        warnings.simplefilter("ignore", cp.CounterpoiseWarning)
        made = cp.weigh(
            private(), synthetic, SCHEMA, epsilon, 1e-6, method=weights, replicates=0, seed=1
        )
    return made.card["measured"]


def unrelated():
    """The private columns, each by itself as it is."""
    generator, rows = np.random.default_rng(5), private(8000)
    return pd.DataFrame({name: generator.permutation(each) for name, each in rows.items()})


@pytest.mark.parametrize(
    ("synthesizer", "counts"),
    [
        ("independent", [{"ill"}, {"ward"}, {"age"}]),
        ("histogram", [{"ill", "ward", "age"}]),
    ],
)
def test_the_card_lists_the_largest_sets_that_the_synthesizer_counted(synthesizer, counts):
    found = measured("uniform", synthesizer)
    assert found == {"counts": set(map(frozenset, counts)), "cells": set(), "products": set()}


@pytest.mark.parametrize("synthesizer", ["mst", "aim", "privbayes", "marginals"])
def test_every_marginal_method_lists_every_column_and_some_pairs(synthesizer):
    counts = measured("uniform", synthesizer)["counts"]
    assert frozenset.union(*counts) == {"ill", "ward", "age"}
    assert any(len(each) > 1 for each in counts)


def test_a_product_of_indicators_is_a_table_and_one_with_a_number_is_not():
    pairs = PairProducts((("ill", "ward"), ("ward", "age")))
    found = measured(Moments(blocks=(OneHot(), pairs)))
    assert found["cells"] == {frozenset({"ill", "ward"})}
    assert found["products"] == {frozenset({"ward", "age"})}


def test_cells_are_tables_whatever_their_columns_are():
    found = measured(Moments(blocks=(Cells((("ill", "age"),)),)))
    assert found["cells"] == {frozenset({"ill", "age"})}


def test_the_code_of_a_category_measures_nothing():
    younger = private(8000).sample(
        8000, replace=True, weights=60 - private(8000)["age"], random_state=0
    )
    found = elsewhere(younger, Moments(blocks=(Linear(),)))
    assert found["products"] == [["age"]]
    assert found["cells"] == []


@pytest.mark.parametrize(
    "weights",
    [
        Moments(blocks=(RandomFourier(3),)),
        Moments(blocks=(PrincipalComponents(2),)),
        Logistic(features=OneHot() + PairProducts()),
    ],
)
def test_functions_of_whole_rows_and_penalised_fits_measure_no_columns(weights):
    found = measured(weights)
    assert found["cells"] == found["products"] == set()


def test_a_table_made_elsewhere_has_unknown_counts():
    found = elsewhere(unrelated(), Moments(target="age"))
    assert found["counts"] is None
    assert ["ill", "age"] in found["products"]


def test_other_weights_match_no_sums():
    blocks = (Linear() + Trends((("ward", "age"),)), Cells((("ill", "ward"), ("ill", "age"))))
    made = cp.release(
        private(),
        SCHEMA,
        20.0,
        1e-6,
        synthesizer="independent",
        weights=Moments(blocks=blocks),
        replicates=0,
        seed=1,
    )
    found = made.card["measured"]
    assert found["cells"]
    assert found["trends"]
    for other in (made.unweighted(), made.reweighted(np.ones(len(made.table)))):
        expected = {"counts": found["counts"], "cells": [], "products": []}
        assert other.card["measured"] == expected


class _Asked:
    """A block of somebody else's, which says what it adds up."""

    names = groups = ("ill and ward and age",)
    columns = (("ill", "ward", "age"),)
    bound = 1.0
    measures = (("products", ("ill", "ward", "age")),)

    def to_dict(self):
        return {"kind": "asked"}

    def __call__(self, rows):
        return rows.units[:, :1] * rows.units[:, 2:3]


@dataclass(frozen=True)
class _Recipe(Recipe):
    def over(self, synthetic):
        return Features((_Asked(),))


def test_a_block_of_another_kind_may_say_what_it_sums():
    found = measured(Moments(blocks=(_Recipe(),)))
    assert found["products"] == {frozenset({"ill", "ward", "age"})}
    assert found["cells"] == set()


def test_a_mean_that_was_asked_in_advance_is_a_product_with_its_groups():
    found = measured(Moments(questions=("mean(age) by ill + ward",)))
    assert frozenset({"age", "ill", "ward"}) in found["products"]


def test_a_trend_relates_a_pair_and_measures_nothing_of_it():
    pair = frozenset({"ward", "age"})
    found = measured(Moments(blocks=(Linear() + Trends((("ward", "age"),)),)))
    assert found["trends"] == {pair}
    assert pair not in found["cells"] | found["products"]
    assert "trends" not in measured(Moments(blocks=(Linear(),)))


def test_what_a_trend_relates_is_implied_and_has_an_interval():
    weights = Moments(blocks=(Linear() + Trends((("ward", "age"),)),))
    made = released(
        2.0,
        synthesizer="independent",
        weights=weights,
        replicates=20,
    ).use_weights()
    by_ward = made.mean("age", by="ward")
    assert {each.support for each in by_ward} == {"implied"}
    assert by_ward["a"].standard_error > 0
    # The ward of the ill is the first of the list, and they are older.
    assert by_ward["a"].value > by_ward["c"].value
    assert {each.support for each in made.crosstab("ward", "ill")} == {"never"}


# Sums that do not carry estimates.


def assumed(found):
    return {frozenset(columns): part for columns, part in found.get("assumed", ())}


PAIR = frozenset({"ill", "age"})


def released(epsilon: float, **named: Any) -> cp.Release:
    return cp.release(private(), SCHEMA, epsilon, 1e-6, seed=1, progress=False, **named)


RELATED = Moments(blocks=(OneHot(), PairProducts((("ill", "age"),))))


@pytest.mark.parametrize(("epsilon", "is_drowned"), [(0.02, True), (20.0, False)])
def test_a_sum_is_measured_unless_it_carries_little(epsilon, is_drowned):
    made = released(
        epsilon,
        synthesizer="independent",
        weights=RELATED,
        replicates=10,
    ).use_weights()
    found = made.card["measured"]
    assert (["ill", "age"] in found["products"]) != is_drowned
    assert (PAIR in assumed(found)) == is_drowned
    by_ill = made.mean("age", by="ill")[True]
    assert by_ill.support == ("implied" if is_drowned else "measured")
    assert by_ill.assumed == (assumed(found)[PAIR] if is_drowned else None)
    assert by_ill.assumed is None or by_ill.assumed > MOST_ASSUMED


def test_nothing_is_assumed_of_what_the_synthesizer_counted():
    made = released(
        0.05,
        synthesizer="histogram",
        weights=RELATED,
        replicates=0,
    )
    assert "assumed" not in made.card["measured"]
    assert made.mean("age", by="ill")[True].support == "measured"


def test_of_rows_from_elsewhere_a_drowned_relation_is_unknown():
    found = elsewhere(unrelated(), RELATED, 0.01)
    assert PAIR in assumed(found)
    assert Measured(None, assumed=assumed(found)).of(PAIR, linear={"age"}) == "unknown"


def fitted(weights=RELATED, epsilon=1.0):
    with cp.Vault(private(), SCHEMA, cp.Budget(epsilon, 1e-6), seed=3) as vault:
        return weights.fit(vault, unrelated(), vault.budget.whole)


def test_the_known_variance_is_that_of_noise_and_sampling_drawn_again():
    """Seeded: 4000 draws of a variance are off by 2%, and by 10% hardly ever."""
    model, generator = fitted(), np.random.default_rng(7)
    directions, size = model.whitening.directions, model.whitening.directions.shape[1]
    noise = model.noise_scale * generator.normal(size=(4000, len(directions))) @ directions
    sample = generator.normal(size=(4000, size)) / np.sqrt(model.population)
    theta = generator.normal(size=(4000, size)) * np.sqrt(model.prior)
    for follows in (True, False):
        # Where the rows follow the sample its chance is all there, and what the synthesizer's noise
        # did is a law; else the sample counts as far as it is believed, and theta is assumed.
        chance = sample if follows else sample @ model.trust.T
        left = theta - theta @ model.trust.T
        moved = noise @ model.trust.T + chance + (left if follows else 0.0)
        parts = _variances(replace(model, follows=np.full(size, follows)))
        loadings = model.whitening.loadings
        assert parts[1] == pytest.approx((moved @ loadings.T).var(axis=0), rel=0.1)
        other = 0.0 if follows else (left @ loadings.T).var(axis=0)
        missed = loadings**2 @ model.missed**2
        assert parts[0] == pytest.approx(other + missed, rel=0.1)


def test_of_one_difference_by_itself_the_part_that_is_assumption_is_what_is_not_believed():
    model = fitted()
    size = len(model.differences)
    alone = replace(
        model.whitening, directions=np.eye(size), loadings=np.eye(size), features=np.arange(size)
    )
    noise = model.noise_scale**2 + 1 / model.population
    prior = np.geomspace(0.1, 10, size) * noise
    trust = prior / (prior + noise)
    own = replace(
        model,
        whitening=alone,
        trust=np.diag(trust),
        prior=prior,
        missed=np.zeros(size),
        follows=np.zeros(size, dtype=bool),
    )
    left, known = _variances(own)
    assert left / (left + known) == pytest.approx(1 - trust)


@pytest.mark.parametrize(("trust", "is_known"), [(0.4, False), (0.6, True)])
def test_a_sum_is_measured_where_more_than_half_of_it_is_believed(trust, is_known):
    model = fitted()
    size = len(model.differences)
    noise = model.noise_scale * model.whitening.directions
    noise = noise.T @ noise + np.eye(size) / model.population
    believed = replace(
        model,
        trust=trust * np.eye(size),
        prior=np.diag(noise) * trust / (1 - trust),
        missed=np.zeros(size),
        follows=np.zeros(size, dtype=bool),
    )
    assert (PAIR in assumed(describe_measured(None, believed))) != is_known


def test_products_that_an_asked_mean_leaves_nothing_of_are_as_well_known_as_it():
    """In both groups the mean tells the product, which is then no coordinate of its own."""
    weights = Moments(questions=("mean(age) by ill",), blocks=(RELATED.blocks[1],))
    model = fitted(weights)
    place = model.standardised.names.index("ill=True * age")
    assert (model.whitening.directions[place] == 0).all()
    parts = _assumed_of_sums(model)
    assert max(parts.values()) < MOST_ASSUMED


@pytest.mark.parametrize(("epsilon", "is_measured"), [(0.05, False), (20.0, True)])
def test_a_question_whose_sum_carries_little_was_not_measured_and_is_implied(epsilon, is_measured):
    questions = ["ill ~ age * ward", "ill x ward", "mean(age) by ward"]
    made = released(
        epsilon,
        synthesizer="independent",
        weights="moments",
        questions=questions,
        replicates=10,
    ).use_weights()
    assert [line["measured"] for line in made.card["questions"]] == [is_measured] * 3
    for line in made.card["questions"]:
        assert is_measured or line["reason"] == "what was summed for it does not carry it"
        assert is_measured or line["assumed"] > MOST_ASSUMED
    expected = "measured" if is_measured else "implied"
    # Something tells of the interaction: it is not taken to be none, with the width of a prior.
    assert {each.support for each in made.glm("ill ~ age * ward").coefficients} == {expected}
    assert made.mean("age", by="ward")["a"].support == expected
    assert made.crosstab("ill", "ward")[True, "a"].support == expected


def test_a_question_of_columns_that_were_counted_is_measured_however_noisy_its_sum():
    made = released(
        0.05,
        synthesizer="histogram",
        weights="moments",
        questions=["ill ~ age + ward"],
        replicates=0,
    )
    assert made.card["questions"] == [{"question": "ill ~ age + ward", "measured": True}]


def test_a_model_that_an_earlier_version_saved_tells_nearly_the_same():
    model = fitted()
    arrays = model.to_arrays()
    del arrays["white_loadings"]
    again = type(model).from_arrays(model.schema, arrays)
    parts, expected = _assumed_of_sums(again), _assumed_of_sums(model)
    # Of a column of three categories it has the first two.
    for key in ("products", ("age",)), ("products", ("ill", "age")):
        assert parts[key] == pytest.approx(expected[key], abs=0.02)
