"""What does one ask next? One line on standard error after a command that did its work, never with --json.

It follows from the result: the head with the best verdict, the strongest cell, the run that is not finished. The line
can be given to a shell as it is, and does its work there; what stands behind the # says why.
"""

import math
import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from interp.cli.messages import say

if TYPE_CHECKING:
    from interp.methods.dossier import HeadsReport
    from interp.report.sweep_cells import Swept
    from interp.tasks.task import Task

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
    report: "HeadsReport",
    model: str | None,
    endless: Collection[str],
    options: Sequence[str] = (),
    typed: Sequence[str] = (),
    *,
    n: int | None = None,
    carded: "Sequence[Task]" = (),
) -> Next:
    """The head with the best verdict, or where its card is there, where its task's answer travels; or more units.

    Args:
        report: What was found.
        model: As it was named.
        endless: The tasks that more units can be drawn of.
        options: What else was asked for, to be asked for again.
        typed: How the tasks were asked, such as ``--chat``; without it the next command would measure another one.
        n: Units that were asked for; None for each task's own number.
        carded: The tasks, where every head with a finding has its card; else none.
    """
    from interp.report.heads_frames import FINDINGS

    frame = report.summary()
    found = frame[frame["verdict"].isin(FINDINGS)]
    if not found.empty:
        best = found.loc[found["verdict"].map(FINDINGS.index).idxmin()]
        if asked_of := [each for each in carded if each.name == best["task"]]:
            return _travel(asked_of[0], model, typed)
        same = [*(() if n is None else ("--n", str(n))), *(each for each in options if each != "--choose")]
        why = f"{best['verdict']}: {best['task']}"
        return _a_head(best, model, (str(best["task"]), *typed, *same), why)
    undecided = frame[frame["verdict"] == "undecided"]
    needed = undecided[undecided["task"].isin(list(endless))]["n_to_decide"].astype(float).dropna()
    needed = needed[needed <= MOST_UNITS]
    if not needed.empty:
        task = frame["task"][needed.idxmin()]
        units = str(math.ceil(needed[frame["task"] == task].max()))
        if (most := "--max-clusters") in options:  # which would keep heads from being ablated on so many
            at = list(options).index(most)
            options = [*options[:at], *options[at + 2 :]]
        named = report.tasks["task"] if "--claims" in options else [task]  # a file of claims may be on all of them
        asked = (*(each for name in named for each in ("--task", str(name))), *of_model(model), *typed, *options)
        return Next(("heads", *asked, "--n", units, "--out", "report"), "units that would decide on heads")
    if (report.tasks["base_low"] <= 0).all():
        return Next(("tasks",), "the model cannot do these: what else can be asked?")
    return Next(("calibrate", "--quick", "--out", "calibration"), "no head was found: how often is one missed?")


def after_head(name: str, task: "Task", model: str | None, written: bool, typed: Sequence[str] = ()) -> Next:
    """The card as a page; once that is there, where the answer travels."""
    if not written:
        asked = ("--task", task.name, *of_model(model), *typed)
        return Next(("head", name, *asked, "--out", "card"), "the same with its pictures, as a page")
    return _travel(task, model, typed)


def after_sweep(
    frames: "Swept", task: "Task", model: str | None, metric: str | None, typed: Sequence[str] = ()
) -> Next:
    """The strongest cell's head; of cells that are no heads, what heads do.

    Args:
        frames: What was found.
        task: What was measured.
        model: As it was named.
        metric: As it was named: a task that is encoded for another one than its own may not be carried for its own.
        typed: As of ``after_heads``.
    """
    from interp.report.sweep_cells import strongest_first

    named = (*typed, *(() if metric is None else ("--metric", metric)))
    if {"layer", "head"} <= set(frames.labels):
        if metric is None:
            strongest = strongest_first(frames.cells).iloc[0]
            return _a_head(strongest, model, (task.name, *typed), "the strongest cell's head")
        return _travel(task, model, named)
    if frames.patched:
        where = ("--by", "layer,head", "--out", "patching-by-head")
        return Next(("patch", "--task", task.name, *of_model(model), *named, *where), "which heads carry it there?")
    return _travel(task, model, named)


def _travel(task: "Task", model: str | None, more: Sequence[str] = ()) -> Next:
    """Where the answer travels: by word, where words correspond; without counterfactuals, what whole layers do."""
    asked = ("--task", task.name, *of_model(model), *more)
    pairs = [unit for unit in task.units if unit.counterfactual is not None]
    if not pairs:
        return Next(("ablate", *asked, "--site", "attn_out", "--out", "ablation"), "what do all heads of a layer do?")
    examples = [each for unit in pairs for each in unit.examples]
    by_word = len({len(each.prompt) for each in examples}) == 1 or all(each.related for each in examples)
    where = ("--site", "resid_pre", "--by", "layer,pos" if by_word else "layer")
    return Next(("patch", *asked, *where, "--out", "patching"), "where does the answer travel?")


def after_attend(pairs: str | None, model: str | None, able: bool) -> Next:
    """Whether the heads that look matter, on minimal pairs of the same file, or of our own where none can be made.

    Args:
        pairs: The task of the file's pairs; None for none.
        model: As it was named.
        able: Whether it can be asked our own; as of ``after_looking``.
    """
    if pairs is None:
        return after_looking(model, able)
    why = "do heads that look matter, on pairs made of these sentences?"
    return Next(("heads", "--task", pairs, *of_model(model), "--out", "report"), why)


def after_probe(
    feature: str,
    model: str | None,
    *,
    task: str | None,
    data: Sequence[str] | None,
    relations: bool = False,
    able: bool = True,
    typed: Sequence[str] = (),
) -> Next:
    """Whether what can be read is used; of a treebank, along what heads look; of words alone, where in the stream.

    Args:
        feature: What was probed for.
        model: As it was named.
        task: Whose words were read; None for others.
        data: Whose words were read; None for others.
        relations: Whether these files have relations.
        able: Whether the model can be asked for its heads' part in tasks.
        typed: As of ``after_heads``.
    """
    if task is not None and able:
        why = "does it need what carries it?"
        return Next(("heads", "--task", task, *of_model(model), *typed, "--out", "report"), why)
    if data and not relations:
        where = ("--feature", feature, "--data", data[0], *of_model(model), "--site", "resid_post")
        return Next(("probe", *where, "--out", "probes"), "from which layer on is it in the stream?")
    if data:
        why = "which heads look along its relations?"
        return Next(("attend", "--data", data[0], *of_model(model), "--out", "relations"), why)
    return after_looking(model, able)


def after_collect(folder: str, features: Sequence[str], model: str | None) -> Next:
    """A probe on what is stored; where nothing is said of the words, whether it is as it was written.

    Args:
        folder: Where it is stored.
        features: Those of the words that can be probed for.
        model: As it was named.
    """
    if not features:
        return Next(("activations", "verify", folder), "is it as it was written?")
    feature = "number" if "number" in features else features[0]
    asked = ("--feature", feature, "--min-examples", "2", "--store", folder, *of_model(model))
    return Next(("probe", *asked), "what can be read there?")


def after_plan(preset: str | None, model: str | None, task: str | None, *, asked: Sequence[str] = ()) -> Next:
    """The sweep itself, of what is here or the hub has.

    Args:
        preset: What was planned, one of GPT-2's; None for a model.
        model: What was planned; None for a preset.
        task: Whose prompts were planned for.
        asked: All other options of a model, to be asked for again: with others it might not fit.
    """
    why = "the sweep itself" if preset is None else "the sweep itself, from the hub"
    same = asked if preset is None else ()
    return Next(("ablate", "--task", task or "ioi", *of_model(model or preset), *same, "--out", "ablation"), why)


def after_looking(model: str | None, able: bool = True) -> Next:
    """The main job.

    Args:
        model: As it was named.
        able: Whether it can be asked anything: ``interp.cli.loading.can_be_asked``.
    """
    if not able:
        why = "what is asked of models?" + ("" if model is None else " This one cannot be asked what is generated")
        return Next(("tasks",), why)
    return Next(("heads", *of_model(model), "--out", "report"), "which heads track what?")


def _a_head(row: Any, model: str | None, task: Sequence[str], why: str) -> Next:
    name = f"{int(row['layer'])}.{int(row['head'])}"
    return Next(("head", name, "--task", *task, *of_model(model), "--out", "card"), why)
