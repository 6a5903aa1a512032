"""How a corpus is counted: in groups of documents, here or by other processes, each group kept as it comes.

1. Documents are what is resampled. A treebank that does not mark its documents makes every sentence one, and sums are
   kept for each, head by head: beyond ``MOST_CLUSTERS`` neighbours are joined, so that the sums do not grow with the
   corpus. Clusters of independent clusters are valid, and neighbours that are not independent are better off in one.
2. Sentences are read by themselves, documents in windows; what is too long is named.
3. About ``WORDS_AT_ONCE`` words make a group. The sums of the groups are added in the corpus' order.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from interp.errors import InputError
from interp.interventions.provenance import model_asked
from interp.methods.relations.counts import Counted, RelationCounts, count
from interp.methods.relations.words import with_offsets
from interp.model.positions import looks_back_only
from interp.options import AttendOptions
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
    """The cluster of each document, named by its first document; clusters differ in size by one document at most."""
    names = list(documents)
    n_clusters = min(len(names), MOST_CLUSTERS)
    number = [at * n_clusters // len(names) for at in range(len(names))]
    first: dict[int, str] = {}
    return {name: first.setdefault(each, name) for name, each in zip(names, number, strict=True)}


WORDS_AT_ONCE = 4096
_FACTS = b"facts"


@dataclass(frozen=True)
class Group:
    """Neighbouring documents of about ``WORDS_AT_ONCE`` words, and the cluster of each by its name."""

    number: int
    documents: tuple[Document, ...]
    clusters: Mapping[str, str]


def groups_of(corpus: Corpus, clusters: Mapping[str, str]) -> Iterator[Group]:
    """The corpus, document by document; `clusters` are those of all."""
    number, held, n_words = 0, list[Document](), 0

    def group() -> Group:
        return Group(number, tuple(held), {each.id: clusters[each.id] for each in held})

    for document in corpus:
        held.append(document)
        n_words += sum(len(sentence.words) for sentence in document.sentences)
        if n_words >= WORDS_AT_ONCE:
            yield group()
            number, held, n_words = number + 1, [], 0
    if held:
        yield group()


class RelationReader:
    """One model that reads groups of documents, which other processes can do as well."""

    def __init__(self, model: Any, directions: Sequence[Direction], asked: AttendOptions):
        """Raises an error for a model whose tokenizer is missing, or gives no offsets."""
        self._model, self._directions, self._exclude = model, directions, asked.exclude
        self._tokenizer = with_offsets(model, "attend")
        self.causal = looks_back_only(model)
        self.max_window = min(model.cfg.n_ctx, asked.max_window)

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
        n_ctx = self._model.cfg.n_ctx if context == "sentence" else self.max_window
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
        self, model: Any, own: Mapping[str, Any], directions: Sequence[Direction], asked: AttendOptions, run: Run | None
    ):
        """`own` is the model's provenance; `run` says who reads, and where the sums are kept."""
        self._model, self._own, self._directions, self._asked, self._run = model, own, directions, asked, run
        self.reader = RelationReader(model, directions, asked)

    def words(self, there: Contents) -> int:
        """How many words are read, for the progress."""
        return len({each.context for each in self._directions}) * sum(there.documents.values())

    def of(self, corpus: Corpus, tell: Callable[[int], None]) -> RelationCounts:
        """Count hits by cluster; `tell` is called with the number of words that are read."""
        there = corpus.contents
        clusters = clusters_of(there.documents)

        def count(folder: RunFolder | None) -> Finished:
            counted = self._counted(corpus, clusters, folder, tell)
            return Finished({FRAME: counted.frame()}, counted.facts())

        found = once(self._run, lambda: self._request(there), self._own, count)
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

    def _request(self, there: Contents) -> dict[str, Any]:
        return {
            "kind": "attention to related words",
            **model_asked(self._model, self._own),
            "data_hash": there.hash,
            "relations": named(self._directions),
            "exclude": sorted(self._asked.exclude),
            "max_window": self.reader.max_window,
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
