"""Tasks of one's own, by the name of a file: ``FILE.jsonl`` and ``FILE.py:NAME``.

1. A file of JSON has a minimal pair a line (``readers/minimal_pairs.py``).
2. A Python file is run, and ``NAME`` of it is a function, or what a function would return: minimal pairs, or a task.
   A function is called with those of ``tokenizer``, ``n`` and ``seed`` that it has as parameters. The file's hash is
   part of what a run is found by.
3. The relation looks from the predicting position where every query ends the prompt. The feature is the one that all
   examples name, if it is only one. Where an answer has several tokens, all are scored by their log-probability.
"""

import hashlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

from interp.arguments import as_list
from interp.errors import InterpError, TaskError, shown, suggest
from interp.tasks.encoding import TaskInfo, TaskRequest
from interp.tasks.example import Example, MinimalPair
from interp.tasks.readers.minimal_pairs import read_pairs
from interp.tasks.readers.sources import as_path
from interp.tasks.task import Query, Task


def own_info(name: str) -> TaskInfo:
    """What is known of such a task before it is read."""
    return TaskInfo(name, f"The minimal pairs of {Path(name).name}.", metric=None)


def load_own(request: TaskRequest) -> Task:
    """Read the task.

    Raises:
        TaskError: The file, or what it holds, cannot be used.
        NotCarriedError: The tokenizer can carry none of its pairs.
    """
    if str(request.source).endswith(".jsonl"):
        return _encoded(request, list(read_pairs(as_path(request.source))))
    file, _, name = str(request.source).rpartition(":")
    path = as_path(file)
    with _told(request.name, path):
        given, takes_n = _made(_module(path), name, request, path)
        several = given if isinstance(given, Task) else as_list(given)
    source = hashlib.sha256(path.read_bytes()).hexdigest()
    if isinstance(several, Task):
        asked = {
            name: getattr(request, name) for name in ("counterfactual", "known_words_only", "unequal_lengths", "chat")
        }
        for name, value in {"n": None if takes_n else request.n, **asked}.items():
            if value:
                raise TaskError(
                    f"{request.name}: {name}: expected none, since it makes a task and no pairs, got {value}; "
                    "leave it out, or return pairs"
                )
        return replace(several, name=request.name, source_hash=source)
    if several is None:
        raise TaskError(f"{request.name}: expected minimal pairs or a task, got {shown(given)}; return a list of pairs")
    return replace(_encoded(replace(request, n=None if takes_n else request.n), several), source_hash=source)


def _encoded(request: TaskRequest, pairs: Sequence[Any]) -> Task:
    if others := [each for each in pairs if not isinstance(each, MinimalPair)]:
        raise TaskError(f"{request.name}: expected minimal pairs (interp.MinimalPair), got {shown(others[0])}")
    chosen = request.choose(pairs, lambda pair: [each.text for each in pair.examples])
    examples = [each for pair in chosen for each in pair.examples]
    info = replace(request.info, query=_query(examples), feature=_feature(examples))
    return replace(request, info=info).encode(chosen)


def _query(examples: Sequence[Example]) -> Query:
    ends = (each.relation is None or each.relation.query.stop == len(each.prompt.rstrip()) for each in examples)
    return "predicting position" if all(ends) else "later word"


def _feature(examples: Sequence[Example]) -> str | None:
    named = set.intersection(*(set(each.features) for each in examples)) if examples else set()
    return named.pop() if len(named) == 1 else None


def _module(path: Path) -> ModuleType:
    """The file, run as a module, with its folder in front of where modules are looked for."""
    if not path.is_file():
        raise TaskError(
            f"{path}: expected a Python file, got {'a folder' if path.is_dir() else 'no such file'}; check the path"
        )
    name = f"interp_task_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise TaskError(f"{path}: expected a Python file that can be run; check the path")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where dataclasses look for it
    sys.path.insert(0, str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(path.resolve().parent))
    return module


def _is_own(value: Any, module: ModuleType) -> bool:
    """Whether a value of a module was made there, as far as it says."""
    return not inspect.ismodule(value) and getattr(value, "__module__", module.__name__) == module.__name__


def _made(module: ModuleType, name: str, request: TaskRequest, path: Path) -> tuple[Any, bool]:
    """What is called `name`, or what it returns, and whether it drew as many as were asked for."""
    if not hasattr(module, name):
        known = [each for each, value in vars(module).items() if not each.startswith("_") and _is_own(value, module)]
        raise TaskError(f"{path}: expected a function or a list called {name!r}, got none; {suggest(name, known)}")
    given = getattr(module, name)
    if not callable(given):
        return given, False
    offered: Mapping[str, Any] = {"tokenizer": request.tokenizer, "n": request.n, "seed": request.seed}
    parameters = inspect.signature(given).parameters
    taken = {each: value for each, value in offered.items() if each in parameters}
    if "n" in taken and request.n is None and parameters["n"].default is not inspect.Parameter.empty:
        del taken["n"]  # the function's own number
    made = given(**taken)
    return (list(made) if inspect.isgenerator(made) else made), "n" in parameters


@contextmanager
def _told(name: str, path: Path) -> Iterator[None]:
    """Turn whatever the file raises into one error that says where."""
    try:
        yield
    except InterpError:
        raise
    except (Exception, SystemExit) as error:
        own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path.absolute())]
        line = error.lineno if isinstance(error, SyntaxError) else own[-1].lineno if own else None
        where = "" if line is None else f" in line {line}"
        said = next(iter(str(error).splitlines()), "")
        raise TaskError(f"{name}: the file raised {type(error).__name__}{where}: {said}; mend it") from error
