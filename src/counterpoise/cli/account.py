"""`counterpoise account`: what all releases of the same people may cost together, and have cost."""

from __future__ import annotations

from pathlib import Path

import click

from counterpoise.cli.console import echo
from counterpoise.cli.options import PATH, budget_terms

_EPILOG = """\b
Example:
  counterpoise account create people.account.json --epsilon 4 --delta 1e-6
  counterpoise release patients.csv --schema patients.json --epsilon 1 --delta 1e-6 \\
    --account people.account.json --out out/
  counterpoise account show people.account.json
"""


@click.group("account", epilog=_EPILOG)
def command() -> None:
    """Keep one account of several releases of the same people.

    Every charge of a release with --account goes there first, and is refused when it would
    overspend what all releases may cost together.
    """


@command.command("create")
@click.argument("path", type=PATH)
@click.option("--epsilon", required=True, type=float, help="What all releases may spend together.")
@click.option("--delta", type=float, default=0.0, show_default=True, help="0: a pure budget.")
@budget_terms
@click.option("--name", default="", help="Public: the cards of its releases carry it.")
def create(
    path: Path,
    epsilon: float,
    delta: float,
    neighbours: str,
    max_rows_per_person: int | None,
    name: str,
) -> None:
    """Create the account in PATH, a file that is not there yet."""
    from counterpoise.vault import Account

    made = Account.create(
        path,
        epsilon,
        delta,
        neighbours=neighbours,
        max_rows_per_person=max_rows_per_person,
        name=name,
    )
    echo(str(made))


@command.command("show")
@click.argument("path", type=PATH)
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def show(path: Path, as_json: bool) -> None:
    """Show the releases of the account in PATH, and what the next one could have."""
    from counterpoise.cli.console import echo_json
    from counterpoise.vault import Account

    account = Account(path)
    if as_json:
        echo_json(account.to_dict())
    else:
        echo(str(account))
