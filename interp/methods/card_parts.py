"""The parts of a head's card on one task, each with the reason where it cannot be had; and which dossier they are of.

1. Of the dossier, nothing is run again: the effect as a share of what the whole model does, and the estimates in two
   random halves of the clusters.
2. All heads are ablated under every kind of replacement (``replacements_compared.py``). The heads of a kind are one
   family of tests, and their order under two kinds is compared by Kendall's tau-b. A positional mean needs positions
   that mean the same, a resample reference examples of the same length: a kind that the task cannot provide is left
   out with its reason.
3. Patching, and what is taken out (``card_patching.py``); circuits (``card_circuits.py``).
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any, get_args

import numpy as np
import pandas as pd

from interp.claims.bootstrap import Intervals, cluster_bootstrap
from interp.claims.units import UnitTable, estimates
from interp.errors import InputError
from interp.interventions.engine.plan import NoRoomError
from interp.interventions.reference_set import make_replacement
from interp.interventions.sweep import Progress
from interp.methods.card_circuits import COLUMNS as CIRCUITS
from interp.methods.card_circuits import circuits
from interp.methods.card_patching import FEATURE, PATHS, POSITIONS, feature_there, feeds, positions, readers, some_units
from interp.methods.dossier import HeadsReport
from interp.methods.grid import part_of
from interp.methods.replacements_compared import ReplacementComparison, compare_replacements
from interp.model.provenance import model_provenance
from interp.model.sites import Site
from interp.model.weights import hash_of_values
from interp.options import Head, HeadsOptions, ReplacementName
from interp.tasks.task import Task

CELL = ("layer", "head")
SHARES = (
    *("metric", "base", "effect", "effect_low", "effect_high", "share", "share_low", "share_high"),
    *("minimum", "n_units", "n_clusters"),
)
HALVES = ("evidence", "half", "estimate", "low", "high", "minimum", "passes", "n_units", "n_clusters")
REPLACEMENTS = (
    *("replacement", "effect", "low", "high", "p_adjusted", "minimum", "state", "share", "share_low", "share_high"),
    *("rank", "n_heads", "n_units", "n_clusters", "reason"),
)
AGREEMENT = ("first", "second", "kendall", "low", "high", "spearman", "n_cells")
KINDS: tuple[ReplacementName, ...] = get_args(ReplacementName)
FRAMES: Mapping[str, tuple[str, ...]] = {
    **{"halves": HALVES, "replacements": REPLACEMENTS, "agreement": AGREEMENT, "positions": POSITIONS},
    **{"feeds": PATHS, "readers": PATHS, "feature": FEATURE, "circuits": CIRCUITS},
}
"""The measured tables of a card, with their columns after ``task``."""
Parts = Mapping[str, pd.DataFrame]
MOST_COMPARED = 100
"""Units of a task on which kinds of replacement are compared, of all heads, and words are patched."""
STEPS = 100
"""Steps of the progress of each task, and of each of its sweeps."""


def of_head(frame: pd.DataFrame, head: Head) -> pd.DataFrame:
    """The rows of one head."""
    return frame[(frame["layer"] == head[0]) & (frame["head"] == head[1])]


def asked_of(report: HeadsReport) -> HeadsOptions:
    """What a dossier was asked, as far as a card follows it."""
    return HeadsOptions(**{name: report.provenance[name] for name in ("seed", "draws", "alpha", "min_effect")})


def gather_parts(
    model: Any,
    task: Task,
    heads: Sequence[Head],
    report: HeadsReport,
    max_units: int,
    progress: Progress | None = None,
) -> dict[Head, Parts]:
    """Of each head every table of ``FRAMES``, and ``left_out``: which of them is empty, and why.

    Raises:
        KeyboardInterrupt: A sweep was interrupted.
    """
    asked = asked_of(report)
    some = some_units(task, MOST_COMPARED, asked.seed)
    steps = [part_of(progress, number, 1 + len(heads), STEPS) for number in range(1 + len(heads))]
    compared, reasons = None, dict[str, str]()
    with _measuring(reasons, "replacements", "agreement"):
        compared = compare_kinds(model, some, asked, steps[0])
    able = not report.tasks.set_index("task").loc[task.name, "base_low"] <= 0  # an unknown interval says nothing
    parts = {}
    for head, step in zip(heads, steps[1:], strict=True):
        row = of_head(report.summary(), head).set_index("task", drop=False).loc[task.name]
        examples = of_head(report.examples[report.examples["task"] == task.name], head)
        found, own = {"halves": halves(examples, row, seed=asked.seed)}, dict(reasons)
        if compared is not None:
            found |= {"replacements": compared.of(head, asked.seed), "agreement": compared.agreement}
        how: Any = {"seed": asked.seed, "reads": row["representation"] == "carried", "able": able, "progress": step}
        found |= _patched(model, head, task, own, max_units=max_units, **how)
        parts[head] = _complete(found, own, task.name)
    return parts


def _patched(
    model: Any,
    head: Head,
    task: Task,
    reasons: dict[str, str],
    *,
    max_units: int,
    seed: int,
    reads: bool,
    able: bool,
    progress: Progress | None,
) -> dict[str, pd.DataFrame]:
    """What is run for one head alone: whose feature a probe `reads`, on a task that the model is `able` to do."""
    found: dict[str, pd.DataFrame] = {}
    some, few = some_units(task, MOST_COMPARED, seed), {"max_units": max_units, "seed": seed}
    steps = [part_of(progress, number, 3, STEPS) for number in range(3)]
    with _measuring(reasons, "positions"):
        found["positions"] = positions(model, head, some, seed=seed, progress=steps[0])
    with _measuring(reasons, "feeds", "readers"):
        if not able:
            raise InputError("the unablated model is not shown to be above chance, so there is no answer to carry")
        found["feeds"] = feeds(model, head, task, **few, progress=steps[1])
        found["readers"] = readers(model, head, task, **few, progress=steps[2])
    with _measuring(reasons, "feature"):
        found["feature"] = feature_there(model, head, some, reads=reads, seed=seed)
    with _measuring(reasons, "circuits"):
        found["circuits"] = circuits(model, head, task)
    return found


@contextmanager
def _measuring(reasons: dict[str, str], *names: str) -> Iterator[None]:
    """Keep the reason where parts are refused."""
    try:
        yield
    except NoRoomError:  # which may pass
        raise
    except InputError as error:
        reasons.update(dict.fromkeys(names, str(error)))


def _complete(found: Parts, reasons: Mapping[str, str], task: str) -> Parts:
    """All frames, with the task; those that are missing are empty."""
    empty = {name: pd.DataFrame(columns=list(columns)) for name, columns in FRAMES.items()}
    frames = {name: of_task(frame, task) for name, frame in (empty | dict(found)).items()}
    rows = [(task, *each) for each in reasons.items()]
    return {**frames, "left_out": pd.DataFrame(rows, columns=["task", "part", "reason"])}


def of_task(frame: pd.DataFrame, task: str) -> pd.DataFrame:
    """The frame with the task as its first column."""
    frame = frame.copy()
    frame.insert(0, "task", task)
    return frame


def share_of_base(effects: UnitTable, base: UnitTable, *, seed: int) -> Intervals:
    """Effects as shares of the base run's mean: a ratio of means with its 95 % cluster bootstrap, by cell.

    NaN where the base run is not shown to be above 0: a share of nothing says nothing.
    """
    ratio = cluster_bootstrap(effects, per=base, seed=seed)
    nothing = cluster_bootstrap(base, seed=seed).low <= 0  # an interval that is not known says nothing about it
    return Intervals(*(np.where(nothing, np.nan, each) for each in (ratio.estimate, ratio.low, ratio.high)))


def shares(examples: pd.DataFrame, row: pd.Series, *, minimum: float, seed: int) -> pd.DataFrame:
    """A head's effect on one task as a ``share`` of the ``base`` run's mean (-1 is all of it): one row, ``SHARES``.

    `examples` and `row` are the dossier's of this head and task; `minimum` is the smallest share that counts.
    """
    effects, base = (UnitTable.from_frame(examples, name, by=CELL) for name in ("effect", "base"))
    share = share_of_base(effects, base, seed=seed)
    found = {name: row[name] for name in ("metric", "effect", "effect_low", "effect_high")}
    found |= {"base": float(estimates(base)[0]), "minimum": minimum}
    found |= {"share": share.estimate[0], "share_low": share.low[0], "share_high": share.high[0]}
    found |= {"n_units": int(effects.n_units[0]), "n_clusters": int(effects.n_clusters[0])}
    return pd.DataFrame([found])[list(SHARES)]


def halves(examples: pd.DataFrame, row: pd.Series, *, seed: int) -> pd.DataFrame:
    """Excess attention and effect of ablation in two random halves of a task's clusters, columns ``HALVES``.

    An estimate ``passes`` where it reaches the ``minimum`` of the whole, an effect in the direction that it has on the
    whole. Evidence on fewer than two clusters has no row. Halves describe and test nothing: the whole has been seen.
    """
    rows = []
    for evidence, column in (("attention", "excess"), ("effect", "effect")):
        measured = examples[examples[column].notna()]
        clusters = sorted(measured["cluster"].unique())
        if len(clusters) < 2:
            continue
        first = np.random.default_rng(seed).permutation(clusters)[: len(clusters) // 2]
        sign, minimum = np.sign(row["effect"]) if evidence == "effect" else 1.0, row[f"min_{evidence}"]
        for half, inside in ((1, True), (2, False)):
            table = UnitTable.from_frame(measured[measured["cluster"].isin(first) == inside], column, by=CELL)
            found = cluster_bootstrap(table, seed=seed)
            estimate, low, high = (float(each[0]) for each in (found.estimate, found.low, found.high))
            passes = bool(sign * estimate >= minimum)
            counts = (int(table.n_units[0]), int(table.n_clusters[0]))
            rows.append((evidence, half, estimate, low, high, minimum, passes, *counts))
    return pd.DataFrame(rows, columns=list(HALVES))


@dataclass(frozen=True)
class Compared:
    """All heads under all kinds of replacement on one task; `refused` has the kinds that it cannot provide, and why."""

    comparison: ReplacementComparison
    agreement: pd.DataFrame
    effects: pd.DataFrame
    refused: Mapping[ReplacementName, str]

    def of(self, head: Head, seed: int) -> pd.DataFrame:
        """A head under every kind, one row a kind, columns ``REPLACEMENTS``.

        ``p_adjusted`` is family-wise over the heads, ``rank`` 1 the largest drop of the model's ``n_heads``; a kind
        that is refused has NaN and its ``reason``.
        """
        examples = of_head(self.comparison.examples, head)
        effects, base = (UnitTable.from_frame(examples, name, by=("replacement",)) for name in ("effect", "base"))
        share = share_of_base(effects, base, seed=seed)
        columns = {"share": share.estimate, "share_low": share.low, "share_high": share.high}
        own = of_head(self.effects, head).set_index("replacement").join(pd.DataFrame(columns, index=effects.cells))
        frame = own.reindex(list(KINDS)).rename_axis("replacement").reset_index()
        return frame.assign(reason=[self.refused.get(kind, "") for kind in KINDS])[list(REPLACEMENTS)]


def compare_kinds(model: Any, task: Task, asked: HeadsOptions, progress: Progress | None = None) -> Compared:
    """Every head under every kind of replacement that the task can provide.

    Raises:
        InputError: Fewer than two kinds are possible.
        KeyboardInterrupt: The sweep was interrupted: some of the examples are no evidence on the task.
    """

    def compare(kinds: Any) -> ReplacementComparison:
        how: Any = {"replacements": kinds, "min_effect": asked.min_effect, "alpha": asked.alpha}
        return compare_replacements(model, task, **how, seed=asked.seed, draws=asked.draws, progress=progress)

    refused: dict[ReplacementName, str] = {}
    try:
        found = compare(KINDS)
    except NoRoomError:
        raise
    except InputError:
        refused = _refused(model, task, asked.seed)
        if not refused or len(KINDS) - len(refused) < 2:
            raise
        found = compare([each for each in KINDS if each not in refused])
    if not found.provenance["complete"]:
        raise KeyboardInterrupt
    effects = found.summary()
    by_kind = effects.groupby("replacement")["effect"]
    effects = effects.assign(rank=by_kind.rank(method="min").astype(int), n_heads=by_kind.transform("size"))
    return Compared(found, found.agreement()[list(AGREEMENT)], effects, refused)


def _refused(model: Any, task: Task, seed: int) -> dict[ReplacementName, str]:
    """The kinds that the task cannot provide, with the reason."""
    refused: dict[ReplacementName, str] = {}
    for kind in KINDS:
        try:
            make_replacement(kind, model, task, sites=[Site("z", 0)], draws=1, seed=seed)
        except InputError as error:
            refused[kind] = str(error)
    return refused


def check_report(report: HeadsReport, model: Any, tasks: Sequence[Task]) -> None:
    """Refuse no task or one twice, and a dossier of another model, without one of the tasks, or of other items."""
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
