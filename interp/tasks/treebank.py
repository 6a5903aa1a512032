"""What does a treebank hold? Documents of sentences of words, with trees and coreference, as plain frozen dataclasses.

Words are Universal Dependencies' syntactic words. Everything counts in characters and words: how words become a
tokenizer's tokens is the concern of ``tasks/word_tokens.py``.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from interp.tasks.example import Span

ROOT = -1


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
    """

    form: str
    span: Span
    lemma: str = ""
    upos: str = ""
    xpos: str = ""
    feats: Mapping[str, str] | None = None
    head: int = ROOT
    deprel: str = ""


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
    """

    id: str
    text: str
    words: tuple[Word, ...]
    links: tuple[Link, ...] = ()


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
    """

    id: str
    sentences: tuple[Sentence, ...]
    mentions: tuple[Mention, ...] = ()
