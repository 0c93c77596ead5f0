"""`counterpoise release`: the curator's main job."""

import json
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

import counterpoise
from counterpoise.registry import Registry
from counterpoise.release.bundle import check_target
from counterpoise.release.plan import Plan, plan_release
from counterpoise.schema import Schema
from counterpoise.synthesize import SYNTHESIZERS
from counterpoise.vault import Budget
from counterpoise.weigh import WEIGHTERS

_EPILOG = """\b
Example:
  counterpoise release patients.csv --schema patients.json --epsilon 1 --delta 1e-9 --out out/
"""


def _names(registry: Registry) -> str:  # type: ignore[type-arg]
    return ", ".join(sorted(registry))


@click.command("release", epilog=_EPILOG)
@click.argument("table", type=click.Path(path_type=Path))
@click.option("--schema", "schema_path", required=True, type=click.Path(path_type=Path))
@click.option("--epsilon", required=True, type=float, help="The privacy budget.")
@click.option("--delta", type=float, default=0.0, show_default=True, help="Zero: pure budget.")
@click.option("--out", type=click.Path(path_type=Path), help="The folder to write.")
@click.option("--synthesizer", default="auto", show_default=True, help=_names(SYNTHESIZERS))
@click.option("--weights", default="uniform", show_default=True, help=_names(WEIGHTERS))
@click.option(
    "--rows", type=int, help="Synthetic rows; by default the noisy number of private ones."
)
@click.option("--neighbours", type=click.Choice(["add-remove", "replace"]), default="add-remove")
@click.option("--max-rows-per-person", type=int, default=1, show_default=True)
@click.option("--seed", type=int, help="Repeatable noise, for teaching: NOT private.")
@click.option("--overwrite", is_flag=True, help="Replace a release that is there.")
@click.option("--dry-run", is_flag=True, help="Show how the budget would be shared; read nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print the card as JSON.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
def command(
    table: Path,
    schema_path: Path,
    epsilon: float,
    delta: float,
    out: Path | None,
    synthesizer: str,
    weights: str,
    rows: int | None,
    neighbours: str,
    max_rows_per_person: int,
    seed: int | None,
    overwrite: bool,
    dry_run: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Make a private release of TABLE (.csv or .parquet) and write it to a folder."""
    budget = Budget(epsilon, delta, neighbours, max_rows_per_person)
    schema = Schema.read(schema_path)
    if dry_run:
        _show_plan(plan_release(schema, budget, synthesizer, weights, rows))
        return
    if out is None:
        raise click.UsageError("state the folder to write with --out, or --dry-run")
    check_target(out, overwrite)
    with Progress(
        TextColumn("{task.description:<12}"),
        BarColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=quiet or as_json,
    ) as bar:
        task = bar.add_task("opening", total=1.0)
        made = counterpoise.release(
            table,
            schema,
            epsilon,
            delta,
            synthesizer=synthesizer,
            weights=weights,
            rows=rows,
            neighbours=neighbours,
            max_rows_per_person=max_rows_per_person,
            seed=seed,
            progress=lambda stage, done: bar.update(task, description=stage, completed=done),
        )
        made.save(out, overwrite=overwrite)
    if as_json:
        click.echo(json.dumps(made.card, indent=2))
    elif not quiet:
        click.echo(str(made.ledger))
        click.echo(f"release: {out}\nreport:  {out / 'report.html'}")


def _show_plan(plan: Plan) -> None:
    shown = {
        "domain": plan.domain_share,
        "number of bins": plan.bins_share,
        f"synthesizer {SYNTHESIZERS.name_of(plan.synthesizer)}": plan.synthesizer_share,
        f"weights {WEIGHTERS.name_of(plan.weighter)}": plan.weights_share,
    }
    for stage, share in shown.items():
        if share is None:
            click.echo(f"{stage:<24} asks nothing")
        else:
            kind = "epsilon" if share.pure else "rho"
            click.echo(f"{stage:<24} {kind} {share.amount:.4g}")
    click.echo("nothing was read or spent")
