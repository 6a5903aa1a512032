"""What do the jobs of some work come to? What is kept is found again; the rest is done, and kept before it counts."""

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import torch

from interp.runs.executors import Executor, Work, nobody
from interp.runs.run_folder import RunFolder

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class PartKind:
    """How what jobs come to is kept.

    Attributes:
        name: Of a job: letters, digits, ``_``, ``-`` and ``.``.
        table: Of what a job came to.
        found: What a job came to, from its name and table.
    """

    name: Callable[[Any], str]
    table: Callable[[Any], pa.Table]
    found: Callable[[str, pa.Table], Any]


def stream_parts(
    folder: RunFolder | None, executor: Executor, work: Work, jobs: Iterable[Any], kind: PartKind
) -> Iterator[tuple[str, Any]]:
    """What every job comes to, in any order; first what is known.

    Args:
        folder: Where it is kept; it is held. None to keep nothing.
        executor: Who does what is not known, with as many threads as this process has.
        work: What the jobs are part of.
        jobs: All of them; of an iterator, those that are done are asked for as workers are free.
        kind: How it is kept.

    Yields:
        Each job's name and what it came to.

    Raises:
        OutputError: It cannot be kept.
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
