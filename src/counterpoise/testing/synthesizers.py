"""The rules of synthesizers: those of every method, and what their models promise of rows.

A third party's synthesizer is held to the same list as ours:

>>> from counterpoise.synthesizers import Independent
>>> check_synthesizer(Independent())
"""

from __future__ import annotations

from collections.abc import Collection
from importlib.util import find_spec

import numpy as np

from counterpoise.errors import MethodError
from counterpoise.synthesizers import Synthesizer
from counterpoise.testing.common import COMMON
from counterpoise.testing.rules import hold_all, require, rules_of
from counterpoise.testing.tables import HARD_SCHEMAS, SCHEMA, USUAL, rows_of, usual_rows
from counterpoise.testing.trials import SynthesizerTrial, fitted
from counterpoise.vault import Budget

# The total variation that a column may keep from the truth where noise is not to blame for it.
LARGEST_DISTANCE = 0.03


def samples_rows_of_the_schema(trial: SynthesizerTrial) -> None:
    """A sample has the schema's columns in order, with their types, and as many rows as asked."""
    schema = HARD_SCHEMAS["every kind"]
    model = fitted(trial, rows_of(schema, 200), schema, USUAL).model
    require(model.schema == schema, "`schema` is not the one of the vault")
    flaw = trial.flaw(trial.outcome(model), schema)
    require(not flaw, f"a sample has {flaw}")


def samples_within_the_schema(trial: SynthesizerTrial) -> None:
    """A sampled value is one that the schema allows: a category, or a number within the bounds."""
    model = fitted(trial, usual_rows(200), SCHEMA, USUAL).model
    made = model.sample(200, seed=1)
    for column in SCHEMA:
        values = made[column.name].dropna()
        if column.categories is not None:
            inside = values.isin(list(column.categories)).all()
        else:
            inside = values.between(column.minimum, column.maximum).all()
        require(inside, f"column {column.name!r} has a value outside the schema")
        require(column.nullable or len(values) == len(made), f"{column.name!r} has a null")


def samples_no_rows_on_request(trial: SynthesizerTrial) -> None:
    """No rows can be asked for, and come with the schema's columns."""
    made = fitted(trial, usual_rows(100), SCHEMA, USUAL).model.sample(0, seed=1)
    require(len(made) == 0 and list(made.columns) == list(SCHEMA.names), "it is another table")


def samples_by_the_seed(trial: SynthesizerTrial) -> None:
    """The same seed samples the same rows, another seed others."""
    model = fitted(trial, usual_rows(200), SCHEMA, USUAL).model
    first, second, other = (model.sample(30, seed=seed) for seed in (2, 2, 3))
    require(first.equals(second), "the seed 2 made two tables")
    require(not first.equals(other), "the seeds 2 and 3 made the same table")


def samples_in_other_formats(trial: SynthesizerTrial) -> None:
    """With `format`, rows come as a polars or an Arrow table, where these are installed."""
    model = fitted(trial, usual_rows(100), SCHEMA, USUAL).model
    for format, library in (("polars", "polars"), ("arrow", "pyarrow")):
        if find_spec(library) is not None:
            made = model.sample(12, seed=0, format=format)
            require(made.shape == (12, len(SCHEMA)), f"as {format} it has the shape {made.shape}")
            home = type(made).__module__
            require(home.startswith(library), f"as {format} it is of {home}")


def says_how_many_rows(trial: SynthesizerTrial) -> None:
    """`rows` is a whole number from one: noisy, or under replace-one the public number."""
    for rows in (0, 300):
        said = fitted(trial, usual_rows(rows), SCHEMA, USUAL).model.rows
        require(isinstance(said, int | np.integer) and said >= 1, f"`rows` is {said!r}")
    try:
        said = fitted(trial, usual_rows(300), SCHEMA, Budget(1.0, 1e-6, "replace")).model.rows
    except MethodError:
        return  # a method may have no account under replace-one
    require(said == 300, f"of 300 public rows it says {said!r}")


def learns_every_column(trial: SynthesizerTrial) -> None:
    """With a very large budget every column by itself comes out as it is, up to 3%."""
    table = usual_rows(4000)
    model = fitted(trial, table, SCHEMA, Budget(500.0, 1e-6), seed=0).model
    made = SCHEMA.encode(model.sample(40_000, seed=0)).codes
    truth = SCHEMA.encode(table).codes
    for place, column in enumerate(SCHEMA):
        ours, theirs = (
            np.bincount(codes[:, place], minlength=column.size) / len(codes)
            for codes in (made, truth)
        )
        distance = abs(ours - theirs).sum() / 2
        require(distance < LARGEST_DISTANCE, f"{column.name!r} is {distance:.1%} off")


SYNTHESIZER_RULES = rules_of(
    SynthesizerTrial.of,
    (
        *COMMON,
        samples_rows_of_the_schema,
        samples_within_the_schema,
        samples_no_rows_on_request,
        samples_by_the_seed,
        samples_in_other_formats,
        says_how_many_rows,
        learns_every_column,
    ),
)


def check_synthesizer(method: str | Synthesizer, leave_out: Collection[str] = ()) -> None:
    """Hold a synthesizer to every rule; raises `BrokenRule` at the first that it breaks.

    `method` is an instance, or a name that is registered. Rules can be left out by name, where a
    method has reasons; say them beside the call.
    """
    hold_all(SYNTHESIZER_RULES, method, leave_out)
