"""The command ``interp``: subcommands and nothing else; each imports what it needs when it runs."""

import io
import os
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from interp.cli import activations, attend, calibrate, families, heads, model, probe, runs, sweeps, tasks_and_doctor
from interp.cli.commands import Commands, Grouped
from interp.cli.dataclass_options import from_dataclasses
from interp.cli.examples import epilog
from interp.cli.exits import MEANINGS
from interp.cli.messages import say

ASK, TRUST, PREPARE = "Ask", "Trust", "Prepare and inspect"
START = """Start:
  interp doctor                # is all well here?
  interp heads --out report    # which heads of the embedded model track what?
  interp head 2.2              # what does one of them do?"""

app = typer.Typer(
    cls=Commands,
    help="Which attention heads track what, with evidence from attention, ablation, patching and probes.",
    epilog="\n".join([START, "", "Exit codes:", *(f"  {code:<3}  {says}" for code, says in MEANINGS.items())]),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
model_app = typer.Typer(
    help="What is this model, and what would it need? Describe, plan, convert or fetch one.", no_args_is_help=True
)
activations_app = typer.Typer(
    help="What are a model's activations at every word? Store them, or check a store.", no_args_is_help=True
)
runs_app = typer.Typer(help="Which runs are kept? List, check, resume, export or remove them.", no_args_is_help=True)


def _add(name: str, function: Callable[..., None], panel: str | None = None, group: typer.Typer = app) -> None:
    """Make a function a command, with its examples."""
    command = group.command(name.split()[-1], cls=Grouped, epilog=epilog(name), rich_help_panel=panel)
    command(from_dataclasses(function))


_add("heads", heads.heads, ASK)
_add("head", heads.head, ASK)
_add("ablate", sweeps.ablate, ASK)
_add("patch", sweeps.patch, ASK)
_add("attend", attend.attend, ASK)
_add("probe", probe.probe, ASK)
_add("calibrate", calibrate.calibrate, TRUST)
_add("doctor", tasks_and_doctor.doctor, TRUST)
app.add_typer(runs_app, name="runs", rich_help_panel=TRUST)
_add("tasks", tasks_and_doctor.tasks, PREPARE)
app.add_typer(model_app, name="model", rich_help_panel=PREPARE)
app.add_typer(activations_app, name="activations", rich_help_panel=PREPARE)
_add("model info", model.info, group=model_app)
_add("model plan", model.plan, group=model_app)
_add("model convert", model.convert, group=model_app)
_add("model fetch", model.fetch, group=model_app)
_add("model families", families.families, group=model_app)
_add("activations collect", activations.collect, group=activations_app)
_add("activations verify", activations.verify, group=activations_app)
_add("runs ls", runs.ls, group=runs_app)
_add("runs show", runs.show, group=runs_app)
_add("runs resume", runs.resume, group=runs_app)
_add("runs verify", runs.verify, group=runs_app)
_add("runs export", runs.export, group=runs_app)
_add("runs rm", runs.rm, group=runs_app)


def _print_version(wanted: bool) -> bool:
    if wanted:
        import interp

        say(f"interp {interp.__version__}")
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
    if sys.getfilesystemencoding() == "ascii":  # Python can name no other file, and knows better
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])  # noqa: S606  # this very command
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if not sys.stderr.isatty():
        os.environ.setdefault("TQDM_DISABLE", "1")  # bars of other libraries, as of a download, are for terminals, too
    os.environ["MPLBACKEND"] = "agg"  # figures go to files, and a backend of the shell's may be missing
    app(prog_name="interp")
