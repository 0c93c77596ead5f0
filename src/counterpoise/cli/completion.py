"""`counterpoise completion`: the script that teaches a shell to complete our commands."""

from __future__ import annotations

import click

_EPILOG = """\b
Examples:
  counterpoise completion bash >> ~/.bashrc
  counterpoise completion zsh >> ~/.zshrc
  counterpoise completion fish > ~/.config/fish/completions/counterpoise.fish
"""


@click.command("completion", epilog=_EPILOG)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the completion script of SHELL, for its start-up file."""
    from click.shell_completion import get_completion_class

    from counterpoise.cli import group

    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(group, {}, "counterpoise", "_COUNTERPOISE_COMPLETE").source())
