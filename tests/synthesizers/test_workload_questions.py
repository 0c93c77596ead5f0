"""AIM's workload takes the columns that questions join."""

import pytest

from counterpoise.errors import MethodError
from counterpoise.synthesizers import Aim
from counterpoise.synthesizers.graphical import Domain
from counterpoise.synthesizers.workload import TARGET_WEIGHT, candidate_weights, question_cliques
from counterpoise.vault import Budget, Vault
from tests.conftest import make_schema, make_table

DOMAIN = Domain(("a", "b", "c", "d"), (2, 2, 2, 2))
PAIRS = [("a", "b"), ("a", "c"), ("a", "d"), ("b", "c"), ("b", "d"), ("c", "d")]


def test_cliques_that_a_question_joins_count_as_those_of_a_target():
    plain = candidate_weights(DOMAIN, PAIRS)
    asked = candidate_weights(DOMAIN, PAIRS, joined=[("a", "b")])
    # Each column is in three pairs; one of those of a and b counts three times.
    assert plain["c", "d"] == asked["c", "d"] == 6
    assert asked["a", "b"] == 2 * (2 + TARGET_WEIGHT)
    assert max(asked, key=asked.get) == ("a", "b")


def test_one_column_of_a_question_alone_changes_nothing():
    assert candidate_weights(DOMAIN, PAIRS, joined=[("a",)]) == candidate_weights(DOMAIN, PAIRS)


def test_a_stated_workload_takes_in_what_questions_join():
    joined = [("a", "b", "c")]
    assert question_cliques(DOMAIN, joined, 2, 100) == [("a", "b"), ("a", "c"), ("b", "c")]
    assert question_cliques(DOMAIN, joined, 3, 4) == [("a", "b"), ("a", "c"), ("b", "c")]
    schema = make_schema()
    with Vault(make_table(800), schema, Budget(20.0, 1e-6), seed=1) as vault:
        method = Aim(workload=(("age",),), questions=["sex x grade"])
        model = method.fit(vault, vault.budget.whole)
    assert {"sex", "grade"} in [set(columns) for columns in model.measured_columns]


def test_questions_of_other_columns_are_refused_before_anything_is_paid():
    with Vault(make_table(20), make_schema(), Budget(1.0, 1e-6), seed=1) as vault:
        with pytest.raises(MethodError, match="no column 'shoe'"):
            Aim(questions=["mean(shoe)"]).fit(vault, vault.budget.whole)
        assert vault.ledger.spends == ()
