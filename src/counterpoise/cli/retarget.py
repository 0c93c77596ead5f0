"""`counterpoise retarget`: a release turned to another population, by its weights."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from counterpoise.cli.console import echo
from counterpoise.cli.options import PATH, csv_options

if TYPE_CHECKING:
    from counterpoise.bundle.release import Release

# A screen of margins; the card has them all.
MOST_LINES = 40

_EPILOG = """\b
Examples:
  counterpoise retarget release/ --margins sex.csv --margins age.csv --out national/
  counterpoise retarget release/ --modifier "age >= 18" --out adults/
"""


@click.command("retarget", epilog=_EPILOG)
@click.argument("folder", type=PATH)
@click.option(
    "--margins",
    multiple=True,
    type=PATH,
    metavar="FILE",
    help="Known shares: JSON, or a CSV a margin. May be repeated.",
)
@click.option("--modifier", metavar="TEXT", help="A factor for every row: '1 / (1 + age)'.")
@click.option("--labelled", type=PATH, metavar="FILE", help="Rows of which one knows the label.")
@click.option("--label", metavar="COLUMN", help="True in the target; or a factor above 0.")
@click.option("--population", type=float, help="How many people the target has.")
@click.option("--seed", type=int, help="Of the learned factors in the replicates.")
@click.option("-o", "--out", type=PATH, required=True, help="The folder to write.")
@csv_options
@click.option("--overwrite", is_flag=True, help="Replace a release that is there.")
@click.option("--json", "as_json", is_flag=True, help="Print the card as JSON.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
def command(
    folder: Path,
    margins: tuple[Path, ...],
    modifier: str | None,
    labelled: Path | None,
    label: str | None,
    population: float | None,
    seed: int | None,
    out: Path,
    csv: bool,
    csv_verbatim: bool,
    overwrite: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Turn the release in FOLDER to a target population, and write it anew; this is free.

    What is known of the target: margins, raked to all at once; a factor for every row, as an
    expression over the columns; or rows labelled by whether they belong to it. The weights and
    their replicates change, the rows do not.
    """
    if (labelled is None) != (label is None):
        raise click.UsageError("--labelled and --label go together")
    if not (margins or modifier is not None or labelled is not None):
        raise click.UsageError("state what is known: --margins, --modifier or --labelled")
    import counterpoise
    from counterpoise.bundle.files import check_target
    from counterpoise.cli.console import echo_json, notes, verdict_line
    from counterpoise.cli.margin_files import margins_in
    from counterpoise.cli.run import check_parents
    from counterpoise.cli.summary import places

    check_parents(out)
    check_target(out, overwrite)
    before = counterpoise.load(folder)
    with notes(quiet):
        after = before.retarget(
            margins=margins_in(margins) if margins else None,
            modifier=modifier,
            labelled=labelled,
            label=label,
            population=population,
            seed=seed,
        )
        after.save(out, overwrite=overwrite, csv="verbatim" if csv_verbatim else csv)
    if as_json:
        echo_json(after.card | {"guarantee": after.guarantee})
    elif not quiet:
        echo(_table(before, after))
        echo(f"privacy: {after.guarantee}")
        echo(verdict_line(after.card))
        echo(places(out))


def _table(before: Release, after: Release) -> str:
    """The margins, and as how many rows the weighted ones count, before and after."""
    from counterpoise.analysis.retarget import described, margin_lines
    from counterpoise.analysis.text import aligned

    new = len(described(after.card)) - len(described(before.card))
    margins = margin_lines(after.card, last=new)
    sizes = (f"{each.card['weights']['effective_sample_size']:,.0f}" for each in (before, after))
    lines = [
        ("margin", "category", "before", "after"),
        *margins[:MOST_LINES],
        ("effective sample size", "", *sizes),
    ]
    more = len(margins) - MOST_LINES
    return aligned(lines, 2) + (f"\nand {more:,} more lines of margins" if more > 0 else "")
