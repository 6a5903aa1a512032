"""Does the help teach? Every command opens with a question, and ends with examples that can be typed."""

import re
import subprocess
import sys

import pytest
from parsed import commands, parsed

from interp.cli.examples import EXAMPLES
from interp.cli.exits import MEANINGS

COMMANDS = commands()


def test_every_command_has_examples_and_every_example_a_command():
    assert set(EXAMPLES) == set(COMMANDS)
    assert all(1 <= len(examples) <= 4 for examples in EXAMPLES.values())


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_opens_with_what_is_answered_and_ends_with_examples(run, name, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", 200)
    result = run(*name.split(), "--help")
    assert result.exit_code == 0, result.output
    first = COMMANDS[name].help.splitlines()[0]
    assert re.match(r"[^.]+\?", first), f"a question comes first, not: {first}"
    lines = [line.strip() for line in result.stdout.splitlines()]
    assert any(line.startswith(first) for line in lines)
    for purpose, example in EXAMPLES[name].items():
        assert lines.index(example) == lines.index(f"# {purpose}") + 1


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_can_be_typed(name):
    for example in EXAMPLES[name].values():
        assert parsed(example)[0] == name


def test_what_could_not_be_typed_is_found():
    with pytest.raises(Exception, match="No such option: --nonsense"):
        parsed("interp tasks --nonsense")
    with pytest.raises(Exception, match="'magic' is not one of"):
        parsed("interp ablate --task ioi --replacement magic")


def test_the_first_help_lists_the_exit_codes(run):
    shown = run("--help").stdout
    for code, meaning in MEANINGS.items():
        assert re.search(rf"^ *{code} +{re.escape(meaning)}", shown, re.MULTILINE)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_json(name):
    assert "--json" in [option for each in COMMANDS[name].params for option in each.opts]


def test_help_without_colours_has_no_escapes():
    command = [sys.executable, "-m", "interp", "heads", "--help"]
    forced = {"FORCE_COLOR": "1", "TERM": "xterm-256color", "PATH": ""}
    for plain, escapes in (({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)):
        shown = subprocess.run(command, capture_output=True, env=forced | plain, check=True).stdout
        assert (b"\x1b" in shown) == escapes
