"""``interp calibrate``: how often verdicts are right, on models whose truth is known."""

import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from interp.cli.answers import left, page_line
from interp.cli.hints import after_looking, say_next
from interp.cli.options import (
    AddressOption,
    ExecutorOption,
    FreshOption,
    JsonOption,
    ProcessesOption,
    RunsOption,
    SeedOption,
)
from interp.cli.saying import say
from interp.errors import InputError

if TYPE_CHECKING:
    from interp.calibration.calibrate import Calibration


def calibrate(
    out: Annotated[
        Path,
        typer.Option(
            help="Folder for the report; an older report there is replaced.",
            metavar="DIR",
        ),
    ],
    quick: Annotated[bool, typer.Option("--quick", help="Fewer models: minutes instead of hours.")] = False,
    n: Annotated[int | None, typer.Option(help="Units of a task.", min=2, show_default="100", metavar="N")] = None,
    layers: Annotated[
        int | None, typer.Option(help="Layers of every model; with --heads.", min=1, show_default="2 to 4", metavar="N")
    ] = None,
    heads: Annotated[
        int | None, typer.Option(help="Heads of a layer; with --layers.", min=1, show_default="4 to 8", metavar="N")
    ] = None,
    seed: SeedOption = 0,
    processes: ProcessesOption = 1,
    executor: ExecutorOption = None,
    address: AddressOption = None,
    runs: RunsOption = None,
    fresh: FreshOption = False,
    as_json: JsonOption = False,
) -> None:
    """How often are verdicts wrong? `interp heads` on models of known truth: heads planted by hand, and none."""
    started = time.perf_counter()
    from interp.cli.terminal import print_json, progress_bar
    from interp.report.folder import check_output

    check_output(out)
    if (layers is None) != (heads is None):
        raise InputError("--layers and --heads make a shape together; give both or neither")
    from interp.cli.running import run_of

    run = run_of(runs, fresh, executor=executor, processes=processes, address=address)
    import torch

    from interp.calibration.calibrate import FULL, QUICK
    from interp.calibration.calibrate import calibrate as measure
    from interp.calibration.drawing import STANDARD
    from interp.calibration.planted import Shape

    torch.set_num_threads(1)
    options: dict[str, Any] = {"n": STANDARD.n if n is None else n, "seed": seed, "run": run}
    options["shape"] = None if layers is None or heads is None else Shape(layers, heads)
    with progress_bar("models") as progress:
        found = measure(QUICK if quick else FULL, progress=progress, **options)
    folder = found.save(out, command=shlex.join(["interp", *sys.argv[1:]]))
    if as_json:
        print_json({**left(folder, started), **_headline(found)})
        return
    from interp.report.calibration import findings

    for sentence in findings(found):
        say(sentence)
    say(page_line(folder, started))
    say_next(after_looking(None))


def _headline(found: "Calibration") -> dict[str, Any]:
    """The rates, each with its interval and count."""
    from interp.cli.terminal import records

    return {
        "family_wise_error": records(found.false_discoveries)[0],
        "recall": records(found.recall),
        "false_tracks": records(found.false_tracks),
        "decoys": records(found.decoys),
        "special": records(found.special),
        "single_heads": records(found.single_heads),
        "false_discoveries": records(found.false_discoveries),
        "halves": records(found.halves),
    }
