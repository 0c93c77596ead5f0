"""`counterpoise version`."""

import click

import counterpoise


@click.command("version")
def command() -> None:
    """Print the version of counterpoise."""
    click.echo(counterpoise.__version__)
