"""`counterpoise release`: the curator's main job."""

from __future__ import annotations

from pathlib import Path

import click

from counterpoise.cli.options import (
    PATH,
    SYNTHESIZER,
    SYNTHESIZERS,
    WEIGHTER,
    WEIGHTERS,
    budget_options,
    output_options,
    privacy_options,
    work_option,
)

_EPILOG = """\b
Example:
  counterpoise release patients.csv --schema patients.json --epsilon 1 --delta 1e-9 --out out/
"""


@click.command("release", epilog=_EPILOG)
@click.argument("table", type=PATH)
@budget_options
@click.option(
    "--synthesizer",
    type=SYNTHESIZER,
    default="auto",
    metavar="NAME",
    help=f"auto, {', '.join(SYNTHESIZERS)}.",
)
@click.option(
    "--weights", type=WEIGHTER, default="moments", metavar="NAME", help=f"{', '.join(WEIGHTERS)}."
)
@click.option("--target", metavar="COLUMN", help="What models will predict.")
@click.option("--split", type=float, help="The weights' part of the budget, 0 to 1.")
@click.option("--rows", type=int, help="Synthetic rows. [default: about as many as private ones]")
@click.option("--replicates", type=int, default=80, show_default=True, help="For error bars.")
@privacy_options
@work_option
@output_options
def command(
    table: Path,
    schema_path: Path,
    epsilon: float,
    delta: float,
    out: Path | None,
    synthesizer: str,
    weights: str,
    target: str | None,
    split: float | None,
    rows: int | None,
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
    """Make a private release of TABLE (.csv or .parquet) and write it to a folder.

    An interrupted run goes on where it stopped when the same command is given again.
    """
    import counterpoise
    from counterpoise.bundle.files import check_target
    from counterpoise.cli.console import notes
    from counterpoise.cli.plan import GUESSED_ROWS, plan_lines, show_plan
    from counterpoise.cli.summary import show_release
    from counterpoise.curation.plan import plan_release
    from counterpoise.curation.progress import lines
    from counterpoise.schema import Schema
    from counterpoise.vault import Budget

    budget = Budget(epsilon, delta, neighbours, max_rows_per_person)
    schema = Schema.read(schema_path)
    plan = plan_release(schema, budget, synthesizer, weights, rows, target=target, split=split)
    guess = rows or GUESSED_ROWS
    if dry_run:
        show_plan(plan, as_json, replicates, guess)
        return
    if out is None:
        raise click.UsageError("state the folder to write with --out, or --dry-run")
    check_target(out, overwrite)
    if verbose:
        click.echo(plan_lines(plan, replicates, guess), err=True)
    with notes(quiet):
        made = counterpoise.release(
            table,
            schema,
            epsilon,
            delta,
            synthesizer=synthesizer,
            weights=weights,
            target=target,
            split=split,
            rows=rows,
            replicates=replicates,
            neighbours=neighbours,
            max_rows_per_person=max_rows_per_person,
            seed=seed,
            progress=lines(plan) if verbose else not (quiet or as_json),
            work=work or out.parent / f".{out.name}.work",
        )
        made.save(out, overwrite=overwrite, csv=csv)
    show_release(made, out, as_json, quiet)
