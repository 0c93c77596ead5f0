"""The command line: `counterpoise schema`, `release`, `weigh`, `inspect`, `analyse` and more.

Commands are imported when they are called, and import what is heavy when they run, so that help
and completion are quick. Results go to standard output; progress, notes and errors to standard
error. An error of ours is one line with a hint below it, and exit code 1; a wrong call is click's,
with exit code 2; a run that a signal ends has 128 and its number, as a shell has it. `--debug`
shows the traceback instead.
"""

import os
import sys
from importlib import import_module

import click

from counterpoise.cli.console import echo
from counterpoise.errors import CounterpoiseError
from counterpoise.patience import HungUp, Terminated, stoppable

FINE, FAILED, WRONG_CALL = 0, 1, 2
# What a run is ended by: a word for it, and 128 with the number of the signal.
_ENDED: dict[type[BaseException], tuple[str, int]] = {
    KeyboardInterrupt: ("interrupted", 130),
    Terminated: ("ended by SIGTERM", 143),
    HungUp: ("ended by SIGHUP, as when a connection is lost", 129),
}
# Commands that pay for something, and go on where they were stopped.
_GO_ON = ("release", "weigh")

_COMMANDS = {
    "schema": "draft a schema from a table, or review one",
    "release": "make a private release of a table",
    "weigh": "give weights to a synthetic table that was made elsewhere",
    "inspect": "show what a release holds, what it cost, and whether to use its weights",
    "report": "make the page of a release anew",
    "analyse": "estimate from a release: means, shares, quantiles, models",
    "retarget": "turn a release to another population, by its weights",
    "evaluate": "compare a release with the private rows: confidential, for the curator",
    "account": "keep one account of several releases of the same people",
    "demo": "make a release of invented patients, and use it",
    "completion": "print the completion script of a shell",
    "version": "print the version",
}
# Where a command is to be found, if not in the module of its name.
_PLACES = {"schema": "schema_group"}

# A way out that an error names in Python, and the same in the shell.
_IN_THE_SHELL = {
    "release.unweighted()": "--unweighted",
    "release.use_weights()": "--use-weights",
    "overwrite it on purpose": "replace it on purpose with --overwrite",
}


class _LazyGroup(click.Group):
    """A group whose commands are imported when they are needed."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        command = import_module(f"counterpoise.cli.{_PLACES.get(name, name)}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        from counterpoise.cli.options import plugin_lines

        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))
        if found := plugin_lines():
            with formatter.section("Plug-ins"):
                formatter.write_dl(found)


@click.command(
    cls=_LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Example: counterpoise release table.csv --schema table.json --epsilon 1 --out out/",
)
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.version_option(package_name="counterpoise", message="%(version)s")
def group(debug: bool) -> None:
    """Differentially private synthetic tables, with the weights that correct their bias.

    Exit codes: 0 fine, 1 an error of ours, 2 a wrong call, 130 interrupted, 143 and 129 ended by
    SIGTERM and SIGHUP.
    """


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit."""
    with stoppable():
        _run(arguments)


def _run(arguments: list[str] | None) -> None:
    words = sys.argv[1:] if arguments is None else arguments
    debug = "--debug" in words
    # The flag may stand anywhere: whoever adds it does so at the end of the line that failed.
    words = [word for word in words if word != "--debug"]
    try:
        group(words, prog_name="counterpoise", standalone_mode=False)
    except click.exceptions.Exit as finished:
        sys.exit(finished.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(error.exit_code)
    except click.ClickException as error:
        echo(_wrong_call(error), err=True)
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt) as error:
        if debug:
            raise
        sys.exit(_ended(error, words))
    except CounterpoiseError as error:
        if debug:
            raise
        echo(error_text(error), err=True)
        sys.exit(FAILED)
    except BrokenPipeError:
        # Whoever was reading, such as `head`, has seen enough.
        sys.stderr.close()
        sys.exit(FINE)
    except Exception as error:
        if debug:
            raise
        before = error.__context__
        while before is not None:
            # Such as of a bar that cannot be closed, because its terminal is gone.
            if isinstance(before, KeyboardInterrupt):
                sys.exit(_ended(before, words))
            before = before.__context__
        # What somebody else's error says could be a private value, so its kind has to do.
        echo(
            f"error: something unforeseen went wrong ({type(error).__name__})\n"
            "hint:  run it again with --debug; the traceback is confidential if the table is",
            err=True,
        )
        sys.exit(FAILED)


def _ended(error: BaseException, words: list[str]) -> int:
    """Say what ended a run, as long as somebody is there to be told; its exit code."""
    # As click has it, an Abort comes from what was raised.
    ended = error.__cause__ if isinstance(error, click.Abort) and error.__cause__ else error
    said, code = _ENDED.get(type(ended), _ENDED[KeyboardInterrupt])
    if words[:1] and words[0] in _GO_ON:
        said += "\nhint:  what was paid for is kept: give the same command to go on"
    try:
        echo(said, err=True)
    except OSError:
        # What is left in the streams would be tried again at the end, and change the exit code.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(nowhere, stream)
    return code


def _wrong_call(error: click.ClickException) -> str:
    """A wrong call as one line, and where its help is."""
    context = getattr(error, "ctx", None)
    message = " ".join(error.format_message().split()).removesuffix(".")
    where = context.command_path if context is not None else "counterpoise"
    return f"error: {message[:1].lower()}{message[1:]}\nhint:  {where} --help"


def error_text(error: CounterpoiseError) -> str:
    """An error as one line, and below it the way out where the message names one.

    >>> print(error_text(CounterpoiseError("out/ exists; overwrite it on purpose")))
    error: out/ exists
    hint:  replace it on purpose with --overwrite
    """
    message = " ".join(str(error).split())
    for in_python, in_shell in _IN_THE_SHELL.items():
        message = message.replace(in_python, in_shell)
    what, separator, way_out = message.rpartition("; ")
    return f"error: {what}\nhint:  {way_out}" if separator else f"error: {message}"
