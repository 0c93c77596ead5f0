"""The curator's main job: a private table, a public schema and a budget make a release.

`counterpoise.release` is both this function and the room it lives in. The function wins, because
the package binds it after the room is imported; so this file is imported with the package, and
keeps the heavy imports for when it is called.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from counterpoise.registry import Registry
    from counterpoise.release.result import Release
    from counterpoise.synthesize import Synthesizer
    from counterpoise.weigh import Weighter

Progress = Callable[[str, float], None]


def release(
    table: Any,
    schema: Any,
    epsilon: float,
    delta: float = 0.0,
    *,
    synthesizer: str | Synthesizer = "auto",
    weights: str | Weighter = "uniform",
    rows: int | None = None,
    neighbours: str = "add-remove",
    max_rows_per_person: int = 1,
    seed: int | None = None,
    progress: Progress | None = None,
) -> Release:
    """Make a differentially private release of a table.

    `table` is a CSV or Parquet path, a pandas, polars or Arrow table, or a DuckDB relation;
    `schema` a `Schema`, a Table Schema dict, or a path to one. All of (epsilon, delta) is spent
    on this release. `synthesizer` is a method or its name; "auto" takes the one that did best in
    our benchmarks for such a schema and budget. `rows` is the number of synthetic rows, by default
    the noisy number of private ones. `neighbours` is "add-remove" (the number of rows is private)
    or "replace" (it is public). A `seed` makes the release repeatable and stamps it as not
    private. `progress` is called with the name of each stage and the part of the work done.

    >>> import pandas as pd, counterpoise as cp
    >>> table = pd.DataFrame({"smoker": [True, False, False] * 200})
    >>> schema = cp.Schema([cp.Column.boolean("smoker")])
    >>> made = cp.release(table, schema, epsilon=2.0, seed=1)
    >>> round(float(made.table["smoker"].mean()), 1)
    0.3
    """
    import counterpoise
    from counterpoise.release.plan import plan_release
    from counterpoise.release.result import WEIGHT, Release
    from counterpoise.synthesize import SYNTHESIZERS
    from counterpoise.vault import Budget, Vault
    from counterpoise.weigh import WEIGHTERS

    said = progress or (lambda stage, done: None)
    budget = Budget(epsilon, delta, neighbours, max_rows_per_person)
    plan = plan_release(schema, budget, synthesizer, weights, rows)
    with Vault(table, plan.schema, budget, seed=seed) as vault:
        if plan.domain_share is not None:
            said("domain", 0.0)
            vault.ledger.stage = "domain"
            vault.learn_domain(plan.domain_share, plan.threshold_delta)
        if plan.chooses_bins:
            vault.ledger.stage = "domain"
            vault.choose_bins(plan.bins_share)
        said("synthesizer", 0.1)
        vault.ledger.stage = "synthesizer"
        model = plan.synthesizer.fit(vault, plan.synthesizer_share)
        said("sampling", 0.6)
        synthetic = model.sample(model.rows if rows is None else rows, seed=seed)
        said("weights", 0.8)
        vault.ledger.stage = "weights"
        found = plan.weighter.fit(vault, synthetic, plan.weights_share).weigh(synthetic)
        ledger, schema_used = vault.ledger, vault.schema
    card = {
        "counterpoise": counterpoise.__version__,
        "ledger": ledger.to_dict(),
        "synthesizer": _describe(SYNTHESIZERS, plan.synthesizer),
        "weights": _describe(WEIGHTERS, plan.weighter) | found.diagnostics(),
        "rows": len(synthetic),
    }
    said("done", 1.0)
    return Release(synthetic.assign(**{WEIGHT: found.normalised}), schema_used, card)


def _describe(registry: Registry[Any], method: Any) -> dict[str, Any]:
    """The name of a method and its parameters, as JSON values."""
    return {"method": registry.name_of(method), "parameters": asdict(method)}
