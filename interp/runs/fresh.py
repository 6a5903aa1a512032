"""Answers that are asked for anew (``fresh=True``, ``--fresh``): kept under a new key, beside the old ones.

1. All that one command or call asks anew is one generation, numbered one higher than any before in the folder of runs.
   The answer to the question ``KEY`` of generation N is kept in ``KEY-N``.
2. Who asks without ``fresh`` gets the newest answer that is finished and intact. So an old one holds until then.
3. While generation N is not complete, a file ``FIRST-N.fresh`` says so; ``FIRST`` is its first question. Interrupted or
   killed, the same call with ``fresh`` finds the file, and goes on with N. One process at a time holds the file.
4. Nothing is replaced. ``interp runs rm`` removes answers that nobody needs.
"""

import logging
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path

from interp.runs.files import locked, writing
from interp.runs.key import KEY, RESULT

_LOG = logging.getLogger(__name__)
_MARK = re.compile(rf"{KEY.pattern}\.fresh")


@dataclass
class _Together:
    """What one command or call asks anew: its generation and keys, by the folder of runs, and the files it holds."""

    generations: dict[Path, int]
    marks: dict[Path, Path] = field(default_factory=dict)
    keys: dict[Path, set[str]] = field(default_factory=dict)
    held: ExitStack = field(default_factory=ExitStack)


_together: ContextVar[_Together | None] = ContextVar("together", default=None)


@contextmanager
def asked_together(root: Path | None = None, generation: int = 0) -> Iterator[None]:
    """Questions that are asked anew in the block are one generation; in an outer block, they are of that one's.

    In the folder of runs `root`, `generation` is gone on with; 0 is a new one, or what the first question has begun.
    """
    if _together.get() is not None and not generation:
        yield
        return
    block = _Together({} if root is None else {root: generation})
    token = _together.set(block)
    try:
        with block.held:
            yield
            for each, mark in block.marks.items():
                _end(each, mark, block.keys[each])
    finally:
        _together.reset(token)


def generation_of(root: Path, question: str | None = None) -> int:
    """The present block's generation in a folder of runs, which its first question begins, or goes on with."""
    block = _together.get()
    assert block is not None, "it is asked for in a block"
    if question is not None and root not in block.marks:
        with writing(root, "folder of runs"):
            root.mkdir(parents=True, exist_ok=True)
            generation = block.generations.get(root) or _begun(root, question)
        mark = root / f"{question}-{generation}.fresh"
        block.held.enter_context(locked(mark, mark, "what is measured again in"))
        block.held.callback(_forget, root, mark, generation)
        block.marks[root], block.generations[root] = mark, generation
    if question is not None:
        block.keys.setdefault(root, set()).add(f"{question}-{block.generations[root]}")
    return block.generations[root]


def generations(root: Path, question: str) -> list[int]:
    """The generations of a question's answers that are there, complete or not, the newest first; 0 is the last."""
    found = [KEY.fullmatch(path.name) for path in root.glob(f"{question}-*")]
    return [*sorted((int(match[2]) for match in found if match is not None), reverse=True), 0]


def _begun(root: Path, question: str) -> int:
    """The generation that this question has begun and not completed, or the next number."""
    names = [path.name for path in root.iterdir()]
    marks = [match for match in map(_MARK.fullmatch, names) if match is not None]
    runs = [match for match in map(KEY.fullmatch, names) if match is not None]
    begun = [int(match[2]) for match in marks if match[1] == question and match[2]]
    return max(begun, default=0) or 1 + max((int(match[2] or 0) for match in (*marks, *runs)), default=0)


def _end(root: Path, mark: Path, keys: set[str]) -> None:
    """Complete a generation: all its questions are answered, or were refused and have left nothing."""
    if any((root / key).exists() and not (root / key / RESULT).exists() for key in keys):
        _LOG.warning("%s: not all is complete; the answers of before stay, and the same call goes on", root)
        return
    with writing(root, "folder of runs"):
        mark.unlink(missing_ok=True)


def _forget(root: Path, mark: Path, generation: int) -> None:
    """Delete the file of a generation of which nothing is kept."""
    with suppress(OSError):
        if not any(root.glob(f"*-{generation}")):
            mark.unlink(missing_ok=True)
