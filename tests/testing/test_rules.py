"""Every rule of `counterpoise.testing` is kept by honest methods, and bites where one breaks it."""

import pytest

from counterpoise.errors import MethodError
from counterpoise.synthesizers import Independent
from counterpoise.testing import (
    SYNTHESIZER_RULES,
    WEIGHTER_RULES,
    BrokenRule,
    check_synthesizer,
    check_weighter,
)
from tests.testing.toys import SYNTHESIZER_TOYS, WEIGHTER_TOYS, Strata

CASES = [
    pytest.param(rule, toy, id=f"{kind}-{rule}-{type(toy).__name__}")
    for kind, rules, toys in (
        ("synthesizer", SYNTHESIZER_RULES, SYNTHESIZER_TOYS),
        ("weighter", WEIGHTER_RULES, WEIGHTER_TOYS),
    )
    for rule in rules
    for toy in toys.get(rule.name, ())
]


@pytest.mark.parametrize(("rule", "toy"), CASES)
def test_a_toy_that_breaks_a_rule_is_caught_by_it(rule, toy):
    with pytest.raises(BrokenRule) as caught:
        rule.hold(toy)
    assert caught.value.rule == rule.name
    assert rule.sentence in str(caught.value)
    assert type(toy).__name__ in str(caught.value)


@pytest.mark.parametrize(
    ("rules", "toys"), [(SYNTHESIZER_RULES, SYNTHESIZER_TOYS), (WEIGHTER_RULES, WEIGHTER_TOYS)]
)
def test_every_rule_has_a_sentence_and_a_toy_that_breaks_it(rules, toys):
    assert [rule.name for rule in rules] == list(dict.fromkeys(rule.name for rule in rules))
    assert {rule.name for rule in rules} == set(toys)
    assert all(rule.sentence.endswith(".") for rule in rules)


def test_a_third_partys_honest_weights_keep_to_every_rule():
    check_weighter(Strata())


def test_the_first_broken_rule_ends_the_check_and_can_be_left_out_on_purpose():
    [toy] = SYNTHESIZER_TOYS["samples_no_rows_on_request"]
    few = {"is_a_frozen_value", "samples_no_rows_on_request", "samples_by_the_seed"}
    others = [rule.name for rule in SYNTHESIZER_RULES if rule.name not in few]
    with pytest.raises(BrokenRule, match=r"'samples_no_rows_on_request'.*But it is another table"):
        check_synthesizer(toy, leave_out=others)
    check_synthesizer(toy, leave_out=[*others, "samples_no_rows_on_request"])


def test_a_rule_that_does_not_exist_cannot_be_left_out():
    with pytest.raises(MethodError, match="there is no rule 'samples_nothing'"):
        check_synthesizer(Independent(), leave_out=["samples_nothing"])


def test_a_broken_rule_is_an_assertion_for_every_test_runner():
    assert issubclass(BrokenRule, AssertionError)
