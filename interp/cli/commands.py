"""What is the same of every command? What goes wrong ends it in one line and an exit code."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperGroup

from interp.cli.exits import BAD_INPUT, FAILED, INTERRUPTED
from interp.cli.running import answer_due, events_as_lines, interrupted, kept_in
from interp.cli.saying import colours, say
from interp.errors import AuditError, InputError, InterpError, plain
from interp.runs.fresh import asked_together

# Typer's own, or click's in older versions, where Typer has none.
UsageError: Any = typer.BadParameter.__mro__[1]


class Commands(TyperGroup):
    """Turns what goes wrong into one line and an exit code."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the options that stand before the command."""
        if not colours():
            from typer import rich_utils

            rich_utils.COLOR_SYSTEM = None
        answer_due.set(any(each.partition("=")[0] == "--json" for each in args))
        with _one_line():
            _require_text(args)
            return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Read the command's options and run it."""
        kept_in.set(None)
        with _one_line(), events_as_lines(), asked_together():
            return super().invoke(ctx)


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
    except BrokenPipeError:  # whoever read along has gone, which ends a command quietly
        raise
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
