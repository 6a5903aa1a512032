"""``interp ablate`` and ``interp patch``: what a task loses without a component, and where its answer travels."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from interp.cli.dataclass_options import Fields
from interp.cli.exits import INTERRUPTED
from interp.cli.hints import after_sweep
from interp.cli.messages import say
from interp.cli.options import OneTask, require_no_layers
from interp.cli.running import Work, give_back_freed_memory, interrupted, measuring
from interp.errors import InputError
from interp.options import AblateOptions, PatchOptions, SweepOptions

if TYPE_CHECKING:
    from interp.report.sweep_cells import Swept

_SHOWN = 10
_HEADLINE = ("effect", "low", "high", "p_adjusted", "value", "accuracy_intervened", "status")


def ablate(on: OneTask, asked: Annotated[AblateOptions, Fields(without=("sets",))], work: Work) -> None:
    """What does a task lose without a head, an MLP, a neuron or a site? Each effect has its interval."""
    heads = ", ".join(f"{layer}.{head}" for layer, head in asked.heads or ())
    named = [f"--head {heads}"] * bool(heads) + [f"--components {asked.components}"] * (asked.components != "heads")
    if named and (asked.site is not None or asked.by is not None):
        raise InputError(f"{named[0]}: expected none beside --site or --by; leave one of them out")
    if len(named) > 1:
        raise InputError(f"{named[0]}: expected it with --components heads, got {asked.components}; leave one out")
    require_no_layers(asked.heads, asked.layers)
    run = work.run()
    from interp.methods.ablation import ablate as measure

    _sweep(measure, on, asked, work, run)


def patch(on: OneTask, asked: PatchOptions, work: Work) -> None:
    """Where does the answer travel? Activations are patched between clean and corrupted prompts, cell by cell."""
    run = work.run()
    from interp.methods.patching import patch as measure

    _sweep(measure, on, asked, work, run)


def _sweep(measure: Callable[..., Any], on: OneTask, asked: SweepOptions, work: Work, run: Any) -> None:
    """Measure, and say what was found; an interrupted sweep ends with its own exit code."""
    if asked.memory_budget is not None:
        give_back_freed_memory()
    from interp.methods.task_arguments import as_predicted
    from interp.report.sweep import page_of
    from interp.report.sweep_cells import swept

    loaded = work.load()
    drawn: Any = {"n": asked.n, "seed": asked.seed, "metric": asked.metric}
    given = as_predicted(on.task, loaded, **drawn, **on.how)
    with measuring(measure.__name__) as progress:
        result = measure(loaded, given, replace(asked, n=None), progress=progress, run=run)
        frames = swept(result)
        page = page_of(frames)
    hint = partial(after_sweep, frames, given, work.model, asked.asked()["metric"], on.typed)
    then = hint if frames.complete else None
    work.answer(result, lambda: {"task": on.task, **asked.asked(), **_numbers(frames)}, then, lambda _: page)
    if not frames.complete:
        say(interrupted(), err=True)
        raise typer.Exit(INTERRUPTED)


def _numbers(frames: "Swept") -> dict[str, Any]:
    """A sweep's headline numbers: of one head all that are known, of several cells the strongest."""
    from interp.cli.terminal import records
    from interp.hashing import plain
    from interp.report.sweep_cells import strongest_first

    runs = records(frames.runs)
    whole = {"above_chance": runs[0]["above_chance"], "complete": frames.complete, "examples": frames.n_measured}
    whole |= {"metric": frames.metric}
    if len(frames.summary) == 1 and frames.labels == ("layer", "head"):
        return records(frames.summary)[0] | whole
    cells = frames.cells
    shares = ("normalised", "normalised_low", "normalised_high") if frames.patched else ()
    return {
        **whole,
        "cells": len(cells),
        "beyond_correction": int((cells["found"] != "").sum()),
        "strongest": records(strongest_first(cells).head(_SHOWN)[[*frames.labels, *shares, *_HEADLINE]]),
        "runs": runs,
        **{name: plain(frames.provenance.get(name)) for name in ("screen", "audit")},
    }
