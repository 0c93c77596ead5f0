"""Weights for a synthetic table that was made elsewhere, by any tool.

All of the budget goes to the weights, but for a hundredth where persons are bounded, which tells
how many of them have more rows than are kept. What the synthetic table itself reveals is not in the
ledger: its own privacy cost is the caller's to add, and a table made without privacy stays one.
The table is taken as given, so replicate weights show the noise of the weights and the finite
number of rows, not the noise of the tool that made it.
"""

from __future__ import annotations

import contextlib
import hashlib
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import counterpoise
from counterpoise.analysis.price import with_price
from counterpoise.arguments import seed_or_none, whole_number
from counterpoise.bundle.assemble import assemble, derived_seed
from counterpoise.bundle.card import COVERS_WEIGHTS, describe, versions
from counterpoise.bundle.release import Release
from counterpoise.curation.plan import Plan, check_seed, plan_weigh
from counterpoise.curation.progress import Progress, shown
from counterpoise.curation.stages import (
    count_persons,
    described_people,
    described_questions,
    fit_weights,
    open_vault,
    request,
    usable_account,
)
from counterpoise.curation.unstated_delta import tell_of_delta
from counterpoise.curation.work import Work, is_begun, open_work
from counterpoise.errors import CounterpoiseWarning, TableError
from counterpoise.formulas.questions import Question
from counterpoise.schema import Column, Schema
from counterpoise.schema.dialect import DEFAULT
from counterpoise.schema.encoding import read_values
from counterpoise.schema.reading import is_moment_like, is_number_like, text_of
from counterpoise.schema.row_rules import obeyed
from counterpoise.schema.tables import check_columns, read_table
from counterpoise.vault import REPLACE, Account, Budget, seal
from counterpoise.weights import WEIGHTERS, Weighter

CAVEAT = "the synthetic table's own privacy cost is yours to add: this ledger has the weights' only"

_NO_PLACE = (
    "the schema has no place for {} in the synthetic table; widen the schema, or clean the table"
)
_WHOLE = (
    "expected whole numbers in the synthetic table, not {}; round them, or make the column "
    "continuous in the schema"
)
_NUMBERS = "expected numbers in the synthetic table, not {}; convert them, or leave them out"
_EXPECTED = {
    "integer": _NUMBERS,
    "continuous": _NUMBERS,
    "date": "expected ISO dates (YYYY-MM-DD) in the synthetic table, not {}; convert them",
    "datetime": "expected ISO moments (YYYY-MM-DD HH:MM:SS) in the synthetic table, not {}; "
    "convert them",
}

_warned = False


def weigh(
    private: Any,
    synthetic: Any,
    schema: Any,
    epsilon: float,
    delta: float | None = None,
    *,
    method: str | Weighter = "moments",
    target: str | None = None,
    questions: Sequence[str | Question] | None = None,
    replicates: int = 80,
    neighbours: str = "add-remove",
    max_rows_per_person: int | None = None,
    person: str | None = None,
    account: Account | str | Path | None = None,
    seed: int | None = None,
    progress: bool | Progress = True,
    work: str | Path | None = None,
) -> Release:
    """Weigh a synthetic table that was made elsewhere.

    `private` and `synthetic` are files or tables as for `release`; the synthetic table has the
    columns of the schema, with values that the schema allows, and is the release's table; it is
    plain, or written as the private table is. Its rows have to obey the schema's checks; derived
    columns and identifiers are made anew. All of (epsilon, delta) is spent on the weights, but for
    a hundredth that counts the persons where `person` bounds them. The other parameters are as for
    `release`; a `work` folder belongs to one synthetic table.

    >>> import warnings, numpy as np, pandas as pd, counterpoise as cp
    >>> generator = np.random.default_rng(0)
    >>> private = pd.DataFrame({"ill": generator.random(2000) < 0.7})
    >>> synthetic = pd.DataFrame({"ill": generator.random(2000) < 0.5})
    >>> schema = cp.Schema([cp.Column.boolean("ill")])
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", cp.CounterpoiseWarning)
    ...     made = cp.weigh(private, synthetic, schema, epsilon=1.0, delta=1e-6, seed=1)
    >>> round(float(np.average(made.table["ill"], weights=made.weights)), 1)
    0.7
    """
    private = seal(private)
    stated = 0.0 if delta is None else delta
    budget = Budget(epsilon, stated, neighbours, max_rows_per_person)  # type: ignore[arg-type]
    plan = plan_weigh(schema, budget, method, target, questions, person)
    replicates, seed = whole_number("replicates", replicates, 0), seed_or_none(seed)
    check_seed(plan, seed)
    rows = public_table(synthetic, plan.schema)
    _check_rules(rows, plan.released)
    _warn_once()
    billed = usable_account(account, plan, seed, is_begun(work))
    tell_of_delta(plan, billed, delta)
    asked = request_of(rows, plan, replicates, seed, billed)
    kept = open_work(work, asked, plan, private=seed is None)
    with kept as found, shown(progress, plan) as said:
        return _run(private, rows, plan, found, said, replicates, seed, billed)


def request_of(
    rows: pd.DataFrame, plan: Plan, replicates: int, seed: int | None, account: Account | None
) -> dict[str, Any]:
    """What tells one call of `weigh` from another, all of it public."""
    asked = {"synthetic": _digest(rows), "replicates": replicates, "seed": seed}
    return request(plan, account) | asked


def _run(
    private: Any,
    rows: pd.DataFrame,
    plan: Plan,
    kept: Work,
    said: Progress,
    replicates: int,
    seed: int | None,
    account: Account | None,
) -> Release:
    sampling_seed = kept.sampling_seed if seed is None else seed
    said("weights", 0.0)
    with open_vault(private, plan, kept, seed, account) as vault:
        persons = count_persons(vault, plan, kept)
        model = fit_weights(vault, rows, plan, kept)
        is_public = plan.budget.neighbours is REPLACE
        population = float(vault.total().value) if is_public else _population(model)
        ledger, people = vault.ledger, described_people(vault) | persons
    card = {
        "counterpoise": counterpoise.__version__,
        "versions": versions(),
        "ledger": ledger.to_dict(),
        "synthesizer": {"method": "elsewhere", "parameters": {}},
        "weights": describe(WEIGHTERS, plan.weighter),
        "split": None,
        **described_questions(plan, model, vault.schema),
        "population": population,
        "population_is_public": is_public,
        "seeded": seed is not None,
        **people,
        **kept.described,
        "model": {"saved": False, "reason": "the synthetic table was made elsewhere"},
        "covers": COVERS_WEIGHTS,
        "caveat": CAVEAT,
    }
    if replicates:
        said("replicates", 0.5)
    made = assemble(
        rows,
        plan.released.settled.as_released(),
        card,
        model,
        replicates=replicates,
        work=kept.folder,
        seed=derived_seed(sampling_seed, 1),
    )
    made = with_price(made)
    said("done", 1.0)
    return made


def _digest(rows: pd.DataFrame) -> str:
    """What tells one synthetic table from another."""
    hashed = pd.util.hash_pandas_object(rows, index=False).to_numpy()
    return hashlib.sha256(hashed.tobytes()).hexdigest()


def _population(model: Any) -> float | None:
    """The noisy number of private rows, where the weights paid for it."""
    found = getattr(model, "population", None)
    return None if found is None else float(found)


def _warn_once() -> None:
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(CAVEAT, CounterpoiseWarning, stacklevel=3)


def public_table(synthetic: Any, stated: Schema) -> pd.DataFrame:
    """The table with the schema's columns and dtypes; a value without a place there is refused.

    Private rows are clamped without a word. This table is public, so its mistakes can be named.
    It is plain (points, ISO dates, commas), or written as the private table is: many tools give
    back what they were given.
    """
    schema = stated.as_released()
    found = _read_file(synthetic, stated)
    check_columns(found.columns, schema, "the synthetic table")
    if not len(found):
        raise TableError("the synthetic table has no rows to weigh")
    frame = pd.DataFrame(
        {column.name: _checked(column, found, schema, stated[column.name]) for column in schema}
    )
    return schema.restore(frame)


def _read_file(synthetic: Any, stated: Schema) -> pd.DataFrame:
    """The table, in the private table's dialect if that makes its columns of a file."""
    if stated.dialect != DEFAULT:
        with contextlib.suppress(TableError):
            found = read_table(synthetic, dialect=stated.dialect)
            if set(stated.names) <= set(found.columns):
                return found
    return read_table(synthetic)


def _check_rules(rows: pd.DataFrame, schema: Schema) -> None:
    """Refuse rows that break a public rule; they are taken as given, and not drawn again."""
    for rule, kept in obeyed(schema, rows).items():
        if not kept.all():
            raise TableError(
                f"{rule}: {int((~kept).sum()):,} of the {len(kept):,} rows of the synthetic table "
                "break it; leave those rows out, or correct the schema"
            )


def _checked(column: Column, table: pd.DataFrame, schema: Schema, stated: Column) -> pd.Series:
    """A column of the synthetic table as the schema reads it, null where it has a word for it.

    `stated` is the same column with the private table's spelling.
    """
    values = table[column.name].reset_index(drop=True)
    if not (is_number_like(values) or is_moment_like(values)):
        values = values.astype(object)
        values = values.mask(values.isin(schema.words_for_null(column)), None)
    nulls = values.isna().to_numpy()
    if nulls.any() and not column.nullable:
        raise TableError(
            f"column {column.name!r}: the synthetic table has nulls, and the schema allows none"
        )
    if column.is_numeric:
        return _read(column, values, nulls, schema.missing_values, stated)
    # Coded as if it might be null, a value without a place shows as null.
    lenient = Schema((replace(column, nullable=True),), schema.missing_values)
    strange = lenient.encode(values.to_frame()).codes[:, 0] == column.cells
    _refuse(column, values, strange & ~nulls, _NO_PLACE)
    return values


def _read(
    column: Column,
    values: pd.Series,
    nulls: np.ndarray,
    missing_values: tuple[str, ...],
    stated: Column,
) -> pd.Series:
    """Numbers or moments within the bounds; a moment is in UTC, and a date has no time of day."""
    numbers, unread = read_values(column, values, missing_values)
    if (unread & ~nulls).any():
        # Not plain throughout: then all of it is as the private table is, or it is refused.
        spelled, unspelled = read_values(stated, values, missing_values)
        if not (unspelled & ~nulls).any():
            numbers, unread = spelled, unspelled
    _refuse(column, values, unread & ~nulls, _EXPECTED[column.kind])
    outside = (numbers < column.low) | (numbers > column.high)
    _refuse(column, values, outside & ~nulls, _NO_PLACE)
    if column.kind == "integer":
        _refuse(column, values, (numbers % 1 != 0) & ~nulls, _WHOLE)
    if column.kind in ("integer", "continuous"):
        return pd.Series(numbers).mask(nulls)
    moments = numbers.astype("datetime64[D]" if column.kind == "date" else "datetime64[us]")
    return pd.Series(moments).mask(nulls)


def _refuse(column: Column, values: pd.Series, wrong: np.ndarray, message: str) -> None:
    """Raise a TableError that names the first value that is wrong, if there is one."""
    if wrong.any():
        value = values[wrong].iloc[0]
        shown = repr(value) if isinstance(value, str) else text_of(value)
        raise TableError(f"column {column.name!r}: {message.format(shown)}")
