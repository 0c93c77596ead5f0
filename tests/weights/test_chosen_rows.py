"""The part of the rows that tells of all: what moves means is in it, and it is not biased."""

import numpy as np
import pandas as pd
import pytest

from counterpoise.schema import Column, Schema
from counterpoise.weights.chosen_rows import choose_part, choose_rows
from counterpoise.weights.row_blocks import HeldRows, MadeRows, Turn


def with_rare_rows(rows: int = 20_000, rare: int = 8) -> np.ndarray:
    """White rows, the last coordinate of which is carried by a few."""
    made = np.random.default_rng(0).normal(size=(rows, 4))
    made[:, 3] = 0.0
    made[:rare, 3] = np.sqrt(rows / rare)
    return made


def test_few_rows_are_all_there_and_stand_for_themselves():
    places, stands_for = choose_rows(np.ones(5), 10)
    assert places.tolist() == [0, 1, 2, 3, 4]
    assert stands_for.tolist() == [1.0] * 5


def test_rows_that_carry_a_coordinate_are_all_chosen():
    rows = with_rare_rows()
    places, _ = choose_rows((rows**2).sum(axis=1), 1000)
    assert set(range(8)) <= set(places.tolist())
    assert len(places) == pytest.approx(1000, rel=0.2)


def test_a_part_tells_of_the_mean_and_of_the_covariance():
    rows = with_rare_rows()
    part, mean = choose_part(HeldRows(rows), 2000)
    assert mean == pytest.approx(rows.mean(axis=0))
    assert part.stands_for.mean() == pytest.approx(1)
    covariance = (part.values * part.stands_for[:, None]).T @ part.values / len(part.values)
    # About 2,000 rows: each entry within a few times 1 / sqrt(2,000)
    assert covariance == pytest.approx(rows.T @ rows / len(rows), abs=0.12)


def test_rows_that_are_turned_are_chosen_by_what_they_are_turned_to():
    """Raw rows all have the same length: only in white coordinates is a few's worth seen."""
    white = with_rare_rows()
    turn = Turn(np.array([3.0, 0.0, -1.0, 0.5]), np.diag([1.0, 2.0, 0.5, 100.0]))
    raw = white / np.diag(turn.directions) + turn.centre
    schema = Schema([Column.integer("place", 0, len(raw) - 1, bins=len(raw))])
    coded = schema.encode(pd.DataFrame({"place": np.arange(len(raw))}))
    made = MadeRows(coded, lambda some: raw[some.codes[:, 0]], turn)
    part, mean = choose_part(made, 1000)
    assert (part.values[:, 3] > 1).sum() == 8
    assert mean == pytest.approx(white.mean(axis=0), abs=1e-3)
