"""`counterpoise report`: the page of a release, made anew."""

from __future__ import annotations

from pathlib import Path

import click

from counterpoise.cli.console import echo
from counterpoise.cli.options import PATH


@click.command("report", epilog="Example: counterpoise report patients-release/")
@click.argument("folder", type=PATH)
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
def command(folder: Path, quiet: bool) -> None:
    """Write report.html, the page of the release in FOLDER, anew; checks every file before."""
    import counterpoise
    from counterpoise.cli.summary import places

    counterpoise.load(folder).report(folder)
    if not quiet:
        echo(places(folder))
