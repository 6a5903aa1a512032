"""Is this what a figure is drawn of? Anything else is refused in our words, before anything is drawn."""

from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd

from interp.errors import InputError, shown, suggest


def require(given: object, attributes: Iterable[str], what: str, made_by: str) -> None:
    """Refuse what does not have a result's attributes.

    Args:
        given: What a user gave.
        attributes: What it has to have.
        what: What is drawn, for the message.
        made_by: The call that makes one.

    Raises:
        InputError: It has no such attribute.
    """
    missing = [name for name in attributes if not hasattr(given, name)]
    if missing:
        raise InputError(
            f"{what}: expected what {made_by} returns, got a {type(given).__name__} without .{missing[0]}; make it "
            f"with {made_by}"
        )


def require_rows(frame: object, columns: Sequence[str], what: str, made_by: str) -> pd.DataFrame:
    """A frame that has these columns and a row at least.

    Raises:
        InputError: It is no frame, a column is missing, or it is empty.
    """
    if not isinstance(frame, pd.DataFrame):
        raise InputError(f"{what}: expected a DataFrame, got a {type(frame).__name__}; make it with {made_by}")
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        raise InputError(
            f"{what}: expected the columns {', '.join(columns)}, got none called {', '.join(missing)}; make it with "
            f"{made_by}"
        )
    if frame.empty:
        raise InputError(f"{what}: expected a row at least, got an empty frame; there is nothing to draw")
    return frame


def chosen(what: str, given: Any, known: Sequence[Any]) -> Any:
    """One of several; None where there is only one to choose.

    Raises:
        InputError: There is no such one, or none was named of several.
    """
    if given is None and len(known) == 1:
        return known[0]
    if given is None:
        raise InputError(f"{what}: expected one of {_listed(known)}, got none; say which")
    if given not in known:
        raise InputError(f"{what}: {shown(given)} is unknown; {suggest(str(given), map(str, known))}")
    return given


def _listed(names: Sequence[Any]) -> str:
    return ", ".join(shown(each) for each in names[:8]) + (", ..." if len(names) > 8 else "")
