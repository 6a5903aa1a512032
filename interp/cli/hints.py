"""What does one ask next? One line on standard error after a command that did its work, never with --json.

It follows from the result: the head with the best verdict, the strongest cell, the run that is not finished. The line
can be given to a shell as it is; what stands behind the # says why.
"""

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from interp.cli.saying import say

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

    from interp.methods.dossier import HeadsReport
    from interp.report.sweeps.frames import SweepFrames

MOST_UNITS = 2_000
"""No hint asks for more of a generated task."""


@dataclass(frozen=True)
class Next:
    """A command, without ``interp`` itself, and why."""

    command: tuple[str, ...]
    why: str

    def __str__(self) -> str:
        return f"interp {shlex.join(self.command)}  # {self.why}"


def say_next(hint: Next) -> None:
    """Say it."""
    say(f"next: {hint}", err=True)


def of_model(model: str | None) -> tuple[str, ...]:
    """The option that names the model, where one was named."""
    return () if model is None else ("--model", model)


def after_heads(
    report: "HeadsReport", model: str | None, drawn: Mapping[str, float], options: Sequence[str] = ()
) -> Next:
    """The head with the best verdict; or as many units as would decide.

    Args:
        report: What was found.
        model: As it was named.
        drawn: Of each task that more can be drawn of, how many items it takes to get one that the tokenizer can carry.
        options: What else was asked for, to be asked for again.
    """
    from interp.report.verdicts import FINDINGS

    frame = report.frame
    found = frame[frame["verdict"].isin(FINDINGS)]
    if not found.empty:
        best = found.loc[found["verdict"].map(FINDINGS.index).idxmin()]
        return _a_head(best, model, str(best["task"]), f"{best['verdict']}: {best['task']}")
    undecided = frame[frame["verdict"] == "undecided"]
    needed = (undecided["n_to_decide"].astype(float) * undecided["task"].map(drawn).astype(float)).dropna()
    needed = needed[needed <= MOST_UNITS]
    if not needed.empty:
        task = frame["task"][needed.idxmin()]
        units = str(math.ceil(needed[frame["task"] == task].max()))
        asked = ("--task", str(task), *of_model(model), *options)
        return Next(("heads", *asked, "--n", units, "--out", "report"), "units that would decide on heads")
    if (report.tasks["base_low"] <= 0).all():
        return Next(("tasks",), "the model cannot do these: what else can be asked?")
    return Next(("calibrate", "--quick", "--out", "calibration"), "no head was found: how often is one missed?")


def after_checkpoints(begins: "pd.DataFrame", folder: str) -> Next:
    """The head that begins first, of the trained model; or what the model is."""
    if begins.empty:
        return Next(("model", "info", "--model", folder), "no head attends and is causal: what was trained?")
    first = begins.loc[begins["step"].astype(float).idxmin()]
    return _a_head(first, folder, str(first["task"]), f"the first of {first['task']}")


def after_head(name: str, task: str, model: str | None, written: bool) -> Next:
    """The card as a page; once that is there, where the answer travels."""
    if not written:
        return Next(("head", name, *of_model(model), "--out", "card"), "the same with its pictures, as a page")
    where = ("--site", "resid_pre", "--by", "layer,pos")
    why = "where does the answer travel?"
    return Next(("patch", "--task", task, *of_model(model), *where, "--out", "patching"), why)


def after_sweep(frames: "SweepFrames", task: str, model: str | None) -> Next:
    """The strongest cell's head; of cells that are no heads, what heads do."""
    from interp.report.sweeps.cells import described, strongest_first

    if {"layer", "head"} <= set(frames.labels):
        return _a_head(strongest_first(described(frames)).iloc[0], model, task, "the strongest cell's head")
    if frames.patched:
        why = "which heads carry it there?"
        return Next(("patch", "--task", task, *of_model(model), "--by", "layer,head", "--out", "patching-by-head"), why)
    where = ("--site", "resid_pre", "--by", "layer,pos")
    return Next(("patch", "--task", task, *of_model(model), *where, "--out", "patching"), "where does it travel?")


def after_attend(relation: str, data: Sequence[str], model: str | None, *, tagged: bool) -> Next:
    """Whether the heads that look matter, on minimal pairs of the same file, or of our own where it has no tags."""
    if not tagged:
        return Next(("heads", *of_model(model), "--out", "report"), "do heads that look matter, on minimal pairs?")
    task = "coreference" if relation.startswith("coref") else "agreement"
    why = "do heads that look matter, on pairs made of these sentences?"
    return Next(("heads", "--task", f"{task}:{data[0]}", *of_model(model), "--out", "report"), why)


def after_probe(
    feature: str, model: str | None, *, task: str | None, data: Sequence[str] | None, relations: bool = False
) -> Next:
    """Whether what can be read is used; of a treebank, along what heads look; of words alone, where in the stream."""
    if task is not None:
        return Next(("heads", "--task", task, *of_model(model), "--out", "report"), "does it need what carries it?")
    if data and not relations:
        where = ("--feature", feature, "--data", data[0], *of_model(model), "--site", "resid_post")
        return Next(("probe", *where, "--out", "probes"), "from which layer on is it in the stream?")
    if data:
        why = "which heads look along its relations?"
        return Next(("attend", "--data", data[0], *of_model(model), "--out", "relations"), why)
    return Next(("heads", *of_model(model), "--out", "report"), f"which heads need what they carry, as {feature}?")


def after_collect(folder: str, features: Sequence[str], model: str | None) -> Next:
    """A probe on what is stored."""
    feature = "number" if "number" in features else features[0] if features else "number"
    return Next(("probe", "--feature", feature, "--store", folder, *of_model(model)), "what can be read there?")


def after_train(folder: str, checkpoints: bool) -> Next:
    """The heads of what was trained, at its end or on the way."""
    if checkpoints:
        return Next(("heads", "--checkpoints", folder, "--out", "report"), "from which step on does each head track?")
    return Next(("heads", "--model", folder, "--out", "report"), "which of its heads track what?")


def after_plan(preset: str) -> Next:
    """The sweep itself, of what the hub has; of the rest, how it would scale."""
    if preset.startswith("gpt2"):
        return Next(
            ("ablate", "--task", "ioi", "--model", preset, "--out", "ablation"), "the sweep itself, from the hub"
        )
    return Next(("model", "plan", preset, "--hardware", "h100", "--gpus", "8,64,512"), "how would it scale?")


def after_runs(rows: Sequence[dict[str, Any]], runs: "Path | None") -> Next:
    """The latest run that is not finished, else the latest; after the last one the main job."""
    for row in rows:
        if row["state"] == "begun":
            return after_run(row["key"], "begun", runs)
    if rows:
        return Next(("runs", "show", rows[0]["key"], *_of_folder(runs)), "what was the latest asked?")
    return after_looking(None)


def after_run(key: str, state: str, runs: "Path | None") -> Next:
    """Its numbers; or the rest of them."""
    if state == "finished":
        return Next(("runs", "export", key, *_of_folder(runs), "--out", "effects.csv"), "its numbers")
    return Next(("runs", "resume", key, *_of_folder(runs)), "it is not finished")


def _of_folder(runs: "Path | None") -> tuple[str, ...]:
    return () if runs is None else ("--runs", str(runs))


def after_looking(model: str | None) -> Next:
    """The main job."""
    return Next(("heads", *of_model(model), "--out", "report"), "which heads track what?")


def _a_head(row: Any, model: str | None, task: str, why: str) -> Next:
    name = f"{int(row['layer'])}.{int(row['head'])}"
    return Next(("head", name, "--task", task, *of_model(model), "--out", "card"), why)
