"""One table of many parts, each computed by itself: kept one by one as they come, and found again."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pyarrow as pa

from interp.runs.answers import once
from interp.runs.executors import HERE
from interp.runs.names import FRAME
from interp.runs.parts import PartKind, stream_parts
from interp.runs.run import Run
from interp.runs.run_folder import Finished, RunFolder


@dataclass(frozen=True)
class _Named:
    call: Callable[[Any], pd.DataFrame]
    jobs: Mapping[str, Any]

    def run(self, job: str) -> pa.Table:
        return pa.Table.from_pandas(self.call(self.jobs[job]), preserve_index=False)


def kept_frame(
    run: Run | None,
    asked: Mapping[str, Any],
    call: Callable[[Any], pd.DataFrame],
    jobs: Mapping[str, Any],
    tell: Callable[[int], None],
) -> pd.DataFrame:
    """What several jobs come to, one below the other; each is done where it is not known.

    Args:
        run: Where they are kept, and who does them; None for nowhere, and this process.
        asked: All that they follow from, beside the program.
        call: Makes a table of a job; a function of a module.
        jobs: By name: of letters, digits, ``_``, ``-`` and ``.``.
        tell: Called with the number of jobs that are done.

    Returns:
        In the order of the jobs, whose names are in the column ``job``.

    Raises:
        OutputError: They cannot be kept, or another process does them.
        KeyboardInterrupt: Interrupted; what is done is kept.
    """
    executor = HERE if run is None else run.executor

    def compute(folder: RunFolder | None) -> Finished:
        found: dict[str, pa.Table] = {}
        tell(0)
        for name, table in stream_parts(folder, executor, _Named(call, jobs), list(jobs), _TABLES):
            found[name] = table
            if len(found) < len(jobs):
                tell(len(found))
        frame = pd.concat([found[name].to_pandas().assign(job=name) for name in jobs], ignore_index=True)
        return Finished({FRAME: frame}, {"jobs": len(jobs)})

    frame = once(run, lambda: asked, {}, compute).tables[FRAME]
    tell(len(jobs))
    return frame


_TABLES = PartKind(str, lambda table: table, lambda _, table: table)
