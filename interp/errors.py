"""The exceptions that bad input raises. Every message says what, expected, got and what to do.

What a message quotes may come from a stranger's file: it is cut where it is long, and what is no Unicode is escaped.

Examples:
    >>> from interp.errors import InterpError
    >>> try:
    ...     interp.Span.find("dog", "The keys to the cabinet")
    ... except InterpError as error:
    ...     print(f"{type(error).__name__}: {error}")
    TaskError: expected the word 'dog' in the text...
"""

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from itertools import islice
from reprlib import Repr

LONGEST, ENDING = 1_500, 400
"""Characters of a message, and how many of them are its end, which says what to do."""
CLEAR, CLAUSE = 500, 240
"""Characters of a message that is read at one look, and of a clause in one that is longer."""
MOST_SHOWN = 80
"""Characters of a value, and of a name that is compared with others."""


def plain(message: str) -> str:
    """A message as it can be written down: one line in Unicode, whose long clauses are cut in the middle."""
    text = re.sub(r"\s*\n\s*", " ", message.encode(errors="backslashreplace").decode())
    if len(text) > CLEAR:  # what drowns it stands within or between what says what was expected and what to do
        text = re.sub(rf"\S{{{CLAUSE // 2},}}", lambda found: _cut(found[0], CLAUSE // 2, CLAUSE // 4), text)
        text = "; ".join(_cut(clause, CLAUSE, CLAUSE // 4) for clause in text.split("; "))
    return _cut(text, LONGEST, ENDING)


def _cut(text: str, longest: int, ending: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - ending]} ... {text[-ending:]}"


def with_ways(fault: str, ways: Iterable[str]) -> str:
    """What is wrong, and what can be done about it, in one line."""
    return plain("; ".join(filter(None, (fault, ", or ".join(ways)))))


class InterpError(Exception):
    """Base of every error that this package raises on purpose; the CLI exits with 2.

    Attributes:
        fault: What is wrong.
        ways: What can be done about it; each is enough. A way names parameters as ``replacement='mean'`` and functions
            as ``interp.attend``: the command line says its own options and commands in their place, and leaves out a
            way that it does not have (``interp.cli.commands``).
    """

    def __init__(self, fault: str = "", *ways: str):
        super().__init__(with_ways(fault, ways))
        self.fault, self.ways = fault, ways


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


class NotCarriedError(TaskError):
    """A task none of whose items the tokenizer can carry."""


class OutputError(InterpError, ValueError):
    """A place to write to that cannot be used."""


class _Short(Repr):
    """Writes out the beginning of a value: what lists within lists share would be written a thousandfold."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = self.maxlong = MOST_SHOWN
        self.maxlist = self.maxtuple = self.maxdict = 8
        self.maxlevel = 3

    def repr1(self, x: object, level: int) -> str:
        """An ordered dictionary as any other."""
        return self.repr_dict(x, level) if isinstance(x, dict) else super().repr1(x, level)

    def repr_instance(self, x: object, level: int) -> str:
        """What takes several lines, such as a module or a table, or tells but its address: kind and shape."""
        text, shape = super().repr_instance(x, level), getattr(x, "shape", None)
        if "\n" not in text and " at 0x" not in text and (shape is None or "..." not in text):
            return text
        return f"a {type(x).__name__}{'' if shape is None else f' of shape {tuple(shape)}'}"

    def repr_dict(self, x: dict[object, object], level: int) -> str:
        """The first fields in their order."""
        if level <= 0 and x:
            return "{...}"
        fields = [f"{self.repr1(key, level - 1)}: {self.repr1(x[key], level - 1)}" for key in islice(x, self.maxdict)]
        return "{" + ", ".join([*fields, "..."] if len(x) > self.maxdict else fields) + "}"

    def repr_int(self, x: int, level: int) -> str:
        """Numbers of thousands of digits are no text to Python."""
        return super().repr_int(x, level) if x.bit_length() < 10_000 else f"a number of {x.bit_length()} bits"


_SHORT = _Short()


def shown(value: object) -> str:
    """A value as a message can quote it, whatever it is."""
    text = _SHORT.repr(value)
    return text if len(text) <= 2 * MOST_SHOWN else f"{text[: 2 * MOST_SHOWN]}..."


def suggest(name: str, known: Iterable[str], n: int = 3) -> str:
    """Say which of the `known` names are nearest to `name`, as the last clause of a message.

    Returns ``"did you mean 'a', 'b'?"``, or the known names, of many the first, when none is near, or that none is.
    """
    names = [each[:MOST_SHOWN] for each in known]
    near = _near(name, names, n)
    if near:
        return near
    if not names:
        return "none is known"
    listed = ", ".join(map(repr, names if len(names) <= 16 else names[:8]))
    return f"known are {listed}{', ...' if len(names) > 16 else ''}"


def among(name: str, known: Iterable[str], most: int = 40) -> str:
    """What follows on a `name` that is none of the `known`: the nearest, if any is near, and then all, up to `most`."""
    names = [each[:MOST_SHOWN] for each in known]
    near = _near(name, names, 3)
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{f'; {near}' if near else '.'} There are: {', '.join(names[:most]) or 'none'}{more}"


def _near(name: str, names: Sequence[str], n: int) -> str:
    by_case = {each.casefold(): each for each in reversed(names)}
    near = get_close_matches(name[:MOST_SHOWN].casefold(), by_case, n=n, cutoff=0.5)
    return "did you mean " + ", ".join(repr(by_case[each]) for each in near) + "?" if near else ""
