"""Commands made from dataclasses: what can be asked of a method becomes options of its command.

1. A parameter of a command's function whose type is a dataclass stands for all of its fields, an option each.
2. An option's help is the field's text under ``Attributes`` in the class's docstring; ``None for X`` says what help
   shows as the default. A field with several values is a list with commas; ``--head``, ``--layer``
   and what is a ``list`` are repeated.
3. The function is called with the dataclass made of what was typed.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, cleandoc, signature
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import typer

from interp.cli import completing
from interp.cli.options import (
    ASKED,
    HARDWARE,
    MEASURED,
    OUTPUT,
    axes_of,
    bytes_of,
    no_larger_seed,
    no_more_than_cpus,
    number,
)

FLAGS = {
    **{"memory_budget": "--memory", "heads": "--head", "layers": "--layer"},
    **{"as_json": "--json", "hardware": "--device"},
}
PANELS = {
    ASKED: (
        *("task", "data", "store", "feature", "relation", "model", "tokenizer", "sibling"),
        *("components", "site", "by", "layers"),
        *("heads", "at", "direction", "prompts", "tokens"),
    ),
    OUTPUT: ("out", "runs", "fresh", "cards", "as_json"),
    HARDWARE: (
        *("device", "dtype", "memory_budget", "threads", "processes", "executor", "address", "gpus"),
        *("hardware", "devices"),
    ),
}
"""Under which heading fields stand; all others say how it is measured."""
COMPLETED = {
    **{"model": completing.models, "device": completing.DEVICES, "dtype": completing.DTYPES},
    **{"site": completing.sites, "by": completing.AXES, "task": completing.TASKS, "sibling": completing.models},
    **{"hardware": completing.HARDWARE, "tokenizer": completing.models},
}
LEAST = {
    **{"n": 1, "seed": 0, "draws": 1, "layers": 0, "cv": 2, "min_examples": 1, "max_window": 2, "max_units": 1},
    **{"first_look": 0, "max_clusters": 1, "threads": 1, "processes": 1, "gpus": 0, "devices": 1},
    **{"prompts": 1, "tokens": 1},
}
TYPED = {
    "heads": " Each is LAYER.HEAD, both counted from 0, as in 2.1; repeat it for several.",
    "layers": " Layers are counted from 0; repeat it for several.",
    "memory_budget": " Units can be given, as in 512MB or 2GB.",
}
"""What help adds of how it is typed."""
CHECKED = {"seed": no_larger_seed, "threads": no_more_than_cpus}
PARSED: dict[str, tuple[Callable[[str], Any], str]] = {
    **{"memory_budget": (bytes_of, "SIZE"), "top": (number, "N"), "audit": (number, "N")},
    **{"claims": (Path, "FILE"), "out": (Path, "DIR"), "runs": (Path, "DIR"), "store": (Path, "DIR")},
}
"""What is read of a field's text, and what help calls it."""
REPEATED = {"data": "FILE", "choose_on": "FILE", "task": "NAME", "sibling": "NAME", "tokenizer": "NAME"}
"""What help calls the texts of a ``list``; others are lists of names, with commas."""
PYTHON = re.compile(r"; in Python [^.;]*|``")
"""What help leaves out of a docstring."""
AN_OPTION = re.compile(r"``(\w+)=``")


@dataclass(frozen=True)
class Fields:
    """Beside a dataclass in a command's signature: which fields are options, and which of these must be given."""

    without: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    required: tuple[str, ...] = ()

    def __contains__(self, name: str) -> bool:
        return name not in self.without and (not self.only or name in self.only)


def from_dataclasses(function: Callable[..., None]) -> Callable[..., None]:
    """The function as a command of Typer, whose parameters that are dataclasses are options, a field each."""
    groups: dict[str, tuple[Any, list[str]]] = {}
    parameters: list[Parameter] = []
    for each in signature(function).parameters.values():
        kind, *notes = get_args(each.annotation) if get_origin(each.annotation) is Annotated else (each.annotation,)
        if not is_dataclass(kind):
            parameters.append(each.replace(kind=Parameter.KEYWORD_ONLY))
            continue
        options = list(_options_of(kind, next((note for note in notes if isinstance(note, Fields)), Fields())))
        groups[each.name] = (kind, [option.name for option in options])
        parameters += options

    @wraps(function)
    def command(**given: Any) -> None:
        for name, (kind, known) in groups.items():
            hints = get_type_hints(kind)
            given[name] = kind(**{field: _value(field, hints[field], given.pop(field)) for field in known})
        function(**given)

    command.__signature__ = Signature(parameters)  # type: ignore[attr-defined]  # Typer reads it
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    return command


def helps(options: type) -> dict[str, tuple[str, str]]:
    """Of each field in the docstrings of a class and its bases: its help, and what help shows as the default."""
    found: dict[str, tuple[str, str]] = {}
    for each in reversed(options.__mro__):
        lines = cleandoc(each.__doc__ or "").partition("Attributes:\n")[2]
        for name, text in re.findall(r"^    (\w+): (.*(?:\n     +.*)*)", lines, re.MULTILINE):
            said = PYTHON.sub("", AN_OPTION.sub(r"--\1", " ".join(text.split())))
            default = re.search(r"[;,]? ?\bNone for ((?:[^.;]|\.(?=\w))*)", said)
            found[name] = (said, "") if default is None else (said.replace(default[0], ""), default[1])
    return found


def _options_of(options: Any, wanted: Fields) -> Iterator[Parameter]:
    hints, texts = get_type_hints(options), helps(options)
    for each in fields(options):
        if each.init and each.name in wanted:
            yield _option(each, hints[each.name], *texts[each.name], required=each.name in wanted.required)


def _option(field: "Field[Any]", hint: Any, text: str, shown: str, *, required: bool) -> Parameter:
    name, default = field.name, ",".join(field.default) if isinstance(field.default, tuple) else field.default
    kind, metavar = _kind(name, hint)
    more: dict[str, Any] = {"min": LEAST[name]} if name in LEAST else {}
    if name in PARSED:
        more["parser"], metavar = PARSED[name]
    flag = flag_of(name)
    option = typer.Option(
        f"{flag}/--no-{flag[2:]}" if kind is bool and default else flag,
        help=text + TYPED.get(name, ""),
        metavar=metavar,
        callback=CHECKED.get(name),
        show_default=shown or default not in (None, MISSING),
        rich_help_panel=next((panel for panel, names in PANELS.items() if name in names), MEASURED),
        autocompletion=COMPLETED.get(name),
        **more,
    )
    default = Parameter.empty if required or default is MISSING else default
    return Parameter(name, Parameter.KEYWORD_ONLY, annotation=Annotated[kind, option], default=default)


def flag_of(name: str) -> str:
    """How a field is typed."""
    return FLAGS.get(name, f"--{name.replace('_', '-')}")


def _kind(name: str, hint: Any) -> tuple[Any, str | None]:
    """What the command line takes for a type, and what help calls it."""
    parts = _parts(hint)
    plain = next((each for each in parts if each not in (NoneType, Any)), Any)
    if name == "heads":
        return list[str] | None, "LAYER.HEAD"
    if name == "layers":
        return list[int] | None, "N"
    if plain is bool:
        return bool, None
    if get_origin(plain) is list:
        return hint, REPEATED.get(name, "NAMES")
    kind, metavar = (str, "NAMES") if _several(hint) else (plain, {int: "N", float: "X"}.get(plain, "NAME"))
    return (kind | None if NoneType in parts else kind), metavar


def _parts(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _several(hint: Any) -> bool:
    return any(get_origin(each) not in (None, Literal, Callable) for each in _parts(hint))


def _value(name: str, hint: Any, given: Any) -> Any:
    """A field's value of what was typed."""
    if name == "heads" and given:
        from interp.methods.ablation import parse_head

        return [parse_head(each) for each in given]
    if isinstance(given, list | tuple):
        return list(given) or None
    if not _several(hint) or not isinstance(given, str):
        return given
    names = axes_of(given)
    if name == "penalties":
        return [number(each) for each in names]
    return names[0] if len(names) == 1 and str in _parts(hint) else names
