"""The command ``interp``: subcommands and nothing else; each imports what it needs when it runs.

Exit codes: 0 done, 1 an audit that failed, 2 bad input (one line on standard error that starts with ``error:``),
130 interrupted (a sweep's complete examples are kept, and the complete shards of a store of activations).
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from interp.cli import (
    ablate,
    activations,
    attend,
    calibrate,
    convert,
    head,
    heads,
    patch,
    plan,
    probe,
    runs,
    show,
    train,
)
from interp.cli.exits import BAD_INPUT, INTERRUPTED, OUR_FAULT
from interp.cli.running import events_as_lines, interrupted, kept_in
from interp.cli.saying import say
from interp.errors import AuditError, InputError, InterpError, plain
from interp.runs.anew import anew_together

# Typer's own, or click's in older versions, where Typer has none.
UsageError: Any = typer.BadParameter.__mro__[1]


class Commands(TyperGroup):
    """Turns what goes wrong into one line and an exit code."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the options that stand before the command."""
        with _one_line():
            _require_text(args)
            return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Read the command's options and run it."""
        kept_in.set(None)
        with _one_line(), events_as_lines(), anew_together():
            return super().invoke(ctx)


@contextmanager
def _one_line() -> Iterator[None]:
    """Bad input becomes one line and exit code 2."""
    try:
        yield
    except AuditError as error:
        raise _failed(str(error), OUR_FAULT) from error
    except InterpError as error:
        raise _failed(str(error)) from error
    except UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            raise
        command = error.ctx.command_path if error.ctx else "interp"
        raise _failed(f"{error.format_message().rstrip('.')}; see {command} --help") from error
    except BrokenPipeError:  # whoever read along has gone, which ends a command quietly
        raise
    except OSError as error:  # what no command has foreseen of a path, such as a name that is too long
        raise _failed(f"{error.filename or 'a file'}: cannot be used ({error.strerror or error})") from error
    except KeyboardInterrupt as interrupt:
        say(interrupted(), err=True)
        raise typer.Exit(INTERRUPTED) from interrupt


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
    say(f"error: {plain(' '.join(message.split()))}", err=True)
    return typer.Exit(code)


app = typer.Typer(
    cls=Commands,
    help="Which attention heads track what, with evidence from attention, ablation and patching.",
    epilog="Example: interp heads --out report",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
model_app = typer.Typer(help="Look at a model, or convert it.", no_args_is_help=True)
app.add_typer(model_app, name="model")
activations_app = typer.Typer(help="Store a model's activations, or check a store.", no_args_is_help=True)
app.add_typer(activations_app, name="activations")

runs_app = typer.Typer(help="Look after what is kept of what was measured.", no_args_is_help=True)

app.command("heads", epilog="Example: interp heads --out report --task agreement --task ioi --n 100")(heads.heads)
app.command("head", epilog="Example: interp head 2.2 --out card")(head.head)
app.command("calibrate", epilog="Example: interp calibrate --quick --processes 2 --out calibration")(
    calibrate.calibrate
)
app.command("tasks", epilog="Example: interp tasks --json")(show.tasks)
app.command("ablate", epilog="Example: interp ablate --task agreement --out ablation")(ablate.ablate)
app.command("patch", epilog="Example: interp patch --task ioi --site resid_pre --by layer,pos --out patching")(
    patch.patch
)
app.command(
    "attend", epilog="Example: interp attend --data en_gum-ud-test.conllu --relation nsubj,obj,coref --out relations"
)(attend.attend)
app.command(
    "probe", epilog="Example: interp probe --feature number --task agreement --site z --model default --out probes"
)(probe.probe)
model_app.command("info", epilog="Example: interp model info --model ./my-gpt2")(show.model_info)
model_app.command("plan", epilog="Example: interp model plan gpt2-xl --hardware a100 --dtype bfloat16")(plan.model_plan)
model_app.command("convert", epilog="Example: interp model convert ./nanogpt/ckpt.pt my-model")(convert.convert)
activations_app.command(
    "collect", epilog="Example: interp activations collect --data en_gum-ud-test.conllu --site z --out store"
)(activations.collect)
activations_app.command("verify", epilog="Example: interp activations verify store")(activations.verify)
app.add_typer(runs_app, name="runs")
runs_app.command("ls", epilog="Example: interp runs ls")(runs.ls)
runs_app.command("show", epilog="Example: interp runs show 3f9a")(runs.show)
runs_app.command("resume", epilog="Example: interp runs resume 3f9a")(runs.resume)
runs_app.command("verify", epilog="Example: interp runs verify 3f9a")(runs.verify)
runs_app.command("export", epilog="Example: interp runs export 3f9a --out effects.csv")(runs.export)
runs_app.command("rm", epilog="Example: interp runs rm 3f9a")(runs.rm)
app.command("train", epilog="Example: interp train books --text prose.txt --out my-model")(train.train)


def _print_version(wanted: bool) -> bool:
    if wanted:
        from importlib.metadata import version

        say(f"interp {version('interp')}")
        raise typer.Exit
    return wanted


@app.callback()
def _options(
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line of this process and exit."""
    app(prog_name="interp")
