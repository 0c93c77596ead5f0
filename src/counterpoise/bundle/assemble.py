"""From a synthetic table and a weight model to a release: weigh, replicate, describe. All free."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from counterpoise.arguments import seed_or_none, whole_number
from counterpoise.bundle.card import (
    CHOSEN_FROM,
    describe_replicates,
    with_replaced_weights,
    without_sums,
    without_target,
)
from counterpoise.bundle.models import Models, SavedModels
from counterpoise.bundle.pool import balanced_part, pool_rows
from counterpoise.bundle.release import WEIGHT, Release
from counterpoise.errors import MethodError
from counterpoise.schema import Schema
from counterpoise.schema.row_rules import complete
from counterpoise.synthesizers.obedience import draw
from counterpoise.weights import WeightModel, Weights
from counterpoise.weights.balance import Kept
from counterpoise.weights.diagnostics import Verdict
from counterpoise.weights.judge_replicates import JudgedReplicates, judge_replicates, worse
from counterpoise.weights.measured import describe_measured
from counterpoise.weights.moment_model import MomentModel
from counterpoise.weights.protocol import redrawable
from counterpoise.weights.replicates import replicate_weights

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
            seed=seed,
        )
        judged = judge_replicates(weights, columns)
    measured = {"measured": describe_measured(synthesizer, weight_model)}
    unknown = UNKNOWN_ERROR if judged and _is_taken_as_given(synthesizer, weight_model) else None
    judged_so = judgement(card["weights"], found, judged, unknown)
    # What a card says of an earlier choice of rows is not true of these.
    made = {key: value for key, value in card.items() if key != CHOSEN_FROM}
    made |= {"rows": len(synthetic)} | measured | judged_so
    if kept is not None:
        made[CHOSEN_FROM] = kept.pool
    table = complete(schema, synthetic).assign(**{WEIGHT: weights})
    judged_columns = None if judged is None else judged.columns
    return Release(table, schema, made, judged_columns, models=models, work=work)


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
    if isinstance(models, SavedModels):
        models = models.open(release.schema.modelled, release.card)
    if models is None or models.problem is not None:
        reason = release.card.get("model", {}).get("reason") or "there is none in the bundle"
        raise MethodError(f"this release has no model to draw new rows from: {reason}")
    count = pool_rows(models.weights, rows, models.synthesizer)
    pool = draw(models.synthesizer, release.schema, count, seed)
    modelled = release.schema.modelled
    drawn, kept = balanced_part(pool, modelled, models.weights, rows, seed)
    return assemble(
        drawn,
        release.schema,
        without_target(release.card),
        models.weights,
        replicates=0 if release.replicates is None else release.replicates.shape[1],
        synthesizer=models.synthesizer,
        kept=kept,
        models=models,
        seed=derived_seed(seed, 1),
    )


def reweighted(
    release: Release, weights: np.ndarray, replicates: np.ndarray | None = None
) -> Release:
    """A release with other weights; the card keeps how they were first made, and judges anew."""
    rows = len(release.table)
    normalised = _averaging_to_one("weights", weights, rows, 1)
    columns = None if replicates is None else _averaging_to_one("replicates", replicates, rows, 2)
    # Replicates that somebody chose are judged, and left as they are.
    judged = None if columns is None else judge_replicates(normalised, columns, bound=False)
    made = release.card.get("weights", {})
    with np.errstate(divide="ignore"):
        # Other weights make up for no more of the difference than was known to be made up for.
        found = Weights(np.log(normalised), reached=made.get("reached", 1.0))
    card = (
        release.card
        | judgement(made | {"reweighted": True}, found, judged)
        | without_sums(release.card)
        | with_replaced_weights(release.card)
        | {"model": {"saved": False, "reason": "its weights were replaced"}}
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
    if judged is None or not judged.columns.size:
        count = 0 if judged is None else judged.columns.shape[1]
        return {"weights": weights, "replicates": describe_replicates(count, None)}
    weights["verdict"] = asdict(worse(Verdict(**weights["verdict"]), judged.verdict))
    replicates = describe_replicates(judged.columns.shape[1], judged.to_dict())
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


def derived_seed(seed: int | None, place: int) -> int | None:
    """Another seed for another use of the same one; None stays None."""
    if seed is None:
        return None
    return int(np.random.SeedSequence([abs(seed), place]).generate_state(1, np.uint64)[0])
