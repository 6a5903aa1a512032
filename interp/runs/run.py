"""A run: where what is measured is kept and found again, and who measures it."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import torch

from interp.errors import InputError
from interp.interventions.keeping import Answer
from interp.interventions.sweep_run import SweepRun
from interp.interventions.work import COLUMNS, Part, PartScores
from interp.runs.executors import HERE, Executor
from interp.runs.record import Record, root_of
from interp.runs.run_folder import RunFolder

_HALVINGS = b"halvings"


@dataclass(frozen=True)
class Run:
    """How something long is measured: what is known is not measured again, and what is measured is kept at once.

    A run is known by the hash of what was asked (model, tokenizer, data, cells, options, program, threads ...), and is
    kept in a folder of that name. Killed at any moment, the same call goes on where it ended; finished, it gives the
    same table without measuring anything.

    Attributes:
        folder: Of all runs; None to keep nothing.
        executor: Who measures: ``Local()``, ``Processes(n)`` or ``interp.cluster``'s ``Ray(...)``.
        fresh: Whether to measure anew what is known.
        about: What is noted of the request besides, such as the command line.
    """

    folder: str | os.PathLike[str] | None
    executor: Executor = HERE
    fresh: bool = False
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def inner(self) -> "Run":
        """For what one worker measures by itself: kept in the same folder."""
        return replace(self, executor=HERE)

    @contextmanager
    def open(self, asked: Mapping[str, Any], about: Mapping[str, Any]) -> Iterator["KeptSweep"]:
        """The place of one sweep (``interp/interventions/keeping.py``).

        Raises:
            OutputError: It cannot be written, or another process holds it.
            LoadError: It was written by another version of this program.
        """
        folder = self.folder_of(asked, about)
        if folder is None:
            yield KeptSweep(None, self.executor)
            return
        known = None if self.fresh else folder.result()
        if known is not None:
            yield KeptSweep(folder, self.executor, Answer(*known))
            return
        with folder.held(fresh=self.fresh):
            yield KeptSweep(folder, self.executor)

    def folder_of(self, asked: Mapping[str, Any], about: Mapping[str, Any]) -> RunFolder | None:
        """Where what is asked for is kept; None where nothing is."""
        if self.folder is None:
            return None
        record = Record.of(asked, {**about, **self.about})
        return RunFolder(root_of(self.folder) / record.key, record)


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
    """One sweep's place; see ``interp/interventions/keeping.py``.

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
        missing = {_name(part): part for part in run.work.parts()}
        if self.folder is not None:
            for name, path in self.folder.parts().items():
                table = self.folder.read(name, path) if name in missing else None
                if table is not None:
                    _take(run, _scores(table, missing.pop(name).number))
        threads = torch.get_num_threads()
        for part, found in self.executor.stream(run.work, missing.values(), threads=threads, begun=self._begun):
            if self.folder is not None:
                self.folder.write(_name(part), _table(found))
            _take(run, found)

    def _begun(self, part: Part) -> None:
        if self.folder is not None:
            self.folder.log("begun", _name(part))

    def finish(self, answer: Answer) -> Answer:
        """Keep it, and give what will be found from here on."""
        if self.folder is None:
            return answer
        self.folder.finish(answer.frame, {**answer.provenance, "run": self.folder.record.key})
        found = self.folder.result()
        assert found is not None, "it was written a moment ago"
        return Answer(*found)


def _name(part: Part) -> str:
    return f"{part.number:06d}"


def _take(run: SweepRun, found: PartScores) -> None:
    run.halvings += found.halvings
    for scores in found.scores():
        run.take(scores)


def _table(found: PartScores) -> pa.Table:
    return pa.table(dict(found.columns)).replace_schema_metadata({_HALVINGS: str(found.halvings).encode()})


def _scores(table: pa.Table, part: int) -> PartScores:
    columns = {name: table[name].to_numpy().astype(kind) for name, kind in COLUMNS.items()}
    return PartScores(part, columns, int(table.schema.metadata[_HALVINGS]))
