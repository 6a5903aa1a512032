"""Answers that are computed once: found where they are kept, or else computed and kept.

An answer is kept as its tables, and all else as JSON. Callers get it as it was kept, also the first time, so that
nothing depends on who asked first. Warnings of the computation are given again with it.
"""

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any, TypeVar, cast

import pandas as pd
import pyarrow as pa

from interp.errors import LoadError
from interp.runs.executors import HERE
from interp.runs.key import FRAME
from interp.runs.run import Asking, PartKind, Run, called, stream_parts
from interp.runs.run_folder import Finished, RunFolder

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


@dataclass(frozen=True)
class _NamedCalls:
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
    """The tables of several jobs, one below the other, each kept as it comes; the column ``job`` has their names.

    `call`, a function of a module, makes a job's table; `tell` is called with the number of jobs that are done.
    """
    executor = HERE if run is None else run.executor

    def compute(folder: RunFolder | None) -> Finished:
        found: dict[str, pa.Table] = {}
        tell(0)
        for name, table in stream_parts(folder, executor, _NamedCalls(call, jobs), list(jobs), _TABLES):
            found[name] = table
            if len(found) < len(jobs):
                tell(len(found))
        frame = pd.concat([found[name].to_pandas().assign(job=name) for name in jobs], ignore_index=True)
        return Finished({FRAME: frame}, {"jobs": len(jobs)})

    frame = once(run, lambda: asked, {}, compute).tables[FRAME]
    tell(len(jobs))
    return frame


_TABLES = PartKind(str, lambda table: table, lambda _, table: table)
