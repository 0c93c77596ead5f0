"""`counterpoise inspect`: what a release holds and what it cost."""

import json
from pathlib import Path

import click

import counterpoise


@click.command("inspect", epilog="Example: counterpoise inspect patients-release/")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the card as JSON.")
def command(folder: Path, as_json: bool) -> None:
    """Show what the release in FOLDER holds and what it cost; checks every file."""
    release = counterpoise.load(folder)
    if as_json:
        click.echo(json.dumps(release.card, indent=2))
        return
    card = release.card
    click.echo(repr(release).strip("<>"))
    methods = card["synthesizer"]["method"], card["weights"]["method"]
    click.echo("synthesizer {}, weights {}".format(*methods))
    click.echo(f"effective sample size {card['weights']['effective_sample_size']:,.0f}\n")
    click.echo(str(release.ledger))
    click.echo(f"\nreport: {folder / 'report.html'}")
