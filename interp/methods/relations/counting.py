"""What is resampled as one? Documents; of very many, neighbours together.

A treebank that does not mark its documents makes every sentence one, and sums are kept for each, head by head. Beyond
``MOST_CLUSTERS`` neighbours are joined, so that the sums do not grow with the corpus. Clusters of independent clusters
are valid, and neighbours that are not independent are better off in one.

How does one model read a corpus? Sentences by themselves, documents in windows; what is too long is named.

Some documents at a time, about ``WORDS_AT_ONCE``: here or by other processes, and each group's sums can be kept.

How is a whole corpus counted? Group by group, here or by others, each kept as it comes, and added in order.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from interp.errors import InputError
from interp.interventions.provenance import model_asked
from interp.methods.relations.counts import Counted, Excluded, RelationCounts, count
from interp.methods.relations.words import with_offsets
from interp.model.positions import looks_back_only
from interp.runs.caching import once
from interp.runs.executors import HERE
from interp.runs.key import FRAME
from interp.runs.run import PartKind, Run, stream_parts
from interp.runs.run_folder import Finished, RunFolder
from interp.tasks.corpus import Contents, Corpus
from interp.tasks.relations import Context, Direction
from interp.tasks.treebank import Document
from interp.tasks.windows import Windows

MOST_CLUSTERS = 1000


def clusters_of(documents: Mapping[str, int]) -> dict[str, str]:
    """The cluster of each document, by its first document's name; as many documents in each, up to one.

    Args:
        documents: By name, in the corpus' order.
    """
    names = list(documents)
    n_clusters = min(len(names), MOST_CLUSTERS)
    number = [at * n_clusters // len(names) for at in range(len(names))]
    first: dict[int, str] = {}
    return {name: first.setdefault(each, name) for name, each in zip(names, number, strict=True)}


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


class Counting:
    """What is asked of corpora, and how they are read."""

    def __init__(
        self,
        model: Any,
        own: Mapping[str, Any],
        directions: Sequence[Direction],
        exclude: Sequence[Excluded],
        longest_window: int,
        run: Run | None,
    ):
        """Read with `model`.

        Args:
            model: Follows TransformerLens' protocol, with a fast tokenizer.
            own: Its provenance.
            directions: What is scored.
            exclude: What no choice is made among.
            longest_window: Most tokens of a document that are read at once.
            run: Who reads, and where the sums are kept.

        Raises:
            InputError: The model has no tokenizer.
            TaskError: It gives no offsets.
        """
        self._model, self._own, self._directions, self._exclude, self._run = model, own, directions, exclude, run
        self.reader = RelationReader(model, directions, exclude, longest_window)

    def words(self, there: Contents) -> int:
        """How many words are read, for the progress."""
        return len({each.context for each in self._directions}) * sum(there.documents.values())

    def of(self, corpus: Corpus, tell: Callable[[int], None]) -> RelationCounts:
        """Count hits by cluster.

        Args:
            corpus: Read as it streams by.
            tell: Called with the number of words that are read.

        Raises:
            InputError: Nothing could be scored, or the attention is no number.
        """
        there = corpus.contents
        clusters = clusters_of(there.documents)

        def count(folder: RunFolder | None) -> Finished:
            counted = self._counted(corpus, clusters, folder, tell)
            return Finished({FRAME: counted.frame()}, counted.facts())

        found = once(self._run, lambda: self._asked(there), self._own, count)
        counted = Counted.of(found.tables[FRAME], found.facts)
        if not counted.sums:
            raise InputError(
                "attend: no pair of the corpus can be scored; expected sentences that fit into the model's context of "
                f"{self._model.cfg.n_ctx} tokens with related words that it can look at, got "
                f"{len(counted.too_long)} sentences that are too long and {counted.left_out.total()} pairs that cannot "
                "be scored; take another corpus, relation or model"
            )
        shape = (self._model.cfg.n_layers, self._model.cfg.n_heads)
        return RelationCounts(self._directions, shape, clusters, counted)

    def _asked(self, there: Contents) -> dict[str, Any]:
        return {
            "kind": "attention to related words",
            **model_asked(self._model, self._own),
            "data_hash": there.hash,
            "relations": named(self._directions),
            "excluded": sorted(self._exclude),
            "longest_window": self.reader.longest_window,
            "words_at_once": WORDS_AT_ONCE,
        }

    def _counted(
        self, corpus: Corpus, clusters: Mapping[str, str], folder: RunFolder | None, tell: Callable[[int], None]
    ) -> Counted:
        """Add the groups' sums in the corpus' order: those that come before their turn wait."""
        executor = HERE if self._run is None else self._run.executor
        total, early, turn, n_words = Counted(), dict[int, Counted](), 0, 0
        for name, found in stream_parts(folder, executor, self.reader, groups_of(corpus, clusters), GROUPS):
            early[int(name)] = found
            n_words += found.n_words
            tell(n_words)
            while turn in early:
                total.add(early.pop(turn))
                turn += 1
        return total


def named(directions: Sequence[Direction]) -> list[list[str]]:
    """Directions as JSON has them."""
    return [[each.relation, each.looks, each.context] for each in directions]
