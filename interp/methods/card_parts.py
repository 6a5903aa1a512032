"""All parts of a head's card for one task, each with the reason where it is missing; and which dossier they are of."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any

import pandas as pd

from interp.errors import InputError
from interp.interventions.engine.plan import NoRoomError
from interp.interventions.provenance import model_provenance
from interp.interventions.sweep import Progress
from interp.methods.ablation import head_name
from interp.methods.card_circuits import COLUMNS as CIRCUITS
from interp.methods.card_circuits import circuits
from interp.methods.card_evidence import AGREEMENT, HALVES, REPLACEMENTS, Comparisons, halves, replacements, shares
from interp.methods.card_patching import FEATURE_COLUMNS as FEATURE
from interp.methods.card_patching import PATH_COLUMNS as PATHS
from interp.methods.card_patching import POSITION_COLUMNS as POSITIONS
from interp.methods.card_patching import feature_there, feeds, positions, readers, some_units
from interp.methods.dossier import HeadsReport
from interp.methods.progress import part_of
from interp.model.weights import hash_of_values
from interp.options import Head, HeadsOptions
from interp.tasks.task import Task

FRAMES: Mapping[str, tuple[str, ...]] = {
    "halves": HALVES,
    "replacements": REPLACEMENTS,
    "agreement": AGREEMENT,
    "positions": POSITIONS,
    "feeds": PATHS,
    "readers": PATHS,
    "feature": FEATURE,
    "circuits": CIRCUITS,
}
"""The measured tables of a card, with their columns after ``task``."""
Parts = Mapping[str, pd.DataFrame]
MOST_COMPARED = 100
"""Units of a task on which kinds of replacement are compared, of all heads, and words are patched."""
_RUNS = 4
_STEPS = 100


def asked_of(report: HeadsReport) -> HeadsOptions:
    """What a dossier was asked, as far as a card follows it."""
    made = report.provenance
    return HeadsOptions(seed=made["seed"], draws=made["draws"], alpha=made["alpha"], min_effect=made["min_effect"])


@dataclass(frozen=True)
class CardRequest:
    """The head of a card, its dossier, all heads under all kinds of replacement, and the units for direct paths."""

    head: Head
    report: HeadsReport
    comparisons: Comparisons
    max_units: int

    def rows(self) -> pd.DataFrame:
        """The dossier's rows of the head, one a task."""
        return self._of(self.report.summary()).reset_index(drop=True)

    def row(self, task: str) -> pd.Series:
        """The dossier's row of the head and a task."""
        return self.rows().set_index("task", drop=False).loc[task]

    def groups(self) -> pd.DataFrame:
        """The dossier's rows of the sets that the head is one of."""
        frame, name = self.report.groups, head_name(self.head)
        sets = frame.loc[frame["head"] == name, ["task", "heads"]]
        return frame.merge(sets, on=["task", "heads"])

    def examples(self) -> pd.DataFrame:
        """What the dossier measured of the head, one row a task and example."""
        return self._of(self.report.examples).reset_index(drop=True)

    def examples_of(self, task: str) -> pd.DataFrame:
        """The examples of one task."""
        found = self._of(self.report.examples)
        return found[found["task"] == task]

    def shares(self) -> pd.DataFrame:
        """What ablating the head costs on every task of the dossier, as a share; see ``card_evidence.shares``."""
        asked = asked_of(self.report)
        how: Any = {"minimum": asked.min_effect, "seed": asked.seed}
        names = list(self.report.tasks["task"])
        found = [_of_task(shares(self.examples_of(task), self.row(task), **how), task) for task in names]
        return pd.concat(found, ignore_index=True)

    def _of(self, frame: pd.DataFrame) -> pd.DataFrame:
        layer, head = self.head
        return frame[(frame["layer"] == layer) & (frame["head"] == head)]


def gather_parts(model: Any, task: Task, asked: CardRequest, progress: Progress | None = None) -> Parts:
    """Every table of ``FRAMES`` for one task, and ``left_out``: which of them is empty, and why.

    Raises:
        KeyboardInterrupt: A sweep was interrupted.
    """
    parts = _Parts(task.name)
    row, examples, seed = asked.row(task.name), asked.examples_of(task.name), asked_of(asked.report).seed
    few: Any = {"max_units": asked.max_units, "seed": seed}
    some = some_units(task, MOST_COMPARED, seed)
    steps = [part_of(progress, number, _RUNS, _STEPS) for number in range(_RUNS)]
    parts.found["halves"] = halves(examples, row, seed=seed)
    with parts.measuring("replacements", "agreement"):
        kinds, alike = replacements(asked.comparisons, asked.head, some, steps[0])
        parts.found |= {"replacements": kinds, "agreement": alike}
    with parts.measuring("positions"):
        parts.found["positions"] = positions(model, asked.head, some, seed=seed, progress=steps[1])
    with parts.measuring("feeds", "readers"):
        _require_answer(asked.report.tasks.set_index("task").loc[task.name])
        parts.found["feeds"] = feeds(model, asked.head, task, **few, progress=steps[2])
        parts.found["readers"] = readers(model, asked.head, task, **few, progress=steps[3])
    with parts.measuring("feature"):
        reads = row["representation"] == "carried"
        parts.found["feature"] = feature_there(model, asked.head, some, reads=reads, seed=seed)
    with parts.measuring("circuits"):
        parts.found["circuits"] = circuits(model, asked.head, task)
    return parts.frames()


def _require_answer(task: pd.Series) -> None:
    if task["base_low"] <= 0:  # an interval that is not known says nothing about it
        raise InputError("the unablated model is not shown to be above chance, so there is no answer to carry")


class _Parts:
    """What was found of one task, and why the rest was not."""

    def __init__(self, task: str):
        self.task = task
        self.found: dict[str, pd.DataFrame] = {}
        self._reasons: list[tuple[str, str, str]] = []

    @contextmanager
    def measuring(self, *names: str) -> Iterator[None]:
        """Keep the reason where a part is refused."""
        try:
            yield
        except NoRoomError:  # which may pass
            raise
        except InputError as error:
            self._reasons += [(self.task, name, str(error)) for name in names]

    def frames(self) -> dict[str, pd.DataFrame]:
        """All of them, with the task; empty what is missing."""
        empty = {name: pd.DataFrame(columns=list(columns)) for name, columns in FRAMES.items()}
        frames = {name: _of_task(frame, self.task) for name, frame in (empty | self.found).items()}
        return {**frames, "left_out": pd.DataFrame(self._reasons, columns=["task", "part", "reason"])}


def _of_task(frame: pd.DataFrame, task: str) -> pd.DataFrame:
    frame = frame.copy()
    frame.insert(0, "task", task)
    return frame


def check_report(report: HeadsReport, model: Any, tasks: Sequence[Task]) -> None:
    """Refuse a dossier of another model, without one of the tasks, or of other items of it.

    Raises:
        InputError: It is one of these; or no task, or one twice.
    """
    names = [task.name for task in tasks]
    if not names or len(set(names)) < len(names):
        raise InputError(f"tasks: expected different tasks, at least one; got {names}")
    made = {each["task"]: each for each in report.provenance["tasks"]}
    ours = model_provenance(model)["model_hash"]
    for task in tasks:
        if task.name not in made:
            raise InputError(
                f"report: expected a dossier of the task {task.name!r}, got one of {', '.join(made)}; make one of all "
                "these tasks with interp.heads, or leave the report out"
            )
        for what, expected in (("model_hash", ours), ("data_hash", task.hash)):
            if made[task.name][what] != expected:
                raise InputError(
                    f"report: expected a dossier of this model and of these items of {task.name!r}, got one with "
                    f"another {what}; make it anew with interp.heads, or leave the report out"
                )


def report_hash(report: HeadsReport) -> str:
    """SHA-256 of all tables of a dossier, and of the options that it was made with."""
    names = {each.name for each in fields(HeadsOptions)}
    options = {name: value for name, value in report.provenance.items() if name in names}
    digest = hashlib.sha256(hash_of_values(options).encode())
    for each in fields(report):
        table = getattr(report, each.name)
        if isinstance(table, pd.DataFrame):
            digest.update(f"{each.name}\n{table.to_csv(index=False)}".encode())
    return digest.hexdigest()
