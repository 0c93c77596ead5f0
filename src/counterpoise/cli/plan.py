"""What a run will ask and cost, as a dry run prints it; nothing is read for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from counterpoise.cli.console import echo_json

if TYPE_CHECKING:
    from counterpoise.curation.plan import Plan

# Noise, time and memory are shown for a table of this size when nobody states one.
GUESSED_ROWS = 10_000


def show_plan(plan: Plan, as_json: bool, replicates: int, rows: int = GUESSED_ROWS) -> None:
    """Print a plan, as text or as JSON."""
    if as_json:
        stages = plan_values(plan, replicates, rows)
        seconds, held = _in_all([(stage["seconds"], stage["bytes"]) for stage in stages])
        echo_json(
            {
                "private_rows_assumed": rows,
                "seconds": seconds,
                "bytes": held,
                "protects": _protects(plan),
                "stages": stages,
            }
        )
    else:
        click.echo(plan_lines(plan, replicates, rows))
        click.echo("nothing was read or spent")


def plan_lines(plan: Plan, replicates: int, rows: int = GUESSED_ROWS) -> str:
    """A plan as a table: a line a stage, and below it what is asked and how noisy the answer is."""
    from counterpoise.analysis.text import aligned

    stages = plan.describe(private_rows=rows, replicates=replicates)
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
    shown.append(f"(noise, time and memory: roughly, for {rows:,} private rows)")
    return "\n".join([*shown, f"protects {_protects(plan)}"])


def plan_values(plan: Plan, replicates: int, rows: int = GUESSED_ROWS) -> list[dict[str, Any]]:
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
        for stage in plan.describe(private_rows=rows, replicates=replicates)
    ]


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
