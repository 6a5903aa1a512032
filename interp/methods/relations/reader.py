"""How does one model read a corpus? Sentences by themselves, documents in windows; what is too long is named.

Some documents at a time, about ``WORDS_AT_ONCE``: here or by other processes, and each group's sums can be kept.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from interp.methods.relations.batch import Excluded
from interp.methods.relations.counts import Counted, count
from interp.methods.relations.word_attention import with_offsets
from interp.model.places import looks_back_only
from interp.runs.parts import PartKind
from interp.tasks.corpus import Corpus
from interp.tasks.relations import Context, Direction
from interp.tasks.treebank import Document
from interp.tasks.windows import Windows

WORDS_AT_ONCE = 4096
_FACTS = b"facts"


@dataclass(frozen=True)
class Group:
    """Documents that follow each other.

    Attributes:
        number: From 0.
        documents: About ``WORDS_AT_ONCE`` words; more, if the last one is longer.
        clusters: Of each document.
    """

    number: int
    documents: tuple[Document, ...]
    clusters: Mapping[str, str]

    @classmethod
    def of(cls, number: int, documents: Sequence[Document], clusters: Mapping[str, str]) -> "Group":
        """Of the corpus' clusters those that are needed."""
        return cls(number, tuple(documents), {each.id: clusters[each.id] for each in documents})


def groups_of(corpus: Corpus, clusters: Mapping[str, str]) -> Iterator[Group]:
    """The corpus, document by document; `clusters` are those of all."""
    number, held, n_words = 0, list[Document](), 0
    for document in corpus:
        held.append(document)
        n_words += sum(len(sentence.words) for sentence in document.sentences)
        if n_words >= WORDS_AT_ONCE:
            yield Group.of(number, held, clusters)
            number, held, n_words = number + 1, [], 0
    if held:
        yield Group.of(number, held, clusters)


class RelationReader:
    """One model that reads groups of documents, which other processes can do as well."""

    def __init__(self, model: Any, directions: Sequence[Direction], exclude: Sequence[Excluded], longest_window: int):
        """Score pairs by the attention of `model`.

        Args:
            model: Follows TransformerLens' protocol, with a fast tokenizer.
            directions: What is scored.
            exclude: What no choice is made among.
            longest_window: Most tokens of a document that are read at once.

        Raises:
            InputError: The model has no tokenizer.
            TaskError: It gives no offsets.
        """
        self._model, self._directions, self._exclude = model, directions, exclude
        self._tokenizer = with_offsets(model, "attend")
        self.causal = looks_back_only(model)
        self.longest_window = min(model.cfg.n_ctx, longest_window)

    def run(self, group: Group) -> Counted:
        """Count hits by cluster."""
        counted = Counted()
        for context in ("sentence", "document"):
            own = {at: each for at, each in enumerate(self._directions) if each.context == context}
            if own:
                windows = self._windows(context)
                cut = windows.sentences if context == "sentence" else windows.documents
                read = (window for document in group.documents for window in cut(document))
                how: Any = {"causal": self.causal, "exclude": self._exclude, "into": counted}
                count(self._model, read, own, group.clusters, **how)
                counted.too_long |= windows.too_long
        return counted

    def _windows(self, context: Context) -> Windows:
        n_ctx = self._model.cfg.n_ctx if context == "sentence" else self.longest_window
        return Windows(self._tokenizer, n_ctx, both_sides=not self.causal)


def _table(counted: Counted) -> pa.Table:
    facts = json.dumps(counted.facts()).encode()
    return pa.Table.from_pandas(counted.frame(), preserve_index=False).replace_schema_metadata({_FACTS: facts})


def _found(_name: str, table: pa.Table) -> Counted:
    return Counted.of(table.to_pandas(), json.loads(table.schema.metadata[_FACTS]))


GROUPS = PartKind(lambda group: f"{group.number:06d}", _table, _found)
"""How a group's sums are kept."""
