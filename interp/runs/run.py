"""A run: where what is measured is kept and found again, and who measures it."""

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from interp.errors import AuditError, InputError
from interp.interventions.parts import COLUMNS, Part, PartScores
from interp.interventions.sweep import Answer, Asking
from interp.interventions.sweep_run import SweepRun
from interp.runs.anew import anew_together, folder_anew, put_back, root_before
from interp.runs.disk import writing
from interp.runs.executors import HERE, Executor
from interp.runs.names import FRAME
from interp.runs.parts import PartKind, stream_parts
from interp.runs.record import Record
from interp.runs.root import root_of
from interp.runs.run_folder import Finished, RunFolder

_LOG = logging.getLogger(__name__)
_HALVINGS, _PROCESSOR = b"halvings", b"processor"


@dataclass(frozen=True)
class Run:
    """How something long is measured: what is known is not measured again, and what is measured is kept at once.

    A run is known by the hash of what was asked (model, tokenizer, data, cells, options, program, threads ...), and is
    kept in a folder of that name. Killed at any moment, the same call goes on where it ended; finished, it gives the
    same table without measuring anything.

    Attributes:
        folder: Of all runs; None to keep nothing.
        executor: Who measures: ``Local()``, ``Processes(n)`` or ``interp.cluster.ray``'s ``Ray(...)``.
        fresh: Whether to measure anew what is known, which takes its place when all of it is answered (``anew.py``).
        about: What is noted of the request besides, such as the command line.
    """

    folder: str | os.PathLike[str] | None
    executor: Executor = HERE
    fresh: bool = False
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def inner(self) -> "Run":
        """For what one worker measures by itself, of a run that is under way: kept in the same folder."""
        anew = self.fresh and self.folder is not None
        folder = folder_anew(root_of(self.folder)) if anew else self.folder
        return replace(self, folder=folder, executor=HERE, fresh=False)

    @contextmanager
    def open(self, asked: Asking, about: Mapping[str, Any]) -> Iterator["KeptSweep"]:
        """The place of one sweep (``interp/interventions/sweep.py``).

        Raises:
            OutputError: It cannot be written, or another process holds it.
            LoadError: It was written by another version of this program.
            AuditError: What was measured is wrong; it is not kept.
        """
        with self.place(asked, about) as (folder, known):
            try:
                yield KeptSweep(folder, self.executor, None if known is None else _answer(known, about))
            except AuditError:
                if folder is not None:
                    folder.discard()
                raise

    @contextmanager
    def place(self, asked: Asking, about: Mapping[str, Any]) -> Iterator[tuple[RunFolder | None, Finished | None]]:
        """Where what is asked for is kept, and what it came to; where that is not known, the folder is held.

        Args:
            asked: Says what is asked for; not called where nothing is kept.
            about: What whoever looks at it later wants to know besides.

        Raises:
            InputError: No hash could tell what is asked for from something else.
            OutputError: It cannot be written, or another process holds it.
            LoadError: It was written by another version of this program.
        """
        if self.folder is None:
            yield None, None
            return
        record = Record.of(asked(), {**about, **self.about})
        with anew_together() if self.fresh else nullcontext():
            with writing(root_of(self.folder), "folder of runs"):
                folder = self._folder_of(record)
                recorded, finished = folder.recorded, folder.finished
            known = folder.result() if recorded else None
            if known is not None:
                anew = root_before(folder.folder.parent) is not None
                how = "it was measured anew before" if anew else "--fresh (fresh=True) measures it anew"
                _LOG.info("run %s: found, and not measured again; %s", record.key, how)
                yield folder, known
                return
            with folder.held():
                # Somebody may have finished it in between; what was finished before is damaged.
                yield folder, None if recorded and finished else folder.result()

    def _folder_of(self, record: Record) -> RunFolder:
        assert self.folder is not None, "something is kept"
        root = root_of(self.folder)
        known = RunFolder(root / record.key, record)
        if not self.fresh:
            put_back(root, record.key)
            return known
        _ = known.recorded  # what another version has written there is refused at once
        return RunFolder(folder_anew(root, record.key) / record.key, record)


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
class KeptSweep:
    """One sweep's place; see ``interp/interventions/sweep.py``.

    Attributes:
        folder: Where it is kept; None for nowhere.
        executor: Who measures.
        known: What became of it, where it is finished.
    """

    folder: RunFolder | None
    executor: Executor
    known: Answer | None = None

    def answer(self) -> Answer | None:
        """The finished sweep's."""
        return self.known

    def measure(self, run: SweepRun) -> None:
        """Bring what is kept and intact to `run`; have the rest measured, and keep each part as it comes."""
        for _, found in stream_parts(self.folder, self.executor, run.work, list(run.work.parts()), _PARTS):
            run.halvings += found.halvings
            run.processors.add(found.processor)
            for scores in found.scores():
                run.take(scores)

    def finish(self, answer: Answer) -> Answer:
        """Keep it, and give what will be found from here on."""
        if self.folder is None:
            return answer
        kept = self.folder.finish({FRAME: answer.frame}, {**answer.provenance, "run": self.folder.record.key})
        return _answer(kept, answer.provenance)


def _answer(found: Finished, about: Mapping[str, Any]) -> Answer:
    return Answer(found.tables[FRAME], {**found.facts, **called(about)})


def called(about: Mapping[str, Any]) -> dict[str, Any]:
    """What who asks calls the model, whoever has asked before."""
    return {name: about[name] for name in ("model", "device") if name in about}


def _name(part: Part) -> str:
    return f"{part.number:06d}"


def _table(found: PartScores) -> pa.Table:
    told = {_HALVINGS: str(found.halvings).encode(), _PROCESSOR: found.processor.encode()}
    return pa.table(dict(found.columns)).replace_schema_metadata(told)


def _scores(part: str, table: pa.Table) -> PartScores:
    columns = {name: table[name].to_numpy().astype(kind) for name, kind in COLUMNS.items()}
    told = table.schema.metadata
    return PartScores(int(part), columns, int(told[_HALVINGS]), told[_PROCESSOR].decode())


_PARTS = PartKind(_name, _table, _scores)
