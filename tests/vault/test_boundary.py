"""What leaves a look by way of an exception: public words, and no frame that holds a row."""

import copy
import gc
import io
import logging
import pickle
import traceback
import types
import warnings

import duckdb
import numpy as np
import pandas as pd
import pytest

import counterpoise as cp
from counterpoise.curation import weigh as weigh_module
from counterpoise.errors import CounterpoiseError, TableError, VaultError
from counterpoise.schema import Column, Schema
from counterpoise.vault import Budget, Dependence, Vault
from counterpoise.vault.boundary import behind, seal

CANARY = "Canary-Zebrafinch-8231"
SCHEMA = Schema(
    [
        Column.categorical("name", ["Ann", "other"], other="other"),
        Column.integer("age", 0, 99, bins=4),
    ]
)
OPEN = Schema([Column.categorical("name"), Column.integer("age")]).pay("name").pay("age")
NAMES = ["Ann", "other", *(f"name {place}" for place in range(200))]
CELLS = SCHEMA.replace(Column.integer("age", 0, 99))
CELLS = CELLS.replace(Column.categorical("name", NAMES, other="other"))
BUDGET = Budget(50.0, 1e-6)


class Features:
    names = ("one", "two")

    def __call__(self, rows):
        return np.ones((len(rows), 2))


def table():
    return pd.DataFrame({"name": ["Ann", CANARY] * 50, "age": [7, 48] * 50})


def opened(kind, folder, schema):
    if kind == "memory":
        return Vault(table(), schema, BUDGET)
    table().to_parquet(folder / "rows.parquet")
    return Vault(folder / "rows.parquet", schema, BUDGET, storage="duckdb")


QUERIES = {
    "counts": (SCHEMA, lambda vault, share: vault.counts([("name", "age")], share)),
    "total": (SCHEMA, lambda vault, share: vault.total(share)),
    "sums": (SCHEMA, lambda vault, share: vault.sums(Features(), 2.0, share)),
    "minimise": (
        SCHEMA,
        lambda vault, share: vault.minimise(
            Features(), 2.0, SCHEMA.encode(table()), share, rows=100, regularisation=0.5
        ),
    ),
    "minimise_perturbed": (
        SCHEMA,
        lambda vault, share: vault.minimise_perturbed(
            Features(), 2.0, SCHEMA.encode(table()), share, rows=100, regularisation=5.0
        ),
    ),
    "select": (SCHEMA, lambda vault, share: vault.select([("name", "age")], Dependence(), share)),
    "quantiles": (SCHEMA, lambda vault, share: vault.quantiles("age", [0.5], share)),
    "bounds": (OPEN, lambda vault, share: vault.bounds("age", share)),
    "categories": (OPEN, lambda vault, share: vault.categories("name", share, 1e-7)),
    "learn_domain": (OPEN, lambda vault, share: vault.learn_domain(share, 1e-7)),
    "choose_bins": (SCHEMA, lambda vault, share: vault.choose_bins(share)),
    "choose_cells": (
        CELLS,
        lambda vault, share: vault.choose_cells(share.part(0.9), share.part(0.1)),
    ),
}
LOOKS = (
    "rows",
    "persons",
    "counts",
    "unit_counts",
    "provisional_counts",
    "distinct",
    "add_up",
    "batches",
)


def failing(error):
    def look(*arguments):
        row = {"name": CANARY, "age": 48}
        try:
            raise KeyError(f"first: {row}")
        except KeyError as first:
            raise error(f"Conversion Error in row {row}") from first

    return look


def shown(error):
    """What a logger that captures locals would write."""
    text = "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    logger = logging.getLogger("test-boundary")
    logger.addHandler(handler)
    try:
        logger.error("failed", exc_info=error)
    finally:
        logger.removeHandler(handler)
    return text + stream.getvalue()


def held(error):
    """All texts that an exception refers to, through its frames too, but for this file's own."""
    left, seen, texts = [error], set(), []
    while left:
        one = left.pop()
        if id(one) in seen or isinstance(one, types.ModuleType | type):
            continue
        seen.add(id(one))
        if isinstance(one, types.FrameType):
            if one.f_code.co_filename != __file__:
                left += one.f_locals.values()
        elif isinstance(one, types.TracebackType):
            left += [one.tb_frame, one.tb_next]
        elif isinstance(one, str):
            texts.append(one)
        elif isinstance(one, types.FunctionType):
            left += [cell.cell_contents for cell in one.__closure__ or ()]
        elif isinstance(one, np.ndarray) and one.dtype == object:
            left += one.ravel().tolist()
        elif isinstance(one, BaseException):
            left += [one.__traceback__, one.__cause__, one.__context__, *one.args]
        else:
            left += [part for part in gc.get_referents(one) if not isinstance(part, dict)]
            left += list(vars(one).values()) if hasattr(one, "__dict__") else []
    return texts


@pytest.mark.parametrize("kind", ["memory", "duckdb"])
@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("error", [ValueError, MemoryError, RuntimeError])
def test_a_failing_look_shows_no_row(name, kind, error, tmp_path, monkeypatch):
    schema, ask = QUERIES[name]
    with opened(kind, tmp_path, schema) as vault:
        for look in LOOKS:
            monkeypatch.setattr(vault._storage, look, failing(error))
        with pytest.raises(CounterpoiseError) as caught:
            ask(vault, vault.budget.whole.part(0.1))
        monkeypatch.undo()
        assert len(vault.ledger.spends) == 1
    found = caught.value
    assert CANARY not in shown(found)
    assert found.__context__ is None
    assert found.__cause__ is None
    assert not [text for text in held(found) if CANARY in text]


@pytest.mark.parametrize("name", ["sums", "minimise"])
def test_a_failing_feature_map_does_not_keep_its_batch(name, tmp_path):
    class Broken(Features):
        def __call__(self, rows):
            if len(rows) == 100:
                batch = rows.codes.copy()
                raise ZeroDivisionError(f"{CANARY}: {batch}")
            return super().__call__(rows)

    with opened("memory", tmp_path, SCHEMA) as vault, pytest.raises(VaultError) as caught:
        if name == "sums":
            vault.sums(Broken(), 2.0, vault.budget.whole)
        else:
            few = SCHEMA.encode(table().head(3))
            vault.minimise(Broken(), 2.0, few, BUDGET.whole, rows=100, regularisation=0.5)
    assert "ZeroDivisionError" in str(caught.value)
    assert CANARY not in shown(caught.value)
    frames = [frame for frame, _ in traceback.walk_tb(caught.value.__traceback__)]
    names = {frame.f_code.co_name for frame in frames}
    assert "__call__" not in names
    assert "look" not in names


def test_an_error_of_the_database_is_not_kept_with_its_row(tmp_path):
    relation = duckdb.connect().sql("SELECT error('boom') AS name, 7 AS age")
    with pytest.raises(CounterpoiseError) as caught, Vault(relation, SCHEMA, BUDGET) as vault:
        vault.total(vault.budget.whole)
    error = caught.value
    error.__traceback__ = error.__traceback__.tb_next  # without this test's own frame
    assert "boom" not in shown(error)


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_an_interruption_stays_one_and_leaves_its_frames_behind(stop):
    def look():
        row = CANARY
        raise stop(row)

    with pytest.raises(stop) as caught:
        behind(look, "a look")
    assert CANARY not in shown(caught.value)


def test_whether_a_number_overflows_behind_the_boundary_is_not_told():
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        found = behind(lambda: np.array([1e308, 1.0]) / 1e-308, "a look")
    assert found[0] == np.inf


def test_errors_of_ours_keep_their_words():
    def look():
        raise TableError("the file is damaged")

    with pytest.raises(TableError, match="the file is damaged"):
        behind(look, "a look")


def test_a_sealed_table_is_not_shown_copied_or_pickled():
    sealed = seal(table())
    assert CANARY not in repr(sealed)
    assert CANARY not in str(sealed)
    for take in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(VaultError, match="never copied"):
            take(sealed)
    assert seal(sealed) is sealed
    assert seal("rows.csv") == "rows.csv"


@pytest.mark.parametrize("call", ["release", "weigh", "vault"])
def test_no_frame_of_ours_shows_the_table_that_was_handed_over(call, monkeypatch):
    """Refused in the vault, in the plan, or half-way: the caller's rows are in no local of ours."""
    private = table().rename(columns={"age": "years"})
    with pytest.raises(TableError) as caught:
        if call == "release":
            cp.release(private, SCHEMA, 1.0, 1e-6)
        elif call == "weigh":
            synthetic = pd.DataFrame({"name": ["Ann"] * 9, "age": [7] * 9})
            monkeypatch.setattr(weigh_module, "_warned", True)
            cp.weigh(private, synthetic, SCHEMA, 1.0, 1e-6)
        else:
            Vault(private, SCHEMA, BUDGET)
    error = caught.value
    error.__traceback__ = error.__traceback__.tb_next  # without this test's own frame
    assert CANARY not in shown(error)
