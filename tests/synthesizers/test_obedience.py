"""Rows that obey checks: all of them, with the model's own counts, or an error that says why."""

import numpy as np
import pandas as pd
import pytest

from counterpoise.errors import SchemaError
from counterpoise.schema import Column, Schema
from counterpoise.synthesizers import Aim, Independent
from counterpoise.synthesizers.obedience import draw
from counterpoise.vault import Budget, Vault

COLUMNS = [
    Column.integer("start", 0, 99, bins=10),
    Column.integer("end", 0, 99, bins=10),
    Column.categorical("sex", ["female", "male"]),
    Column.boolean("pregnant"),
]
CHECKS = ["end >= start", "not (pregnant and sex == 'male')"]
SCHEMA = Schema([*COLUMNS, Column.derived("stay", "end - start", "integer")], checks=CHECKS)


@pytest.fixture(scope="module")
def private_table():
    generator = np.random.default_rng(0)
    start = generator.integers(0, 80, 4000)
    sex = generator.choice(["female", "male"], 4000)
    return pd.DataFrame(
        {
            "start": start,
            "end": np.minimum(start + generator.geometric(0.05, 4000), 99),
            "sex": sex,
            "pregnant": (sex == "female") & (generator.random(4000) < 0.2),
        }
    )


@pytest.fixture(scope="module")
def models(private_table):
    found = {}
    for method in (Aim(), Independent()):
        with Vault(private_table, SCHEMA, Budget(2.0, 1e-6), seed=1) as vault:
            found[type(method).__name__] = method.fit(vault, vault.budget.whole)
    return found


@pytest.mark.parametrize("name", ["Aim", "Independent"])
@pytest.mark.parametrize("rows", [1, 700, 5000])
def test_every_row_obeys_and_there_are_as_many_as_asked_for(models, name, rows):
    found = draw(models[name], SCHEMA, rows, seed=3)
    assert len(found) == rows
    assert list(found.columns) == list(SCHEMA.modelled.names)
    assert (found["end"] >= found["start"]).all()
    assert not (found["pregnant"] & (found["sex"] == "male")).any()
    assert found.equals(draw(models[name], SCHEMA, rows, seed=3))
    assert rows == 1 or not found.equals(draw(models[name], SCHEMA, rows, seed=4))


def test_the_counts_are_the_model_s_and_not_what_rejection_leaves_of_them(models, private_table):
    model = models["Independent"]
    drawn = model.sample(20_000, seed=1)
    obeying = drawn["end"] >= drawn["start"]
    found = draw(model, SCHEMA, 5000, seed=1)
    truth = private_table["start"].mean()
    assert abs(drawn["start"].mean() - truth) < 2
    assert abs(drawn["start"][obeying].mean() - truth) > 6
    assert abs(found["start"].mean() - truth) < 3
    assert abs(found["pregnant"].mean() - private_table["pregnant"].mean()) < 0.02


def test_without_a_rule_that_is_broken_rows_are_what_the_model_draws(models):
    kept = Schema(COLUMNS, checks=["start >= 0"])
    for schema in (Schema(COLUMNS), kept):
        assert draw(models["Aim"], schema, 500, seed=3).equals(models["Aim"].sample(500, seed=3))


def test_a_model_that_knows_no_tables_is_drawn_from_until_enough_rows_obey(models):
    class Bare:
        schema, rows, private = SCHEMA.modelled, 100, False

        def sample(self, rows, seed=None, format="pandas"):
            return models["Independent"].sample(rows, seed)

    found = draw(Bare(), SCHEMA, 3000, seed=1)
    assert len(found) == 3000
    assert (found["end"] >= found["start"]).all()


def test_copies_of_a_row_have_values_of_their_own_within_their_cells():
    schema = Schema([Column.continuous("x", 0, 1, bins=4)], checks=["x < 0.4"])

    class Uneven:
        """A model whose rows are hardly ever in the second of the two cells that it counts."""

        rows, private, measured_columns = 100, False, (("x",),)
        schema = Schema([Column.continuous("x", 0, 1, bins=4)])

        def sample(self, rows, seed=None, format="pandas"):
            generator = np.random.default_rng(seed)
            codes = generator.choice(4, rows, p=[0.7, 0.1, 0.1, 0.1])
            return self.schema.decode(codes[:, None], generator)

        def marginal(self, columns):
            return type("Answer", (), {"values": np.array([1.0, 1.0, 0.0, 0.0])})

    found = draw(Uneven(), schema, 3000, seed=0)["x"]
    assert abs((found < 0.25).mean() - 0.5) < 0.01
    assert (found < 0.4).all()
    assert found.nunique() > 2990


@pytest.mark.parametrize(
    ("checks", "message"),
    [
        (["end >= start", "start == end / 3.7"], r"check 'start == end / 3.7': it contradicts"),
        (["start > 80", "start % 10 > 20"], r"check 'start % 10 > 20': it contradicts the model"),
    ],
)
def test_a_check_that_hardly_any_row_obeys_is_named(models, checks, message):
    with pytest.raises(SchemaError, match=message):
        draw(models["Aim"], Schema(COLUMNS, checks=checks), 1000, seed=1)
