"""The rules that synthesizers and weighters share: what is asked, what is charged, what comes out.

Every function here is a rule; its docstring's first line is the sentence that a broken rule shows.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import random
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import counterpoise
from counterpoise.errors import BudgetError, CounterpoiseError, CounterpoiseWarning, MethodError
from counterpoise.registry import only_as_instance
from counterpoise.testing.leaks import PRIVATE_SCHEMA, holds_the_exact_rows, private_rows, traces
from counterpoise.testing.rules import broken, require
from counterpoise.testing.tables import BUDGETS, HARD_SCHEMAS, SCHEMA, USUAL, rows_of, usual_rows
from counterpoise.testing.trials import (
    Trial,
    fitted,
    needs_delta,
    needs_seed,
    opened,
    refused_unasked,
    saved_and_read,
    seeds_of,
)
from counterpoise.vault import Budget

# As much of a share is to be used: what is left over is accuracy that was paid for and not had.
LEAST_PART_USED = 0.99


def is_a_frozen_value(trial: Trial) -> None:
    """A method is a frozen dataclass of public parameters, and a fit leaves it as it was."""
    method = trial.method
    frozen = getattr(getattr(method, "__dataclass_params__", None), "frozen", False)
    require(dataclasses.is_dataclass(method) and frozen, "its class is no frozen dataclass")
    before = dict(vars(method))
    fitted(trial, usual_rows(300), SCHEMA, USUAL)
    after = vars(method)
    changed = [name for name in {**before, **after} if before.get(name) is not after.get(name)]
    require(not changed, f"a fit changed {', '.join(changed)}")


def is_made_without_parameters(trial: Trial) -> None:
    """The class makes a method without parameters, or says in `only_as_instance` how else."""
    kind = type(trial.method)
    if only_as_instance(kind):
        return
    try:
        kind()
    except TypeError as error:
        broken(f"without parameters it says: {error}")


def asks_by_public_queries(trial: Trial) -> None:
    """A method knows the private rows by the vault's public queries alone."""
    reached = fitted(trial, usual_rows(300), SCHEMA, USUAL).vault.reached
    require(not reached, f"it reached for {', '.join(sorted(set(reached)))} of the vault")


def spends_its_share(trial: Trial) -> None:
    """A fit spends its share: never more, and at least 99% of it; a free method spends nothing."""
    for budget in BUDGETS:
        if budget.is_pure and needs_delta(trial.method):
            continue
        try:
            spent = fitted(trial, usual_rows(3000), SCHEMA, budget).ledger.epsilon_spent
        except MethodError:
            require(budget != USUAL, "it was not to be had for a usual budget")
            continue
        if trial.is_free:
            require(spent == 0, f"it is free and spent epsilon {spent:.4g}")
            continue
        require(spent <= budget.epsilon, f"it spent epsilon {spent:.4g} of {budget.epsilon:g}")
        if needs_seed(trial.method):
            continue  # no charge would be enough for what it looks at
        require(
            spent >= LEAST_PART_USED * budget.epsilon,
            f"it spent no more than epsilon {spent:.4g} of {budget.epsilon:g} under {budget}",
        )


def refuses_a_private_vault_without_noise(trial: Trial) -> None:
    """A method that looks without noise has the mark `needs_seed`, and refuses any other vault."""
    for seed in (None, 3):
        with opened(usual_rows(300), SCHEMA, USUAL, seed) as vault:
            try:
                trial.fit(vault, USUAL.whole)
            except MethodError:
                require(needs_seed(trial.method) and seed is None, f"it refused the seed {seed}")
                require(vault.ledger.spends == (), "it was charged before it refused")
            else:
                marked = needs_seed(trial.method) and seed is None
                require(not marked, "it has the mark, and was fitted without a seed")
                quiet = [spend.query for spend in vault.ledger.spends if "NOISE" in spend.query]
                require(not quiet or needs_seed(trial.method), f"it asked for {quiet}, unmarked")


def leaves_the_rest(trial: Trial) -> None:
    """A fit with a part of the budget leaves the rest of it to others."""
    with opened(usual_rows(300), SCHEMA, USUAL) as vault:
        trial.fit(vault, USUAL.whole.part(0.5))
        try:
            vault.counts([("sex",)], USUAL.whole.part(0.499))
        except BudgetError:
            broken(f"half of the budget cost epsilon {vault.ledger.epsilon_spent:.4g} of 1")


def refuses_a_pure_budget_unasked(trial: Trial) -> None:
    """A method that needs delta has the mark `needs_delta`, and refuses a pure budget unasked."""
    budget = Budget(1.0)
    with opened(usual_rows(300), SCHEMA, budget) as vault:
        refused = refused_unasked(trial, vault, budget.whole)
    marked = needs_delta(trial.method)
    require(refused or not marked, "it has the mark, and was fitted with a pure budget")
    require(marked or not refused, "it refused a pure budget, and has no mark to say so before")


def is_charged_for_every_fit(trial: Trial) -> None:
    """A second fit is charged again, and refused where the budget no longer pays for it."""
    if trial.is_free or needs_seed(trial.method):
        return
    with opened(usual_rows(300), SCHEMA, USUAL) as vault:
        trial.fit(vault, USUAL.whole.part(0.4))
        once = vault.ledger.epsilon_spent
        trial.fit(vault, USUAL.whole.part(0.4))
        require(vault.ledger.epsilon_spent > 1.1 * once, "a second fit cost nothing")
        try:
            trial.fit(vault, USUAL.whole.part(0.4))
        except BudgetError:
            require(vault.ledger.epsilon_spent <= 1, "the ledger is over its budget")
        else:
            broken("a third fit was had with a budget for two")


def stamps_what_a_seed_made(trial: Trial) -> None:
    """A model says in `private` whether its noise was; a vault with a seed makes it False."""
    for seed in seeds_of(trial, 3):
        model = fitted(trial, usual_rows(300), SCHEMA, USUAL, seed).model
        said = getattr(model, "private", None)
        if said is None and trial.is_free:
            continue
        said_well = said is (seed is None) or (trial.is_free and said is True)
        require(said_well, f"`private` is {said!r} with the vault's seed {seed}")


def repeats_with_the_seed(trial: Trial) -> None:
    """All randomness of a fit is the vault's: the same seed makes the same model."""
    first, second = (
        trial.outcome(fitted(trial, usual_rows(300), SCHEMA, USUAL, seed=3).model) for _ in range(2)
    )
    require(first.equals(second), "two fits with the seed 3 differ")


def leaves_global_randomness_alone(trial: Trial) -> None:
    """Randomness is passed in: neither numpy's nor Python's global generator is touched."""
    ours, theirs = np.random.get_state(), random.getstate()  # noqa: NPY002
    trial.outcome(fitted(trial, usual_rows(300), SCHEMA, USUAL).model)
    same = all(np.array_equal(a, b) for a, b in zip(ours, np.random.get_state(), strict=True))  # noqa: NPY002
    require(same, "numpy's global generator has moved")
    require(random.getstate() == theirs, "Python's global generator has moved")


def takes_hard_tables(trial: Trial) -> None:
    """Any table is taken, empty or of one row, of any columns; or refused by a MethodError."""
    for name, schema in HARD_SCHEMAS.items():
        for rows in (0, 1, 200):
            try:
                model = fitted(trial, rows_of(schema, rows), schema, USUAL).model
                flaw = trial.flaw(trial.outcome(model, schema), schema)
            except MethodError:
                continue
            except Exception as error:
                flaw = f"{type(error).__name__}: {error}"
            require(not flaw, f"{rows} rows of the schema {name!r} end in this: {flaw}")


def fails_in_our_words(trial: Trial) -> None:
    """Whatever goes wrong is said by an error of Counterpoise's own family."""
    for name, attempt in _ATTEMPTS.items():
        try:
            attempt(trial)
        except CounterpoiseError:
            pass
        except Exception as error:
            broken(f"{name} ends in {type(error).__name__}: {error}")


def _fit_closed(trial: Trial) -> None:
    with opened(usual_rows(300), SCHEMA, USUAL) as vault:
        pass
    trial.fit(vault, USUAL.whole)


def _fit_spent(trial: Trial) -> None:
    with opened(usual_rows(300), SCHEMA, USUAL) as vault:
        vault.counts([("sex",)], USUAL.whole)
        trial.fit(vault, USUAL.whole)


def _fit_poor(trial: Trial) -> None:
    trial.outcome(fitted(trial, usual_rows(1), SCHEMA, Budget(0.01, 1e-9)).model)


def _fit_rich(trial: Trial) -> None:
    trial.outcome(fitted(trial, usual_rows(1), SCHEMA, Budget(50.0, 1e-3)).model)


_ATTEMPTS = {
    "a closed vault": _fit_closed,
    "a budget that is spent": _fit_spent,
    "a very small budget": _fit_poor,
    "a large budget on one row": _fit_rich,
}


def costs_nothing_after_the_fit(trial: Trial) -> None:
    """A model is used with the vault closed, for free."""
    done = fitted(trial, usual_rows(300), SCHEMA, USUAL)
    before = done.ledger.spends
    trial.outcome(done.model)
    require(done.ledger.spends == before, "using the model was charged")


def saves_plain_arrays(trial: Trial) -> None:
    """A model is saved as arrays of numbers and texts, or says by MethodError that it cannot be."""
    model = fitted(trial, usual_rows(300), SCHEMA, USUAL).model
    again = saved_and_read(trial, model)
    if again is not None:
        for name, array in model.to_arrays().items():
            require(isinstance(array, np.ndarray), f"{name!r} is no array")
            require(not array.dtype.hasobject, f"{name!r} holds objects")


def is_the_same_when_read_back(trial: Trial) -> None:
    """A model that was saved and read back gives what it gave before."""
    model = fitted(trial, usual_rows(300), SCHEMA, USUAL, seed=3).model
    again = saved_and_read(trial, model)
    if again is not None:
        same = trial.outcome(again).equals(trial.outcome(model))
        require(same, "the model that was read back gives something else")


def keeps_its_mark(trial: Trial) -> None:
    """Whether a model is private is still known after it was saved and read back."""
    for seed in seeds_of(trial, 3):
        model = fitted(trial, usual_rows(300), SCHEMA, USUAL, seed).model
        again = saved_and_read(trial, model)
        if again is not None:
            said, kept = (getattr(one, "private", None) for one in (model, again))
            require(said == kept, f"`private` was {said!r} and is {kept!r} when read back")


def shows_no_private_value(trial: Trial) -> None:
    """No private value, coded row or exact count is in anything that a fit leaves behind."""
    exact = 0
    seeds = (1, 2, 3)
    for seed in seeds:
        left = _left_behind(trial, seed)
        found = traces(left)
        require(not found, f"it leaves this behind: {'; '.join(found[:3])}")
        exact += holds_the_exact_rows(left)
    require(exact < len(seeds), "the exact number of private rows is there in every fit")


def fails_without_private_values(trial: Trial) -> None:
    """No error of a fit holds a private value."""
    with opened(private_rows(), PRIVATE_SCHEMA, USUAL, seed=1) as vault:
        try:
            trial.fit(vault, USUAL.whole)
            trial.fit(vault, USUAL.whole)
        except Exception as error:
            found = traces(error)
            require(not found, f"an error holds {'; '.join(found[:3])}")


def makes_a_release(trial: Trial) -> None:
    """A release made with the method is within its budget, private, and can be saved and loaded."""
    seed = 3 if needs_seed(trial.method) else None
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore", CounterpoiseWarning)
        made = counterpoise.release(
            usual_rows(1000), SCHEMA, 4.0, 1e-6, rows=60, replicates=2, progress=False,
            seed=seed, **trial.release_options(),
        )  # fmt: skip
        loaded = counterpoise.load(made.save(Path(folder) / "release"))
        ledger = loaded.ledger
        require(ledger.private == (seed is None), f"with the seed {seed} it says {ledger.private}")
        require(ledger.epsilon_spent <= 4, f"the release spent {ledger.epsilon_spent:.4g} of 4")
        pd.testing.assert_frame_equal(loaded.table, made.table)


COMMON = (
    is_a_frozen_value,
    is_made_without_parameters,
    asks_by_public_queries,
    spends_its_share,
    refuses_a_private_vault_without_noise,
    leaves_the_rest,
    refuses_a_pure_budget_unasked,
    is_charged_for_every_fit,
    stamps_what_a_seed_made,
    repeats_with_the_seed,
    leaves_global_randomness_alone,
    takes_hard_tables,
    fails_in_our_words,
    costs_nothing_after_the_fit,
    saves_plain_arrays,
    is_the_same_when_read_back,
    keeps_its_mark,
    shows_no_private_value,
    fails_without_private_values,
    makes_a_release,
)


def _left_behind(trial: Trial, seed: int) -> dict[str, Any]:
    """All that can be got hold of after a fit: objects, arrays, and what was printed or warned."""
    printed = io.StringIO()
    with (
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
        warnings.catch_warnings(record=True) as warned,
    ):
        warnings.simplefilter("always")
        model = fitted(trial, private_rows(), PRIVATE_SCHEMA, USUAL, seed).model
        outcome = trial.outcome(model, PRIVATE_SCHEMA)
        try:
            arrays = dict(model.to_arrays())
        except CounterpoiseError:
            arrays = {}
    return {
        "method": trial.method,
        "class of the method": dict(vars(type(trial.method))),
        "model": model,
        "class of the model": dict(vars(type(model))),
        "outcome": outcome,
        "arrays": arrays,
        "printed": printed.getvalue(),
        "warnings": [str(warning.message) for warning in warned],
    }
