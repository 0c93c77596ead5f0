"""The rules of weighters: those of every method, and what their models promise of weights.

A third party's weighter is held to the same list as ours:

>>> from counterpoise.weights import Uniform
>>> check_weighter(Uniform())
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pandas as pd

from counterpoise.errors import BudgetError, MethodError
from counterpoise.schema import Column, Schema
from counterpoise.testing.common import COMMON
from counterpoise.testing.rules import broken, hold_all, require, rules_of
from counterpoise.testing.tables import SCHEMA, USUAL, usual_rows
from counterpoise.testing.trials import WeighterTrial, fitted, opened, saved_and_read
from counterpoise.weights import Weighter, WeightModel
from counterpoise.weights.replicates import replicate_weights

PRIVATE_ROWS = 300


def _model(trial: WeighterTrial, seed: int | None = 2) -> WeightModel:
    model: WeightModel = fitted(trial, usual_rows(PRIVATE_ROWS), SCHEMA, USUAL, seed).model
    return model


def _replicates(trial: WeighterTrial, model: WeightModel, count: int, seed: int = 1) -> np.ndarray:
    synthetic = trial.synthetic(SCHEMA)
    return replicate_weights(model, synthetic, count, population=PRIVATE_ROWS, seed=seed)


def weighs_with_finite_weights(trial: WeighterTrial) -> None:
    """There is one weight a row, finite and not negative, and they average to one."""
    weights = _model(trial).weigh(trial.synthetic(SCHEMA))
    normalised = weights.normalised
    require(len(weights) == len(trial.synthetic(SCHEMA)), f"it made {len(weights)} weights")
    require(np.isfinite(normalised).all() and (normalised >= 0).all(), "some are no weights")
    require(abs(normalised.mean() - 1) < 1e-9, f"they average to {normalised.mean()}")
    require(0 < weights.largest_share <= 1, "a row has more than all of the weight")


def asks_for_its_share(trial: WeighterTrial) -> None:
    """Without a share a paid method refuses with a BudgetError, before it asks anything."""
    if trial.is_free:
        return
    with opened(usual_rows(PRIVATE_ROWS), SCHEMA, USUAL) as vault:
        try:
            trial.method.fit(vault, trial.synthetic(SCHEMA), None)
        except BudgetError:
            require(vault.ledger.spends == (), "it was charged before it refused")
        else:
            broken("it was fitted without a share")


def needs_a_synthetic_row(trial: WeighterTrial) -> None:
    """A paid method refuses an empty synthetic table with a MethodError, before it asks."""
    if trial.is_free:
        return
    with opened(usual_rows(PRIVATE_ROWS), SCHEMA, USUAL) as vault:
        try:
            trial.fit_on(vault, trial.synthetic(SCHEMA).iloc[:0], USUAL.whole)
        except MethodError:
            require(vault.ledger.spends == (), "it was charged before it refused")
        else:
            broken("it was fitted on no synthetic rows")


def weighs_new_rows_or_says_that_it_cannot(trial: WeighterTrial) -> None:
    """New rows are weighed later; a method marked `weighs_new_rows = False` refuses them."""
    model, synthetic = _model(trial), trial.synthetic(SCHEMA)
    for others in (usual_rows(30, seed=4), synthetic.iloc[::-1]):
        try:
            weights = model.weigh(others)
        except MethodError:
            require(not trial.weighs_new_rows, "it refuses new rows, and has no mark to say so")
        else:
            require(trial.weighs_new_rows, "it has the mark, and weighs new rows all the same")
            require(len(weights) == len(others), f"{len(others)} rows got {len(weights)} weights")


def weighs_a_row_by_itself(trial: WeighterTrial) -> None:
    """A row's weight, up to a common factor, does not depend on its place among the rows."""
    if not trial.weighs_new_rows:
        return
    model, synthetic = _model(trial), trial.synthetic(SCHEMA)
    order = np.random.default_rng(0).permutation(len(synthetic))
    here = model.weigh(synthetic).normalised[order]
    there = model.weigh(synthetic.iloc[order]).normalised
    require(np.allclose(here, there, rtol=1e-6), "shuffled rows have other weights")


def weighs_no_rows(trial: WeighterTrial) -> None:
    """An empty table has no weights, and no replicates."""
    schema = Schema([Column.boolean("a")])
    rows = pd.DataFrame({"a": [True, False] * 200})
    with opened(rows, schema, USUAL) as vault:
        model = trial.fit_on(vault, rows, USUAL.whole)
    weights = model.weigh(rows.iloc[:0])
    require(len(weights) == len(weights.normalised) == 0, "it made weights of no rows")
    shape = replicate_weights(model, rows.iloc[:0], 5, population=400).shape
    require(shape == (0, 5), f"five replicates of no rows have the shape {shape}")


def replicates_average_to_one(trial: WeighterTrial) -> None:
    """Replicates are a column each, finite, not negative, average to one, and differ."""
    columns = _replicates(trial, _model(trial), 5)
    shape = (len(trial.synthetic(SCHEMA)), 5)
    require(columns.shape == shape, f"they have the shape {columns.shape}, not {shape}")
    require(np.isfinite(columns).all() and (columns >= 0).all(), "some are no weights")
    averages = columns.mean(axis=0)
    require(np.allclose(averages, 1, rtol=1e-5), f"they average to {averages.tolist()}")
    require(np.std(columns, axis=1).max() > 0, "all replicates are the same")


def replicates_follow_the_seed(trial: WeighterTrial) -> None:
    """Replicates are repeatable: their randomness is that of the generator they are given."""
    model = _model(trial)
    first, second = (_replicates(trial, model, 3) for _ in range(2))
    require((first == second).all(), "the same seed made other replicates")


def replicates_vary_around_the_weights(trial: WeighterTrial) -> None:
    """An estimate's replicates lie around the estimate, as far as 60 of them show it."""
    model = _model(trial)
    ages = trial.synthetic(SCHEMA)["age"].to_numpy()
    estimate = np.average(ages, weights=model.weigh(trial.synthetic(SCHEMA)).normalised)
    columns = _replicates(trial, model, 60)
    replicated = ages @ columns / columns.sum(axis=0)
    distance = abs(replicated.mean() - estimate) / replicated.std()
    require(distance < 1, f"their mean is {distance:.1f} standard errors from the estimate")


def replicates_alike_when_read_back(trial: WeighterTrial) -> None:
    """A model that was saved and read back makes the same replicates."""
    model = _model(trial)
    again = saved_and_read(trial, model)
    if again is not None:
        first, second = (_replicates(trial, one, 3) for one in (model, again))
        require((first == second).all(), "its replicates differ")


WEIGHTER_RULES = rules_of(
    WeighterTrial.of,
    (
        *COMMON,
        weighs_with_finite_weights,
        asks_for_its_share,
        needs_a_synthetic_row,
        weighs_new_rows_or_says_that_it_cannot,
        weighs_a_row_by_itself,
        weighs_no_rows,
        replicates_average_to_one,
        replicates_follow_the_seed,
        replicates_vary_around_the_weights,
        replicates_alike_when_read_back,
    ),
)


def check_weighter(method: str | Weighter, leave_out: Collection[str] = ()) -> None:
    """Hold a weighter to every rule; raises `BrokenRule` at the first that it breaks.

    `method` is an instance, or a name that is registered. Rules can be left out by name, where a
    method has reasons; say them beside the call.
    """
    hold_all(WEIGHTER_RULES, method, leave_out)
