"""``interp heads`` and ``interp head``: which attention heads track what, and all that can be said of one."""

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from interp.cli.dataclass_options import Fields, flag_of
from interp.cli.hints import after_head, after_heads
from interp.cli.options import Tasks
from interp.cli.running import Work, measuring, typed
from interp.errors import InputError, InterpError
from interp.options import CardOptions, HeadsOptions

if TYPE_CHECKING:
    from interp.methods.dossier import HeadsReport
    from interp.methods.head_card import HeadCard
    from interp.runs.run import Run
    from interp.tasks.task import Task

_STRONGEST = 10
"""Paths of a task, into a head and from it, that the JSON of its card has."""


@dataclass(frozen=True, kw_only=True)
class Judged(Tasks):
    """What is judged.

    Attributes:
        choose: Choose heads on other items first (the split `select` of generated tasks); nothing is claimed of
            the others.
        sibling: A model of another seed, judged as well, to see whether verdicts replicate; repeat it for several.
        cards: Write a page for each head with a finding, as `interp head` does.
    """

    choose: bool = False
    sibling: list[str] | None = None
    cards: bool = True


def heads(asked: HeadsOptions, work: Annotated[Work, Fields(required=("out",))], on: Judged) -> None:
    """Which heads track what? Every head's evidence, a verdict on each head and task, and a page.

    Attention is compared with its toughest baseline, two ablations with the
    smallest effect that counts, and probes with controls. For heads that look and
    matter, the related word is exchanged. All claims are tested, and corrected
    over all heads and tasks.
    """
    run = work.run()
    from interp.cli.loading import load_tasks
    from interp.cli.terminal import records
    from interp.methods import dossier
    from interp.methods.task_arguments import with_left_out
    from interp.report.heads import page_of
    from interp.tasks.catalogue import TASKS, is_generated

    dossier.require_sizes(asked)  # before anything is loaded
    names = list(dict.fromkeys(on.task or TASKS))
    loaded = work.load()
    how: Any = {"n": asked.n, "seed": asked.seed, **on.how}
    tasks, left_out = load_tasks(names, loaded, **how)
    if not asked.anyway:
        tasks, undecidable = _with_clusters(tasks)
        left_out |= undecidable
    chosen: dict[str, Any] = {}
    if on.choose:
        chosen["choose_on"], without = load_tasks(_with_splits(tasks), loaded, **how, split="select")
        left_out |= without
        tasks = [each for each in tasks if each.name not in without]
    siblings = [work.load(name) for name in on.sibling or ()]
    with measuring("heads") as progress:
        more: Any = {"siblings": siblings, **chosen, "progress": progress, "run": run}
        report = with_left_out(dossier.heads(loaded, tasks, replace(asked, n=None), **more), left_out)
    pages: dict[str, str] = {}
    if on.cards:
        try:
            pages = _card_pages(loaded, tasks, report, asked.memory_budget, run)
        except BaseException:  # whatever became of the cards, the report is there
            if work.out is not None:
                report.save(work.out, command=typed())
            raise

    def numbers() -> dict[str, Any]:
        verdicts = report.summary()[["layer", "head", "task", "verdict", "reason", "partners"]]
        tables = {"verdicts": verdicts, "tasks": report.tasks, "replication": report.replication}
        found = {name: records(frame) for name, frame in tables.items()}
        return {**found, "left_out": report.provenance.get("left_out", {}), "cards": sorted(pages)}

    endless = [each.name for each in tasks if is_generated(each.name)]
    again = ["--choose"] * on.choose + asked_again(asked)
    hint = partial(after_heads, report, work.model, endless, again, on.typed, n=asked.n, carded=tasks if pages else ())
    work.answer(report, numbers, hint, lambda _: page_of(report, pages))


def asked_again(asked: HeadsOptions) -> list[str]:
    """The options that differ from their defaults, as one types them; without ``--n``."""
    again: list[str] = []
    for name, value in vars(asked).items():
        flag = flag_of(name)
        if name != "n" and value != getattr(HeadsOptions, name):
            again += [f"--{'no-' * (not value)}{flag[2:]}"] if isinstance(value, bool) else [flag, str(value)]
    return again


def head(
    name: Annotated[str, typer.Argument(help="Layer and head, both from 0, such as 2.1.", metavar="LAYER.HEAD")],
    asked: CardOptions,
    work: Work,
    on: Tasks,
) -> None:
    """What does this head do? Its verdicts, effects by replacement, words, values, direct paths and circuits."""
    from interp.methods import dossier, head_card
    from interp.methods.ablation import as_head, parse_head

    parse_head(name)  # before anything is loaded
    dossier.require_sizes(asked)
    run = work.run()
    from interp.cli.loading import load_tasks
    from interp.methods.task_arguments import with_left_out
    from interp.tasks.catalogue import TASKS

    loaded = work.load()
    which = as_head(loaded, name)
    names = list(dict.fromkeys(on.task or TASKS))
    tasks, left_out = load_tasks(names, loaded, n=asked.n, seed=asked.seed, **on.how)
    with measuring("head") as progress:
        found = head_card.head_card(loaded, which, tasks, options=replace(asked, n=None), progress=progress, run=run)
    card = with_left_out(found, left_out)
    first = next((each for each in tasks if each.name in set(card.tasks["task"])), tasks[0])
    hint = partial(after_head, card.name, first, work.model, work.out is not None, on.typed)
    work.answer(card, lambda: {"head": card.name, **_numbers(card)}, hint)


def _with_splits(tasks: "list[Task]") -> list[str]:
    """The names of the tasks, all of which have items to choose on."""
    from interp.tasks.catalogue import is_generated

    for each in tasks:
        if not is_generated(each.name):
            raise InputError(
                f"--choose: expected generated tasks, which have other items to choose on, got {each.name}; choose in "
                "Python, with interp.heads(..., choose_on=[...])"
            )
    return [each.name for each in tasks]


def _with_clusters(tasks: "list[Task]") -> "tuple[list[Task], dict[str, str]]":
    """The tasks that have clusters enough for a verdict, and by its name why each of the others is left out."""
    from interp.cli.terminal import warnings_as_lines
    from interp.methods.task_arguments import none_left, told, without_verdict

    failed: dict[str, InterpError] = {
        each.name: InputError(f"{each.name}: every head would be undecided, with {why}", "measure it --anyway")
        for each in tasks
        if (why := without_verdict(each))
    }
    if len(failed) == len(tasks):
        raise none_left(failed)
    with warnings_as_lines():
        return [each for each in tasks if each.name not in failed], told(failed)


def _card_pages(
    model: Any, tasks: "list[Task]", report: "HeadsReport", memory_budget: int | None, run: "Run"
) -> dict[str, str]:
    """By its name, the page of every head that earned one."""
    from interp.methods.head_card import head_cards
    from interp.report.html import as_page
    from interp.report.sections import page_of

    with measuring("cards") as progress:
        found = head_cards(model, tasks, report, memory_budget=memory_budget, progress=progress, run=run)
    return {card.name: as_page(page_of(card), typed()) for card in found}


def _numbers(card: "HeadCard") -> dict[str, Any]:
    """What the JSON has of a card: of direct paths the strongest of each task."""
    from interp.cli.terminal import records

    whole = ("shares", "halves", "replacements", "agreement", "positions", "feature", "left_out")
    paths = {name: getattr(card, name).groupby("task", sort=False).head(_STRONGEST) for name in ("feeds", "readers")}
    return {
        "verdicts": records(card.verdicts[["task", "verdict", "reason", "partners"]]),
        "copying": None if math.isnan(card.copying) else card.copying,
        **{name: records(getattr(card, name)) for name in whole},
        "tasks_left_out": card.provenance.get("left_out", {}),
        **{name: records(frame) for name, frame in paths.items()},
    }
