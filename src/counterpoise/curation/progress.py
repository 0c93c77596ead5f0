"""How far a run is: a bar on a terminal or in a notebook, lines for a log, or a caller's function.

Whatever shows it is called with the name of each stage and the part of the work that is done.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from counterpoise.arguments import truth_value
from counterpoise.curation.plan import Plan

Progress = Callable[[str, float], None]


@contextmanager
def shown(progress: bool | Progress, plan: Plan) -> Iterator[Progress]:
    """What to call: the caller's own function, a bar for True, nothing for False."""
    if callable(progress):
        yield progress
    elif progress is not None and truth_value("progress", progress):
        with _bar(spent_before(plan)) as report:
            yield report
    else:
        yield lambda stage, done: None


def lines(plan: Plan) -> Progress:
    """A line on standard error for each stage as it begins, which a log keeps."""
    spent, began, last = spent_before(plan), time.monotonic(), [""]

    def report(stage: str, done: float) -> None:
        if stage != last[0]:
            gone, seconds = spent.get(stage, 1.0), time.monotonic() - began
            sys.stderr.write(f"{seconds:7.1f} s  {gone:4.0%} of the budget spent  {stage}\n")
        last[0] = stage

    return report


def spent_before(plan: Plan) -> dict[str, float]:
    """The part of the budget that is gone when each stage begins.

    Shares add up in rho, or in epsilon for a pure budget; the parts are of that unit.
    """
    shares = {
        "persons": (plan.persons_share,),
        "domain": (plan.domain_share, plan.cells_share, plan.rows_share),
        "synthesizer": (plan.synthesizer_share,),
        "sampling": (),
        "weights": (plan.weights_share,),
        "replicates": (),
    }
    amounts = [sum(part.amount for part in parts if part) for parts in shares.values()]
    gone = list(itertools.accumulate(amounts, initial=0.0))
    return {stage: before / (gone[-1] or 1.0) for stage, before in zip(shares, gone, strict=False)}


@contextmanager
def _bar(spent: Mapping[str, float]) -> Iterator[Progress]:
    """A bar with the stage, the part of the budget that is spent, and the time left."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not (console.is_terminal or console.is_jupyter):
        yield lambda stage, done: None
        return
    with Progress(
        TextColumn("{task.description:<12}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[spent]:4.0%} of the budget spent,"),
        TimeRemainingColumn(),
        TextColumn("left"),
        console=console,
        transient=True,
    ) as bar:
        task = bar.add_task("opening", total=1.0, spent=0.0)
        yield lambda stage, done: bar.update(
            task, description=stage, completed=done, spent=spent.get(stage, 1.0)
        )
