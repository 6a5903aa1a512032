"""What was a run asked, in a line? As its manifest has it, which may be anybody's."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any


def in_words(asked: Mapping[str, Any], about: Mapping[str, Any]) -> str:
    """The question, and the model that it was asked of."""
    with suppress(KeyError, TypeError, AttributeError, IndexError):
        said = _WORDS[asked["kind"]](asked)
        return said if "model" not in about else f"{said}, on {about['model']}"
    return "something else"


def _sweep(asked: Mapping[str, Any]) -> str:
    how = " + ".join({each.split(" ")[0]: 0 for each in asked["replacements"]})
    cells = f"{asked['n_cells']} cell{'' if asked['n_cells'] == 1 else 's'}"
    return f"{asked['task']}: {cells} at {' + '.join(asked['sites'])}, {how}"


def _heads(asked: Mapping[str, Any]) -> str:
    siblings = len(asked["models"]) - 1
    return f"heads: {_tasks(asked)}" + (f", and {siblings} siblings" if siblings else "")


def _head(asked: Mapping[str, Any]) -> str:
    return f"{'cards of heads' if 'head' not in asked else 'head ' + asked['head']}: {_tasks(asked)}"


def _tasks(asked: Mapping[str, Any]) -> str:
    return ", ".join(each["task"] for each in asked["tasks"])


def _relations(asked: Mapping[str, Any]) -> str:
    names = list(dict.fromkeys(each[0] for each in asked["relations"]))
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _probe(asked: Mapping[str, Any]) -> str:
    return f"probe: {asked['feature']} at {asked['site']}"


_WORDS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "sweep": _sweep,
    "heads": _heads,
    "head": _head,
    "attend": lambda asked: f"attend: {_relations(asked)}",
    "attention to related words": lambda asked: f"attention counted: {_relations(asked)}",
    "probe": _probe,
    "calibration": lambda asked: f"calibration: {asked['jobs']} jobs",
}
