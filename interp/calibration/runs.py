"""How is the dossier tried on many models? One job a model, each kept as soon as it is done.

A job is a model of known truth and its tasks; its result is the dossier's verdicts beside the truth. Jobs are
independent and deterministic, so they run in as many processes as wanted, and those that a folder holds already are
not run again; unless this package's source has changed since, for then its verdicts may have, too.
"""

import hashlib
import multiprocessing
import os
import signal
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, fields
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Literal

import pandas as pd
import torch

from interp.calibration.drawing import STANDARD, Difficulty, Plan, draw
from interp.calibration.language import TASKS, load
from interp.calibration.nulls import NULLS, NullKind, null_case
from interp.calibration.planted import Shape
from interp.calibration.trained import SHAPE, SINGLE, single_head
from interp.interventions.sweep import Progress
from interp.methods.dossier import HeadsReport, heads
from interp.methods.specificity import specificities
from interp.methods.verdict import States, judge
from interp.model.transformer import HookedTransformer
from interp.tasks.task import Task

Kind = Literal["planted", "single head"] | NullKind
KEPT = (
    *("layer", "head", "task", "verdict", "reason", "attention_state", "effect_state", "representation"),
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
        alpha: Error rate that the dossier is asked for.
    """

    kind: Kind
    seed: int
    difficulty: Difficulty = STANDARD
    shape: Shape | None = None
    alpha: float = 0.05

    @property
    def name(self) -> str:
        """Tells it from any other job; a file's name."""
        asked = "".join(f"-{field.name}{getattr(self.difficulty, field.name)}" for field in fields(Difficulty))
        shape = "" if self.shape is None else "-" + "x".join(str(each) for each in asdict(self.shape).values())
        return f"{self.kind.replace(' ', '_')}{asked}{shape}-alpha{self.alpha}-{self.seed}"

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
            report = heads(model, tasks, seed=self.seed, alpha=self.alpha)
        found = report.frame[list(KEPT)].assign(ungated=ungated(report, self.alpha))
        found = found.join(_truth(plan, found, self.kind))
        asked = {"kind": self.kind, "seed": self.seed, **asdict(self.difficulty), "alpha": self.alpha}
        asked["tracker_share"] = asked.pop("share")
        shape = SHAPE if self.kind == "single head" else plan.shape
        return found.assign(**asked, **asdict(shape), seconds=time.perf_counter() - started)


def _case(kind: Kind, plan: Plan) -> tuple[HookedTransformer, list[Task]]:
    if kind == "planted":
        return plan.model(), plan.tasks()
    if kind == "single head":
        return single_head(plan.seed), [load(name, n=plan.difficulty.n, seed=plan.seed) for name in TASKS]
    return null_case(kind, plan)


def ungated(report: HeadsReport, alpha: float) -> list[str]:
    """The verdicts if nobody had asked whether the model can do the tasks, or whether there are clusters enough."""
    frame = report.frame.assign(undecidable="")
    frame["specificity"] = specificities(frame)
    return [
        judge(
            States(
                row["attention_state"],
                row["effect_state"],
                row["representation"],
                row["specificity"],
                tuple(row["partners"].split()),
            ),
            joint_q=row["joint_q"],
            tracks_q=row["tracks_q"],
            alpha=alpha,
        )[0]
        for row in frame.to_dict("records")
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
        processes: That run at the same time, each with one thread; 1 runs all here.
        progress: Called with (jobs done, jobs in all).

    Returns:
        Their results one below the other, in the order of `jobs`.

    Raises:
        KeyboardInterrupt: Interrupted; the folder holds the jobs that are done.
    """
    jobs = list(dict.fromkeys(jobs))
    done = {job: pd.read_parquet(_file(folder, job)) for job in jobs if folder and _file(folder, job).exists()}
    missing = [job for job in jobs if job not in done]
    several = processes > 1 and len(missing) > 1
    results = _in_processes(missing, processes, folder) if several else _one_by_one(missing, folder)
    if progress is not None:
        progress(len(done), len(jobs))
    for job, frame in results:
        done[job] = frame
        if progress is not None:
            progress(len(done), len(jobs))
    return pd.concat([done[job].assign(job=job.name) for job in jobs], ignore_index=True)


def _one_by_one(jobs: Sequence[Job], folder: Path | None) -> Iterator[tuple[Job, pd.DataFrame]]:
    for job in jobs:
        yield job, _run(job, folder)


def _run(job: Job, folder: Path | None) -> pd.DataFrame:
    """Keep it where it was computed: who asked may be gone by then."""
    frame = job.run()
    if folder is not None:
        _keep(frame, _file(folder, job))
    return frame


def _in_processes(jobs: Sequence[Job], processes: int, folder: Path | None) -> Iterator[tuple[Job, pd.DataFrame]]:
    context = multiprocessing.get_context("spawn")  # a fork would inherit torch's threads
    with ProcessPoolExecutor(processes, mp_context=context, initializer=_begin) as pool:
        futures = {pool.submit(_run, job, folder): job for job in jobs}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for who asked; the job in hand is done first
    torch.set_num_threads(1)


@cache
def source_hash() -> str:
    """SHA-256 of this package's modules and of the versions that they compute with; the first eight digits."""
    package = Path(__file__).parents[1]
    text = " ".join(version(name) for name in ("torch", "numpy", "scipy", "pandas"))
    text += "".join(f"{path.relative_to(package)}\n{path.read_text()}" for path in sorted(package.rglob("*.py")))
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _file(folder: Path, job: Job) -> Path:
    return folder / f"{job.name}-{source_hash()}.parquet"


def _keep(frame: pd.DataFrame, file: Path) -> None:
    """Whole or not at all."""
    draft = file.with_suffix(f".{os.getpid()}")
    frame.to_parquet(draft, index=False)
    os.replace(draft, file)


def null_jobs(runs: int, *, seed: int = 0, difficulty: Difficulty = STANDARD, shape: Shape | None = None) -> list[Job]:
    """As many nulls of every kind."""
    return [Job(kind, seed + number, difficulty, shape) for kind in NULLS for number in range(runs)]


def planted_jobs(
    runs: int, *, seed: int = 0, difficulty: Difficulty = STANDARD, shape: Shape | None = None
) -> list[Job]:
    """Planted models."""
    return [Job("planted", seed + number, difficulty, shape) for number in range(runs)]


def single_jobs(runs: int, *, seed: int = 0, difficulty: Difficulty = STANDARD) -> list[Job]:
    """Trained models of a single head."""
    return [Job("single head", seed + number, difficulty) for number in range(runs)]
