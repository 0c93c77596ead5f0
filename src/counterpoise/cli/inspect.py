"""`counterpoise inspect`: what a release holds, what it cost, and whether to use its weights."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from counterpoise.cli.console import echo
from counterpoise.cli.options import PATH

if TYPE_CHECKING:
    from counterpoise.bundle.release import Release


@click.command("inspect", epilog="Example: counterpoise inspect patients-release/")
@click.argument("folder", type=PATH)
@click.option("--json", "as_json", is_flag=True, help="Print the card as JSON.")
@click.option("--ledger", "all_looks", is_flag=True, help="List every look that was charged.")
@click.option("-q", "--quiet", is_flag=True, help="Check the files, and print only errors.")
def command(folder: Path, as_json: bool, all_looks: bool, quiet: bool) -> None:
    """Show what the release in FOLDER holds and what it cost; checks every file."""
    import counterpoise
    from counterpoise.cli.console import echo_json

    release = counterpoise.load(folder)
    if as_json:
        echo_json(release.card | {"guarantee": release.guarantee})
    elif not quiet:
        echo("\n".join(_lines(release, folder, all_looks)))


def _lines(release: Release, folder: Path, all_looks: bool) -> list[str]:
    from counterpoise.analysis.retarget import described
    from counterpoise.analysis.text import aligned
    from counterpoise.bundle.card import CHOSEN_FROM, RETARGETED, rows_kept
    from counterpoise.bundle.persons import persons_counted
    from counterpoise.cli.console import price_line, verdict_line
    from counterpoise.cli.summary import ledger_summary, places

    card, rows = release.card, release.rows
    weights = card["weights"]
    effective = float(weights["effective_sample_size"])
    facts = [
        ("privacy", release.guarantee),
        ("protects", release.protects),
        ("synthesizer", str(card["synthesizer"]["method"])),
        ("weights", str(weights["method"])),
        ("effective sample size", f"{effective:,.0f} ({effective / max(rows, 1):.0%} of the rows)"),
        ("replicate weights", _replicates(card)),
    ]
    if card.get(CHOSEN_FROM) is not None:
        facts.append(("rows", f"chosen by weight from {card[CHOSEN_FROM]:,}"))
    if card.get("population") is not None:
        kind = "public" if card.get("population_is_public") else "noisy"
        kept = " that were kept" if rows_kept(card) else ""
        facts.append(("private rows", f"about {card['population']:,.0f}{kept} ({kind})"))
    if persons := persons_counted(card):
        facts.append(("persons", persons.described))
    facts += [("retargeted", said) for said in described(card)]
    if described(card) and (size := card[RETARGETED]["population"]) is not None:
        facts.append(("target", f"{size:,.0f} people, as stated"))
    if paid := card.get("account"):
        named = f" {paid['name']!r}" if paid["name"] else ""
        facts.append(("account", f"{paid['id']}{named}, release {paid['release']}"))
    if card.get("caveat"):
        facts.append(("caveat", card["caveat"]))
    return [
        repr(release).strip("<>"),
        verdict_line(card),
        price_line(card),
        aligned(facts, 2),
        "",
        str(release.ledger) if all_looks else ledger_summary(release.ledger),
        "",
        places(folder),
    ]


def _replicates(card: dict[str, Any]) -> str:
    """How many replicate weights there are, and how a variance is made of them."""
    if not (found := card["replicates"]):
        return "none"
    said = f"a variance is {found['scale']} times the sum of their squared distances"
    return f"{found['count']}; {said}"
