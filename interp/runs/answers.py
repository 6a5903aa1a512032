"""Was this asked before? Then here is what it came to; or else it is computed, and kept.

What is kept of an answer is its tables, and all else as JSON has it. Who asks gets it as it was kept, also at the
first time: so nothing depends on who asked first. What was warned of is warned of again.
"""

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from typing import Any, TypeVar, cast

import pandas as pd

from interp.errors import LoadError
from interp.interventions.sweep import Asking
from interp.runs.run import Run, called
from interp.runs.run_folder import Finished, RunFolder

AnyAnswer = TypeVar("AnyAnswer")


def once(
    run: Run | None, asked: Asking, about: Mapping[str, Any], compute: Callable[[RunFolder | None], Finished]
) -> Finished:
    """What was asked comes to.

    Args:
        run: Where it is kept; None for nowhere.
        asked: Says all that it follows from, beside the program; not called where nothing is kept.
        about: What whoever looks at it later wants to know besides.
        compute: Computes it; called with the folder where its parts are kept, which is held, or None.

    Raises:
        InputError: No hash could tell what is asked from something else.
        OutputError: It cannot be kept, or another process computes it.
        LoadError: It was written by another version of this program.
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
        with _noted() as told:
            found = compute(folder)
        return folder.finish(found.tables, {**found.facts, "run": folder.record.key, "warnings": told})


@contextmanager
def _noted() -> Iterator[list[str]]:
    """What is warned of at run time meanwhile, whoever wants to see it; at the end it is warned of as ever."""
    told = list[str]()
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", RuntimeWarning)
        try:
            yield told
        finally:
            told += dict.fromkeys(str(each.message) for each in found if issubclass(each.category, RuntimeWarning))
    for each in found:
        warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)


def answered(
    run: Run | None,
    asked: Asking,
    about: Mapping[str, Any],
    kind: type[AnyAnswer],
    compute: Callable[[], AnyAnswer],
) -> AnyAnswer:
    """As ``once``, of a dataclass.

    Args:
        run: As of ``once``.
        asked: As of ``once``.
        about: As of ``once``.
        kind: The dataclass: its fields are tables, numbers, names, and a ``provenance``, which then names the run.
        compute: Computes it.
    """
    (answer,) = all_answered(run, asked, about, kind, lambda: (compute(),))
    return answer


def all_answered(
    run: Run | None,
    asked: Asking,
    about: Mapping[str, Any],
    kind: type[AnyAnswer],
    compute: Callable[[], Sequence[AnyAnswer]],
) -> tuple[AnyAnswer, ...]:
    """As ``answered``, of several that are computed together."""
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
    # JSON has no number that is none.
    missing = {name: math.nan for name, type_ in types.items() if type_ is float and facts.get(name, 0) is None}
    return kind(**tables, **{**facts, **missing})


def _numbered(name: str, number: int) -> str:
    """A table's name; the first answer's is the field's."""
    return f"{name}_{number}" if number else name
