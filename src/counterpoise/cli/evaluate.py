"""`counterpoise evaluate`: a release against the private rows, for the curator's eyes alone."""

from __future__ import annotations

from pathlib import Path

import click

from counterpoise.cli.console import echo
from counterpoise.cli.options import PATH

_EPILOG = """\b
Example:
  counterpoise evaluate patients-release/ patients.csv --report confidential.html
"""


# Of a release whose rows stay in their file, so many are compared: they are read at once.
MOST_COMPARED = 1_000_000


@click.command("evaluate", epilog=_EPILOG)
@click.argument("folder", type=PATH)
@click.argument("private", type=PATH)
@click.option("--holdout", type=PATH, help="Rows of the same population, not in PRIVATE.")
@click.option("--schema", "schema_path", type=PATH, help="The schema that PRIVATE is read by.")
@click.option(
    "--target",
    "targets",
    multiple=True,
    metavar="COLUMN",
    help="What all models predict. May be repeated.",
)
@click.option(
    "--report",
    type=PATH,
    default=Path("confidential.html"),
    show_default=True,
    help="The page to write.",
)
@click.option("--tables", type=PATH, help="A folder for all figures, as CSV.")
@click.option("--attacks/--no-attacks", default=True, show_default=True, help="Attack it as well.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of samples and models.")
@click.option("--workers", type=int, help="Threads. [default: one a processor]")
@click.option("-q", "--quiet", is_flag=True, help="Write the page, and print only errors.")
def command(
    folder: Path,
    private: Path,
    holdout: Path | None,
    schema_path: Path | None,
    targets: tuple[str, ...],
    report: Path,
    tables: Path | None,
    attacks: bool,
    seed: int,
    workers: int | None,
    quiet: bool,
) -> None:
    """Compare the release in FOLDER with the rows of PRIVATE that it was made of.

    What is printed and written is CONFIDENTIAL: it comes from exact private rows, spends no
    budget, and is refused a place in a release.
    """
    import counterpoise
    from counterpoise.cli.console import notes
    from counterpoise.evaluation.confidential import check_outside_releases

    # Before the minutes that it takes.
    for place in (report, tables):
        if place is not None:
            check_outside_releases(place)
    release = counterpoise.load(folder)
    if release.stored is not None:
        echo(f"Of {release.rows:,} synthetic rows, {MOST_COMPARED:,} are compared.", err=True)
        release = release.part(MOST_COMPARED)
    with notes(quiet):
        found = counterpoise.evaluate(
            release,
            private,
            holdout,
            schema=schema_path,
            targets=targets or None,
            attacks=attacks,
            seed=seed,
            workers=workers,
            progress=not quiet,
        )
    if tables is not None:
        found.save(tables)
    found.to_html(report)
    if not quiet:
        echo(str(found))
        echo(f"\nwritten to {report}{'' if tables is None else f' and {tables}'}")
