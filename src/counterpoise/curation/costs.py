"""What the stages of a release take in time and memory: small formulas with measured constants.

The constants are processor seconds and bytes on one core of a common server, fitted to releases of
tables with 1,000 to 200,000 rows and 5 to 18 columns by `benchmarks/outlook.py`, which also shows
how far off they are: within a factor of two there. What they cannot know is the table itself. Which
relations are chosen, and how many rows a replicate rests on, decide how many rounds and steps it
takes; a table whose weights barely hold can take several times as long.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

from counterpoise.schema import Schema
from counterpoise.synthesizers import (
    Aim,
    DpMmd,
    Histogram,
    Independent,
    Marginals,
    MmdGan,
    Mst,
    PateGan,
    PrivBayes,
    SupportPoints,
)
from counterpoise.synthesizers.aim import NOISE_A_CELL, USEFUL_NOISE
from counterpoise.synthesizers.embedding import MOST_FUNCTIONS
from counterpoise.synthesizers.gan import AdversarialMethod
from counterpoise.synthesizers.graphical import Domain
from counterpoise.synthesizers.graphical.cost import predict_cost
from counterpoise.synthesizers.matching import MATCHED_ROWS
from counterpoise.synthesizers.mmdgan import BOTTLENECK, FEATURES, LAYER
from counterpoise.synthesizers.pategan import STEP_ROWS
from counterpoise.synthesizers.workload import all_cliques
from counterpoise.weights.many_calibrations import PART_ROWS
from counterpoise.weights.moment_model import FIRST_ROWS
from counterpoise.weights.row_blocks import MOST_HELD
from counterpoise.weights.standardise import CHUNK_ROWS

# Python and the libraries, before anything is read.
BYTES_TO_START = 245_000_000
# A value of a table as text while it is read, and then as codes, units and in the synthetic table.
# What has more values than a small file stays in its file.
BYTES_A_READ_VALUE, BYTES_A_HELD_VALUE = 115, 45
MOST_READ_VALUES = 8_000_000
# Whatever a stage does first.
SECONDS_TO_START = 0.05
# Reading, coding and drawing a value.
SECONDS_A_READ_VALUE = 6e-7
# Counting one table: a part for each row, and a part for the call.
SECONDS_A_COUNTED_ROW, SECONDS_A_TABLE = 2.5e-8, 2e-4
# Networks: a weight of theirs for a row, there and back; a step by itself; and a private row's
# product of two columns' functions.
SECONDS_A_WEIGHT, SECONDS_A_STEP, SECONDS_A_PRODUCT = 1e-9, 4e-4, 1.5e-8
# Support points: what a column adds to the distance of a row and a point.
SECONDS_A_GAP = 6e-9
# The weights: a feature of a row, worked out and whitened; one against another, over all rows; and
# the same over the rows that the search for the softness takes.
SECONDS_A_FEATURE, SECONDS_A_PAIR, SECONDS_A_SEARCHED_PAIR = 4e-8, 2e-10, 8e-10
# Copies of the chunk of rows that is worked on.
CHUNKS = 2.5
# The replicates: the passes over all rows, and those over a part of them before, for a feature of a
# row in a replicate.
SECONDS_A_STEPPED_FEATURE, SECONDS_A_PART_FEATURE = 1.2e-9, 4e-9
# Drawing a row again, with what a fresh synthesizer makes of each of its columns; and saving it.
SECONDS_A_REDRAWN_VALUE, SECONDS_A_SAVED_WEIGHT, SECONDS_TO_SAVE = 1e-8, 8e-8, 0.25
# Of a row in a replicate: what was drawn, base weights and what they are worked out in.
BYTES_A_REPLICATED_ROW = 16


@dataclass(frozen=True)
class Cost:
    """Processor seconds, and the most memory that the process holds meanwhile."""

    seconds: float
    bytes: int


def synthesizer_cost(
    method: Any,
    schema: Schema,
    private_rows: int,
    rows: int,
    count_deviation: float,
    rows_read: int,
) -> Cost | None:
    """Reading, fitting and drawing; None where the method is not known.

    `count_deviation` is the noise on one count that had all of the share, and `rows_read` all
    private rows, those included that are not kept.
    """
    domain = Domain(schema.names, schema.sizes)
    columns, names = len(schema), schema.names
    tables, fits, training = columns, 1, 0.0
    # The pairs of a chain stand for the model that a method will choose.
    cliques: list[tuple[str, ...]] = [*itertools.pairwise(names)] or [names]
    match method:
        case Aim():
            # Larger tables are not even tried.
            useful = USEFUL_NOISE * 2 * private_rows / (NOISE_A_CELL * max(count_deviation, 1e-9))
            largest = max(1.0, min(useful, method.most_cells))
            tried = all_cliques(domain, min(method.degree, columns), largest)
            tables = sum(domain.cells(clique) <= largest for clique in tried)
            cliques = [clique for clique in cliques if domain.cells(clique) <= largest]
            cliques += [(name,) for name in names]
            fits = columns
        case Mst() | PrivBayes():
            tables = columns + math.comb(columns, 2)
        case Histogram():
            # At most so many: a pure budget counts no parts.
            cliques, tables = [names], 1 + len(method.parts_of(schema, is_pure=False))
        case Marginals():
            tables = math.comb(columns, min(method.degree, columns))
        case Independent():
            cliques = [(name,) for name in names]
        case DpMmd() | AdversarialMethod() | PateGan() | MmdGan():
            cliques = [(name,) for name in names]
            training = _training_seconds(method, schema, private_rows)
        case SupportPoints():
            cliques = [(name,) for name in names]
            is_exact = method.sampler == "exact"
            compared = method.candidates if is_exact else method.moves * method.repeats
            training = SECONDS_A_GAP * columns * private_rows * compared
        case _:
            return None
    model = predict_cost(domain, cliques)
    counting = max(tables, columns) * (SECONDS_A_TABLE + private_rows * SECONDS_A_COUNTED_ROW)
    reading = SECONDS_A_READ_VALUE * columns * (rows_read + rows) / 2
    read = min(rows_read * columns, MOST_READ_VALUES)
    return Cost(
        SECONDS_TO_START + reading + counting + fits * model.seconds + training,
        BYTES_TO_START + BYTES_A_READ_VALUE * read + model.bytes,
    )


def _training_seconds(
    method: DpMmd | AdversarialMethod | PateGan | MmdGan, schema: Schema, private_rows: int
) -> float:
    """What the steps of a network take, and a look at the products of private rows."""
    outputs = sum(schema.sizes)
    weights = method.hidden * (method.noise + method.hidden + outputs)
    products = SECONDS_A_PRODUCT * private_rows * min(outputs, MOST_FUNCTIONS) ** 2 / 2
    if isinstance(method, DpMmd):
        a_step = SECONDS_A_STEP + SECONDS_A_WEIGHT * method.rows * weights
        return method.steps * a_step + products
    if isinstance(method, MmdGan):
        # Made rows go through the encoder three times, and private ones once.
        coder = LAYER * (outputs + 2 * LAYER + BOTTLENECK) + BOTTLENECK * FEATURES
        a_row = weights + 4 * coder
        return method.steps * (4 * SECONDS_A_STEP + SECONDS_A_WEIGHT * method.lot * a_row)
    started = 0.0
    if method.start:
        a_step = SECONDS_A_STEP + SECONDS_A_WEIGHT * MATCHED_ROWS * weights
        started = method.start_steps * a_step + products
    if isinstance(method, PateGan):
        # Each round every private row is seen about as often as its teacher takes steps.
        teaching = private_rows * method.teacher_steps * outputs * method.critic_hidden
        making = method.steps * (SECONDS_A_STEP + SECONDS_A_WEIGHT * STEP_ROWS * weights)
        return started + method.rounds * (making + SECONDS_A_WEIGHT * teaching)
    a_row = weights * method.generator_steps + outputs * method.critic_hidden
    a_step = SECONDS_A_STEP * (1 + method.generator_steps)
    return started + method.steps * (a_step + SECONDS_A_WEIGHT * method.lot * a_row)


def held_bytes(schema: Schema, private_rows: int, rows: int) -> int:
    """What the process holds between stages: itself, the coded rows and the synthetic table."""
    coded = min(private_rows * len(schema), MOST_READ_VALUES)
    return BYTES_TO_START + BYTES_A_HELD_VALUE * (coded + rows * len(schema)) // 2


def moments_cost(schema: Schema, private_rows: int, rows: int, features: int) -> Cost:
    """Fitting the moment weights of so many features."""
    searched, chunk = min(rows, FIRST_ROWS), min(rows, CHUNK_ROWS)
    seconds = (
        SECONDS_A_FEATURE * features * (private_rows + rows) / 2
        + SECONDS_A_PAIR * rows * features**2
        + SECONDS_A_SEARCHED_PAIR * searched * features**2
    )
    working = _white_bytes(rows, features) + CHUNKS * 8 * chunk * features
    held = held_bytes(schema, private_rows, rows)
    return Cost(SECONDS_TO_START + seconds, held + int(working))


def replicates_cost(
    schema: Schema, private_rows: int, rows: int, replicates: int, features: int
) -> Cost:
    """Replicate weights, and saving the release; without features, of weights that move nothing."""
    seconds = SECONDS_TO_SAVE + rows * replicates * (
        SECONDS_A_REDRAWN_VALUE * len(schema)
        + SECONDS_A_SAVED_WEIGHT
        + SECONDS_A_STEPPED_FEATURE * features
    )
    # Few rows have no part.
    part = 0 if rows < 2 * PART_ROWS else PART_ROWS
    seconds += SECONDS_A_PART_FEATURE * part * replicates * features
    # The rows in single precision, unless they are too many, and the part of them.
    white = 4 * features * (rows if rows * features <= MOST_HELD else 0)
    chosen = 4 * features * part
    held = held_bytes(schema, private_rows, rows)
    return Cost(seconds, held + white + chosen + BYTES_A_REPLICATED_ROW * rows * replicates)


def _white_bytes(rows: int, features: int) -> int:
    """The features of rows while weights are fitted: single numbers, or made at every pass."""
    numbers = rows * features
    return 0 if numbers > MOST_HELD else 4 * numbers
