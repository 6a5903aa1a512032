"""One table of many parts, each computed by itself: kept one by one as they come, and found again."""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pyarrow as pa
import torch

from interp.runs.executors import HERE, nobody
from interp.runs.run import Run
from interp.runs.run_folder import RunFolder


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
    folder = None if run is None else run.folder_of(asked, {})
    known = None if folder is None or run is None or run.fresh else folder.result()
    if known is not None:
        tell(len(jobs))
        return known[0]
    executor, threads = HERE if run is None else run.executor, torch.get_num_threads()
    with nullcontext() if folder is None else folder.held(fresh=run is not None and run.fresh):
        found = {} if folder is None else _known(folder, jobs)
        tell(len(found))
        missing = [name for name in jobs if name not in found]
        begun = nobody if folder is None else lambda name: folder.log("begun", name)
        for name, table in executor.stream(_Named(call, jobs), missing, threads=threads, begun=begun):
            if folder is not None:
                folder.write(name, table)
            found[name] = table
            tell(len(found))
        frame = pd.concat([found[name].to_pandas().assign(job=name) for name in jobs], ignore_index=True)
        if folder is not None:
            folder.finish(frame, {"jobs": len(jobs), "run": folder.record.key})
    return frame


def _known(folder: RunFolder, jobs: Mapping[str, Any]) -> dict[str, pa.Table]:
    read = {name: folder.read(name, path) for name, path in folder.parts().items() if name in jobs}
    return {name: table for name, table in read.items() if table is not None}
