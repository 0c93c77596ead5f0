"""The curator's main job: a private table, a public schema and a budget make a release.

The stages in order: count the persons, where they are bounded, pay for what the schema leaves open,
fit the synthesizer, draw a pool of rows, fit the weights on them, keep a balanced part, and run it
all again on paper for the replicate weights. Only the vault sees the private table; a finished
stage can be kept in a folder, from which an interrupted run goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import counterpoise
from counterpoise.analysis.price import with_price
from counterpoise.arguments import seed_or_none, whole_number
from counterpoise.bundle.assemble import assemble, assemble_in_parts, derived_seed, draw_part
from counterpoise.bundle.card import describe, versions
from counterpoise.bundle.models import Models
from counterpoise.bundle.parts import MADE_TOGETHER, block_sizes, check_room, goes_in_parts
from counterpoise.bundle.pool import balanced_part, pool_rows
from counterpoise.bundle.release import Release
from counterpoise.curation.plan import Plan, check_seed, plan_release
from counterpoise.curation.progress import Progress, shown
from counterpoise.curation.stages import (
    count_persons,
    described_people,
    described_questions,
    fit_synthesizer,
    fit_weights,
    open_vault,
    request,
    settle_schema,
    settle_shares,
    usable_account,
)
from counterpoise.curation.unstated_delta import tell_of_delta
from counterpoise.curation.weights_share import why_split
from counterpoise.curation.work import Work, is_begun, open_work
from counterpoise.disk import as_path
from counterpoise.formulas.questions import Question
from counterpoise.synthesizers import SYNTHESIZERS, Model, Synthesizer
from counterpoise.synthesizers.obedience import draw
from counterpoise.synthesizers.progress import watched
from counterpoise.vault import REPLACE, Account, Budget, seal
from counterpoise.weights import WEIGHTERS, Weighter

# The most rows that are drawn when nobody says how many: as many as are made together. A million
# know a share to a twentieth of a per cent, and more can be asked for; and with little budget, or
# many rows a person, the noisy number of private rows may be any number.
MOST_DRAWN = MADE_TOGETHER


def release(
    table: Any,
    schema: Any,
    epsilon: float,
    delta: float | None = None,
    *,
    synthesizer: str | Synthesizer = "auto",
    weights: str | Weighter = "moments",
    rows: int | None = None,
    split: float | None = None,
    replicates: int = 80,
    target: str | None = None,
    questions: Sequence[str | Question] | None = None,
    neighbours: str = "add-remove",
    max_rows_per_person: int | None = None,
    person: str | None = None,
    account: Account | str | Path | None = None,
    fine: bool = True,
    seed: int | None = None,
    progress: bool | Progress = True,
    work: str | Path | None = None,
) -> Release:
    """Make a differentially private release of a table.

    `table` is a CSV or Parquet path, a pandas, polars or Arrow table, a DuckDB relation, a frame of
    Spark's or "spark:database.table"; `schema` a `Schema`, a Table Schema dict, or a path to one.
    All of (epsilon, delta) is spent on this release; where no delta is stated it is 0, and a
    warning says what one would bring. `synthesizer` is a method or its name; "auto" takes the one
    that did best in our benchmarks for such a schema and budget. `weights` is a method or its name
    too, and `split` its part of what the two share, by default a fifth or as much less as many rows
    and a large budget allow. `target` names a column that models will predict, so that its
    relations are asked for first. `questions` are what analysts will ask, such as "readmitted ~ age
    + stay * ward", "mean(charges) by ward", "ward x sex" or `Question`s: public, and measured
    before all else. `rows` is the number of synthetic rows, by default the noisy number of private
    ones, but a million at most; more than a million are made in parts, and stay in a file that the
    release reads as it needs them; `replicates` the number of replicate weights, from which
    analysts have standard errors. `neighbours` is "add-remove" (the number of rows is private) or
    "replace" (it is public). `person` names a column that says whose a row is: of each person at
    most `max_rows_per_person` rows are used, which has no default then, and the column is never
    released, and a hundredth of the budget tells how many persons have more rows; without it that
    number is your promise, by default one. `account` is the account of
    these people, or its path, to which every charge goes first. `fine` pays for a fine histogram of
    every number and date without stated bins, and of long lists of categories, by which cells and
    groups are chosen; without it numbers have bins of equal width between their bounds, which have
    to fit. A `seed` makes the release repeatable and stamps it as not private. `progress` shows a
    bar on a terminal or in a notebook; it may be a function instead, which is called with the name
    of each stage and the part of the work done.

    `work` is a folder in which every charge is written down before the look, and every noisy
    answer after it. After an interruption the same call with the same table goes on from there and
    does not pay again; saving the release removes the folder.

    >>> import pandas as pd, counterpoise as cp
    >>> table = pd.DataFrame({"smoker": [True, False, False] * 200})
    >>> schema = cp.Schema([cp.Column.boolean("smoker")])
    >>> made = cp.release(table, schema, epsilon=2.0, seed=1)
    >>> round(float(made.table["smoker"].mean()), 1)
    0.3
    >>> made.replicates.shape == (len(made.table), 80)
    True
    """
    table = seal(table)
    stated = 0.0 if delta is None else delta
    budget = Budget(epsilon, stated, neighbours, max_rows_per_person)  # type: ignore[arg-type]
    plan = plan_release(
        schema, budget, synthesizer, weights, rows, target, split, fine, questions, person
    )
    replicates, seed = whole_number("replicates", replicates, 0), seed_or_none(seed)
    check_seed(plan, seed)
    billed = usable_account(account, plan, seed, is_begun(work))
    tell_of_delta(plan, billed, delta)
    asked = request_of(plan, replicates, seed, billed)
    if plan.rows is not None:
        place = None if work is None else as_path("work", work)
        check_room(plan.rows, plan.released, replicates, place)
    kept = open_work(work, asked, plan, private=seed is None)
    with kept as found, shown(progress, plan) as said:
        return carry_out(table, plan, found, said, replicates, seed, billed)


def request_of(
    plan: Plan, replicates: int, seed: int | None, account: Account | None
) -> dict[str, Any]:
    """What tells one call of `release` from another, all of it public."""
    asked = {"rows": plan.rows, "replicates": replicates, "seed": seed}
    return request(plan, account) | asked


def carry_out(
    table: Any,
    plan: Plan,
    kept: Work,
    said: Progress,
    replicates: int,
    seed: int | None,
    account: Account | None = None,
) -> Release:
    """Do what a plan says, stage by stage."""
    sampling_seed = kept.sampling_seed if seed is None else seed
    with open_vault(table, plan, kept, seed, account) as vault:
        if plan.persons_share is not None:
            said("persons", 0.0)
        persons = count_persons(vault, plan, kept)
        if plan.domain_share is not None or plan.chooses_bins:
            said("domain", 0.0)
            settle_schema(vault, plan, kept, persons)
        plan = settle_shares(vault, plan, kept)
        said("synthesizer", 0.05)
        # Of a long fit, what is done: the stage has this part of the whole bar.
        with watched(lambda done: said("synthesizer", 0.05 + 0.45 * done)):
            model = fit_synthesizer(vault, plan, kept)
        said("sampling", 0.5)
        rows = min(model.rows, MOST_DRAWN) if plan.rows is None else plan.rows
        released = plan.released.as_released().with_modelled(vault.schema).settled
        in_parts = goes_in_parts(rows, plan.weighter)
        first = block_sizes(rows)[0] if in_parts else pool_rows(plan.weighter, rows, model)
        pool = draw(model, released, first, sampling_seed)
        said("weights", 0.55)
        weight_model = fit_weights(vault, pool, plan, kept, model)
        ledger, people = vault.ledger, described_people(vault) | persons
    assert plan.synthesizer is not None
    models = Models.of(plan.synthesizer, model, plan.weighter, weight_model)
    card = {
        "counterpoise": counterpoise.__version__,
        "versions": versions(),
        "ledger": ledger.to_dict(),
        "synthesizer": describe(SYNTHESIZERS, plan.synthesizer),
        "weights": describe(WEIGHTERS, plan.weighter),
        "split": plan.split,
        **({"split_reason": reason} if (reason := why_split(plan)) else {}),
        **described_questions(plan, weight_model, vault.schema, model),
        "population": float(model.rows),
        "population_is_public": plan.budget.neighbours is REPLACE,
        **_population_noise(plan, model),
        "seeded": seed is not None,
        **people,
        **kept.described,
        "model": {"saved": models.problem is None, "reason": models.problem},
    }
    if replicates:
        said("replicates", 0.65)
    with_all: dict[str, Any] = {
        "replicates": replicates,
        "synthesizer": model,
        "models": models,
        "work": kept.folder,
        "seed": derived_seed(sampling_seed, 1),
    }
    if in_parts:
        made = assemble_in_parts(
            pool,
            partial(draw_part, model, released, sampling_seed),
            released,
            card,
            weight_model,
            rows=rows,
            said=lambda done: said("replicates", 0.65 + 0.35 * done),
            **with_all,
        )
    else:
        part, chosen = balanced_part(pool, released.modelled, weight_model, rows, sampling_seed)
        made = assemble(part, released, card, weight_model, kept=chosen, **with_all)
    made = with_price(made)
    said("done", 1.0)
    return made


def _population_noise(plan: Plan, model: Model) -> dict[str, float]:
    """The card's line on the noise of the number of rows, where the model's answers tell it."""
    found = getattr(model, "rows_deviation", None)
    is_public = plan.budget.neighbours is REPLACE
    return {} if is_public or found is None else {"population_deviation": float(found)}
