"""In which of its senses does a word stand, where only what stands before it can say? Sentences with gold senses.

1. A lemma has a file in ``word_senses/``: for each of its senses as many clauses, written by hand, and frames that suit
   every sense and hold the word: *The clerk had counted all the gold coins* and *, and so he hurried to the bank.*
2. The first clause of each sense goes into the first frame, the second into the second, and so on, beginning anew after
   the last. First clauses have as many words, second ones have, ...: so neither the word's form nor its place nor the
   frame around it differs from one sense to the other.
3. A clause is used once, and every sentence is a document: a probe is tested on clauses that it was not trained on, and
   there are as many clusters as sentences.
"""

import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib.resources import files
from typing import Any

from interp.errors import TaskError, suggest
from interp.tasks.generated_corpus import words_of
from interp.tasks.treebank import Document, Sentence

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_PREFIX = "senses:"
LEMMAS = ("bank", "run")
"""That there are sentences of."""


def is_senses(source: object) -> bool:
    """Whether `source` names the sentences of a lemma, as ``senses:bank`` does."""
    return isinstance(source, str) and source.startswith(_PREFIX)


def senses(lemma: str) -> list[Document]:
    """Sentences with a word in one of its senses, sense by sense; every one is a document.

    The word has the lemma and the ``sense``; so the feature ``sense:LEMMA`` is read at it.

    Args:
        lemma: One of ``LEMMAS``, or the same after ``senses:``.

    Raises:
        TaskError: There are no sentences of the lemma.
    """
    name = lemma.removeprefix(_PREFIX)
    if name not in LEMMAS:
        raise TaskError(f"senses of {name!r}: expected a lemma that there are sentences of; {suggest(name, LEMMAS)}")
    file = files("interp.tasks.word_senses") / f"{name}.toml"
    return list(_documents(name, tomllib.loads(file.read_text(encoding="utf-8"))))


def _documents(lemma: str, given: dict[str, Any]) -> Iterator[Document]:
    frames = given["frames"]
    for sense, clauses in given["senses"].items():
        for number, clause in enumerate(clauses):
            name, text = f"{lemma}-{sense}-{number + 1}", clause + frames[number % len(frames)]
            yield Document(name, (_sentence(name, text, lemma, sense),))


def _sentence(name: str, text: str, lemma: str, sense: str) -> Sentence:
    """With the sense at the lemma's last occurrence, which is the frame's."""
    words = list(words_of(text))
    at = max(number for number, word in enumerate(words) if word.form == lemma)
    words[at] = replace(words[at], lemma=lemma, sense=sense)
    return Sentence(name, text, tuple(words))
