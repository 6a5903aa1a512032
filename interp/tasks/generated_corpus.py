"""Corpora without a file: generated tasks as linked sentences, and hand-written sentences of ambiguous words.

``linked_documents``: each example is a sentence, its prompt with the right continuation. The relation is a link from
the word that looks (the last one before the answer) to the related word. Pairs of one cluster are one document, so that
statistics resample what they should.

``senses``: a lemma has a file in ``word_senses/`` with as many clauses for each of its senses, and frames that suit
every sense and hold the word: *The clerk had counted all the gold coins* and *, and so he hurried to the bank.* The
first clause of each sense goes into the first frame, the second into the second, and so on. First clauses have as many
words, second ones have, ...: neither the word's form nor its place nor its frame differs between senses. Every sentence
is a document.
"""

import re
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from importlib.resources import files
from itertools import cycle

from interp.errors import TaskError, suggest
from interp.tasks.example import Example, MinimalPair, Span
from interp.tasks.treebank import Document, Link, Sentence, Word

_WORD = re.compile(r"\w+(?:['-]\w+)*|[^\w\s]")


def linked_documents(pairs: Iterable[MinimalPair]) -> Iterator[Document]:
    """The pairs as documents of linked sentences, one for each cluster, in the order of their first pairs.

    Args:
        pairs: As a generated task draws them, for example ``interp.tasks.agreement.pairs(400, seed=0)``.

    Yields:
        One document for each cluster, which ``interp.attend`` and ``interp.probe`` read.

    Examples:
        >>> from interp.tasks import agreement
        >>> from interp.tasks.generated_corpus import linked_documents
        >>> corpus = list(linked_documents(agreement.pairs(40, seed=0)))
        >>> sum(len(document.sentences) for document in corpus)
        80
    """
    clusters: dict[str, list[Example]] = defaultdict(list)
    for pair in pairs:
        clusters[pair.cluster] += pair.examples
    for name, examples in clusters.items():
        sentences = (_sentence(f"{name}-{number}", each) for number, each in enumerate(examples, start=1))
        yield Document(name, tuple(sentences))


def words_of(text: str) -> tuple[Word, ...]:
    """The words of a plain English text, punctuation marks among them."""
    return tuple(Word(found.group(), Span(*found.span())) for found in _WORD.finditer(text))


def _sentence(name: str, example: Example) -> Sentence:
    words, relation = words_of(example.text), example.relation
    links = [Link(each.name, _last(words, each.query), _last(words, each.related)) for each in [relation] if each]
    return Sentence(name, example.text, words, tuple(links))


def _last(words: tuple[Word, ...], span: Span) -> int:
    """The last word that begins within the span."""
    return max(number for number, word in enumerate(words) if span.start <= word.span.start < span.stop)


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
    file = files("interp.tasks") / "word_senses" / f"{name}.toml"
    given = tomllib.loads(file.read_text(encoding="utf-8"))
    documents = []
    for sense, clauses in given["senses"].items():
        for number, (clause, frame) in enumerate(zip(clauses, cycle(given["frames"]), strict=False), start=1):
            words = list(words_of(clause + frame))
            at = max(place for place, word in enumerate(words) if word.form == name)  # the last one is the frame's
            words[at] = replace(words[at], lemma=name, sense=sense)
            its_name = f"{name}-{sense}-{number}"
            documents.append(Document(its_name, (Sentence(its_name, clause + frame, tuple(words)),)))
    return documents
