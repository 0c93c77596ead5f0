"""From a synthetic table and a weight model to a release: weigh, replicate, describe. All free."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from counterpoise.arguments import real_number, seed_or_none, whole_number
from counterpoise.bundle.card import (
    CHOSEN_FROM,
    PRICE,
    describe_replicates,
    with_replaced_weights,
    without_sums,
    without_target,
)
from counterpoise.bundle.models import Models, SavedModels, fitting
from counterpoise.bundle.parts import RowsWriter, Sizes, block_sizes, goes_in_parts
from counterpoise.bundle.pool import balanced_part, pool_rows
from counterpoise.bundle.release import Release
from counterpoise.bundle.rules import check_weights
from counterpoise.bundle.weight_columns import WEIGHT
from counterpoise.errors import MethodError
from counterpoise.schema import Schema
from counterpoise.schema.row_rules import complete
from counterpoise.synthesizers.obedience import draw
from counterpoise.weights import WeightModel, Weights
from counterpoise.weights.balance import Kept
from counterpoise.weights.diagnostics import LEVELS, Verdict
from counterpoise.weights.judge_replicates import (
    JudgedReplicates,
    judge_replicates,
    mix,
    worse,
)
from counterpoise.weights.measured import describe_measured
from counterpoise.weights.moment_model import MomentModel
from counterpoise.weights.protocol import redrawable, replicate_part
from counterpoise.weights.replicates import replicate_first, replicate_weights

# Where the seeds of blocks begin, beyond those of other uses.
_FIRST_BLOCK = 1000
# Replicates that go less far from the weights are rounding errors, in single precision.
LEAST_PART = 1e-3
# Said of a release whose replicates know nothing of the error of its synthesizer.
UNKNOWN_ERROR = Verdict(
    "caution",
    "the error bars leave out what the synthesizer got wrong, which nothing measured",
    "weigh by 'moments', or take a synthesizer that counts, such as 'aim'",
)


def assemble(
    synthetic: pd.DataFrame,
    schema: Schema,
    card: dict[str, Any],
    weight_model: WeightModel,
    *,
    replicates: int,
    synthesizer: Any = None,
    kept: Kept | None = None,
    models: Models | SavedModels | None = None,
    work: Path | None = None,
    seed: int | None = None,
) -> Release:
    """A release of these rows; `synthesizer` is the model that they were drawn from, if known.

    The rows have the modelled columns; those that are derived or made up are added at the end.
    `kept` says how rows were chosen that are a part of a pool. `card` states the methods and the
    population; the rest of it is added here.
    """
    if kept is None:
        found = weight_model.weigh(synthetic)
    else:
        found = Weights(np.log(kept.weights), kept.reached)
    weights = found.normalised
    population = card["population"]
    judged = None
    if replicates:
        columns = replicate_weights(
            weight_model,
            synthetic,
            replicates,
            population=len(synthetic) if population is None else population,
            synthesizer=redrawable(synthesizer),
            kept=kept,
            weights=weights,
            seed=seed,
        )
        judged = judge_replicates(weights, columns, replicate_part(weight_model))
    made = _described(card, found, judged, weight_model, synthesizer)
    if kept is not None:
        made[CHOSEN_FROM] = kept.pool
    table = complete(schema, synthetic).assign(**{WEIGHT: weights})
    judged_columns = None if judged is None else judged.columns
    return Release(table, schema, made, judged_columns, models=models, work=work)


def assemble_in_parts(
    first: pd.DataFrame,
    draw_block: Callable[[int, int], pd.DataFrame],
    schema: Schema,
    card: dict[str, Any],
    weight_model: Any,
    *,
    rows: int,
    replicates: int,
    synthesizer: Any = None,
    models: Models | SavedModels | None = None,
    work: Path | None = None,
    seed: int | None = None,
    said: Callable[[float], None] | None = None,
) -> Release:
    """A release of so many rows, of which one block at a time is in memory; see `parts`.

    `first` is the block on which the weights were fitted, `draw_block(rows, place)` draws others.
    Another private sample and other noise, and what they make of weights and tables, are worked
    out on the first block and hold for all; each block has its own rows drawn again, and its
    weights and replicates average to one. `said` is told what part is done.
    """
    writer = RowsWriter(schema, replicates, work)
    population = card["population"]
    sizes = block_sizes(rows)
    raw, bounded = Sizes(replicates), Sizes(replicates)
    weights, parts, reached = np.empty(rows), np.ones(replicates), 1.0
    for place, size in enumerate(sizes):
        block = first if place == 0 else draw_block(size, place)
        weighed = weight_model.weigh(block)
        own = weighed.normalised
        weights[writer.rows : writer.rows + size] = own
        reached = min(reached, weighed.reached)
        columns = None
        if replicates and place == 0:
            columns, replication = replicate_first(
                weight_model,
                block,
                replicates,
                population=rows if population is None else population,
                synthesizer=redrawable(synthesizer),
                weights=own,
                seed=seed,
            )
            parts = judge_replicates(own, columns).parts
        elif replicates:
            stream = np.random.SeedSequence(seed, spawn_key=(1, place))
            columns = replication.weights(block, np.random.default_rng(stream))
        if columns is not None:
            raw.add(columns)
            mix(own, columns, parts)
            bounded.add(columns)
        table = complete(schema, block, before=writer.rows, total=rows)
        writer.add(table.assign(**{WEIGHT: own}), columns)
        if said is not None:
            said((place + 1) / (len(sizes) + 1))
    stored: Any = writer.finish()
    with np.errstate(divide="ignore"):
        found = Weights(np.log(weights), reached)
    judged = None
    if replicates:
        effective = found.effective_sample_size
        part = replicate_part(weight_model)
        judged = JudgedReplicates(None, bounded.found, raw.found, effective, parts, part)
    made = _described(card, found, judged, weight_model, synthesizer)
    columns_or_none = stored if replicates else None
    return Release(stored, schema, made, columns_or_none, models=models, work=work)


def _described(
    card: dict[str, Any],
    found: Weights,
    judged: JudgedReplicates | None,
    weight_model: WeightModel,
    synthesizer: Any,
) -> dict[str, Any]:
    """The card of rows with these weights: how many, what was measured, and the verdict."""
    unknown = UNKNOWN_ERROR if judged and _is_taken_as_given(synthesizer, weight_model) else None
    # What a card says of an earlier choice of rows is not true of these.
    made = {key: value for key, value in card.items() if key != CHOSEN_FROM}
    measured = {"measured": describe_measured(synthesizer, weight_model)}
    judged_so = judgement(card["weights"], found, judged, unknown)
    return made | {"rows": len(found)} | measured | judged_so


def _is_taken_as_given(synthesizer: Any, weight_model: WeightModel) -> bool:
    """Whether rows of a model that cannot be redrawn are held to nothing that was measured."""
    is_redrawn = synthesizer is None or redrawable(synthesizer) is not None
    return not (is_redrawn or isinstance(weight_model, MomentModel))


def sample(release: Release, rows: int, seed: int | None = None) -> Release:
    """New rows of a release's model, chosen and weighed as its own were, with replicates again.

    They are of the population that the release was first made of, whatever it was retargeted to.
    """
    rows, seed = whole_number("rows", rows), seed_or_none(seed)
    models = release.models
    if not isinstance(models, SavedModels):
        return _drawn(release, models, rows, seed)
    opened = models.open(release.schema.modelled, release.card)
    with fitting(f"the model in {models.path}"):
        found = _drawn(release, opened, rows, seed)
        check_weights(found.weights, rows, "the weights of new rows")
        if found.stored is None and found.replicates is not None:
            check_weights(found.replicates, rows, "the replicate weights of new rows")
        return found


def _drawn(release: Release, models: Models | None, rows: int, seed: int | None) -> Release:
    if models is None or models.problem is not None:
        reason = release.card.get("model", {}).get("reason") or "there is none in the bundle"
        raise MethodError(f"this release has no model to draw new rows from: {reason}")
    described, replicates = without_target(release.card), release.replicate_count
    if goes_in_parts(rows, models.weights):
        draw_block = partial(draw_part, models.synthesizer, release.schema, seed)
        return assemble_in_parts(
            draw_block(block_sizes(rows)[0], 0),
            draw_block,
            release.schema,
            described,
            models.weights,
            rows=rows,
            replicates=replicates,
            synthesizer=models.synthesizer,
            models=models,
            seed=derived_seed(seed, 1),
        )
    count = pool_rows(models.weights, rows, models.synthesizer)
    pool = draw(models.synthesizer, release.schema, count, seed)
    modelled = release.schema.modelled
    drawn, kept = balanced_part(pool, modelled, models.weights, rows, seed)
    return assemble(
        drawn,
        release.schema,
        described,
        models.weights,
        replicates=replicates,
        synthesizer=models.synthesizer,
        kept=kept,
        models=models,
        seed=derived_seed(seed, 1),
    )


def part(release: Release, rows: int) -> Release:
    """Every so many-th row of a release, with its weights and replicates, in memory."""
    rows = min(whole_number("rows", rows), release.rows)
    places = np.arange(rows) * release.rows // max(rows, 1)
    table = release.take(places)
    weights = table[WEIGHT].to_numpy()
    weights = weights / weights.mean() if len(weights) else weights
    columns, stored = None, release.stored
    if stored is not None and stored.replicates:
        columns = stored.replicates_at(places)
    elif stored is None and release.replicates is not None:
        columns = release.replicates[places]
    if columns is not None and rows:
        columns = columns / columns.mean(axis=0, dtype=float).astype(columns.dtype)
    # Those of the whole were bounded where that had to be.
    part = release.replicate_part
    judged = None if columns is None else judge_replicates(weights, columns, part, bound=False)
    made = release.card.get("weights", {})
    with np.errstate(divide="ignore"):
        found = Weights(np.log(weights), reached=made.get("reached", 1.0))
    described = judgement(made, found, judged)
    whole = made.get("verdict")
    if whole and LEVELS.index(whole["level"]) > LEVELS.index(
        described["weights"]["verdict"]["level"]
    ):
        # What was found of the whole is true of its parts.
        described["weights"]["verdict"] = whole
    card = release.card | {"rows": rows} | described
    return release.changed(table=table.assign(**{WEIGHT: weights}), card=card, replicates=columns)


def reweighted(
    release: Release,
    weights: np.ndarray,
    replicates: np.ndarray | None = None,
    part: float | None = None,
) -> Release:
    """A release with other weights; the card keeps how they were first made, and judges anew."""
    if part is not None:
        expected = f"a number from {LEAST_PART:g} to 1"
        part = real_number("part", part, expected, above=LEAST_PART, below=1, inclusive=True)
    rows = len(release.table)
    normalised = _averaging_to_one("weights", weights, rows, 1)
    columns = None if replicates is None else _averaging_to_one("replicates", replicates, rows, 2)
    # Replicates that somebody chose are judged, and left as they are.
    judged = None
    if columns is not None:
        as_many = columns.shape[1] == release.replicate_count
        own = release.replicate_part if as_many else 1.0
        judged = judge_replicates(normalised, columns, part or own, bound=False)
    made = release.card.get("weights", {})
    with np.errstate(divide="ignore"):
        # Other weights make up for no more of the difference than was known to be made up for.
        found = Weights(np.log(normalised), reached=made.get("reached", 1.0))
    card = (
        release.card
        | judgement(made | {"reweighted": True}, found, judged)
        | without_sums(release.card)
        | with_replaced_weights(release.card)
        | {"model": {"saved": False, "reason": "its weights were replaced"}, PRICE: None}
    )
    table = release.table.assign(**{WEIGHT: normalised})
    return replace(release, table=table, card=card, replicates=columns, accepted=False, models=None)


def judgement(
    made: dict[str, Any],
    found: Weights,
    judged: JudgedReplicates | None,
    also: Verdict | None = None,
) -> dict[str, Any]:
    """What a card says of weights and their replicates; the verdict is the worst one of all.

    `also` is what else is known of them.
    """
    weights = made | found.diagnostics()
    if also is not None:
        weights["verdict"] = asdict(worse(Verdict(**weights["verdict"]), also))
    # A table without rows has nothing to be judged by.
    count = 0 if judged is None else len(judged.found)
    if judged is None or not count or not len(found):
        return {"weights": weights, "replicates": describe_replicates(count, None)}
    weights["verdict"] = asdict(worse(Verdict(**weights["verdict"]), judged.verdict))
    replicates = describe_replicates(count, judged.to_dict())
    return {"weights": weights, "replicates": replicates}


def _averaging_to_one(name: str, weights: np.ndarray, rows: int, dimensions: int) -> np.ndarray:
    try:
        found = np.asarray(weights, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise MethodError(f"{name}: expected an array of numbers") from None
    if found.ndim != dimensions or len(found) != rows:
        each = "a weight" if dimensions == 1 else "a line of weights"
        raise MethodError(f"{name}: expected {each} for every row of the table")
    if not (np.isfinite(found).all() and (found >= 0).all() and (found.sum(axis=0) > 0).all()):
        raise MethodError(
            f"{name}: expected weights (not their logarithms) from zero, and some above zero"
        )
    return np.asarray(found / found.mean(axis=0))


def draw_part(model: Any, schema: Schema, seed: int | None, rows: int, place: int) -> pd.DataFrame:
    """The rows of one block of a release: the first as those of a small one, others by seeds."""
    own = seed if place == 0 or seed is None else derived_seed(seed, _FIRST_BLOCK + place)
    return draw(model, schema, rows, own)


def derived_seed(seed: int | None, place: int) -> int | None:
    """Another seed for another use of the same one; None stays None."""
    if seed is None:
        return None
    return int(np.random.SeedSequence([abs(seed), place]).generate_state(1, np.uint64)[0])
