"""How a command is given in the tests of what is kept."""

import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from interp.cli import app

ABLATE = ("ablate", "--task", "agreement", "--n", "8", "--json")


def interp(*arguments, cwd="."):
    """The command in this process, of which it changes nothing."""
    command = [str(each) for each in arguments]
    with pytest.MonkeyPatch.context() as own:
        own.setattr(sys, "argv", ["interp", *command])
        own.setenv("INTERP_RUNS", os.environ["INTERP_RUNS"])
        own.chdir(cwd)
        return CliRunner().invoke(app, command)


def in_a_process_of_its_own(*arguments, cwd):
    """The command as a user gives it."""
    command = [sys.executable, "-m", "interp", *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
