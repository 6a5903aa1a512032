"""Commands are made from dataclasses: what can be asked in Python can be typed, with the same defaults and its help."""

import re
from dataclasses import dataclass, fields
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Literal, get_args, get_origin, get_type_hints

import pytest
import typer
from parsed import commands, parsed
from typer.testing import CliRunner

from interp import options
from interp.cli.dataclass_options import Fields, from_dataclasses, helps
from interp.cli.options import HEADINGS
from interp.cli.running import Work
from interp.errors import InputError
from interp.interventions.intervention import UNWRITTEN
from interp.model.sites import SITES

COMMANDS = commands()
MADE_FROM = {
    "ablate --task ioi": (options.AblateOptions, {"sets"}),
    "patch --task ioi": (options.PatchOptions, set()),
    "attend --data x": (options.AttendOptions, {"exclude"}),
    "probe --feature x": (options.ProbeOptions, set()),
    "heads --out r": (options.HeadsOptions, set()),
    "head 0.0": (options.CardOptions, set()),
}
WHO = {"processes", "executor", "address", "gpus"}


def choices(hint):
    """The texts that a field can have."""
    within = [choice for part in get_args(hint) for choice in choices(part)]
    return list(get_args(hint)) if get_origin(hint) is Literal else within


@pytest.mark.parametrize("line", MADE_FROM)
def test_every_field_is_an_option_with_its_default_and_help(line):
    kind, lacking = MADE_FROM[line]
    command = COMMANDS[line.split()[0]]
    known = {each.name: each for each in command.params}
    _, typed = parsed(f"interp {line}")
    hints = get_type_hints(kind)
    for each in fields(kind):
        assert (each.name in known) == (each.name not in lacking), each.name
        if each.name in known:
            assert known[each.name].help.startswith(helps(kind)[each.name][0].rstrip(".")), each.name
            listed = ",".join(each.default) if isinstance(each.default, tuple) else each.default
            assert typed[each.name] in (listed, ()), each.name
            named = [] if each.name == "screen" else choices(hints[each.name])  # which is a flag here
            assert all(str(choice) in known[each.name].help for choice in named), each.name
    lacking = {"started"} | (WHO if line.startswith("probe") else set())
    assert {each.name for each in fields(Work)} - lacking <= set(known)


def test_the_help_of_patch_names_every_site_that_can_be_changed():
    named = re.findall(r"\w+", helps(options.PatchOptions)["site"][0])
    inputs = {"q_input", "k_input", "v_input", "mlp_in"}  # of path patching
    assert set(SITES) - set(UNWRITTEN) - inputs <= set(named)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_stands_under_a_heading_in_their_order(name):
    options = [each for each in COMMANDS[name].params if each.opts[0].startswith("-")]
    headings = [each.rich_help_panel for each in options]
    assert headings == sorted(headings, key=HEADINGS.index)
    assert all(each.help for each in options)


@dataclass(frozen=True, kw_only=True)
class Made:
    """Options of this test.

    Attributes:
        kind: Which one, ``this`` or ``that``; in Python also one of your own.
        by: What it is by; None for all where ``kind=`` is given.
        cv: How many; none is fewer than 2.
        heads: Heads, as pairs;
            None for $HEADS, or ~/.heads.
        out: Where.
        wide: Whether it is.
    """

    kind: Literal["this", "that"] = "this"
    by: tuple[Literal["layer", "pos"], ...] | None = None
    cv: int = 5
    heads: list[tuple[int, int]] | None = None
    out: Path | None = None
    wide: bool = True
    left_out: int = 3


def given(*arguments):
    """What a command is called with."""
    called, app = {}, typer.Typer()

    @app.command()
    @from_dataclasses
    def one(name: str, made: Annotated[Made, Fields(without=("left_out",), required=("out",))], more: bool = False):
        called.update(name=name, made=made, more=more)

    result = CliRunner().invoke(app, [*arguments])
    return SimpleNamespace(result=result, **called)


def test_what_was_typed_is_one_object():
    found = given(
        "x", "--kind", "that", "--by", "layer, pos", "--head", "2.1", "--head", "0.0", "--out", "r", "--no-wide"
    )
    assert found.made == Made(kind="that", by=["layer", "pos"], heads=[(2, 1), (0, 0)], out=Path("r"), wide=False)
    assert given("x", "--out", "r", "--more").made == Made(out=Path("r"))
    assert given("x", "--out", "r", "--more").more


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("", "Missing option '--out'"),
        ("--out r --kind other", "'other' is not one of 'this'"),
        ("--out r --cv 1", "greater than or equal to 2"),
        ("--out r --left-out 1", "No such option"),
    ],
)
def test_what_cannot_be_typed_is_refused(arguments, said):
    result = given("x", *arguments.split()).result
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.replace("│", " ").split())
    assert isinstance(given("x", "--out", "r", "--head", "2").result.exception, InputError)


def test_a_docstring_says_the_help_and_the_default():
    assert helps(Made)["kind"] == ("Which one, this or that.", "")
    assert helps(Made)["by"] == ("What it is by.", "all where --kind is given")
    assert helps(Made)["heads"] == ("Heads, as pairs.", "$HEADS, or ~/.heads")
