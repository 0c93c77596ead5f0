"""What is said of persons whose rows were left out: intervals that hold, and no number in noise."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import counterpoise as cp
from counterpoise.bundle.card import rows_counted, rows_kept
from counterpoise.bundle.persons import PersonsCounted, persons_counted
from counterpoise.bundle.rules import check_card
from counterpoise.errors import BundleError

COUNTED = PersonsCounted(within=500.0, beyond=1500.0, deviation=45.0, is_pure=False, rows=3)


@pytest.fixture(scope="module")
def card():
    table = pd.DataFrame({"who": np.repeat(np.arange(300), 4), "ill": [True, False] * 600})
    schema = cp.Schema([cp.Column.boolean("ill")])
    asked = {"person": "who", "max_rows_per_person": 3, "rows": 20, "replicates": 0, "seed": 1}
    return cp.release(table, schema, 5.0, 1e-6, **asked).card


@pytest.mark.parametrize("is_pure", [False, True])
@pytest.mark.parametrize(
    ("within", "beyond"), [(5000, 0), (2000, 20), (2000, 150), (500, 1500), (3, 900), (40, 60)]
)
def test_what_is_said_holds_as_often_as_it_says(within, beyond, is_pure):
    """95% of 3,000 runs, less four of their standard errors: a false alarm in thirty thousand."""
    generator, runs = np.random.default_rng(1), 3000
    draw = generator.laplace if is_pure else generator.normal
    noise = np.rint(draw(0, 45 / np.sqrt(2) if is_pure else 45, (runs, 2)))
    part, held = beyond / (within + beyond), np.zeros(3)
    for first, second in noise:
        found = PersonsCounted(within + first, beyond + second, 45.0, is_pure, 3)
        low, high = found.part_beyond
        is_in = low <= part <= high, abs(second) <= found.half_width
        held += [*is_in, abs(first + second) <= np.sqrt(2) * found.half_width]
    assert (held / runs >= 0.95 - 4 * np.sqrt(0.95 * 0.05 / runs)).all()


@pytest.mark.parametrize(
    ("within", "beyond", "deviation", "part", "many"),
    [
        (500, 1500, 45.0, "71% to 79% of persons", "about 1,500 ± 89 of them"),
        (2000, -30, 45.0, "at most 3% of persons", "at most 89 of them"),
        (10, 1990, 45.0, "at least 95% of persons", "about 1,990 ± 89 of them"),
        (60, 50, 45.0, "noise hides how many persons", "at most 139 of them"),
        (-5, -3, 45.0, "noise hides how many persons", "at most 89 of them"),
        (0, 0, 0.0, "noise hides how many persons", "at most 0 of them"),
        (500, 1500, 1e-4, "74% to 76% of persons", "about 1,500 ± 1 of them"),
        (2000, 0, 0.0, "at most 1% of persons", "at most 0 of them"),
        (0, 2000, 0.0, "at least 99% of persons", "about 2,000 ± 0 of them"),
    ],
)
def test_what_noise_hides_has_no_number(within, beyond, deviation, part, many):
    found = replace(COUNTED, within=within, beyond=beyond, deviation=deviation)
    assert found.said.startswith(part) and found.said.endswith("have more")
    assert many in found.described


def test_how_many_rows_were_kept_is_said():
    assert "have more than 1,200 rows (95%)" in replace(COUNTED, rows=1200).described
    assert "have more than one row (95%)" in replace(COUNTED, rows=1).described


def test_a_card_of_an_earlier_version_says_which_rows_and_no_more(card):
    earlier = {key: value for key, value in card.items() if key != "persons"}
    check_card(earlier)
    assert persons_counted(earlier) is None
    assert rows_counted(earlier) == rows_kept(earlier) != ""
    assert rows_counted(card) == f"{rows_kept(card)}; {persons_counted(card).said}"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "persons: expected an object"),
        (300, "persons: expected an object"),
        ({"within": 0, "beyond": 300}, "persons.deviation is missing"),
        ({"within": 0, "beyond": float("nan"), "deviation": 4.5}, "persons.beyond: expected a num"),
        ({"within": -1e16, "beyond": 3, "deviation": 4.5}, "persons.within: expected a number"),
        ({"within": 0, "beyond": 300, "deviation": -1}, "persons.deviation: expected a number"),
    ],
)
def test_counts_of_persons_keep_their_rule(card, value, reason):
    with pytest.raises(BundleError, match=reason):
        check_card(card | {"persons": value})


def test_persons_who_were_not_bounded_were_not_counted(card):
    with pytest.raises(BundleError, match="persons are counted where they are bounded"):
        check_card(card | {"person": "promised"})
