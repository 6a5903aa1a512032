"""What is the same of every command: options under headings, one line and an exit code for what goes wrong.

What is a parameter in Python is an option here, and a function a command: so the advice of an error is put into words
that can be typed.
"""

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from interp.cli.exits import BAD_INPUT, CLOSED, FAILED, INTERRUPTED
from interp.cli.messages import answer_due, colours, say
from interp.cli.options import ASKED, HEADINGS, OUTPUT
from interp.cli.running import events_as_lines, interrupted, kept_in
from interp.errors import AuditError, InputError, InterpError, plain, with_ways

# Typer's own, or click's in older versions, where Typer has none.
UsageError: Any = typer.BadParameter.__mro__[1]
_PARAMETER = re.compile(r"\b([a-z_]+)=('[^']*'|[\w.]+)")
_FUNCTION = re.compile(r"\binterp\.(\w+)(?:\(.*?\))?")
_WHOSE = re.compile(r" \(of interp\.\w+\)")
"""Whose parameter is meant, where it is not that of the function that was called."""
_ELSEWHERE = {"list_tasks": "tasks"}
"""Functions whose command has another name."""


class Commands(TyperGroup):
    """Turns what goes wrong into one line and an exit code."""

    fresh = False

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the options that stand before the command."""
        if not colours():
            from typer import rich_utils

            rich_utils.COLOR_SYSTEM = None
        answer_due.set(any(each.partition("=")[0] == "--json" for each in args))
        self.fresh = "--fresh" in args
        with _one_line():
            _require_text(args)
            return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Read the command's options and run it."""
        kept_in.set(None)
        with _one_line(), events_as_lines():
            if not self.fresh:
                return super().invoke(ctx)
            from interp.runs.fresh import asked_together

            with asked_together():
                return super().invoke(ctx)


class Grouped(TyperCommand):
    """A command whose options stand under headings, and whose errors advise what can be typed."""

    def __init__(self, *arguments: Any, **options: Any):
        super().__init__(*arguments, **options)
        for each in self.params:
            if isinstance(each, TyperOption):
                each.rich_help_panel = each.rich_help_panel or ASKED
        self.params.sort(key=lambda each: HEADINGS.index(getattr(each, "rich_help_panel", None) or ASKED))

    def invoke(self, ctx: Any) -> Any:
        """Run it."""
        try:
            return super().invoke(ctx)
        except InterpError as error:
            error.args = (in_options(error, self.params, ctx.find_root().command.commands),)
            raise

    def get_help_option(self, ctx: Any) -> Any:
        """The option --help, which stands under a heading, too."""
        found = super().get_help_option(ctx)
        if found is not None:
            found.rich_help_panel = OUTPUT
        return found


def in_options(error: InterpError, options: Iterable[Any], commands: Iterable[str]) -> str:
    """What is wrong, with what can be typed about it: `options` are those of the command, as click has them."""
    typed = [each for each in options if str(each.opts[0]).startswith("--")]
    named = {each.name: (each.opts[0], getattr(each, "is_flag", False)) for each in typed}
    return with_ways(error.fault, filter(None, (_typed(way, named, set(commands)) for way in error.ways)))


def _typed(way: str, options: Mapping[str, tuple[str, bool]], commands: set[str]) -> str:
    """The way as one types it; empty where one cannot. Of options, their names and whether they are flags."""
    way = _WHOSE.sub("", way)
    functions = {name: _ELSEWHERE.get(name, name) for name in _FUNCTION.findall(way)}
    parameters = {name for name, _ in _PARAMETER.findall(way)}
    if not parameters <= set(options) or not set(functions.values()) <= commands:
        return ""
    way = _FUNCTION.sub(lambda found: f"interp {functions[found[1]]}", way)
    return _PARAMETER.sub(lambda found: _option(*options[found[1]], found[2].strip("'")), way)


def _option(name: str, is_flag: bool, value: str) -> str:
    return name if is_flag else f"{name} {value}"


@contextmanager
def _one_line() -> Iterator[None]:
    """Bad input becomes one line and exit code 2."""
    try:
        yield
    except AuditError as error:
        raise _failed(str(error), FAILED) from error
    except InterpError as error:
        raise _failed(str(error)) from error
    except UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            raise
        command = error.ctx.command_path if error.ctx else "interp"
        raise _failed(f"{_in_our_words(error.format_message())} {command} --help") from error
    except ImportError as error:
        name = (error.name or "").partition(".")[0]
        if name == "interp":
            raise
        raise _failed(f"{name or 'a library'} cannot be imported ({error}); see interp doctor", FAILED) from error
    except (BrokenPipeError, SystemExit) as error:  # whoever read along has gone, which ends a command quietly
        if isinstance(error, SystemExit) and not isinstance(error.__context__, BrokenPipeError):
            raise  # else of rich, which prints tables and help, and makes a broken pipe an exit with code 1
        for stream in (sys.stdout, sys.stderr):  # what is left in them goes nowhere
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        raise typer.Exit(CLOSED) from error
    except OSError as error:  # what no command has foreseen of a path, such as a name that is too long
        raise _failed(f"{error.filename or 'a file'}: cannot be used ({error.strerror or error})") from error
    except KeyboardInterrupt as interrupt:
        raise _ended(interrupted(), INTERRUPTED) from interrupt


def _in_our_words(message: str) -> str:
    """What is wrong with a command, without what the library that reads it says of itself, and that help follows."""
    whole = "Input should be a valid integer, unable to parse string as an integer"
    said = message.replace("Value error, ", "").replace(whole, "expected a whole number").rstrip(".")
    return f"{said} See" if said.endswith("?") else f"{said}; see"


def _require_text(args: Iterable[str]) -> None:
    """Refuse what no page, table or manifest could hold: a file's name in another encoding, for example."""
    for argument in args:
        try:
            argument.encode()
        except UnicodeEncodeError as error:
            raise InputError(
                f"argument {argument!r}: expected text in UTF-8, got other bytes; rename the file"
            ) from error


def _failed(message: str, code: int = BAD_INPUT) -> typer.Exit:
    """Say in one line what is wrong."""
    return _ended(f"error: {plain(' '.join(message.split()))}", code)


def _ended(line: str, code: int) -> typer.Exit:
    """Say how the command ended; where JSON was asked for, standard output gets its one object, too."""
    say(line, err=True)
    if answer_due.get():
        from interp.cli.terminal import print_json

        print_json({"error": line.removeprefix("error: "), "exit_code": code})
    return typer.Exit(code)
