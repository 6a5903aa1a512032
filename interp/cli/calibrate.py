"""``interp calibrate``: how often verdicts are right, on models whose truth is known."""

from typing import Annotated, Any

import typer

from interp.cli.dataclass_options import Fields
from interp.cli.hints import after_looking
from interp.cli.options import MEASURED, no_larger_seed
from interp.cli.running import Work, measuring
from interp.errors import InputError

_WORK = ("processes", "executor", "address", "runs", "fresh", "out", "as_json")
_RATES = ("recall", "false_tracks", "decoys", "special", "single_heads", "false_discoveries", "halves")


def calibrate(
    work: Annotated[Work, Fields(only=_WORK, required=("out",))],
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer models: minutes instead of hours.", rich_help_panel=MEASURED)
    ] = False,
    n: Annotated[
        int | None,
        typer.Option(help="Units of a task.", min=2, show_default="100", metavar="N", rich_help_panel=MEASURED),
    ] = None,
    layers: Annotated[
        int | None, typer.Option(help="Layers of every model; with --heads.", min=1, show_default="2 to 4", metavar="N")
    ] = None,
    heads: Annotated[
        int | None, typer.Option(help="Heads of a layer; with --layers.", min=1, show_default="4 to 8", metavar="N")
    ] = None,
    seed: Annotated[
        int,
        typer.Option(
            help="Seed of every random draw.", min=0, callback=no_larger_seed, metavar="N", rich_help_panel=MEASURED
        ),
    ] = 0,
) -> None:
    """How often are verdicts wrong? `interp heads` is run on models of known truth, with and without planted heads."""
    if (layers is None) != (heads is None):
        raise InputError("--layers and --heads make a shape together; give both or neither")
    run = work.run()
    import torch

    from interp.calibration.calibrate import FULL, QUICK
    from interp.calibration.calibrate import calibrate as measure
    from interp.calibration.planted import Shape
    from interp.calibration.random_models import STANDARD
    from interp.cli.terminal import records

    torch.set_num_threads(1)
    shape = None if layers is None or heads is None else Shape(layers, heads)
    with measuring("models") as progress:
        units = STANDARD.n if n is None else n
        found = measure(QUICK if quick else FULL, n=units, shape=shape, seed=seed, progress=progress, run=run)

    def numbers() -> dict[str, Any]:
        rates = {name: records(getattr(found, name)) for name in _RATES}
        return {"family_wise_error": rates["false_discoveries"][0], **rates}

    work.answer(found, numbers, lambda: after_looking(None))
