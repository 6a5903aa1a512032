"""``python -m recipes``: train one of the embedded models anew, or one of your own from a recipe.

An interrupted training goes on from its newest checkpoint: give the same command again.
"""

import argparse
import json
import os
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from interp.errors import InterpError
from interp.model.checkpoints import CHECKPOINTS, checkpoints
from recipes.loss_curve import check_training_folder, save_loss
from recipes.recipe import read_recipe
from recipes.train import train_recipe

BAD_INPUT, INTERRUPTED = 2, 130
SELDOM = 60.0
"""Seconds between lines of progress."""


def whole_number(least: int, below: int | None = None) -> Callable[[str], int]:
    """Reads a whole number from `least` on, below `below`."""

    def read(text: str) -> int:
        number = int(text)
        if number < least or (below is not None and number >= below):
            most = "" if below is None else f" and at most {below - 1}"
            raise argparse.ArgumentTypeError(f"expected a whole number of at least {least}{most}, got {text}")
        return number

    read.__name__ = "whole number"
    return read


def parser() -> argparse.ArgumentParser:
    """The command's options."""
    made = argparse.ArgumentParser(prog="python -m recipes", description=__doc__)
    made.add_argument("recipe", help="default or books, the embedded models' recipes, or a TOML file")
    out = "folder for the model: new, empty, or with the checkpoints to go on from"
    made.add_argument("--out", type=Path, required=True, metavar="DIR", help=out)
    made.add_argument("--text", type=Path, metavar="FILE", help="text to train on, plain or .xz, a paragraph a line")
    made.add_argument("--seed", type=whole_number(0, 2**63), help="of the weights and of the order of the text")
    made.add_argument("--steps", type=whole_number(1), help="optimiser steps")
    made.add_argument("--threads", type=whole_number(1, 1 + (os.cpu_count() or 1)), default=1)
    made.add_argument("--device", default="cpu", help="cpu, cuda, cuda:N or auto")
    made.add_argument("--json", action="store_true", help="print one JSON object")
    return made


def progress(total: int) -> Callable[[int, float], None]:
    """Says at most once a minute on standard error how far the training is."""
    begun = said = time.monotonic()

    def tell(step: int, loss: float) -> None:
        nonlocal said
        if time.monotonic() - said >= SELDOM:
            said = time.monotonic()
            print(f"step {step:,} of {total:,}, loss {loss:.3f}, after {said - begun:.0f} s", file=sys.stderr)

    return tell


def train(options: argparse.Namespace) -> dict[str, object]:
    """Train, save the model and its loss curve, and return what the command prints."""
    started = time.perf_counter()
    folder = options.out.expanduser()
    folder = check_training_folder(folder, begun=bool(checkpoints(folder / CHECKPOINTS)))
    recipe = read_recipe(options.recipe)
    total = recipe.training.steps if options.steps is None else options.steps
    given = {name: getattr(options, name) for name in ("text", "seed", "steps", "threads", "device")}
    training = train_recipe(recipe, folder, progress=progress(total), **given)
    save_loss(training.frame(), folder)
    return {
        "folder": str(folder),
        "seconds": round(time.perf_counter() - started, 3),
        "tokens": training.tokens,
        "loss": training.loss,
        "held_out_loss": training.curve.held_out.get(total),
        "hash": training.hash,
    }


def ended(message: str, code: int, options: argparse.Namespace) -> int:
    """Say in one line why the command ended; with --json, in its one object, too."""
    print(message, file=sys.stderr)
    if options.json:
        print(json.dumps({"error": message.removeprefix("error: "), "exit_code": code}))
    return code


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    options = parser().parse_args(arguments)
    try:
        result = train(options)
    except InterpError as error:
        return ended(f"error: {error}", BAD_INPUT, options)
    except OSError as error:  # such as a name that is too long
        said = f"error: {error.filename or 'a file'}: cannot be used ({error.strerror or error})"
        return ended(said, BAD_INPUT, options)
    except KeyboardInterrupt:
        return ended("interrupted: what is complete is kept; the same command goes on", INTERRUPTED, options)
    if options.json:
        print(json.dumps(result))
        return 0
    for name, value in result.items():
        if value is not None:
            print(f"{name}: {value}")
    print(f"next: interp heads --model {shlex.quote(str(result['folder']))} --out report", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
