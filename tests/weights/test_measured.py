import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

import counterpoise as cp
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
    }


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
    assert measured(Moments(blocks=(Linear(),)))["products"] == {frozenset({"age"})}
    assert measured(Moments(blocks=(Linear(),)))["cells"] == set()


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
    with warnings.catch_warnings():
        # Said once a session: that the table's own privacy cost is not in the ledger.
        warnings.simplefilter("ignore", cp.CounterpoiseWarning)
        made = cp.weigh(private(), private(), SCHEMA, 1.0, 1e-6, replicates=0, seed=1)
    assert made.card["measured"]["counts"] is None
    assert made.card["measured"]["products"]


def test_other_weights_match_no_sums():
    made = cp.release(private(), SCHEMA, 1.0, 1e-6, replicates=0, seed=1)
    assert made.card["measured"]["cells"]
    for other in (made.unweighted(), made.reweighted(np.ones(len(made.table)))):
        assert other.card["measured"] == made.card["measured"] | {"cells": [], "products": []}


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
    made = cp.release(
        private(),
        SCHEMA,
        2.0,
        1e-6,
        synthesizer="independent",
        weights=weights,
        replicates=20,
        seed=1,
        progress=False,
    ).use_weights()
    by_ward = made.mean("age", by="ward")
    assert {each.support for each in by_ward} == {"implied"}
    assert by_ward["a"].standard_error > 0
    # The ward of the ill is the first of the list, and they are older.
    assert by_ward["a"].value > by_ward["c"].value
    assert {each.support for each in made.crosstab("ward", "ill")} == {"never"}
