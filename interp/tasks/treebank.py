"""Documents of sentences of words, with trees and coreference, as plain frozen dataclasses.

Words are Universal Dependencies' syntactic words. Everything counts in characters and words: how words become a
tokenizer's tokens is the concern of ``tasks/alignment.py``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from interp.errors import TaskError
from interp.tasks.example import Span

ROOT = -1
HELPING = ("aux", "aux:pass", "cop")
"""Relations of the words that belong to a verb."""
Number = Literal["singular", "plural"]
NUMBERS: dict[str, Number] = {"Sing": "singular", "Plur": "plural"}
"""By the morphological feature ``Number``."""


@dataclass(frozen=True)
class Word:
    """A syntactic word.

    Attributes:
        form: As it is spelled.
        span: Its characters in the sentence's text. The words of a multiword token that do not spell it share its span.
        lemma: Its dictionary form; empty where it is not annotated, as the following are.
        upos: Universal part of speech, such as ``NOUN``.
        xpos: The treebank's own part of speech, such as ``NNS``.
        feats: Morphological features, such as ``{"Number": "Plur"}``.
        head: Number of its head in the sentence, from 0; ``ROOT`` for the root.
        deprel: The relation to its head, with its subtype, such as ``nsubj:pass``.
        sense: Which of its lemma's senses it has.
    """

    form: str
    span: Span
    lemma: str = ""
    upos: str = ""
    xpos: str = ""
    feats: Mapping[str, str] | None = None
    head: int = ROOT
    deprel: str = ""
    sense: str = ""


@dataclass(frozen=True)
class Link:
    """Any other relation between two words of a sentence, by its name.

    Attributes:
        name: What relates them.
        query: The word that is to find the other.
        related: The word to be found.
    """

    name: str
    query: int
    related: int


@dataclass(frozen=True)
class Sentence:
    """A sentence with its tree.

    Attributes:
        id: Its name.
        text: As it is written.
        words: In order.
        links: Other relations between its words.

    Raises:
        TaskError: A head, a link or a word's characters stand outside of the sentence.
    """

    id: str
    text: str
    words: tuple[Word, ...]
    links: tuple[Link, ...] = ()

    def __post_init__(self) -> None:
        places = range(len(self.words))
        for number, word in enumerate(self.words):
            if word.head not in places and word.head != ROOT:
                raise TaskError(f"{self.id}: word {number} has the head {word.head}, expected 0 to {len(places) - 1}")
            if not 0 <= word.span.start < word.span.stop <= len(self.text):
                raise TaskError(f"{self.id}: word {number} stands at {word.span}, expected characters of {self.text!r}")
        for link in self.links:
            if link.query not in places or link.related not in places:
                raise TaskError(f"{self.id}: {link} names no word of the sentence, expected 0 to {len(places) - 1}")


@dataclass(frozen=True)
class Mention:
    """Some words of one sentence that refer to an entity.

    Attributes:
        entity: The entity's name in its document.
        type: Of the entity, such as ``person``; empty where it is not annotated.
        sentence: Number of the sentence in the document.
        words: Numbers of the words in the sentence; those of a discontinuous mention are not adjacent.
        head: The word of the mention whose head is outside of it (the first, where there are several).
    """

    entity: str
    type: str
    sentence: int
    words: tuple[int, ...]
    head: int


@dataclass(frozen=True)
class Document:
    """What the statistics resample: sentences that belong together, and what they speak of.

    Attributes:
        id: Its name.
        sentences: In order.
        mentions: In the order of their first words, the longer first.

    Raises:
        TaskError: A mention names a sentence or a word that is not there.
    """

    id: str
    sentences: tuple[Sentence, ...]
    mentions: tuple[Mention, ...] = ()

    def __post_init__(self) -> None:
        for each in self.mentions:
            length = len(self.sentences[each.sentence].words) if 0 <= each.sentence < len(self.sentences) else 0
            if not all(0 <= word < length for word in (*each.words, each.head)):
                raise TaskError(f"{self.id}: {each} names a sentence or a word that is not there")

    def head_of(self, mention: Mention) -> Word:
        """The head of a mention."""
        return self.sentences[mention.sentence].words[mention.head]


def joined(sentences: Sequence[Sentence]) -> tuple[str, list[list[Span]]]:
    """The text of sentences that are joined by a space, and where the words of each stand in it."""
    begin, spans = 0, []
    for sentence in sentences:
        spans.append([Span(begin + word.span.start, begin + word.span.stop) for word in sentence.words])
        begin += len(sentence.text) + 1
    return " ".join(sentence.text for sentence in sentences), spans
