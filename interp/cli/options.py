"""Options of several commands, each a field of a class (``dataclass_options.py``), and what reads their texts."""

import os
import re
from dataclasses import dataclass
from typing import Any

import typer

from interp.errors import InputError, shown

ASKED, MEASURED = "What is asked", "How it is measured"
OUTPUT, HARDWARE = "Output", "Hardware"
HEADINGS = (ASKED, MEASURED, OUTPUT, HARDWARE)
"""Of a command's options, in this order."""
LARGEST_SEED = 2**63 - 1
_DIGITS = 30
"""Of an amount of memory; one of hundreds is beyond every number."""
_BYTES = {"": 1, "b": 1} | {
    f"{prefix}{unit}": size**power
    for power, prefix in enumerate("kmgt", start=1)
    for unit, size in (("b", 1000), ("ib", 1024))
}


def no_more_than_cpus(threads: int) -> int:
    """Refuse more threads than this machine runs at once: each waits for the others, and enough of them end it."""
    cpus = os.cpu_count() or 1
    if threads > cpus:
        raise typer.BadParameter(f"expected at most {cpus}, the CPUs of this machine, got {threads}")
    return threads


def no_larger_seed(seed: int | None) -> int | None:
    """Refuse a seed that no generator takes."""
    if seed is not None and seed > LARGEST_SEED:
        raise typer.BadParameter(f"expected at most {LARGEST_SEED}, got {shown(seed)}")
    return seed


def bytes_of(text: str) -> int:
    """An amount of memory in bytes."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", text)
    if found is None or found[2].lower() not in _BYTES or len(found[1]) > _DIGITS:
        raise typer.BadParameter(f"expected bytes, or a number with a unit such as 512MB or 2GB, got {shown(text)}")
    return int(float(found[1]) * _BYTES[found[2].lower()])


def number(text: str | float) -> int | float:
    """A whole number, or a share."""
    try:
        return int(text) if re.fullmatch(r"\d+", str(text)) else float(text)
    except ValueError as error:
        raise typer.BadParameter(f"expected a whole number or a share, got {shown(text)}") from error


def axes_of(text: str) -> list[str]:
    """The names in a list with commas."""
    return [name.strip() for name in text.split(",")]


def names_in(lists: list[str] | None) -> list[str] | None:
    """The different names in lists with commas, in their order; None where there is no list."""
    if lists is None:
        return None
    return list(dict.fromkeys(name for each in lists for name in axes_of(each) if name))


def require_no_layers(heads: Any, layers: Any) -> None:
    """Refuse --layer beside --head."""
    if heads and layers:
        named = ", ".join(f"{layer}.{head}" for layer, head in heads)
        raise InputError(f"--head {named}: expected no --layer beside it, got {layers[0]}; leave that out")


@dataclass(frozen=True, kw_only=True)
class Unequal:
    """How the pairs of a task are chosen.

    Attributes:
        unequal_lengths: Keep pairs whose two prompts have different numbers of tokens.
        chat: Put each prompt into the tokenizer's chat template, as the beginning of an instruct model's answer.
    """

    unequal_lengths: bool = False
    chat: bool = False

    @property
    def how(self) -> dict[str, Any]:
        """The same for ``load_task``."""
        return {"unequal_lengths": self.unequal_lengths, "chat": self.chat}

    @property
    def typed(self) -> list[str]:
        """What of it was asked for, as one types it."""
        return [f"--{name.replace('_', '-')}" for name, given in self.how.items() if given]


@dataclass(frozen=True, kw_only=True)
class OneTask(Unequal):
    """What is measured on a task.

    Attributes:
        task: A task of `interp tasks`, or pairs of your own: FILE.jsonl or FILE.py:NAME.
    """

    task: str


@dataclass(frozen=True, kw_only=True)
class Tasks(Unequal):
    """What is measured on several tasks.

    Attributes:
        task: A task of `interp tasks`, or FILE.jsonl or FILE.py:NAME; repeat it for several; None for the first five,
            which the embedded models know.
    """

    task: list[str] | None = None


@dataclass(frozen=True, kw_only=True)
class Drawn(Unequal):
    """What is drawn of a task.

    Attributes:
        n: Units to draw of the task; None for the task's own number: a file is used whole.
    """

    n: int | None = None
