"""What does a model read at once, and which words are wanted of it? Anything that has these attributes."""

from collections.abc import Sequence
from typing import Protocol, TypeVar, runtime_checkable


@runtime_checkable
class ReadWord(Protocol):
    """A word whose activations are wanted."""

    @property
    def sentence(self) -> str:
        """The name of its sentence."""
        ...

    @property
    def word(self) -> int:
        """Its number there."""
        ...

    @property
    def form(self) -> str:
        """As it is spelled."""
        ...

    @property
    def tokens(self) -> Sequence[int]:
        """Its positions in the row, in order; at least one."""
        ...


@runtime_checkable
class Passage(Protocol):
    """A row of tokens that a model reads at once."""

    @property
    def document(self) -> str:
        """Where it is from."""
        ...

    @property
    def ids(self) -> Sequence[int]:
        """Token ids, special tokens included."""
        ...

    @property
    def words(self) -> Sequence[ReadWord]:
        """The words that are read in it."""
        ...


AnyPassage = TypeVar("AnyPassage", bound=Passage)


def named(passage: Passage, word: ReadWord) -> str:
    """Where a word stands, for messages."""
    return f"document {passage.document!r}, sentence {word.sentence!r}, word {word.word} ({word.form!r})"
