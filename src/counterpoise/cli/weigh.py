"""`counterpoise weigh`: weights for a synthetic table that another tool made."""

from __future__ import annotations

from pathlib import Path

import click

from counterpoise.cli.options import (
    PATH,
    WEIGHTER,
    WEIGHTERS,
    budget_options,
    output_options,
    privacy_options,
    work_option,
)

_EPILOG = """\b
Example:
  counterpoise weigh private.csv synthetic.csv --schema table.json --epsilon 0.5 --out weighted/
"""


@click.command("weigh", epilog=_EPILOG)
@click.argument("private", type=PATH)
@click.argument("synthetic", type=PATH)
@budget_options
@click.option(
    "--method", type=WEIGHTER, default="moments", metavar="NAME", help=f"{', '.join(WEIGHTERS)}."
)
@click.option("--target", metavar="COLUMN", help="What models will predict.")
@click.option("--replicates", type=int, default=80, show_default=True, help="For error bars.")
@privacy_options
@work_option
@output_options
def command(
    private: Path,
    synthetic: Path,
    schema_path: Path,
    epsilon: float,
    delta: float,
    out: Path | None,
    method: str,
    target: str | None,
    replicates: int,
    neighbours: str,
    max_rows_per_person: int,
    seed: int | None,
    work: Path | None,
    csv: bool,
    overwrite: bool,
    dry_run: bool,
    as_json: bool,
    quiet: bool,
    verbose: bool,
) -> None:
    """Weigh the rows of SYNTHETIC, made elsewhere, so that they speak for those of PRIVATE.

    The budget is that of the weights alone. What SYNTHETIC itself cost is yours to add. An
    interrupted run goes on where it stopped when the same command is given again.
    """
    import counterpoise
    from counterpoise.bundle.files import check_target
    from counterpoise.cli.console import notes
    from counterpoise.cli.plan import plan_lines, show_plan
    from counterpoise.cli.summary import show_release
    from counterpoise.curation.plan import plan_weigh
    from counterpoise.curation.progress import lines
    from counterpoise.schema import Schema
    from counterpoise.vault import Budget

    budget = Budget(epsilon, delta, neighbours, max_rows_per_person)
    schema = Schema.read(schema_path)
    plan = plan_weigh(schema, budget, method, target=target)
    if dry_run:
        show_plan(plan, as_json, replicates)
        return
    if out is None:
        raise click.UsageError("state the folder to write with --out, or --dry-run")
    check_target(out, overwrite)
    if verbose:
        click.echo(plan_lines(plan, replicates), err=True)
    with notes(quiet):
        made = counterpoise.weigh(
            private,
            synthetic,
            schema,
            epsilon,
            delta,
            method=method,
            target=target,
            replicates=replicates,
            neighbours=neighbours,
            max_rows_per_person=max_rows_per_person,
            seed=seed,
            progress=lines(plan) if verbose else not (quiet or as_json),
            work=work or out.parent / f".{out.name}.work",
        )
        made.save(out, overwrite=overwrite, csv=csv)
    show_release(made, out, as_json, quiet)
