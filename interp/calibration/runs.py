"""How is the dossier tried on many models? One job a model, each kept as soon as it is done.

A job is a model of known truth and its tasks; its result is the dossier's verdicts beside the truth. Jobs are
independent and deterministic, so they run in as many processes as wanted, and those that a folder holds already are
not run again; unless the source that verdicts depend on has changed since, for then they may have, too.
"""

import hashlib
import os
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Literal

import pandas as pd

from interp.calibration.drawing import STANDARD, Difficulty, Plan, draw
from interp.calibration.language import TASKS, load
from interp.calibration.nulls import NULLS, NullKind, null_case
from interp.calibration.planted import Shape
from interp.calibration.trained import SINGLE, single_head
from interp.interventions.sweep import Progress
from interp.methods.dossier import HeadsReport, heads
from interp.methods.verdict import States, judge
from interp.model.transformer import HookedTransformer
from interp.runs.processes import spread
from interp.tasks.task import Task

Kind = Literal["planted", "single head"] | NullKind
ALPHA = 0.05
"""Error rate that the dossier is asked for."""
APART = 1_000
"""Between the seeds of kinds of models, so that no two nulls are of one model or of the same prompts."""
NO_PART = ("report", "cli")
"""Folders of this package on which no verdict depends."""
KEPT = (
    *("layer", "head", "task", "verdict", "reason", "attention_state", "effect_state", "representation"),
    *("related_state", "related_effect"),
    *("specificity", "partners", "attention_p", "effect_p", "probe_p", "excess", "effect", "minimum_effect"),
    *("n_to_decide", "undecidable", "accuracy_base"),
)
"""Of ``HeadsReport.frame``, in a job's result."""


@dataclass(frozen=True)
class Job:
    """A model to be judged.

    Attributes:
        kind: A planted model, a trained one of a single head, or a null.
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
            One row per layer, head and task: the job's fields, ``KEPT``, ``ungated`` (the verdict if nobody had asked
            whether the model can do the task), ``role`` and ``truth`` (of a null ``none`` whatever stands there),
            ``share`` (of the answer, that a tracker writes), ``twin`` (who shares its work) and ``seconds``.
        """
        started = time.perf_counter()
        plan = draw(self.seed, shape=self.shape, difficulty=self.difficulty)
        model, tasks = _case(self.kind, plan)
        with warnings.catch_warnings():
            # Heads that write nothing that a task reads are planted on purpose.
            warnings.filterwarnings("ignore", category=RuntimeWarning)
            report = heads(model, tasks, seed=self.seed, alpha=ALPHA)
        found = report.frame[list(KEPT)].assign(ungated=ungated(report))
        found = found.join(_truth(plan, found, self.kind))
        asked = {"kind": self.kind, "seed": self.seed, **asdict(self.difficulty)}
        asked["tracker_share"] = asked.pop("share")
        shape = {field.name: getattr(model.cfg, field.name) for field in fields(Shape)}
        return found.assign(**asked, **shape, seconds=time.perf_counter() - started)


def _case(kind: Kind, plan: Plan) -> tuple[HookedTransformer, list[Task]]:
    if kind == "planted":
        return plan.model(), plan.tasks()
    if kind == "single head":
        return single_head(plan.seed), [load(name, n=plan.difficulty.n, seed=plan.seed) for name in TASKS]
    return null_case(kind, plan)


def ungated(report: HeadsReport) -> list[str]:
    """The verdicts if nobody had asked whether the model can do the tasks."""
    return [
        judge(
            States(
                row["attention_state"],
                row["effect_state"],
                row["representation"],
                row["specificity"],
                row["related_state"],
                tuple(row["partners"].split()),
            ),
            joint_q=row["joint_q"],
            tracks_q=row["tracks_q"],
            alpha=ALPHA,
        )[0]
        for row in report.frame.to_dict("records")
    ]


def _truth(plan: Plan, found: pd.DataFrame, kind: Kind) -> pd.DataFrame:
    """Role, right verdict, share and twin of every row's head."""
    truth, placed = plan.truth(), {(each.layer, each.head): each for each in plan.heads}
    twins = {
        (one.layer, one.head): f"{other.layer}.{other.head}"
        for one in plan.heads
        for other in plan.heads
        if one.role == other.role == "twin" and one.task == other.task and one != other
    }
    rows: list[tuple[str, str, float, str]] = []
    for layer, head, task in zip(found["layer"], found["head"], found["task"], strict=True):
        if kind in ("trained", "untrained", "single head"):
            rows.append((kind, SINGLE[task] if kind == "single head" else "none", 1.0, ""))
            continue
        role, right = truth[layer, head, task]
        share = placed[layer, head].share if role == "tracker" else 1.0
        rows.append((role, right if kind == "planted" else "none", share, twins.get((layer, head), "")))
    return pd.DataFrame(rows, columns=["role", "truth", "share", "twin"], index=found.index)


def run_jobs(
    jobs: Sequence[Job], *, folder: Path | None = None, processes: int = 1, progress: Progress | None = None
) -> pd.DataFrame:
    """Run the jobs that are not done yet.

    Args:
        jobs: Which; doubles count once.
        folder: Where each job's result is kept, and looked for; None for nowhere.
        processes: That run at the same time, each with one thread; 1 runs all here, with torch's threads.
        progress: Called with (jobs done, jobs in all).

    Returns:
        Their results one below the other, in the order of `jobs`.

    Raises:
        KeyboardInterrupt: Interrupted; the folder holds the jobs that are done.
    """
    files = {job: None if folder is None else _file(folder, job) for job in jobs}
    done = {job: pd.read_parquet(file) for job, file in files.items() if file is not None and file.exists()}
    missing = {job: file for job, file in files.items() if job not in done}
    if progress is not None:
        progress(len(done), len(files))
    asked = list(missing.items())
    for number, frame in spread(_run, asked, processes):
        done[asked[number][0]] = frame
        if progress is not None:
            progress(len(done), len(files))
    return pd.concat([done[job].assign(job=job.name) for job in files], ignore_index=True)


def _run(job: Job, file: Path | None) -> pd.DataFrame:
    """Keep it where it was computed: who asked may be gone by then."""
    frame = job.run()
    if file is not None:
        _keep(frame, file)
    return frame


@cache
def source_hash() -> str:
    """SHA-256 of the modules that verdicts depend on, and of the versions that they compute with; eight digits."""
    package = Path(__file__).parents[1]
    modules = (path.relative_to(package) for path in sorted(package.rglob("*.py")))
    text = " ".join(version(name) for name in ("torch", "numpy", "scipy", "pandas"))
    text += "".join(f"{each}\n{(package / each).read_text()}" for each in modules if each.parts[0] not in NO_PART)
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _file(folder: Path, job: Job) -> Path:
    return folder / f"{job.name}-{source_hash()}.parquet"


def _keep(frame: pd.DataFrame, file: Path) -> None:
    """Whole or not at all."""
    draft = file.with_suffix(f".{os.getpid()}")
    frame.to_parquet(draft, index=False)
    os.replace(draft, file)


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
    """Trained models of a single head."""
    return [Job("single head", seed + number, difficulty) for number in range(runs)]
