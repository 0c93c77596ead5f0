"""What was made, in a few lines: after a run, and whenever somebody inspects a release."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from counterpoise.cli.console import echo_json, verdict_line

if TYPE_CHECKING:
    from counterpoise.bundle.release import Release


def show_release(made: Release, folder: Path, as_json: bool, quiet: bool) -> None:
    """Print what a run made: the card as JSON, or the ledger, the verdict and where it lies."""
    if as_json:
        echo_json(made.card | {"guarantee": made.guarantee})
    elif not quiet:
        click.echo(str(made.ledger))
        click.echo(f"privacy: {made.guarantee}")
        click.echo(verdict_line(made.card))
        click.echo(places(folder))


def places(folder: Path) -> str:
    """Where a release and its report are."""
    return f"release: {folder}\nreport:  {folder / 'report.html'}"
