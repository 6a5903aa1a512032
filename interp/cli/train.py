"""``interp train``: makes an embedded model anew, or one of your own from a recipe."""

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from interp.cli import completing
from interp.cli.answers import seconds_since
from interp.cli.hints import after_train, say_next
from interp.cli.options import DeviceOption, JsonOption, ThreadsOption, no_larger_seed
from interp.cli.saying import say


def train(
    config: Annotated[
        str,
        typer.Argument(
            help="default or books, the embedded models' recipes, or a TOML file.",
            metavar="CONFIG",
            autocompletion=completing.recipes,
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(help="Folder for the model: new, empty, or with the checkpoints to go on from.", metavar="DIR"),
    ],
    text: Annotated[
        Path | None,
        typer.Option(
            help="Text to train on, plain or .xz, a paragraph a line.", show_default="the recipe's own", metavar="FILE"
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            help="Seed of the weights and of the order of the text.",
            min=0,
            callback=no_larger_seed,
            show_default="the recipe's own",
            metavar="N",
        ),
    ] = None,
    steps: Annotated[
        int | None, typer.Option(help="Optimiser steps.", min=1, show_default="the recipe's own", metavar="N")
    ] = None,
    threads: ThreadsOption = 1,
    device: DeviceOption = "cpu",
    as_json: JsonOption = False,
) -> None:
    """How is a model made? Train one from a recipe; an interrupted training goes on from its newest checkpoint."""
    from interp.cli.terminal import print_json, progress_bar
    from interp.report.folder import FOLDER, absolute
    from interp.report.training import check_training_folder, save_loss

    started = time.perf_counter()
    from interp.model.checkpoints import CHECKPOINTS, checkpoints

    folder = absolute(out, FOLDER)
    folder = check_training_folder(folder, begun=bool(checkpoints(folder / CHECKPOINTS)))
    from interp.cli.loading import can_be_asked
    from interp.model.loading import load_model
    from interp.recipes.recipe import read_recipe
    from interp.recipes.train import train_recipe

    recipe = read_recipe(config)
    total = recipe.training.steps if steps is None else steps
    with progress_bar("train") as progress:
        options: Any = {"text": text, "seed": seed, "steps": steps, "threads": threads, "device": device}
        training = train_recipe(recipe, folder, progress=lambda step, _loss: progress(step, total), **options)
    save_loss(training.frame(), folder)
    result = {
        "folder": str(folder),
        "seconds": seconds_since(started),
        "tokens": training.tokens,
        "loss": training.loss,
        "held_out_loss": training.curve.held_out.get(total),
        "hash": training.hash,
    }
    if as_json:
        print_json(result)
        return
    for name, value in result.items():
        if value is not None:
            say(f"{name}: {value}")
    say_next(after_train(str(out), bool(checkpoints(folder / CHECKPOINTS)), can_be_asked(load_model(folder))))
