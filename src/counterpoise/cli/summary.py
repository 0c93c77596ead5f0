"""What was made, in a few lines: after a run, and whenever somebody inspects a release."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from counterpoise.cli.console import echo, echo_json, price_line, verdict_line

if TYPE_CHECKING:
    from counterpoise.bundle.release import Release
    from counterpoise.vault import Ledger


def show_release(made: Release, folder: Path, as_json: bool, quiet: bool) -> None:
    """Print what a run made: the card as JSON, or what was spent, the verdict and where it lies."""
    from counterpoise.bundle.card import rows_kept
    from counterpoise.bundle.persons import persons_counted

    if as_json:
        echo_json(made.card | {"guarantee": made.guarantee})
    elif not quiet:
        echo(ledger_summary(made.ledger))
        echo(f"privacy: {made.guarantee}")
        if counted := rows_kept(made.card):
            population = made.card.get("population")
            many = "" if population is None else f", about {population:,.0f} in all"
            echo(f"rows: every number is {counted}{many}")
        if persons := persons_counted(made.card):
            echo(f"persons: {persons.described}")
        echo(verdict_line(made.card))
        echo(price_line(made.card))
        echo(places(folder))


def ledger_summary(ledger: Ledger) -> str:
    """What each stage spent by each kind of mechanism; the looks one by one may be hundreds.

    >>> from dp_accounting import GaussianDpEvent
    >>> from counterpoise.vault import Budget, Ledger
    >>> ledger = Ledger(Budget(epsilon=1.0, delta=1e-6))
    >>> for query in ("ages", "wards"):
    ...     ledger.spend(query, GaussianDpEvent(10.0))
    >>> print(ledger_summary(ledger))
    epsilon 0.6217 of 1 spent, delta 1e-06, add-remove one record
    stage  mechanism  looks  epsilon added
    query  Gaussian       2         0.6217
    """
    from counterpoise.analysis.text import aligned

    frame = ledger.to_frame()
    if not len(frame):
        return ledger.headline
    so_far = frame["epsilon so far"]
    kinds = frame.assign(
        # As Gaussian is of Gaussian(noise_multiplier=4.53)
        mechanism=frame["mechanism"].str.partition("(")[0],
        added=so_far.diff().fillna(so_far),
    ).groupby(["stage", "mechanism"], sort=False)["added"]
    lines = [("stage", "mechanism", "looks", "epsilon added")]
    for kind, added in kinds:
        stage, mechanism = map(str, kind)
        lines.append((stage, mechanism, f"{len(added):,}", f"{added.sum():.4g}"))
    return f"{ledger.headline}\n{aligned(lines, 2)}"


def places(folder: Path) -> str:
    """Where a release and its report are."""
    report = folder / "report.html"
    where = report if report.exists() else f"none; counterpoise report {folder} makes it"
    return f"release: {folder}\nreport:  {where}"
