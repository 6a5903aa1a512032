"""A corpus: documents that can be read again and again, without ever being held together."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, count
from pathlib import Path

from interp.errors import TaskError
from interp.tasks.generated_corpus import is_senses, senses
from interp.tasks.readers.conllu import read_conllu
from interp.tasks.readers.sources import is_hub
from interp.tasks.relations import Direction, occurring
from interp.tasks.treebank import Document, Word

Documents = str | Path | Iterable[str | Path | Document]
"""What a corpus can be given as: a file, a data set of the hub (``hub:...``) or the sentences of an ambiguous word
(``senses:bank``), several of them, or documents."""


def is_named(source: object) -> bool:
    """Whether `source` is the name of texts that are in no file here."""
    return isinstance(source, str) and (is_hub(source) or is_senses(source))


@dataclass(frozen=True)
class Corpus:
    """Documents, read anew each time.

    Attributes:
        sources: Files in CoNLL-U, names of texts and documents, in order.
        without: Documents that are passed over, by the hash that ``contents`` has of them.
    """

    sources: tuple[str | Path | Document, ...]
    without: frozenset[str] = frozenset()

    @classmethod
    def of(cls, given: "Documents | Corpus") -> "Corpus":
        """The corpus that `given` stands for.

        Raises:
            TaskError: It is nothing of the kind, or can be read only once.
        """
        if isinstance(given, Corpus):
            return given
        if isinstance(given, str | Path | Document):
            return cls((given,))
        if isinstance(given, Iterator) or not isinstance(given, Iterable):
            raise TaskError(
                f"corpus: expected files in CoNLL-U, or a list of documents, which can be read twice, got "
                f"{given!r:.80}; give the paths, or list(...)"
            )
        sources = tuple(given)
        bad = next((each for each in sources if not isinstance(each, str | Path | Document)), None)
        if bad is not None or not sources:
            raise TaskError(
                f"corpus: expected paths or documents, got {bad!r:.80}" if sources else "corpus: got nothing"
            )
        return cls(sources)

    def __iter__(self) -> Iterator[Document]:
        """Every document; one named as an earlier one gets its source's number, or the next that is free."""
        seen: set[str] = set()
        counted: Contents | None = vars(self).get("contents")
        for number, source in enumerate(self.sources, start=1):
            for document in self._read(source):
                if self.without and _hash(document) in self.without:
                    continue
                numbered = (f"{document.id} ({each})" for each in count(number))
                name = next(each for each in chain([document.id], numbered) if each not in seen)
                seen.add(name)
                if counted is not None and counted.digests.get(name) != _hash(document):
                    raise _changed(name)
                yield Document(name, document.sentences, document.mentions)
        if counted is not None and len(seen) < len(counted.documents):
            raise _changed(next(name for name in counted.documents if name not in seen))

    @staticmethod
    def _read(source: str | Path | Document) -> Iterable[Document]:
        if isinstance(source, Document):
            return [source]
        return senses(str(source)) if is_senses(source) else read_conllu(source)

    @cached_property
    def contents(self) -> "Contents":
        """What is in it, counted at the first reading.

        Raises:
            TaskError: As ``read_conllu``.
        """
        documents, digests, hashes = dict[str, int](), dict[str, str](), dict[str, str]()
        n_sentences, n_mentions, relations, digest = 0, 0, Counter[Direction](), hashlib.sha256()
        for document in self:
            documents[document.id] = sum(len(sentence.words) for sentence in document.sentences)
            n_sentences += len(document.sentences)
            n_mentions += len(document.mentions)
            relations.update(occurring(document))
            own = digests[document.id] = _hash(document)
            digest.update(json.dumps([document.id, own, [each.id for each in document.sentences]]).encode())
            if len(document.sentences) > 1:
                hashes[own] = document.id
        return Contents(documents, n_sentences, n_mentions, relations, digest.hexdigest(), hashes, digests)


@dataclass(frozen=True)
class Contents:
    """What is in a corpus.

    Attributes:
        documents: Words of each document, by its name.
        n_sentences: Sentences.
        n_mentions: Mentions of entities.
        relations: How often each direction of each relation occurs.
        hash: SHA-256 of names, texts, trees, links and mentions.
        hashes: Documents of several sentences (a short sentence recurs), by the SHA-256 of all but their names.
        digests: That of each document, by its name.
    """

    documents: dict[str, int]
    n_sentences: int
    n_mentions: int
    relations: Counter[Direction]
    hash: str
    hashes: Mapping[str, str]
    digests: Mapping[str, str]


def _changed(name: str) -> TaskError:
    return TaskError(f"{name}: the corpus has changed since its documents were counted; read its files again")


def _hash(document: Document) -> str:
    sentences = [
        (each.text, list(map(_said, each.words)), [list(vars(link).values()) for link in each.links])
        for each in document.sentences
    ]
    mentions = [(each.entity, each.type, each.sentence, each.words, each.head) for each in document.mentions]
    return hashlib.sha256(json.dumps([sentences, mentions]).encode()).hexdigest()


def _said(word: Word) -> list[object]:
    feats, span = sorted((word.feats or {}).items()), (word.span.start, word.span.stop)
    return [word.form, word.lemma, word.upos, word.xpos, feats, word.head, word.deprel, word.sense, span]
