"""How is the dossier tried on many models? One job a model, each kept as soon as it is done.

A job is a model of known truth and its tasks; its result is the dossier's verdicts beside the truth. Jobs are
independent and deterministic, so they run in as many processes as wanted, and those that are kept already are not run
again; unless the source that verdicts depend on has changed since, for then they may have, too.
"""

import hashlib
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args

import pandas as pd
import torch

from interp.calibration.drawing import PHENOMENA_TASKS, STANDARD, Difficulty, Plan, draw
from interp.calibration.language import TASKS, Crossed, load, load_crossed
from interp.calibration.nulls import AT_ATTRACTORS, NULLS, NullKind, at_attractors, null_case
from interp.calibration.planted import Shape
from interp.calibration.roles import TRUTH
from interp.calibration.trained import SINGLE, seeing_head, seeing_model, single_head
from interp.claims.rules import Verdict
from interp.interventions.sweep import Progress
from interp.methods.dossier import heads
from interp.runs.frames import kept_frame
from interp.runs.run import Run

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
"""Models with something that the others lack: see ``drawing.py`` and ``trained.py``."""
SPECIAL: tuple[Special, ...] = get_args(Special)
Kind = Literal["planted", "single head"] | NullKind | Special
ALPHA = 0.05
"""Error rate that the dossier is asked for."""
APART = 1_000
"""Between the seeds of kinds of models, so that no two nulls are of one model or of the same prompts."""
WRONG_TAG = "wrong tag"
"""The role of a head that looks at a word which is tagged wrongly."""
WRONG_TASKS = ("number at the person", "gender at the noun")
KEPT = (
    *("layer", "head", "task", "verdict", "reason", "attention_state", "effect_state", "representation"),
    *("resample_state", "mean_state", "exchange_state", "exchange", "exchange_minimum", "feature", "specificity"),
    *("partners", "group_effect", "group_share", "excess", "effect", "mean_effect", "minimum_effect"),
    *("n_to_decide", "undecidable", "accuracy_base"),
)
"""Of ``HeadsReport.frame``, in a job's result."""


@dataclass(frozen=True)
class Job:
    """A model to be judged.

    Attributes:
        kind: A planted model, a trained one of a single head, a null, or one of ``SPECIAL``.
        seed: Of everything.
        difficulty: Of finding its heads.
        shape: Of the model; None for one at random.
    """

    kind: Kind
    seed: int
    difficulty: Difficulty = STANDARD
    shape: Shape | None = None

    @property
    def name(self) -> str:
        """Tells it from any other job; a file's name."""
        asked = "".join(f"-{field.name}{getattr(self.difficulty, field.name)}" for field in fields(Difficulty))
        shape = "" if self.shape is None else "-" + "x".join(str(each) for each in asdict(self.shape).values())
        return f"{self.kind.replace(' ', '_')}{asked}{shape}-{self.seed}"

    def run(self) -> pd.DataFrame:
        """Write or train the model, judge its heads, and put the truth beside the verdicts.

        Returns:
            One row per layer, head and task: the job's fields, ``KEPT``, ``role`` and ``truth`` (of a null ``none``
            whatever stands there), ``share`` (of the answer, that a tracker writes) and ``seconds``.
        """
        started = time.perf_counter()
        plan = draw(self.seed, shape=self.shape, difficulty=self.difficulty, special=self.kind)
        model, *reports = _case(self.kind, plan)
        with warnings.catch_warnings():
            # Heads that write nothing that a task reads are planted on purpose.
            warnings.filterwarnings("ignore", category=RuntimeWarning)
            frames = [heads(model, tasks, seed=self.seed, alpha=ALPHA).frame for tasks in reports]
        frame = pd.concat(frames, ignore_index=True)
        found = frame[list(KEPT)]
        found = found.join(_truth(plan, found, self.kind))
        asked = {"kind": self.kind, "seed": self.seed, **asdict(self.difficulty)}
        asked["tracker_share"] = asked.pop("share")
        shape = {field.name: getattr(model.config, field.name) for field in fields(Shape)}
        return found.assign(**asked, **shape, seconds=time.perf_counter() - started)


def _case(kind: Kind, plan: Plan) -> tuple[Any, ...]:
    """The model, and the tasks of one report or more; those that are tagged wrongly have one of their own."""
    n, seed = plan.difficulty.n, plan.seed
    if kind == "single head":
        return single_head(seed), [load(name, n=n, seed=seed) for name in TASKS]
    if kind == "copied":
        ordered, others = load("agreement", n=n, seed=seed, ordered=True), plan.tasks()[1:]
        return plan.model(), [ordered, *others], [at_attractors(ordered), *others]
    if kind.startswith("one that sees"):
        is_crossed = "crossed" in kind
        model = seeing_model(seed, is_crossed=is_crossed, grouped="grouped" in kind)
        if not is_crossed:
            return model, [load(name, n=n, seed=seed) for name in PHENOMENA_TASKS]
        one, other = get_args(Crossed)
        tags = ([(one, one), (other, other)], [(one, other), (other, one)])
        return model, *([load_crossed(*each, n=n, seed=seed) for each in asked] for asked in tags)
    if kind not in NULLS:
        return plan.model(), plan.tasks()
    return null_case(kind, plan)


def _truth(plan: Plan, found: pd.DataFrame, kind: Kind) -> pd.DataFrame:
    """Role, right verdict and share of every row's head."""
    truth, shares = plan.truth(), {(each.layer, each.head): each.share for each in plan.heads}
    rows: list[tuple[str, Verdict, float]] = []
    for layer, head, task in zip(found["layer"], found["head"], found["task"], strict=True):
        if kind == "single head":
            rows.append((kind, SINGLE[task], 1.0))
        elif kind in ("trained", "untrained"):
            rows.append((kind, "none", 1.0))
        elif kind.startswith("one that sees"):
            rows.append((*_of_seeing(plan.seed, head, task), 1.0))
        elif task.endswith(AT_ATTRACTORS):
            is_reader = truth[layer, head, "agreement"][0] == "copy reader"
            rows.append((WRONG_TAG, TRUTH["copy reader"], 1.0) if is_reader else ("elsewhere", "none", 1.0))
        else:
            role, right = truth[layer, head, task]
            share = shares[layer, head] if role == "tracker" else 1.0
            rows.append((role, "none" if kind in NULLS else right, share))
    return pd.DataFrame(rows, columns=["role", "truth", "share"], index=found.index)


def _of_seeing(seed: int, head: int, task: str) -> tuple[str, Verdict]:
    """Role and right verdict of a head of a model in which one sees."""
    if head != seeing_head(seed):
        return "blind", "none"
    return (WRONG_TAG, "attends and causal") if task in WRONG_TASKS else ("one that sees", "tracks")


def run_jobs(jobs: Sequence[Job], *, run: Run | None = None, progress: Progress | None = None) -> pd.DataFrame:
    """Run the jobs that are not done yet.

    Args:
        jobs: Which; doubles count once.
        run: Where each job's result is kept, and who does them; None for nowhere, and this process.
        progress: Called with (jobs done, jobs in all).

    Returns:
        Their results one below the other, in the order of `jobs`, each with its ``job``.

    Raises:
        KeyboardInterrupt: Interrupted; the jobs that are done are kept.
        OutputError: They cannot be kept.
    """
    named = {job.name: job for job in jobs}
    asked = {"kind": "calibration", "jobs": len(named), "alpha": ALPHA, "threads": torch.get_num_threads()}
    asked["jobs_hash"] = hashlib.sha256("\n".join(named).encode()).hexdigest()

    def tell(done: int) -> None:
        if progress is not None:
            progress(done, len(named))

    return kept_frame(run, asked, Job.run, named, tell)


def null_jobs(
    runs: Mapping[NullKind, int], *, seed: int = 0, difficulty: Difficulty = STANDARD, shape: Shape | None = None
) -> list[Job]:
    """Nulls, as many of each kind as asked for."""
    first = {kind: seed + APART * place for place, kind in enumerate(NULLS, start=1)}
    return [Job(kind, first[kind] + number, difficulty, shape) for kind, n in runs.items() for number in range(n)]


def planted_jobs(
    runs: int, *, seed: int = 0, difficulty: Difficulty = STANDARD, shape: Shape | None = None
) -> list[Job]:
    """Planted models."""
    return [Job("planted", seed + number, difficulty, shape) for number in range(runs)]


def single_jobs(runs: int, *, seed: int = 0, difficulty: Difficulty = STANDARD) -> list[Job]:
    """Trained models of a single head; the tasks are not those of planted models."""
    first = seed + APART * (1 + len(NULLS) + len(SPECIAL))
    return [Job("single head", first + number, difficulty) for number in range(runs)]


def special_jobs(
    kind: Special, runs: int, *, seed: int = 0, difficulty: Difficulty = STANDARD, shape: Shape | None = None
) -> list[Job]:
    """Models of one of ``SPECIAL``; no two kinds have the same seeds."""
    first = seed + APART * (1 + len(NULLS) + SPECIAL.index(kind))
    return [Job(kind, first + number, difficulty, shape) for number in range(runs)]
