"""`counterpoise schema`: draft a schema from a table, and review the draft value by value.

The group takes a table in the place of a command: `counterpoise schema data.csv` drafts, as
`counterpoise schema draft data.csv` does. The other commands take the draft, and all that change
it write it whole and say what they changed.
"""

from __future__ import annotations

from typing import Any

import click

from counterpoise.cli.schema import command as draft
from counterpoise.cli.schema_review import accept, drop, pay, show
from counterpoise.cli.schema_set import set_values

_EPILOG = """\b
Examples:
  counterpoise schema patients.csv -o draft.json
  counterpoise schema show draft.json
  counterpoise schema set draft.json age --minimum 0 --maximum 110
  counterpoise schema accept draft.json '*.type' 'ward.*'
  counterpoise schema pay draft.json charges
"""

_DRAFT = "draft a schema from a table; the word may be left out"


class _DraftsTables(click.Group):
    """A group in which whatever is no command is what to draft from."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        asks_for_help = args[:1] and args[0] in context.help_option_names
        if args and not asks_for_help and args[0] not in self.commands:
            args = ["draft", *args]
        return super().parse_args(context, args)

    def list_commands(self, context: click.Context) -> list[str]:
        # In the order of a review, which the alphabet does not know.
        return list(self.commands)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            shown = [(name, own.get_short_help_str(80)) for name, own in self.commands.items()]
            formatter.write_dl([("draft", _DRAFT), *shown[1:]])

    def shell_complete(self, context: click.Context, incomplete: str) -> list[Any]:
        from click.shell_completion import CompletionItem

        return [*super().shell_complete(context, incomplete), CompletionItem("", type="file")]


@click.group("schema", cls=_DraftsTables, epilog=_EPILOG)
def command() -> None:
    """Draft a schema from a table, or review one.

    `counterpoise schema TABLE` drafts. What a draft read off the data is confidential, and no
    release is made with it until each value is stated (set), confirmed as public (accept), left
    to the budget (pay), or left out with its column (drop).
    """


command.add_command(draft, "draft")
for _reviewing in (show, set_values, accept, pay, drop):
    command.add_command(_reviewing)
