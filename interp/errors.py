"""The exceptions that bad input raises. Every message says what, expected, got and what to do."""

from collections.abc import Iterable
from difflib import get_close_matches


class InterpError(Exception):
    """Base of every error that this package raises on purpose; the CLI exits with 2."""


class ConfigError(InterpError, ValueError):
    """A configuration that describes no model, or a device or dtype that is not to be had."""


class LoadError(InterpError, ValueError):
    """A checkpoint that is missing, incomplete, damaged or of an unknown architecture."""


class HookError(InterpError, ValueError):
    """A hook name that matches no point, or a hook that returns another shape, dtype or device."""


class InputError(InterpError, ValueError):
    """Text, tokens or positions that the model or the method cannot carry."""


class AuditError(InterpError, RuntimeError):
    """A fast computation that does not give the numbers of the plain one."""


class TaskError(InterpError, ValueError):
    """A task, or a file of examples, that cannot be read or used."""


class OutputError(InterpError, ValueError):
    """A place to write to that cannot be used."""


def suggest(name: str, known: Iterable[str], n: int = 3) -> str:
    """Say which of the `known` names are nearest to `name`, as the last clause of a message.

    Returns ``"did you mean 'a', 'b'?"``, or a list of the first known names when none is near.
    """
    names = list(known)
    by_case = {each.casefold(): each for each in reversed(names)}
    near = get_close_matches(name.casefold(), by_case, n=n, cutoff=0.5)
    if near:
        return "did you mean " + ", ".join(repr(by_case[each]) for each in near) + "?"
    listed = ", ".join(repr(each) for each in names[:8])
    return f"known are {listed}{', ...' if len(names) > 8 else ''}"
