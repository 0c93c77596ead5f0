"""`counterpoise weigh`: weights for a synthetic table that another tool made."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from counterpoise.cli.options import (
    PATH,
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
  counterpoise weigh private.csv synthetic.csv --schema table.json --epsilon 0.5 --out weighted/
"""


@click.command("weigh", epilog=_EPILOG)
@click.argument("private", type=PATH)
@click.argument("synthetic", type=PATH)
@budget_options
@click.option(
    "--method",
    cls=MethodOption,
    type=WEIGHTER,
    default="moments",
    metavar="NAME",
    help=f"{', '.join(WEIGHTERS)}.",
)
@question_options
@click.option("--replicates", type=int, default=80, show_default=True, help="For error bars.")
@run_options
def command(
    private: Path,
    synthetic: Path,
    method: str,
    target: str | None,
    asked: tuple[str, ...],
    asked_file: Path | None,
    **shared: Any,
) -> None:
    """Weigh the rows of SYNTHETIC, made elsewhere, so that they speak for those of PRIVATE.

    The budget is that of the weights alone. What SYNTHETIC itself cost is yours to add. An
    interrupted run goes on where it stopped when the same command is given again.
    """
    import counterpoise
    from counterpoise.curation.plan import plan_weigh
    from counterpoise.curation.weigh import public_table, request_of

    run = Run(**shared)
    aims: dict[str, Any] = {"target": target, "questions": all_questions(asked, asked_file)}
    plan = run.plan(plan_weigh, method, **aims)
    make = partial(counterpoise.weigh, private, synthetic, method=method, **aims)

    def named(*options: Any) -> dict[str, Any]:
        return request_of(public_table(synthetic, plan.schema), plan, *options)

    run.carry_out(plan, make, named, private)
