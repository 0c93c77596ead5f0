"""`counterpoise release`: the curator's main job."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from counterpoise.cli.options import (
    PATH,
    SYNTHESIZER,
    SYNTHESIZERS,
    WEIGHTER,
    WEIGHTERS,
    MethodOption,
    budget_options,
    question_options,
    run_options,
)
from counterpoise.cli.run import Run, all_questions

_EPILOG = """\b
Example:
  counterpoise release patients.csv --schema patients.json --epsilon 1 --delta 1e-9 --out out/
"""


@click.command("release", epilog=_EPILOG)
@click.argument("table", type=PATH)
@budget_options
@click.option(
    "--synthesizer",
    cls=MethodOption,
    type=SYNTHESIZER,
    default="auto",
    metavar="NAME",
    help=f"auto, {', '.join(SYNTHESIZERS)}.",
)
@click.option(
    "--weights",
    cls=MethodOption,
    type=WEIGHTER,
    default="moments",
    metavar="NAME",
    help=f"{', '.join(WEIGHTERS)}.",
)
@question_options
@click.option("--split", type=float, help="The weights' part of the budget, 0 to 1.")
@click.option("--rows", type=int, help="How many. [default: as many as private ones]")
@click.option(
    "--fine/--no-fine",
    default=True,
    help="Fine histograms of numbers and long lists; without, bins of equal width. [default: fine]",
)
@click.option("--replicates", type=int, default=80, show_default=True, help="For error bars.")
@run_options
def command(
    table: Path,
    synthesizer: str,
    weights: str,
    target: str | None,
    asked: tuple[str, ...],
    asked_file: Path | None,
    split: float | None,
    rows: int | None,
    fine: bool,
    **shared: Any,
) -> None:
    """Make a private release of TABLE (.csv or .parquet) and write it to a folder.

    An interrupted run goes on where it stopped when the same command is given again.
    """
    import counterpoise
    from counterpoise.curation.plan import plan_release
    from counterpoise.curation.release import request_of

    run = Run(**shared)
    request: dict[str, Any] = {
        "synthesizer": synthesizer,
        "weights": weights,
        "rows": rows,
        "target": target,
        "questions": all_questions(asked, asked_file),
        "split": split,
        "fine": fine,
    }
    plan = run.plan(plan_release, **request)
    run.carry_out(
        plan,
        partial(counterpoise.release, table, **request),
        partial(request_of, plan),
        table,
        rows,
    )
