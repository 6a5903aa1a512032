"""``interp model convert``: a checkpoint of another library becomes a folder that this one reads at once."""

import time
from pathlib import Path
from typing import Annotated

import typer

from interp.cli import completing
from interp.cli.answers import seconds_since
from interp.cli.hints import after_looking, say_next
from interp.cli.options import DtypeOption, JsonOption
from interp.cli.saying import say


def convert(
    source: Annotated[
        str,
        typer.Argument(
            help="A folder, a file (nanoGPT's or minGPT's .pt, llama2.c's .bin), a hub name, or an embedded model.",
            metavar="SRC",
            autocompletion=completing.models,
        ),
    ],
    destination: Annotated[Path, typer.Argument(help="Folder for the model: new or empty.", metavar="DST")],
    dtype: DtypeOption = "float32",
    as_json: JsonOption = False,
) -> None:
    """How does a checkpoint of another library get here? As a folder of interp's own, with its tokenizer."""
    started = time.perf_counter()
    from interp.cli.terminal import print_json
    from interp.report.folder import check_new_folder

    folder = check_new_folder(destination, "DST")
    from interp.cli.loading import can_be_asked
    from interp.errors import LoadError
    from interp.model.loading import load_model, save_model
    from interp.model.transformer import HookedTransformer

    model = load_model(source, dtype=dtype)
    if not isinstance(model, HookedTransformer):
        raise LoadError(f"{source}: expected a model that is rebuilt here, got {type(model).__name__}; use it as it is")
    save_model(model, folder)
    result = {
        "folder": str(folder),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "hash": model.hash,
        "seconds": seconds_since(started),
    }
    if as_json:
        print_json(result)
        return
    for name, value in result.items():
        say(f"{name}: {value}")
    say_next(after_looking(str(destination), can_be_asked(model)))
