"""The search for private values finds them in every hiding place, and leaves the rest alone."""

from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from counterpoise.testing.leaks import (
    PRIVATE_SCHEMA,
    ROWS,
    TEXT,
    holds_the_exact_rows,
    private_rows,
    traces,
)
from counterpoise.testing.tables import rows_of
from counterpoise.vault import Budget, Vault

TABLE = private_rows()
CODED = PRIVATE_SCHEMA.encode(TABLE)
NUMBER = float(TABLE["wealth"][5])


class Slotted:
    __slots__ = ("kept",)

    def __init__(self, kept):
        self.kept = kept


@dataclass(frozen=True)
class Value:
    kept: object

    def __repr__(self):
        return "Value()"


def closure(kept):
    return lambda: kept


def chained(kept):
    try:
        try:
            raise KeyError(kept)
        except KeyError:
            raise ValueError("hidden")  # noqa: B904
    except ValueError as error:
        return error


@pytest.mark.parametrize(
    "secret",
    [
        pytest.param(TEXT, id="text"),
        pytest.param(f"around {NUMBER!r} or so", id="number in a text"),
        pytest.param(NUMBER, id="number"),
        pytest.param(np.float64(NUMBER).tobytes(), id="number in bytes"),
        pytest.param(b"abc" + np.float64(NUMBER).tobytes() + b"d", id="number amid bytes"),
        pytest.param(TABLE["wealth"].to_numpy()[:3], id="numbers"),
        pytest.param(TABLE["wealth"].to_numpy(np.float32)[:50], id="numbers in single precision"),
        pytest.param(TABLE.iloc[[4]], id="row"),
        pytest.param(CODED.take(np.arange(8, 18)), id="coded rows"),
        pytest.param(CODED.codes[[3, 99, 4, 1000, 7, 12]], id="codes of some rows"),
        pytest.param(CODED.codes[[3, 99, 4, 1000, 7, 12]].T, id="codes of some rows, turned"),
        pytest.param(CODED.codes[50:90, 1], id="codes of a column"),
        pytest.param(np.bincount(CODED.codes[:, 1]), id="exact counts"),
        pytest.param(np.bincount(CODED.codes[:, 3]) / ROWS, id="exact shares"),
    ],
)
@pytest.mark.parametrize(
    "hide",
    [Slotted, Value, closure, chained, partial(partial, print), lambda kept: {"a": [(kept,)]}],
    ids=["slots", "dataclass", "closure", "error's context", "partial", "containers"],
)
def test_a_secret_is_found_wherever_it_hides(secret, hide):
    assert traces(hide(secret))
    assert traces(SimpleNamespace(inner=hide(secret)))


def test_the_place_is_named():
    assert traces(Value({"rows": TEXT})) == ["a private text in kept['rows']"]


def test_an_open_vault_is_found_by_itself():
    with Vault(TABLE, PRIVATE_SCHEMA, Budget(1.0)) as vault:
        assert "the vault in kept" in traces(Value(vault))


def test_the_exact_number_of_rows_is_found_as_a_number_and_in_a_text():
    assert holds_the_exact_rows({"rows": ROWS})
    assert holds_the_exact_rows(Value(np.array([1.0, ROWS])))
    assert holds_the_exact_rows(f"of {ROWS} rows")
    assert not holds_the_exact_rows([ROWS + 1, f"1{ROWS}", f"0.{ROWS}"])


@pytest.mark.parametrize("seed", range(5))
def test_what_is_not_private_is_left_alone(seed):
    generator = np.random.default_rng(seed)
    others = rows_of(PRIVATE_SCHEMA, 2000, seed)
    counts = np.bincount(CODED.codes[:, 3]) + generator.integers(-3, 4, 64)
    coded = PRIVATE_SCHEMA.encode(others)
    singles = others["wealth"].to_numpy(np.float32)
    odd = np.array([-np.inf, np.nan, 1e300])
    assert traces([others, counts, coded, singles, odd, PRIVATE_SCHEMA, pd.DataFrame()]) == []


def test_errors_that_hide_their_context_hold_nothing_of_it():
    try:
        try:
            raise KeyError(TEXT)
        except KeyError:
            raise ValueError("hidden") from None
    except ValueError as error:
        assert traces(error) == []
