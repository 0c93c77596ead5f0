"""The released page: what a release holds and what it cost, in one self-contained file.

Computed from the release alone, so there is nothing private in it; no scripts, nothing loaded
from elsewhere. Charts are small inline SVGs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jinja2
import numpy as np

from counterpoise.report.charts import bars, budget_bar

if TYPE_CHECKING:
    from counterpoise.release.result import Release

_environment = jinja2.Environment(
    loader=jinja2.PackageLoader("counterpoise.report"), autoescape=True, trim_blocks=True
)


def release_page(release: Release) -> str:
    """The page of a release, as HTML."""
    ledger = release.ledger
    return _environment.get_template("release.html").render(
        private=release.private,
        rows=len(release.table),
        columns=[_column(release, name) for name in release.schema.names],
        budget=ledger.budget.to_dict(),
        spent=ledger.epsilon_spent,
        tighter=ledger.tighter_epsilon,
        spends=ledger.to_frame().to_dict("records"),
        bar=budget_bar(_by_stage(release), ledger.budget.epsilon),
        card=release.card,
    )


def _by_stage(release: Release) -> dict[str, float]:
    """Epsilon so far, cut into what each stage added to it."""
    added: dict[str, float] = {}
    before = 0.0
    for spend in release.ledger.to_frame().to_dict("records"):
        stage, so_far = str(spend["stage"]), float(spend["epsilon so far"])
        added[stage] = added.get(stage, 0.0) + so_far - before
        before = so_far
    return added


def _column(release: Release, name: str) -> dict[str, Any]:
    """A column of the synthetic table: its kind, and its weighted distribution over its codes."""
    column = release.schema[name]
    codes = release.schema.select([name]).encode(release.table).codes[:, 0]
    shares = np.bincount(codes, weights=release.weights, minlength=column.size)
    shares = shares / max(shares.sum(), 1e-300)
    return {
        "name": name,
        "kind": column.kind,
        "domain": _domain(release, name),
        "nullable": column.nullable,
        "chart": bars(shares[: column.cells], column.code_labels()),
        "null_share": float(shares[column.cells]) if column.nullable else None,
    }


def _domain(release: Release, name: str) -> str:
    column = release.schema[name]
    if column.is_numeric:
        return f"{column.minimum} to {column.maximum}, {column.cells} bins"
    return f"{column.cells} categories"
