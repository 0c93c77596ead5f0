"""What a run will ask and cost, as a dry run prints it; nothing is read for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from counterpoise.cli.console import echo, echo_json

if TYPE_CHECKING:
    from counterpoise.curation.plan import Plan


@dataclass(frozen=True)
class Guess:
    """How many private rows and persons there may be, as far as somebody says."""

    rows: int | None = None
    persons: int | None = None


def show_plan(plan: Plan, as_json: bool, replicates: int, guess: Guess) -> None:
    """Print a plan, as text or as JSON."""
    from counterpoise.curation.outlook import rows_guessed

    if as_json:
        stages = plan_values(plan, replicates, guess)
        seconds, held = _in_all([(stage["seconds"], stage["bytes"]) for stage in stages])
        rows = rows_guessed(plan, guess.rows, guess.persons)
        echo_json(
            {
                "private_rows_assumed": rows.all,
                "private_rows_kept": rows.kept,
                "private_persons_assumed": guess.persons,
                "seconds": seconds,
                "bytes": held,
                "protects": _protects(plan),
                "stages": stages,
            }
        )
    else:
        echo(plan_lines(plan, replicates, guess))
        echo("nothing was read or spent")


def plan_lines(plan: Plan, replicates: int, guess: Guess) -> str:
    """A plan as a table: a line a stage, and below it what is asked and how noisy the answer is."""
    from counterpoise.analysis.text import aligned

    stages = plan.describe(guess.rows, replicates, guess.persons)
    table = [("stage", "method", "share", "time", "memory")]
    for stage in stages:
        cells = (_share(stage), _seconds(stage.seconds), _bytes(stage.bytes))
        table.append((stage.name, stage.method or "", *cells))
    seconds, held = _in_all([(stage.seconds, stage.bytes) for stage in stages])
    table.append(("in all", "", "", _seconds(seconds), _bytes(held)))
    head, *lines, total = aligned(table, 3).splitlines()
    shown = [head]
    for stage, line in zip(stages, lines, strict=True):
        shown.append(line)
        if stage.share is not None:
            shown += [f"    {text}" for text in (stage.asks, stage.noise) if text]
    shown.append(total)
    shown.append(f"(noise, time and memory: roughly, for {_rows(plan, guess)})")
    return "\n".join([*shown, f"protects {_protects(plan)}"])


def plan_values(plan: Plan, replicates: int, guess: Guess) -> list[dict[str, Any]]:
    """A plan as JSON values."""
    return [
        {
            "stage": stage.name,
            "method": stage.method,
            "unit": None if stage.share is None else ("epsilon" if stage.share.pure else "rho"),
            "amount": None if stage.share is None else stage.share.amount,
            "part": stage.part,
            "asks": stage.asks,
            "noise": stage.noise,
            "seconds": stage.seconds,
            "bytes": stage.bytes,
        }
        for stage in plan.describe(guess.rows, replicates, guess.persons)
    ]


def _rows(plan: Plan, guess: Guess) -> str:
    """Of how many rows the numbers of a plan are, in words."""
    from counterpoise.curation.outlook import rows_guessed

    rows = rows_guessed(plan, guess.rows, guess.persons)
    if guess.persons is not None:
        of_all = "" if guess.rows is None else f" of {rows.all:,} private rows"
        return (
            f"the {rows.kept:,}{of_all} that may be kept, at most "
            f"{plan.budget.max_rows_per_person:,} of each of {guess.persons:,} persons"
        )
    said = f"{rows.all:,} private rows"
    if plan.person is None:
        return said
    return (
        f"{said}, as if every one of them were kept; "
        "--private-persons says of how many persons they may be"
    )


def _protects(plan: Plan) -> str:
    from counterpoise.bundle.card import BOUNDED, PROMISED, protection

    return protection(plan.budget.to_dict(), PROMISED if plan.person is None else BOUNDED)


def _in_all(
    costs: Sequence[tuple[float | None, int | None]],
) -> tuple[float | None, int | None]:
    """The time of all stages and the memory of the largest; None if none of them is known."""
    seconds = [seconds for seconds, _ in costs if seconds is not None]
    held = [size for _, size in costs if size is not None]
    return (sum(seconds) if seconds else None), max(held, default=None)


def _share(stage: Any) -> str:
    if stage.share is None:
        return "nothing"
    unit = "epsilon" if stage.share.pure else "rho"
    return f"{unit} {stage.share.amount:.3g} ({stage.part:.0%})"


def _seconds(seconds: float | None) -> str:
    if seconds is None:
        return ""
    if seconds < 1:
        return "< 1 s"
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def _bytes(size: int | None) -> str:
    if size is None:
        return ""
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{max(size / 1e6, 1):.0f} MB"
