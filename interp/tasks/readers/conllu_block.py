"""What is a sentence of CoNLL-U before it is parsed? A block of lines, each with the place that an error names."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from interp.errors import TaskError
from interp.tasks.readers.lines import numbered_lines, read_only_once


@dataclass(frozen=True)
class Line:
    """A line and where it is from.

    Attributes:
        place: Such as ``bank.conllu, line 3``.
        text: The line.
    """

    place: str
    text: str


@dataclass(frozen=True)
class Block:
    """A sentence's lines.

    Attributes:
        name: The sentence's, where no comment says it.
        lines: Comments and words; at least one.
    """

    name: str
    lines: tuple[Line, ...]

    @property
    def comments(self) -> list[Line]:
        """The lines that are comments."""
        return [line for line in self.lines if line.text.startswith("#")]

    @property
    def words(self) -> list[Line]:
        """The lines that are no comments."""
        return [line for line in self.lines if not line.text.startswith("#")]


def file_blocks(path: Path) -> Iterator[Block]:
    """The sentences of a file: what stands between blank lines.

    Raises:
        TaskError: As ``numbered_lines``; or there is none, or the file is a pipe: a treebank is read again and again.
    """
    if read_only_once(path):
        raise TaskError(f"{path}: expected a CoNLL-U file, got a pipe, which can be read only once; write it to a file")
    lines: list[Line] = []
    n_blocks = 0
    for number, text in numbered_lines(path, "a CoNLL-U file", "name one .conllu file in it"):
        if text.strip():
            lines.append(Line(f"{path}, line {number}", text))
        elif lines:
            n_blocks += 1
            yield Block(f"{path.stem}-{n_blocks}", tuple(lines))
            lines = []
    if lines:
        yield Block(f"{path.stem}-{n_blocks + 1}", tuple(lines))
    elif not n_blocks:
        raise TaskError(f"{path}: expected sentences in CoNLL-U, got an empty file")


@contextmanager
def placed(place: str) -> Iterator[None]:
    """Turn a ``ValueError`` about a line into a ``TaskError`` that names its place."""
    try:
        yield
    except TaskError:
        raise
    except ValueError as error:
        raise TaskError(f"{place}: {error}") from error
