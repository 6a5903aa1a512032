"""What there is to say about one head: its card, with every kind of evidence on it, task by task.

1. The dossier's verdicts on the head (``dossier.py``), given or made here; its effect as a share of each task's base
   run, two random halves of the clusters, and ablation under every replacement (``card_parts.py``).
2. Patching of what the head writes, word by word, and of the direct paths into it and out of it; its values at the
   related word, and the feature that a probe reads in what it writes, taken out; its circuits on the task's own words
   (``card_patching.py``).

Replacements, patching and what is taken out are measured on ``max_units`` of a task's units. What a task or a model
cannot provide is left out with its reason. Only the verdicts are corrected for all heads and tasks: what else is on a
card describes the head that was asked for.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import fields as fields_of
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from interp.arguments import whole_number
from interp.claims.declared import read_claims
from interp.claims.rules import FINDINGS
from interp.errors import InputError
from interp.interventions.provenance import model_asked, task_asked
from interp.interventions.sweep import Progress
from interp.methods import card_parts
from interp.methods.ablation import as_head, head_name
from interp.methods.attention_maps import attention_maps
from interp.methods.card_parts import Parts, of_head
from interp.methods.dossier import HeadsReport, heads
from interp.methods.progress import STEPS, Steps, part_of
from interp.methods.task_arguments import carried, those_in, with_left_out
from interp.model.devices import documented
from interp.model.loading.bridge import require_ours
from interp.model.provenance import model_provenance
from interp.options import CardOptions, Head, HeadsOptions
from interp.residual.circuits import copying_score
from interp.result import Result
from interp.runs.run import Run, all_answered, answered, as_run
from interp.tasks.catalogue import TASKS
from interp.tasks.task import Task

BACK = "../report.html"
"""Where a card in a report's folder ``cards`` finds the report's page."""


@dataclass(frozen=True, eq=False, repr=False)
class HeadCard(Result):
    """All that is known of one head, as tidy tables; each has the column ``task``, and rows in the tasks' order.

    Verdicts, examples and shares are of all tasks of the dossier; what had to be measured again may be of some of them.

    Attributes:
        examples: One row a task and example of this head, as the dossier measured it; as ``HeadsReport.examples``.
        provenance: How the numbers were made.
        name: Of the head: ``2.1`` is head 1 of layer 2.
        verdicts: One row a task: the dossier's evidence and verdict on the head. ``summary()`` returns it.
        tasks: One row a task: what was asked, and how well the unablated model does; as ``HeadsReport.tasks``.
        shares: One row a task: the effect of ablation as a share of the task's base.
        halves: One row a task, kind of evidence and half of the clusters.
        replacements: One row a task and replacement.
        agreement: One row a task: how alike the dossier's two replacements order all heads of the model.
        positions: One row a task and kind of word: what the head's ``z`` brings back there.
        feeds: One row a task and direct path into the head, the largest first.
        readers: One row a task and direct path from the head, the largest first.
        feature: One row a task and thing that is taken out: the head's values at the related word, and the feature that
            a probe reads in what it writes.
        circuits: One row a task, word and token that the head would look for, raise or lower.
        groups: One row a task and head of a set of which this is one; as ``HeadsReport.groups``.
        attention_maps: The head's attention on up to four sentences a task; as ``HeadsReport.attention_maps``.
        left_out: One row a task and part that could not be measured: ``task``, ``part`` (the table's name), ``reason``.
        copying: How much the head copies what it attends to, -1 to 1; NaN where that is not known.
        back: Where the card's page finds that of the report which it belongs to; empty for a card by itself.
    """

    name: str
    verdicts: pd.DataFrame
    tasks: pd.DataFrame
    shares: pd.DataFrame
    halves: pd.DataFrame
    replacements: pd.DataFrame
    agreement: pd.DataFrame
    positions: pd.DataFrame
    feeds: pd.DataFrame
    readers: pd.DataFrame
    feature: pd.DataFrame
    circuits: pd.DataFrame
    groups: pd.DataFrame
    attention_maps: pd.DataFrame
    left_out: pd.DataFrame
    copying: float
    back: str = ""

    shown_by: ClassVar[str] = "card"

    def summary(self) -> pd.DataFrame:
        """One row a task: the dossier's evidence on the head with its intervals, p and verdict."""
        return self.verdicts

    def save(self, folder: str | Path, *, command: str | None = None) -> Path:
        """Write the tables, the figures, a page (``report.html``) and a manifest into a folder of its own.

        Args:
            folder: Made, with its parents, or replaced where it holds an older report and nothing else.
            command: The command line that asked for the result, for the page and the manifest.

        Returns:
            The folder, as an absolute path. Its page has no way back to a report.

        Raises:
            OutputError: The folder cannot be used.
        """
        return Result.save(replace(self, back=""), folder, command=command)

    def __repr__(self) -> str:
        found = zip(self.verdicts["task"], self.verdicts["verdict"], strict=True)
        return f"HeadCard({self.name}: {', '.join(f'{task}: {verdict}' for task, verdict in found)})"


@documented
def head_card(
    model: Any,
    head: Head | str,
    tasks: Sequence[str | Task] | str | Task = TASKS,
    report: HeadsReport | None = None,
    options: CardOptions | None = None,
    *,
    progress: Progress | None = None,
    run: Run | str | PathLike[str] | None = None,
    **fields: Any,
) -> HeadCard:
    """Gather all that can be said about one head.

    A task that the model or its tokenizer cannot carry is left out, as of ``heads``.

    Args:
        model: Follows TransformerLens' protocol; circuits and direct paths are of our own models only.
        head: ``(2, 1)`` or ``"2.1"``: head 1 of layer 2, both from 0.
        tasks: Tasks, or names for ``interp.load_task``.
        report: The dossier of this model on these tasks, or on these and others; None to make it here. What it was
            asked then holds, whatever the options say; only ``max_units`` is the card's own.
        options: What is asked: see ``CardOptions``.
        **fields: Fields of ``CardOptions`` by name.
        progress: Called with (steps done, steps in all).
        run: Where the dossier and the card are kept, and found again: a folder of runs; or an ``interp.Run``, whose
            executor measures several tasks of the dossier at the same time. None to keep nothing.

    Returns:
        The card. What could not be measured, such as paths in a model of others, has its reason in ``left_out``.

    Raises:
        InputError: A head that the model does not have; no task, one twice, or none that the model can carry; a
            report of another model or of other items; an option that a card does not have; or as ``heads``.
        TaskError: A named task cannot be loaded, or the tokenizer carries none.
        KeyboardInterrupt: It was interrupted: half a card is none.

    Examples:
        >>> from interp.methods.head_card import head_card
        >>> model = interp.load_model()
        >>> report = interp.heads(model, "agreement", n=40, probes=False, max_group=0)
        >>> head_card(model, "2.2", "agreement", report, n=40, max_units=4)
        HeadCard(2.2: agreement: attends and causal)
    """
    asked = CardOptions.of(options, fields)
    chosen = as_head(model, head)
    given, left_out = carried(tasks, model, n=asked.n, seed=asked.seed)
    kept, about = as_run(run), model_provenance(model)
    max_units = whole_number("max_units", asked.max_units, expected="a number of units, at least 1")

    def gathering() -> HeadCard:
        n_parts = len(given) + (report is None)
        found = report
        if found is None:
            how = {each.name: getattr(asked, each.name) for each in fields_of(HeadsOptions) if each.name != "n"}
            step = part_of(progress, 0, n_parts, STEPS)
            found = heads(model, given, HeadsOptions(**how), progress=step, run=kept)
        measured = those_in(found, given)
        card_parts.check_report(found, model, measured)
        parts = []
        for number, task in enumerate(measured, start=n_parts - len(measured)):
            step = part_of(progress, number, n_parts, STEPS)
            inner = None if kept is None else kept.inner
            own = card_parts.gather_parts(model, task, [chosen], found, max_units, asked.memory_budget, inner, step)
            parts.append(own[chosen])
        return _card(model, chosen, found, max_units, measured, parts)

    def request() -> dict[str, Any]:
        claims = None if asked.claims is None else read_claims(asked.claims).sha256
        return _request(model, about, given, report, {**asked.asked(), "claims": claims, "head": head_name(chosen)})

    return with_left_out(answered(kept, request, about, HeadCard, gathering), left_out)


def _request(
    model: Any, own: Mapping[str, Any], tasks: Sequence[Task], report: HeadsReport | None, asked: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        "kind": "head",
        **model_asked(model, own),
        "tasks": [task_asked(each) for each in tasks],
        "report": None if report is None else card_parts.report_hash(report),
        **asked,
    }


@documented
def head_cards(
    model: Any,
    tasks: Sequence[str | Task] | str | Task,
    report: HeadsReport,
    *,
    n: int | None = None,
    max_units: int = CardOptions.max_units,
    memory_budget: int | None = None,
    progress: Progress | None = None,
    run: Run | str | PathLike[str] | None = None,
) -> tuple[HeadCard, ...]:
    """The cards of all heads that earned one: a verdict of ``FINDINGS`` on some task.

    Args:
        model: As in ``head_card``.
        tasks: Those of the report, or their names.
        report: The dossier of this model on these tasks.
        n: Units that the report drew of tasks that are given by name, as ``interp.heads`` was asked.
        max_units: As in ``CardOptions``.
        memory_budget: As in ``HeadsOptions``.
        progress: Called with (steps done, steps in all), as by ``interp.heads``.
        run: Where sweeps and cards are kept, and found again; its executor measures several tasks at the same time.
            None for nowhere, and this process.

    Returns:
        A card a head, by layer and head, whose page leads back to the report's. What a dossier does not measure is
        measured on the tasks on which the head earned its card.

    Raises:
        InputError: The report is of another model or of other items.
        KeyboardInterrupt: It was interrupted.

    Examples:
        >>> from interp.methods.head_card import head_cards
        >>> model = interp.load_model()
        >>> report = interp.heads(model, "agreement", n=40, probes=False, max_group=0)
        >>> [card.name for card in head_cards(model, "agreement", report, n=40, max_units=4)]
        ['2.2']
    """
    tasks = those_in(report, carried(tasks, model, n=n, seed=report.provenance["seed"])[0])
    card_parts.check_report(report, model, tasks)
    kept, about = as_run(run), model_provenance(model)
    max_units = whole_number("max_units", max_units, expected="a number of units, at least 1")

    def gathering() -> list[HeadCard]:
        verdicts = report.summary()
        earned = verdicts[verdicts["verdict"].isin(FINDINGS)]
        by_task = [(task, _heads_of(earned[earned["task"] == task.name])) for task in tasks]
        jobs = [(model, task, own, report, max_units, memory_budget) for task, own in by_task if own]
        steps = Steps(kept, progress, len(jobs))
        found = steps.made("cards", card_parts.gather_parts, jobs)
        steps.end()
        cards = []
        for head in _heads_of(earned):
            measured = [task for (_, task, *_), parts in zip(jobs, found, strict=True) if head in parts]
            own = [parts[head] for parts in found if head in parts]
            cards.append(replace(_card(model, head, report, max_units, measured, own), back=BACK))
        return cards

    def request() -> dict[str, Any]:
        return _request(model, about, tasks, report, {"max_units": max_units})

    return all_answered(kept, request, about, HeadCard, gathering)


def _heads_of(rows: pd.DataFrame) -> list[Head]:
    return sorted({(int(row.layer), int(row.head)) for row in rows.itertuples()})


def _card(
    model: Any, head: Head, report: HeadsReport, max_units: int, tasks: Sequence[Task], parts: Sequence[Parts]
) -> HeadCard:
    """A head's card, with the `parts` of the `tasks` on which it was measured again."""
    verdicts, examples = (of_head(frame, head).reset_index(drop=True) for frame in (report.summary(), report.examples))
    asked, own = card_parts.asked_of(report), verdicts.set_index("task", drop=False)
    of_base = [
        card_parts.of_task(card_parts.shares(rows, own.loc[task], minimum=asked.min_effect, seed=asked.seed), task)
        for task, rows in examples.groupby("task", sort=False)
    ]
    name = head_name(head)
    sets = report.groups.loc[report.groups["head"] == name, ["task", "heads"]]
    return HeadCard(
        examples=examples,
        name=name,
        verdicts=verdicts,
        tasks=report.tasks,
        shares=pd.concat(of_base, ignore_index=True),
        **{each: _joined([own_parts[each] for own_parts in parts]) for each in (*card_parts.FRAMES, "left_out")},
        groups=report.groups.merge(sets, on=["task", "heads"]),
        attention_maps=attention_maps(model, tasks, verdicts[verdicts["task"].isin([task.name for task in tasks])]),
        copying=_copying(model, head),
        provenance={"head": name, "max_units": max_units, **report.provenance},
    )


def _joined(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """The rows of all; of empty frames, the columns of the first."""
    filled = [each for each in frames if not each.empty]
    return pd.concat(filled, ignore_index=True) if filled else frames[0]


def _copying(model: Any, head: Head) -> float:
    try:
        require_ours(model, "circuits")
        return copying_score(model, *head)
    except InputError:
        return np.nan
