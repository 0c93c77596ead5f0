"""Ways to call the command line in a test: in this process, or in one of its own."""

import subprocess
import sys

from click.testing import CliRunner

from counterpoise.cli import group


def run(*words, code=0):
    """What a command prints, on both streams together; errors of ours are raised."""
    result = CliRunner().invoke(group, [str(word) for word in words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result.output


def run_process(*words, **options):
    """A command as a person runs it, with its exit code and both streams."""
    command = [sys.executable, "-c", "from counterpoise.cli import main; main()", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)
