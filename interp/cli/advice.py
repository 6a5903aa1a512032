"""How is advice followed on the command line? What is a parameter in Python is an option here, a function a command."""

import re
from collections.abc import Iterable
from typing import Any

from interp.errors import InterpError, with_ways

_PARAMETER = re.compile(r"\b([a-z_]+)=('[^']*'|[\w.]+)")
_FUNCTION = re.compile(r"\binterp\.(\w+)(?:\(.*?\))?")
_WHOSE = re.compile(r" \(of interp\.\w+\)")
"""Whose parameter is meant, where it is not that of the function that was called."""
_ELSEWHERE = {"list_tasks": "tasks"}
"""Functions whose command has another name."""
_CALLED = {"memory": "memory_budget"}
"""Options whose parameter has another name."""


def in_options(error: InterpError, options: Iterable[Any], commands: Iterable[str]) -> str:
    """What a command says is wrong, with what can be typed about it.

    Args:
        error: What went wrong.
        options: The command's own, as click has them.
        commands: The names of all.
    """
    typed = [each for each in options if str(each.opts[0]).startswith("--")]
    named = {_CALLED.get(each.name, each.name): (each.opts[0], getattr(each, "is_flag", False)) for each in typed}
    return with_ways(error.fault, filter(None, (_typed(way, named, set(commands)) for way in error.ways)))


def _typed(way: str, options: dict[str, tuple[str, bool]], commands: set[str]) -> str:
    """The way as one types it; empty where one cannot. Of options, their names and whether they are flags."""
    way = _WHOSE.sub("", way)
    parameters, functions = (
        _PARAMETER.findall(way),
        {name: _ELSEWHERE.get(name, name) for name in _FUNCTION.findall(way)},
    )
    if not {name for name, _ in parameters} <= set(options) or not set(functions.values()) <= commands:
        return ""
    way = _FUNCTION.sub(lambda found: f"interp {functions[found[1]]}", way)
    return _PARAMETER.sub(lambda found: _option(*options[found[1]], found[2].strip("'")), way)


def _option(name: str, is_flag: bool, value: str) -> str:
    return name if is_flag else f"{name} {value}"
