"""The command line: `counterpoise schema`, `release`, `inspect`, `demo` and `version`.

Commands are imported when they are called, so that help is quick. An error of ours is one line
on standard error and exit code 1; a wrong call is click's, with exit code 2; `--debug` shows the
traceback instead.
"""

import sys
from importlib import import_module

import click

from counterpoise.errors import CounterpoiseError

_COMMANDS = {
    "schema": "draft a schema from a table, or review one",
    "release": "make a private release of a table",
    "inspect": "show what a release holds and what it cost",
    "demo": "make a release of bundled data, and use it",
    "version": "print the version",
}


class _LazyGroup(click.Group):
    """A group whose commands are imported when they are needed."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        command = import_module(f"counterpoise.cli.{name}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.command(
    cls=_LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Example: counterpoise release table.csv --schema table.json --epsilon 1 --out out/",
)
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def group(debug: bool) -> None:
    """Differentially private synthetic tables, with the weights that correct their bias."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit."""
    words = sys.argv[1:] if arguments is None else arguments
    try:
        group(words, prog_name="counterpoise", standalone_mode=False)
    except click.exceptions.Exit as finished:
        sys.exit(finished.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted; nothing was written", err=True)
        sys.exit(130)
    except CounterpoiseError as error:
        if "--debug" in words:
            raise
        click.echo(f"error: {error}", err=True)
        sys.exit(1)
