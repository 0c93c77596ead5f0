"""Rehearsing a release: the whole procedure again, on samples of its own weighted rows.

A release says by its card how it was made: the schema, the methods and their parameters, the
budget and its split. So anyone who has it can make it again (cells, synthesizer, rows, weights)
from a sample of its synthetic rows, drawn by weight, as large as the private table was said to be:
what the runs miss of the release is about what the release missed (see `analysis.rehearsals`).
Nothing private is near: the rows are the release's own, the vaults that hold them draw their noise
from a seed, and what they charge is charged to nobody, so the runs carry no ledger. What a private
list of categories or bounds found is taken as it is. Not every release can be rehearsed: not one
whose rows or weights came from elsewhere, as their making is on no card.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

import counterpoise
from counterpoise.analysis.rehearsals import LEAST_RUNS, Rehearsal
from counterpoise.arguments import seed_or_none, truth_value, whole_number
from counterpoise.bundle.card import COVERS_WEIGHTS, RETARGETED
from counterpoise.bundle.persons import PERSONS
from counterpoise.bundle.release import Release
from counterpoise.bundle.weight_columns import WEIGHT
from counterpoise.curation.plan import (
    CELLS_FRACTION,
    DOMAIN_FRACTION,
    PERSONS_FRACTION,
    Plan,
    plan_release,
)
from counterpoise.curation.progress import Progress
from counterpoise.curation.release import carry_out
from counterpoise.curation.work import Work
from counterpoise.errors import AnalysisError, CounterpoiseError, CounterpoiseWarning
from counterpoise.registry import Registry
from counterpoise.schema import Schema
from counterpoise.synthesizers import SYNTHESIZERS, Synthesizer
from counterpoise.weights import WEIGHTERS, Weighter

# Runs are kept, and so are small: more synthetic rows than this do not show more of a bias.
MOST_KEPT = 100_000
# A run counts as many rows as the private table had. With more than this, shrinkage hides little.
MOST_REHEARSED = 2_000_000
MOST_RUNS = 1_000


def rehearse(
    release: Release, runs: int = 10, seed: int | None = None, progress: bool | Progress = True
) -> Rehearsal:
    """Run a release again on samples of its weighted rows, so many times; free.

    `seed` makes the runs repeatable. They take as long as the release took, each, but for its
    replicates, and are kept with at most 100,000 rows. `progress` shows a bar, or is a function
    that is called with what is done.
    """
    runs = whole_number("runs", runs, LEAST_RUNS, MOST_RUNS)
    seed = seed_or_none(seed)
    plan = _plan_of(release)
    generator = np.random.default_rng(seed)
    table = release.table.drop(columns=WEIGHT)
    chances = release.weights / release.weights.sum()
    made = []
    with _shown(progress) as said:
        for run in range(runs):
            said(f"rehearsal {run + 1} of {runs}", run / runs)
            # Independent draws: those of a private sample differ by as much.
            drawn = generator.choice(len(table), _private_rows(release), p=chances)
            sample = table.iloc[drawn].reset_index(drop=True)
            noise = int(generator.integers(2**62))
            made.append(_run(sample, plan, noise))
        said("done", 1.0)
    return Rehearsal(release, tuple(made))


def _run(sample: Any, plan: Plan, seed: int) -> Release:
    """One run on synthetic rows, without what is only true of private ones."""
    with warnings.catch_warnings():
        # What is wrong with the weights of a run is no news of those of the release.
        warnings.simplefilter("ignore", CounterpoiseWarning)
        try:
            made = carry_out(sample, plan, Work(seed), lambda stage, done: None, 0, seed)
        except CounterpoiseError as error:
            raise AnalysisError(f"rehearse: a run on synthetic rows failed: {error}") from None
    left_out = ("ledger", "seeded", "model", "versions")
    card = {key: value for key, value in made.card.items() if key not in left_out}
    card |= {"rehearsal": "made of synthetic rows; nothing private was asked"}
    return replace(made, card=card, models=None, work=None, accepted=True)


def _plan_of(release: Release) -> Plan:
    """The plan by which a release was made, as far as its card tells it, or an AnalysisError."""
    card = release.card
    _require_made_here(card)
    if not len(release.table):
        raise AnalysisError("rehearse: the release has no rows, so there is nothing to run on")
    if _private_rows(release) > MOST_REHEARSED:
        raise AnalysisError(
            f"rehearse: it takes as many rows as the private table has, and {MOST_REHEARSED:,} at "
            "most; with more there is little that noise hides"
        )
    if card["counterpoise"] != counterpoise.__version__:
        warnings.warn(
            f"the release was made by version {card['counterpoise']}, and is rehearsed by "
            f"{counterpoise.__version__}, whose methods may differ",
            CounterpoiseWarning,
            stacklevel=3,
        )
    ledger = release.ledger
    was_counted = any(spend.query.startswith("fine cells") for spend in ledger.spends)
    schema = _reopened(release.schema) if was_counted else release.schema
    methods = methods_of(release)
    rows = min(len(release.table), MOST_KEPT)
    plan = plan_release(schema, ledger.budget, *methods, rows, split=card["split"])
    # What was paid for the domain, and set aside for it, is not there for the rest.
    part = ledger.budget.whole_beside(ledger.delta_set_aside).amount / ledger.budget.whole.amount
    shares = {"cells_share": part, "rows_share": part}
    gone = PERSONS_FRACTION if PERSONS in card else 0.0
    if any(spend.stage == "domain" for spend in ledger.spends) and release.schema.paid:
        gone += DOMAIN_FRACTION
    rest = 1 - (CELLS_FRACTION if plan.cells_share else 0.0)
    part *= (rest - gone) / rest
    shares |= {"synthesizer_share": part, "weights_share": part}
    smaller = {
        name: share.part(fraction)
        for name, fraction in shares.items()
        if (share := getattr(plan, name)) is not None
    }
    return replace(plan, **smaller)


def methods_of(release: Release) -> tuple[Synthesizer, Weighter]:
    """The synthesizer and the weights that a release was made by, or an AnalysisError."""
    card = release.card
    _require_made_here(card)
    return (
        _method(SYNTHESIZERS, "synthesizer", card["synthesizer"]),
        _method(WEIGHTERS, "weights", card["weights"]),
    )


def _require_made_here(card: Mapping[str, Any]) -> None:
    """Refuse releases that no run can make again, with the reason."""
    weights = card.get("weights", {})
    is_weighed_elsewhere = weights.get("stated_by_caller") or weights.get("reweighted")
    was_set_aside = weights.get("method") == "uniform" and card.get("split") is not None
    reasons = {
        "its rows came from elsewhere, and only its weights were made here": (
            card.get("covers") == COVERS_WEIGHTS
        ),
        "it was turned to another population; rehearse the release that it was made from": (
            bool(card.get(RETARGETED))
        ),
        "its weights were given by the caller, and nothing says how": bool(is_weighed_elsewhere),
        "its weights were set aside; rehearse the release as it was": was_set_aside,
        "its card does not say how it was made": not (
            {"ledger", "synthesizer", "weights", "split", "population", "counterpoise"} <= set(card)
        ),
    }
    for reason, holds in reasons.items():
        if holds:
            raise AnalysisError(f"rehearse: this release cannot be run again: {reason}")


def _reopened(schema: Schema) -> Schema:
    """The schema before its cells and groups were chosen by a paid histogram."""
    columns = tuple(
        replace(column, shape=None, bins=None) if column.shape is not None else column.ungrouped
        for column in schema.columns
    )
    return replace(schema, columns=columns)


def _method(registry: Registry[Any], option: str, described: Mapping[str, Any]) -> Any:
    """The method that a card describes, or an AnalysisError."""
    name, parameters = described["method"], described["parameters"]
    try:
        return registry.make(name, **{key: _given(value) for key, value in parameters.items()})
    except CounterpoiseError as error:
        raise AnalysisError(
            f"rehearse: the {option} {name!r} cannot be had again from the card: {error}"
        ) from None


def _given(value: Any) -> Any:
    """A parameter from JSON; what is a value of our own there is not told in full."""
    if isinstance(value, Mapping):
        raise AnalysisError("it was given a value that is not plain")
    return tuple(_given(part) for part in value) if isinstance(value, list) else value


def _private_rows(release: Release) -> int:
    return max(1, round(float(release.card["population"])))


@contextmanager
def _shown(progress: bool | Progress) -> Iterator[Progress]:
    """What to call: the caller's own function, a bar for True on a terminal, nothing for False."""
    if callable(progress):
        yield progress
        return
    if not truth_value("progress", progress):
        yield lambda stage, done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    if not (console.is_terminal or console.is_jupyter):
        yield lambda stage, done: None
        return
    columns = (
        TextColumn("{task.description:<20}", markup=False),
        BarColumn(),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=1.0)
        yield lambda stage, done: bar.update(task, description=stage, completed=done)
