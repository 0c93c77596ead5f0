"""How far an evaluation is: a bar on a terminal or in a notebook, or a caller's own function."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from counterpoise.arguments import truth_value

Progress = Callable[[str, float], None]


@contextmanager
def shown(progress: bool | Progress) -> Iterator[Progress]:
    """What to call with a stage and the part that is done: a bar for True, nothing for False.

    >>> with shown(False) as said:
    ...     said("models", 0.5)
    """
    if callable(progress):
        yield progress
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    if not truth_value("progress", progress) or not (console.is_terminal or console.is_jupyter):
        yield lambda stage, done: None
        return
    columns = (
        TextColumn("{task.description:<14}", markup=False),
        BarColumn(),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task("reading", total=1.0)
        yield lambda stage, done: bar.update(task, description=stage, completed=done)
