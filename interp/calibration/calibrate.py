"""How often are the dossier's verdicts right? Measured on hundreds of models whose truth is known.

1. **Planted**: models with trackers and decoys at random places: recall, false ``tracks``, each decoy's verdict.
2. **Special**: trained models of which one head sees, some with wrong tags; planted ones in which the feature is
   copied, and groups that stand in for each other.
3. **Single heads**: trained models of one head: what such a model can do, that head must do.
4. **Nulls**: four kinds of models on which nothing tracks: false claims.
5. **Half**: the planted models again with half the examples: what is lost must be undecided, not wrong.
6. **Curves**: planted models that are harder in one respect: how recall falls.

Each model is a job: it is judged, and its verdicts are kept beside the truth. Jobs are independent and deterministic,
so they run in any number of processes. A kept job is run again only if the source that verdicts depend on has changed.
"""

import hashlib
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from os import PathLike
from typing import Any, ClassVar, Literal, get_args

import pandas as pd
import torch

from interp.arguments import whole_number
from interp.calibration import controls, rates
from interp.calibration.controls import NULLS, NullKind
from interp.calibration.language import TASKS, Crossed, load, load_crossed
from interp.calibration.planted import Shape
from interp.calibration.random_models import PHENOMENA_TASKS, STANDARD, Difficulty, Plan, check_shape, draw
from interp.calibration.roles import TRUTH
from interp.claims.rules import Verdict
from interp.errors import InputError
from interp.interventions.sweep import Progress
from interp.methods.dossier import heads
from interp.model.devices import documented
from interp.result import Result
from interp.runs.key import code_hash
from interp.runs.run import Run, as_run, kept_frame

Special = Literal[
    "copied",
    "group of 2",
    "group of 3",
    "group of 4",
    "one that sees",
    "one that sees, grouped",
    "one that sees, crossed",
    "one that sees, crossed and grouped",
]
"""Models with something that the others lack: see ``random_models.py`` and ``controls.py``."""
SPECIAL: tuple[Special, ...] = get_args(Special)
Kind = Literal["planted", "single head"] | NullKind | Special
KINDS: tuple[Kind, ...] = ("planted", *NULLS, *SPECIAL, "single head")
ALPHA = 0.05
"""Error rate that is asked of the dossier."""
APART = 1_000
"""Distance between the seeds of kinds of models, so that no two nulls share a model or prompts."""
WRONG_TAG = "wrong tag"
"""The role of a head that looks at a word which is tagged wrongly."""
WRONG_TASKS = ("number at the person", "gender at the noun")
KEPT = (
    *("layer", "head", "task", "verdict", "reason", "attention_state", "effect_state", "representation"),
    *("resample_state", "mean_state", "exchange_state", "exchange", "min_exchange", "feature", "specificity"),
    *("partners", "group_effect", "group_share", "excess", "effect", "mean_effect", "min_effect"),
    *("n_to_decide", "undecidable", "accuracy_base"),
)
"""Columns of ``HeadsReport.summary()`` in a job's result."""
CURVES: Mapping[str, Sequence[int | float]] = {
    "sharpness": (0.15, 0.4),
    "noise": (2.0,),
    "share": (0.075, 0.108, 0.131, 0.188, 0.24),
    "glance": (0.038, 0.061, 0.115, 0.154),
    "n": (50, 70),
}
"""By field of ``Difficulty``, the values that are tried beside the standard one, on the first of the planted models.
Ablating a tracker of these shares costs .5, .8, 1, 1.5 and 2 times the minimum; the exchange turns the answer of these
glances by .5, .8, 1.5 and 2 times the minimum (from model to model a fifth more or less)."""


@dataclass(frozen=True)
class Size:
    """Numbers of models.

    Attributes:
        planted: Planted ones.
        special: Of each kind in ``SPECIAL`` but groups.
        groups: Of each size of a group that stands in for each other.
        single: Trained ones of a single head.
        trained: Nulls that are trained.
        nulls: Of each other kind of null.
        halves: Planted ones that are judged again with half the examples.
        curve: For each value of ``CURVES``.
    """

    planted: int
    special: int
    groups: int
    single: int
    trained: int
    nulls: int
    halves: int
    curve: int


FULL = Size(planted=200, special=30, groups=100, single=30, trained=160, nulls=80, halves=50, curve=30)
QUICK = Size(planted=12, special=1, groups=2, single=4, trained=8, nulls=4, halves=6, curve=0)


@dataclass(frozen=True)
class Job:
    """A model to be judged: of one `kind`, `shape` (None for a random one) and `difficulty` of finding its heads."""

    kind: Kind
    seed: int
    difficulty: Difficulty = STANDARD
    shape: Shape | None = None

    @property
    def name(self) -> str:
        """A file name, different for every job."""
        asked = "".join(f"-{field.name}{getattr(self.difficulty, field.name)}" for field in fields(Difficulty))
        shape = "" if self.shape is None else "-" + "x".join(str(each) for each in asdict(self.shape).values())
        return f"{self.kind.replace(' ', '_')}{asked}{shape}-{self.seed}"

    def run(self) -> pd.DataFrame:
        """Write or train the model, judge its heads, and put the truth beside the verdicts.

        One row per layer, head and task: the job's fields, ``KEPT``, ``role`` and ``truth`` (``none`` for every head of
        a null), ``share`` (of the answer, that a tracker writes) and ``seconds``.
        """
        started = time.perf_counter()
        plan = draw(self.seed, shape=self.shape, difficulty=self.difficulty, special=self.kind)
        model, *reports = _case(self.kind, plan)
        with warnings.catch_warnings():
            # Heads that write nothing that a task reads are planted on purpose.
            warnings.filterwarnings("ignore", category=RuntimeWarning)
            frames = [heads(model, tasks, seed=self.seed, alpha=ALPHA, anyway=True).summary() for tasks in reports]
        found = pd.concat(frames, ignore_index=True)[list(KEPT)]
        found = found.join(_truth(plan, found, self.kind))
        asked = {"kind": self.kind, "seed": self.seed, **asdict(self.difficulty)}
        asked["tracker_share"] = asked.pop("share")
        shape = {field.name: getattr(model.config, field.name) for field in fields(Shape)}
        return found.assign(**asked, **shape, seconds=time.perf_counter() - started)


def _case(kind: Kind, plan: Plan) -> tuple[Any, ...]:
    """The model, and the tasks of each report; wrongly tagged tasks have a report of their own."""
    n, seed = plan.difficulty.n, plan.seed
    if kind == "single head":
        return controls.single_head(seed), [load(name, n=n, seed=seed) for name in TASKS]
    if kind == "copied":
        ordered, others = load("agreement", n=n, seed=seed, ordered=True), plan.tasks()[1:]
        return plan.model(), [ordered, *others], [controls.at_attractors(ordered), *others]
    if kind in NULLS:
        return controls.null_case(kind, plan)
    if not kind.startswith("one that sees"):
        return plan.model(), plan.tasks()
    is_crossed = "crossed" in kind
    model = controls.seeing_model(seed, is_crossed=is_crossed, grouped="grouped" in kind)
    if not is_crossed:
        return model, [load(name, n=n, seed=seed) for name in PHENOMENA_TASKS]
    tags: list[Crossed] = list(get_args(Crossed))
    reports = (zip(tags, own, strict=True) for own in (tags, tags[::-1]))
    return model, *([load_crossed(*each, n=n, seed=seed) for each in asked] for asked in reports)


def _truth(plan: Plan, found: pd.DataFrame, kind: Kind) -> pd.DataFrame:
    """Role, right verdict and share of the head in each row."""
    truth, shares = plan.truth(), {(each.layer, each.head): each.share for each in plan.heads}

    def of(layer: int, head: int, task: Any) -> tuple[str, Verdict, float]:
        if kind in ("single head", "trained", "untrained"):
            return kind, controls.SINGLE[task] if kind == "single head" else "none", 1.0
        if kind.startswith("one that sees"):
            if head != controls.seeing_head(plan.seed):
                return "blind", "none", 1.0
            return (WRONG_TAG, "attends and causal", 1.0) if task in WRONG_TASKS else ("one that sees", "tracks", 1.0)
        if task.endswith(controls.AT_ATTRACTORS):
            is_reader = truth[layer, head, "agreement"][0] == "copy reader"
            return (WRONG_TAG, TRUTH["copy reader"], 1.0) if is_reader else ("elsewhere", "none", 1.0)
        role, right = truth[layer, head, task]
        return role, "none" if kind in NULLS else right, shares[layer, head] if role == "tracker" else 1.0

    rows = [of(*cell) for cell in found[["layer", "head", "task"]].itertuples(index=False, name=None)]
    return pd.DataFrame(rows, columns=["role", "truth", "share"], index=found.index)


def jobs_of(
    kind: Kind, n: int, *, seed: int = 0, difficulty: Difficulty = STANDARD, shape: Shape | None = None
) -> list[Job]:
    """The first `n` models of a kind; no two kinds have the same seeds."""
    first = seed + APART * KINDS.index(kind)
    return [Job(kind, first + number, difficulty, shape) for number in range(n)]


def run_jobs(jobs: Sequence[Job], *, run: Run | None = None, progress: Progress | None = None) -> pd.DataFrame:
    """The results of all jobs one below the other, each with its ``job``; those that are not kept are run, each once.

    Interrupted, or where they cannot be kept (OutputError), the jobs that are done are kept.
    """
    named = {job.name: job for job in jobs}
    asked = {"kind": "calibration", "jobs": len(named), "alpha": ALPHA, "threads": torch.get_num_threads()}
    asked["jobs_hash"] = hashlib.sha256("\n".join(named).encode()).hexdigest()

    return kept_frame(run, asked, Job.run, named, lambda done: progress(done, len(named)) if progress else None)


@dataclass(frozen=True, eq=False, repr=False)
class Calibration(Result):
    """Verdicts beside the truth, and the rates that follow.

    Attributes:
        examples: Of every job, layer, head and task, as of ``Job.run``, with ``part``: ``planted``, ``special``,
            ``single head``, ``null``, ``half`` or ``curve NAME``.
        provenance: How the numbers were made.
        false_discoveries: This and the following tables are those of the functions of the same name in ``rates``.
        recall: Of planted models.
        false_tracks: Of planted models.
        decoys: Of planted models.
        special: Of special ones.
        single_heads: Of trained models with one head.
        confusion: Of planted models.
        halves: As of ``rates.transitions``.
        curves: By field of ``Difficulty``, as of ``rates.curve``.
    """

    false_discoveries: pd.DataFrame
    recall: pd.DataFrame
    false_tracks: pd.DataFrame
    decoys: pd.DataFrame
    special: pd.DataFrame
    single_heads: pd.DataFrame
    confusion: pd.DataFrame
    halves: pd.DataFrame
    curves: Mapping[str, pd.DataFrame]

    shown_by: ClassVar[str] = "calibration"

    def summary(self) -> pd.DataFrame:
        """One row a kind of null and claim: how many of its models have a head with a false one."""
        return self.false_discoveries

    def __repr__(self) -> str:
        found, wrong = self.recall.iloc[1], self.false_discoveries.iloc[0]
        recall = f"recall {found['count']} of {found['of']}"
        return f"Calibration({recall}, false tracks in {wrong['count']} of {wrong['of']} nulls)"


@documented
def calibrate(
    size: Size = FULL,
    *,
    n: int = STANDARD.n,
    shape: Shape | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    run: Run | str | PathLike[str] | None = None,
) -> Calibration:
    """Measure how often the dossier's verdicts are right.

    Args:
        size: Numbers of models.
        n: Units of a task.
        shape: Of the models; None for one at random for each.
        seed: Of the first model of each kind.
        progress: Called with (models done, models in all).
        run: Where each model's verdicts are kept and found again: a folder of runs; or an ``interp.Run``, whose
            executor judges several models at the same time. None to keep nothing.

    Returns:
        Each model's verdicts beside the truth; ``summary()`` has the rates that follow, as shares with exact 95 %
        intervals.

    Raises:
        InputError: Numbers that are none, or a shape too small for what is planted.
        OutputError: A result cannot be kept.
        KeyboardInterrupt: Interrupted; the models that are done are kept.

    Examples:
        >>> from interp.calibration.calibrate import QUICK, calibrate
        >>> found = calibrate(QUICK, run="runs")  # minutes  # doctest: +SKIP
    """
    if not isinstance(size, Size) or not isinstance(shape, Shape | None):
        raise InputError(f"expected a Size, and a Shape or None, got size={size!r:.40} and shape={shape!r:.40}")
    standard = replace(STANDARD, n=whole_number("n", n, least=2, expected="a whole number of units, at least 2"))
    if min(size.planted, size.special, size.groups, size.single, size.trained, size.nulls) < 1:
        raise InputError(f"size: expected a model of each kind, at least, got {size}")
    if shape is not None:
        check_shape(shape)
    jobs = _jobs_by_part(size, standard, shape, seed)
    frame = run_jobs([job for own in jobs.values() for job in own], run=as_run(run), progress=progress)
    parts = {part: frame[frame["job"].isin([job.name for job in own])] for part, own in jobs.items()}
    planted = parts["planted"]
    harder = {name: parts[f"curve {name}"] for name in CURVES if f"curve {name}" in parts}
    return Calibration(
        examples=pd.concat([own.assign(part=part) for part, own in parts.items()], ignore_index=True),
        false_discoveries=rates.false_discoveries(parts["null"]),
        recall=rates.recall(planted),
        false_tracks=rates.false_tracks(planted),
        decoys=rates.decoys(planted),
        special=rates.special(parts["special"]),
        single_heads=rates.single_heads(parts["single head"]),
        confusion=rates.confusion(planted),
        halves=rates.transitions(planted, parts["half"]),
        curves={
            name: rates.curve(pd.concat([planted, own[~own["job"].isin(planted["job"])]]), name)
            for name, own in harder.items()
        },
        provenance={
            **{"size": vars(size), "n": n, "shape": None if shape is None else vars(shape), "seed": seed},
            **{"source": code_hash(), "alpha": ALPHA, "standard": vars(standard)},
        },
    )


def _jobs_by_part(size: Size, standard: Difficulty, shape: Shape | None, seed: int) -> dict[str, list[Job]]:
    def jobs(kind: Kind, number: int, **changes: Any) -> list[Job]:
        return jobs_of(kind, number, seed=seed, difficulty=replace(standard, **changes), shape=shape)

    special = {kind: size.groups if kind.startswith("group") else size.special for kind in SPECIAL}
    nulls = {kind: size.trained if kind == "trained" else size.nulls for kind in NULLS}
    found = {
        "planted": jobs("planted", size.planted),
        "special": [job for kind, number in special.items() for job in jobs(kind, number)],
        "single head": jobs_of("single head", size.single, seed=seed, difficulty=standard),  # it has a shape of its own
        "null": [job for kind, number in nulls.items() for job in jobs(kind, number)],
        "half": jobs("planted", size.halves, n=standard.n // 2),
    }
    for name, values in CURVES.items() if size.curve else ():
        found[f"curve {name}"] = [job for value in values for job in jobs("planted", size.curve, **{name: value})]
    return found
