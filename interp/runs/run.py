"""A run: where what is measured is kept and found again, and who measures it.

An answer is computed once. It is kept as its tables, and all else as JSON. Callers get it as it was kept, also the
first time, so that nothing depends on who asked first. Warnings of the computation are given again with it.
"""

import logging
import math
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeVar, cast

import pandas as pd
import pyarrow as pa
import torch

from interp.errors import AuditError, InputError, LoadError
from interp.interventions.sweep_parts import COLUMNS, PartScores
from interp.interventions.sweep_run import Answer, SweepRun
from interp.runs.executors import HERE, Executor, Work, nobody
from interp.runs.files import writing
from interp.runs.fresh import asked_together, generation_of, generations
from interp.runs.key import FRAME, Record
from interp.runs.root import root_of
from interp.runs.run_folder import Finished, RunFolder
from interp.runs.workers import Calls

_LOG = logging.getLogger(__name__)
_HALVINGS, _PROCESSOR = b"halvings", b"processor"
Asking = Callable[[], Mapping[str, Any]]
"""Gives all that an answer follows from, as values that JSON can hold. It may have to hash a model."""


@dataclass(frozen=True)
class Run:
    """How something long is measured: what is known is not measured again, and each part is kept as it comes.

    A run is known by the hash of what was asked (model, tokenizer, data, cells, options, program, threads ...), and is
    kept in a folder of that name. Killed at any moment, the same call goes on where it ended; finished, it gives the
    same table without measuring anything.

    Attributes:
        folder: The folder of all runs; None to keep nothing.
        executor: Who measures: ``Local()``, ``Processes(n)`` or ``interp.cluster.ray``'s ``Ray(...)``.
        fresh: Whether to measure anew what is known. The answer is kept beside the old one, and holds from when it is
            complete (``fresh.py``).
        about: Notes that are kept with it, such as the command line.
        generation: Of the fresh answer that this is a part of; 0 for none.
        means: Of reference sets, in this process alone: what a dossier ran, its cards need not run again.

    Raises:
        OutputError: A call that is given it cannot write to the folder, or another process holds the same answer.
        LoadError: Another version of this program wrote the answer.
        InputError: What is asked cannot be hashed, so that no key could tell it from another.

    Examples:
        >>> first = interp.ablate(interp.load_model(), "agreement", heads=[(2, 2)], n=24, run=interp.Run("runs"))
        >>> again = interp.ablate(interp.load_model(), "agreement", heads=[(2, 2)], n=24, run=interp.Run("runs"))
        >>> again.provenance["run"] == first.provenance["run"]
        True
    """

    folder: str | os.PathLike[str] | None
    executor: Executor = HERE
    fresh: bool = False
    about: Mapping[str, Any] = field(default_factory=dict)
    generation: int = 0
    means: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        """Without what another process runs for itself."""
        return {**vars(self), "means": {}}

    @property
    def inner(self) -> "Run":
        """For what one worker measures by itself as a part of a run under way: kept in the same folder of runs."""
        fresh = self.fresh and self.folder is not None
        generation = generation_of(root_of(self.folder)) if fresh else self.generation
        return replace(self, executor=HERE, fresh=False, generation=generation)

    def sweep(self, run: SweepRun) -> Answer:
        """A sweep's answer: found where it is kept, or else measured, part by part, and kept.

        Raises:
            OutputError: It cannot be written, or another process holds it.
            LoadError: It was written by another version of this program.
            AuditError: What was measured is wrong; it is not kept.
        """
        with self.place(run.request, run.own) as (folder, known):
            if known is None:
                try:
                    answer = run.answer(lambda: self._measure(run, folder))
                except AuditError:
                    if folder is not None:
                        folder.discard()
                    raise
                if folder is None or not answer.provenance["complete"]:
                    return answer
                known = folder.finish({FRAME: answer.frame}, {**answer.provenance, "run": folder.record.key})
            return Answer(known.tables[FRAME], {**known.facts, **called(run.own)})

    def _measure(self, run: SweepRun, folder: RunFolder | None) -> None:
        """Give `run` the parts that are kept and intact; have the others measured, and keep each as it comes."""
        for _, found in stream_parts(folder, self.executor, run.work, list(run.work.parts()), _PARTS):
            run.halvings += found.halvings
            run.processors.add(found.processor)
            for scores in found.scores():
                run.take(scores)

    @contextmanager
    def place(self, asked: Asking, about: Mapping[str, Any]) -> Iterator[tuple[RunFolder | None, Finished | None]]:
        """The folder of a request, and its answer; where there is no answer, the folder is held.

        Args:
            asked: Returns the request; not called where nothing is kept.
            about: Notes that are kept with it.

        Raises:
            InputError: No hash could tell the request from another.
            OutputError: It cannot be written, or another process holds it.
            LoadError: It was written by another version of this program.
        """
        if self.folder is None:
            yield None, None
            return
        record = Record.of(asked(), {**about, **self.about})
        root = root_of(self.folder)
        with asked_together() if self.fresh else nullcontext():
            with writing(root, "folder of runs"):
                folder, known = self._found(root, record)
                damaged = known is None and folder.recorded and folder.finished
            if known is not None:
                again = self.fresh or self.generation
                how = "it was measured again before" if again else "--fresh (fresh=True) measures it again"
                _LOG.info("run %s: found, and not measured again; %s", folder.record.key, how)
                yield folder, known
                return
            with folder.held():
                # Somebody may have finished it in between.
                yield folder, None if damaged else folder.result()

    def _found(self, root: Path, record: Record) -> tuple[RunFolder, Finished | None]:
        """The newest complete answer and its folder; where there is none, the newest folder, or a new one."""
        if self.fresh or self.generation:
            numbers = [generation_of(root, record.question) if self.fresh else self.generation]
        else:
            numbers = generations(root, record.question)
        records = [replace(record, generation=number) for number in numbers]
        folders = [RunFolder(root / each.key, each) for each in records]
        for folder in folders:
            known = folder.result() if folder.recorded else None
            if known is not None:
                return folder, known
        return next((each for each in folders if each.folder.exists()), folders[-1]), None


def as_run(run: Run | str | os.PathLike[str] | None) -> Run | None:
    """A run in the folder that is named.

    Raises:
        InputError: Something else.
    """
    if run is None or isinstance(run, Run):
        return run
    if isinstance(run, str | os.PathLike):
        return Run(run)
    raise InputError(f"run: expected a folder or an interp.Run, got {run!r:.80}; leave it out to keep nothing")


@dataclass(frozen=True)
class PartKind:
    """How the result of a job is kept.

    Attributes:
        name: A job's name: letters, digits, ``_``, ``-`` and ``.``.
        table: The table of a result.
        found: The result, from the job's name and the table.
    """

    name: Callable[[Any], str]
    table: Callable[[Any], pa.Table]
    found: Callable[[str, pa.Table], Any]


def stream_parts(
    folder: RunFolder | None, executor: Executor, work: Work, jobs: Iterable[Any], kind: PartKind
) -> Iterator[tuple[str, Any]]:
    """The name and the result of every job, in any order: first those that are kept in the folder, which is held.

    The jobs of an iterator are asked for one by one, as workers are free.

    Raises:
        OutputError: A result cannot be kept.
    """
    known: set[str] = set()
    if folder is not None:
        wanted = None if isinstance(jobs, Iterator) else {kind.name(job) for job in jobs}
        for name, path in folder.parts().items():
            table = folder.read(name, path) if wanted is None or name in wanted else None
            if table is not None:
                known.add(name)
                yield name, kind.found(name, table)
        if wanted is not None:
            folder.log("planned", parts=len(wanted))
        if known:
            n_all = "its" if wanted is None else len(wanted)
            _LOG.info("run %s: goes on, with %d of %s parts found", folder.record.key, len(known), n_all)
    missing = (job for job in jobs if kind.name(job) not in known)
    begun = nobody if folder is None else lambda job: folder.log("begun", kind.name(job))
    own = missing if isinstance(jobs, Iterator) else list(missing)
    for job, found in executor.stream(work, own, threads=torch.get_num_threads(), begun=begun):
        if folder is not None:
            folder.write(kind.name(job), kind.table(found))
        yield kind.name(job), found


def called(about: Mapping[str, Any]) -> dict[str, Any]:
    """The model's name and device, as the present caller has them."""
    return {name: about[name] for name in ("model", "device") if name in about}


def _table(found: PartScores) -> pa.Table:
    facts = {_HALVINGS: str(found.halvings).encode(), _PROCESSOR: found.processor.encode()}
    return pa.table(dict(found.columns)).replace_schema_metadata(facts)


def _scores(part: str, table: pa.Table) -> PartScores:
    columns = {name: table[name].to_numpy().astype(kind) for name, kind in COLUMNS.items()}
    facts = table.schema.metadata
    return PartScores(int(part), columns, int(facts[_HALVINGS]), facts[_PROCESSOR].decode())


_PARTS = PartKind(lambda part: f"{part.number:06d}", _table, _scores)


AnyAnswer = TypeVar("AnyAnswer")


def once(
    run: Run | None, asked: Asking, about: Mapping[str, Any], compute: Callable[[RunFolder | None], Finished]
) -> Finished:
    """The answer to the request that `asked` returns, all but the program that it follows from.

    It is found in the folder of `run`, or else computed by `compute`, which gets the folder of its parts (None where
    nothing is kept), and kept with the notes `about`.
    """
    if run is None:
        return compute(None)
    with run.place(asked, about) as (folder, known):
        if known is not None:
            for each in known.facts.get("warnings", ()):
                warnings.warn(str(each), RuntimeWarning, stacklevel=2)
            return known
        if folder is None:
            return compute(folder)
        with _noted() as messages:
            found = compute(folder)
        return folder.finish(found.tables, {**found.facts, "run": folder.record.key, "warnings": messages})


@contextmanager
def _noted() -> Iterator[list[str]]:
    """The run-time warnings of the block, whatever filters are set; they are given as usual when it ends."""
    messages = list[str]()
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", RuntimeWarning)
        try:
            yield messages
        finally:
            messages += dict.fromkeys(str(each.message) for each in found if issubclass(each.category, RuntimeWarning))
    for each in found:
        warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)


def answered(
    run: Run | None,
    asked: Asking,
    about: Mapping[str, Any],
    kind: type[AnyAnswer],
    compute: Callable[[], AnyAnswer],
) -> AnyAnswer:
    """As ``once``, for a dataclass of tables, numbers, names and a ``provenance``, which then names the run."""
    (answer,) = all_answered(run, asked, about, kind, lambda: (compute(),))
    return answer


def all_answered(
    run: Run | None,
    asked: Asking,
    about: Mapping[str, Any],
    kind: type[AnyAnswer],
    compute: Callable[[], Sequence[AnyAnswer]],
) -> tuple[AnyAnswer, ...]:
    """As ``answered``, for several that are computed together."""
    if run is None or run.folder is None:
        return tuple(compute())
    found = once(run, asked, about, lambda _: _taken_apart(compute()))
    try:
        return tuple(_answer(kind, number, found, about) for number in range(len(found.facts["answers"])))
    except (KeyError, TypeError, AttributeError) as error:
        key = found.facts.get("run")
        raise LoadError(
            f"run {key}: expected the tables and facts of a {kind.__name__}, got others ({error}); `interp runs rm "
            f"{key}`, and ask again"
        ) from error


def _taken_apart(answers: Sequence[Any]) -> Finished:
    tables, facts = dict[str, pd.DataFrame](), list[dict[str, Any]]()
    for number, answer in enumerate(answers):
        values = {each.name: getattr(answer, each.name) for each in fields(answer)}
        own = {name: value for name, value in values.items() if isinstance(value, pd.DataFrame)}
        tables |= {_numbered(name, number): table for name, table in own.items()}
        facts.append({name: value for name, value in values.items() if name not in own})
    return Finished(tables, {"answers": facts})


def _answer(kind: type[AnyAnswer], number: int, found: Finished, about: Mapping[str, Any]) -> AnyAnswer:
    facts = dict(found.facts["answers"][number])
    facts["provenance"] = {**facts["provenance"], **called(about), "run": found.facts["run"]}
    types = {each.name: each.type for each in fields(cast(Any, kind))}
    tables = {name: found.tables[_numbered(name, number)] for name in types if name not in facts}
    # JSON has no NaN.
    missing = {name: math.nan for name, type_ in types.items() if type_ is float and facts.get(name, 0) is None}
    return kind(**tables, **{**facts, **missing})


def _numbered(name: str, number: int) -> str:
    """A table's name; the first answer's is the field's."""
    return f"{name}_{number}" if number else name


def kept_frame(
    run: Run | None,
    asked: Mapping[str, Any],
    call: Callable[[Any], pd.DataFrame],
    jobs: Mapping[str, Any],
    tell: Callable[[int], None],
) -> pd.DataFrame:
    """The tables of several jobs, one below the other, each kept as it comes; the column ``job`` has their names.

    `call`, a function of a module, makes a job's table; `tell` is called with the number of jobs that are done.
    """
    executor = HERE if run is None else run.executor

    def compute(folder: RunFolder | None) -> Finished:
        found: dict[str, pd.DataFrame] = {}
        calls = Calls(call, {name: (job,) for name, job in jobs.items()})
        tell(0)
        for name, table in stream_parts(folder, executor, calls, list(jobs), _FRAMES):
            found[name] = table
            if len(found) < len(jobs):
                tell(len(found))
        frame = pd.concat([found[name].assign(job=name) for name in jobs], ignore_index=True)
        return Finished({FRAME: frame}, {"jobs": len(jobs)})

    frame = once(run, lambda: asked, {}, compute).tables[FRAME]
    tell(len(jobs))
    return frame


_FRAMES = PartKind(
    str, lambda frame: pa.Table.from_pandas(frame, preserve_index=False), lambda _, table: table.to_pandas()
)
