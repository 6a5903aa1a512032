"""Rows of tokens with labelled words: what a probe reads.

1. Of a task: every example's prompt, and in it the position that predicts the answer (or the related word). Its labels
   are the example's features; the related word carries them.
2. Of a corpus: every word that has tokens of its own, in windows of its document (``alignment.py``), with what
   ``tasks/features.py`` finds out about it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pandas as pd

from interp.errors import TaskError
from interp.tasks.alignment import NONE, Window, Windows
from interp.tasks.features import Label, labels_of
from interp.tasks.task import EncodedExample, Task, Unit
from interp.tasks.treebank import Document

At = Literal["query", "related"]
Context = Literal["document", "sentence"]


@dataclass(frozen=True)
class ReadWord:
    """A word whose activations are wanted.

    Attributes:
        sentence: The name of its sentence; of a task the number of the example.
        word: Its number there, from 0.
        form: As it is spelled.
        tokens: Its positions in the row, in order.
        labels: What is known of it, by the feature's name.
    """

    sentence: str
    word: int
    form: str
    tokens: tuple[int, ...]
    labels: Mapping[str, Label]


@dataclass(frozen=True)
class Passage:
    """A row of tokens that a model reads at once, and the words that are read in it.

    Attributes:
        document: What is resampled: the document; of a task the lexical draw.
        template: A stratum of the statistics; empty where there is none.
        ids: Token ids, special tokens included.
        words: In order; at least one.
    """

    document: str
    template: str
    ids: tuple[int, ...]
    words: tuple[ReadWord, ...]


def task_passages(task: Task, at: At = "query") -> Iterator[Passage]:
    """Every example's prompt, with one word that is read.

    Args:
        task: Its examples' relations say where.
        at: Where a head looks back from, ``query``, or the word that carries the features, ``related``.

    Yields:
        One passage for each example that has the word, for ``collect``.

    Raises:
        TaskError: No example has the word that is asked for.

    Examples:
        >>> from interp.tasks.passages import task_passages
        >>> len(list(task_passages(interp.load_task("agreement", tokenizer=interp.load_model().tokenizer, n=4))))
        8
    """
    found = 0
    examples = ((unit, encoded) for unit in task.units for encoded in unit.examples)
    for number, (unit, encoded) in enumerate(examples):
        tokens = (encoded.looking,) if at == "query" else encoded.related
        if tokens and max(tokens) < len(encoded.prompt):
            found += 1
            word = _read_word(str(number), unit, encoded, tokens)
            yield Passage(unit.cluster, encoded.example.template, encoded.prompt + encoded.after, (word,))
    if not found:
        raise TaskError(f"{task.name}: no prompt holds a related word; read the predicting position: at='query'")


def _read_word(name: str, unit: Unit, encoded: EncodedExample, tokens: tuple[int, ...]) -> ReadWord:
    example = encoded.example
    relation = example.relation
    carrier = "" if relation is None else relation.related.of(example.text).lower()
    # Of a generated pair the lexical draw is the carrier's lemma; of real text it is a document.
    lemma = carrier if unit.counterfactual is None else unit.cluster
    labels = {name: Label(value, carrier, lemma) for name, value in example.features.items()}
    read = example.prompt.split()
    number = len(read) - 1
    if relation is not None and tokens != (encoded.critical,):
        span = relation.related if tokens == encoded.related else relation.query
        number = len(example.text[: span.start].split())
        read = span.of(example.text).split()
    return ReadWord(name, number, read[-1], tokens, labels)


@dataclass
class CorpusPassages:
    """A corpus as passages.

    Attributes:
        documents: Read anew each time.
        windows: Cuts them for one model; names what is too long.
        features: What is to be found out about each word.
        context: Whether windows of documents are read, or sentences by themselves.
        only: Whether words without any of the features are left out.
        unaligned: After reading: words without tokens of their own, by the reason.
    """

    documents: Iterable[Document]
    windows: Windows
    features: Sequence[str]
    context: Context = "document"
    only: bool = False
    unaligned: Counter[str] = field(default_factory=Counter)

    def __iter__(self) -> Iterator[Passage]:
        """Every window that has a word to be read."""
        self.unaligned.clear()
        cut = self.windows.documents if self.context == "document" else self.windows.sentences
        for document in self.documents:
            for window in cut(document):
                words = tuple(self._words(window))
                if words:
                    yield Passage(window.document, "", window.tokens.ids, words)

    def _words(self, window: Window) -> Iterator[ReadWord]:
        labels = labels_of(window, self.features)
        tokens = window.tokens
        sentence = np.searchsorted(np.array(window.starts), np.arange(len(window.words)), side="right") - 1
        for number in range(window.first_query, len(window.words)):
            if self.only and number not in labels:
                continue
            unit = tokens.unit_of_word[number]
            if unit == NONE:
                self.unaligned["no token of its own"] += 1
                continue
            places, at = tuple(np.flatnonzero(tokens.unit_of_token == unit).tolist()), int(sentence[number])
            name, form = window.sentences[at].id, window.words[number].form
            yield ReadWord(name, number - window.starts[at], form, places, labels.get(number, {}))


def passage_index(passages: Iterable[Passage]) -> pd.DataFrame:
    """One row a word: where it stands, and of every feature F the columns ``F``, ``F:carrier`` and ``F:lemma``.

    ``token`` is the first of its ``n_tokens`` positions in its row. What has no label is None.

    Raises:
        TaskError: A feature has the name of a column that says where a word stands.
    """
    words = [(passage, word) for passage in passages for word in passage.words]
    columns = {
        "document": [passage.document for passage, _ in words],
        "template": [passage.template for passage, _ in words],
        "sentence": [word.sentence for _, word in words],
        "word": np.array([word.word for _, word in words], dtype=np.int32),
        "token": np.array([word.tokens[0] for _, word in words], dtype=np.int32),
        "n_tokens": np.array([len(word.tokens) for _, word in words], dtype=np.int32),
        "form": [word.form for _, word in words],
    }
    features = list(dict.fromkeys(name for _, word in words for name in word.labels))
    for name in features:
        if name in columns:
            raise TaskError(f"feature {name!r}: expected another name than those of the index ({', '.join(columns)})")
        labels = [word.labels.get(name) for _, word in words]
        for ending, part in (("", "value"), (":carrier", "carrier"), (":lemma", "lemma")):
            columns[name + ending] = [each and getattr(each, part) for each in labels]
    kinds = {name: each.dtype if isinstance(each, np.ndarray) else object for name, each in columns.items()}
    return pd.DataFrame({name: pd.Series(each, dtype=kinds[name]) for name, each in columns.items()})
