"""`counterpoise version`."""

import click

from counterpoise.cli.console import echo


@click.command("version", epilog="Example: counterpoise version")
@click.option("--json", "as_json", is_flag=True, help="With the versions of what it builds on.")
def command(as_json: bool) -> None:
    """Print the version of counterpoise."""
    import platform
    from importlib.metadata import version

    import counterpoise

    if not as_json:
        echo(counterpoise.__version__)
        return
    from counterpoise.cli.console import echo_json

    others = ("numpy", "scipy", "pandas", "scikit-learn", "duckdb", "opendp", "dp-accounting")
    echo_json(
        {"counterpoise": counterpoise.__version__, "python": platform.python_version()}
        | {name: version(name) for name in others}
    )
