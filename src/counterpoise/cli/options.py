"""Options that `release` and `weigh` share, and what a shell completes them with.

Help and completion name methods without importing them: ours from a list here, which a test
compares with the registries, and third parties' from what their distributions declare.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from counterpoise.registry import plugins

Command = TypeVar("Command", bound=Callable[..., Any])

SYNTHESIZERS = (
    "aim",
    "cgan",
    "dp-mmd",
    "dpcgan",
    "dpgan",
    "gan",
    "histogram",
    "independent",
    "marginals",
    "mmdgan",
    "mst",
    "pategan",
    "privbayes",
    "support-points",
)
WEIGHTERS = (
    "discriminator",
    "dp-mlp",
    "logistic",
    "logistic-outputs",
    "mlp",
    "moments",
    "pate",
    "uniform",
)


class _SoundPath(click.Path):
    """A path that a system can have: some text in UTF-8, no NUL, and no name that is too long."""

    def convert(
        self, value: Any, parameter: click.Parameter | None, context: click.Context | None
    ) -> Any:
        try:
            if not os.fspath(value):
                self.fail("expected a path, not an empty one", parameter, context)
            str(value).encode()
            os.lstat(value)
        except UnicodeEncodeError:
            self.fail("expected a path in UTF-8; rename it", parameter, context)
        except ValueError:
            self.fail("expected a path without a NUL", parameter, context)
        except OSError as problem:
            if problem.errno == errno.ENAMETOOLONG:
                self.fail("the name is too long; state a shorter one", parameter, context)
        return super().convert(value, parameter, context)


PATH = _SoundPath(path_type=Path)


class _MethodName(click.ParamType):
    """A method's name, completed from those that are known; any name is let through."""

    name = "method"

    def __init__(self, room: str, *known: str):
        self.room, self.known = room, known

    @property
    def added(self) -> list[str]:
        """The names that plug-ins add."""
        return [name for name in plugins(self.room) if name not in self.known]

    def shell_complete(
        self, context: click.Context, parameter: click.Parameter, incomplete: str
    ) -> list[Any]:
        from click.shell_completion import CompletionItem

        names = sorted([*self.known, *self.added])
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]


SYNTHESIZER = _MethodName("synthesizers", "auto", *SYNTHESIZERS)
WEIGHTER = _MethodName("weighters", *WEIGHTERS)


class MethodOption(click.Option):
    """An option that takes a method, whose help names the plug-ins that are installed."""

    def get_help_record(self, context: click.Context) -> tuple[str, str] | None:
        record = super().get_help_record(context)
        added = self.type.added if isinstance(self.type, _MethodName) else []
        if record is None or not added:
            return record
        return record[0], f"{record[1].removesuffix('.')}; plug-ins: {', '.join(added)}."


def plugin_lines() -> list[tuple[str, str]]:
    """The plug-ins that are installed, a room a line, for the help of the whole command line."""
    rooms = (("synthesizers", SYNTHESIZER), ("weights", WEIGHTER))
    return [(room, ", ".join(method.added)) for room, method in rooms if method.added]


def many(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Several options as one decorator, shown in the order in which they stand here."""

    def add(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add


budget_options = many(
    click.option(
        "--schema", "schema_path", required=True, type=PATH, help="The public schema (.json)."
    ),
    click.option("--epsilon", required=True, type=float, help="The privacy budget."),
    click.option("--delta", type=float, help="0: a pure budget. [default: 0, and what one brings]"),
    click.option("-o", "--out", type=PATH, help="The folder to write."),
)

question_options = many(
    click.option("--target", metavar="COLUMN", help="What models will predict."),
    click.option(
        "--question",
        "asked",
        multiple=True,
        metavar="TEXT",
        help="Will be asked: 'y ~ x'. May be repeated.",
    ),
    click.option("--questions", "asked_file", type=PATH, help="A file of them, one a line."),
)

# What a neighbour is.
budget_terms = many(
    click.option(
        "--neighbours",
        default="add-remove",
        metavar="RELATION",
        show_default=True,
        type=click.Choice(["add-remove", "replace"]),
        help="Or replace (public size).",
    ),
    click.option(
        "--max-rows-per-person", type=int, metavar="INT", help="[default: 1; none with --person]"
    ),
)

privacy_options = many(
    budget_terms,
    click.option(
        "--person", metavar="COLUMN", help="Whose a row is: no more rows of each are used."
    ),
    click.option("--account", type=PATH, help="Pays first; see counterpoise account."),
    click.option("--seed", type=int, help="Repeatable noise, for teaching: NOT private."),
)

work_option = click.option(
    "--work", type=PATH, help="Keeps paid work. [default: .NAME.work beside --out]"
)

csv_options = many(
    click.option("--csv", is_flag=True, help="Write synthetic.csv too, safe for spreadsheets."),
    click.option("--csv-verbatim", is_flag=True, help="Write it with texts as they are."),
)

output_options = many(
    csv_options,
    click.option("--overwrite", is_flag=True, help="Replace a release that is there."),
    click.option("--dry-run", is_flag=True, help="Show what would be asked; read nothing."),
    click.option("--private-rows", type=int, metavar="INT", help="A guess, for --dry-run."),
    click.option(
        "--private-persons", type=int, metavar="INT", help="The same, of persons, with --person."
    ),
    click.option("--json", "as_json", is_flag=True, help="Print the card as JSON."),
    click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors."),
    click.option("-v", "--verbose", is_flag=True, help="Print the plan, and each stage."),
)

# What both commands end with; `Run` takes all of it.
run_options = many(privacy_options, work_option, output_options)
