"""The curator's main job: a private table, a public schema and a budget make a release.

The stages in order: pay for what the schema leaves open, fit the synthesizer, draw rows, fit the
weights on them, and run it all again on paper for the replicate weights. Only the vault sees the
private table; a finished stage can be kept in a folder, from which an interrupted run goes on.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import counterpoise
from counterpoise.errors import MethodError
from counterpoise.release.assemble import assemble, derived_seed
from counterpoise.release.card import describe, versions
from counterpoise.release.models import Models, model_arrays, read_model
from counterpoise.release.plan import Plan, check_replicates, plan_release
from counterpoise.release.result import Release
from counterpoise.release.work import Work
from counterpoise.schema import Schema
from counterpoise.synthesize import SYNTHESIZERS, Model, Synthesizer
from counterpoise.vault import REPLACE, Budget, Vault
from counterpoise.weigh import WEIGHTERS, Weighter, WeightModel

Progress = Callable[[str, float], None]


def release(
    table: Any,
    schema: Any,
    epsilon: float,
    delta: float = 0.0,
    *,
    synthesizer: str | Synthesizer = "auto",
    weights: str | Weighter = "moments",
    rows: int | None = None,
    split: float | None = None,
    replicates: int = 80,
    target: str | None = None,
    neighbours: str = "add-remove",
    max_rows_per_person: int = 1,
    seed: int | None = None,
    progress: Progress | None = None,
    work: str | Path | None = None,
) -> Release:
    """Make a differentially private release of a table.

    `table` is a CSV or Parquet path, a pandas, polars or Arrow table, or a DuckDB relation;
    `schema` a `Schema`, a Table Schema dict, or a path to one. All of (epsilon, delta) is spent
    on this release. `synthesizer` is a method or its name; "auto" takes the one that did best in
    our benchmarks for such a schema and budget. `weights` is a method or its name too, and
    `split` its part of what the two share. `target` names a column that models will predict, so
    that its relations are asked for first. `rows` is the number of synthetic rows, by default the
    noisy number of private ones; `replicates` the number of replicate weights, from which
    analysts have standard errors. `neighbours` is "add-remove" (the number of rows is private) or
    "replace" (it is public). A `seed` makes the release repeatable and stamps it as not private.
    `progress` is called with the name of each stage and the part of the work done.

    `work` is a folder in which finished stages are kept, as noisy answers. After an interruption
    the same call with the same table goes on from there and does not pay again; saving the
    release removes the folder.

    >>> import pandas as pd, counterpoise as cp
    >>> table = pd.DataFrame({"smoker": [True, False, False] * 200})
    >>> schema = cp.Schema([cp.Column.boolean("smoker")])
    >>> made = cp.release(table, schema, epsilon=2.0, seed=1)
    >>> round(float(made.table["smoker"].mean()), 1)
    0.3
    >>> made.replicates.shape == (len(made.table), 80)
    True
    """
    said = progress or (lambda stage, done: None)
    budget = Budget(epsilon, delta, neighbours, max_rows_per_person)
    plan = plan_release(schema, budget, synthesizer, weights, rows, target, split)
    check_replicates(replicates)
    asked = {"rows": rows, "replicates": replicates, "seed": seed}
    kept = Work.open(work, _request(plan) | asked)
    sampling_seed = kept.sampling_seed if seed is None else seed
    with _open_vault(table, plan, kept, seed) as vault:
        if plan.domain_share is not None or plan.chooses_bins:
            said("domain", 0.0)
            _settle_schema(vault, plan, kept)
        said("synthesizer", 0.05)
        model = _fit_synthesizer(vault, plan, kept)
        said("sampling", 0.5)
        synthetic = model.sample(model.rows if rows is None else rows, seed=sampling_seed)
        said("weights", 0.55)
        weight_model = _fit_weights(vault, synthetic, plan, kept)
        ledger, schema_used = vault.ledger, vault.schema
    assert plan.synthesizer is not None
    models = Models.of(plan.synthesizer, model, plan.weighter, weight_model)
    card = {
        "counterpoise": counterpoise.__version__,
        "versions": versions(),
        "ledger": ledger.to_dict(),
        "synthesizer": describe(SYNTHESIZERS, plan.synthesizer),
        "weights": describe(WEIGHTERS, plan.weighter),
        "split": plan.split,
        "population": float(model.rows),
        "population_is_public": budget.neighbours is REPLACE,
        "seeded": seed is not None,
        "model": {"saved": models.problem is None, "reason": models.problem},
    }
    if replicates:
        said("replicates", 0.65)
    made = assemble(
        synthetic,
        schema_used,
        card,
        weight_model,
        replicates=replicates,
        synthesizer=model,
        models=models,
        work=kept.folder,
        seed=derived_seed(sampling_seed, 1),
    )
    said("done", 1.0)
    return made


def _request(plan: Plan) -> dict[str, Any]:
    """What tells one request from another, all of it public."""
    return {
        "counterpoise": counterpoise.__version__,
        "schema": plan.schema.to_dict(),
        "budget": plan.budget.to_dict(),
        "synthesizer": describe(SYNTHESIZERS, plan.synthesizer),
        "weights": describe(WEIGHTERS, plan.weighter),
        "split": plan.split,
    }


def _open_vault(table: Any, plan: Plan, kept: Work, seed: int | None) -> Vault:
    """The vault, with the schema and the ledger that earlier work has got to."""
    settled = kept.notes("domain")
    schema = plan.schema if settled is None else Schema.from_dict(settled["schema"])
    ledger = kept.ledger()
    if ledger is not None:
        # Noise must not come twice, even where it comes from a seed.
        seed = derived_seed(seed, 2 + len(ledger.spends))
    return Vault(table, schema, plan.budget, seed=seed, ledger=ledger)


def _settle_schema(vault: Vault, plan: Plan, kept: Work) -> None:
    if kept.notes("domain") is not None:
        return
    vault.ledger.stage = "domain"
    with kept.charging(vault.ledger):
        if plan.domain_share is not None:
            vault.learn_domain(plan.domain_share, plan.threshold_delta)
        if plan.chooses_bins:
            vault.choose_bins(plan.bins_share)
    kept.keep("domain", vault.ledger, notes={"schema": vault.schema.to_dict()})


def _fit_synthesizer(vault: Vault, plan: Plan, kept: Work) -> Model:
    method, share = plan.synthesizer, plan.synthesizer_share
    assert method is not None
    assert share is not None
    arrays = kept.arrays("synthesizer")
    if arrays is not None:
        name = SYNTHESIZERS.name_of(method)
        found: Model = read_model(SYNTHESIZERS, name, vault.schema, arrays, private=vault.private)
        return found
    vault.ledger.stage = "synthesizer"
    options: dict[str, Any] = {}
    if kept.rounds is not None and "checkpoint" in inspect.signature(method.fit).parameters:
        options["checkpoint"] = kept.rounds
    with kept.charging(vault.ledger):
        model = method.fit(vault, share, **options)
    _keep_model(kept, "synthesizer", vault, method, model)
    return model


def _fit_weights(vault: Vault, synthetic: Any, plan: Plan, kept: Work) -> WeightModel:
    arrays = kept.arrays("weights")
    if arrays is not None:
        name = WEIGHTERS.name_of(plan.weighter)
        found: WeightModel = read_model(WEIGHTERS, name, vault.schema, arrays)
        return found
    vault.ledger.stage = "weights"
    with kept.charging(vault.ledger):
        model = plan.weighter.fit(vault, synthetic, plan.weights_share)
    _keep_model(kept, "weights", vault, plan.weighter, model)
    return model


def _keep_model(kept: Work, stage: str, vault: Vault, method: Any, model: Any) -> None:
    """Keep a stage; one whose model cannot be saved is asked again, and its answers are lost."""
    if kept.folder is None:
        return
    registry: Any = SYNTHESIZERS if stage == "synthesizer" else WEIGHTERS
    try:
        arrays = model_arrays(registry, method, model)
    except MethodError:
        return
    kept.keep(stage, vault.ledger, arrays)
