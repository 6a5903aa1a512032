"""How often each head finds the related word: sums by cluster of documents and direction, layer by layer.

1. Documents are what is resampled. A treebank that does not mark its documents makes every sentence one, and sums are
   kept for each, head by head: beyond ``MOST_CLUSTERS`` neighbours are joined, so that the sums do not grow with the
   corpus. Clusters of independent clusters are valid, and neighbours that are not independent are better off in one.
2. About ``WORDS_AT_ONCE`` words make a group, which is counted here or by another process, and kept. Sentences are read
   by themselves, documents in windows; what is too long is named.
3. Of each word that looks, each head's choice is the other word that it attends to most; of several that it attends to
   alike, each is chosen in part. Kept are hits and attention of every head, and hits of every rule.
4. The sums of the groups are added in the corpus' order.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import torch
from jaxtyping import Float

from interp.errors import InputError
from interp.interventions.provenance import model_asked
from interp.methods.relations.words import Items, ReadingRow, WordAttention, items_of, read_words, with_offsets
from interp.model.devices import place_of, sent
from interp.model.positions import looks_back_only
from interp.options import AttendOptions
from interp.residual.collecting import batched
from interp.runs.executors import HERE
from interp.runs.key import FRAME
from interp.runs.run import PartKind, Run, once, stream_parts
from interp.runs.run_folder import Finished, RunFolder
from interp.tasks.alignment import Window, Windows
from interp.tasks.corpus import Contents, Corpus
from interp.tasks.relations import Direction
from interp.tasks.treebank import Document

ITEMS_AT_ONCE = 4096
"""Each with a row of attention for every head."""


@dataclass(frozen=True)
class ItemRow(ReadingRow):
    """A window with what is scored in it."""

    items: Items


def values_of(model: Any, rows: Sequence[ItemRow], *, special: bool) -> Float[np.ndarray, "item value"]:
    """What is summed over the items of a batch.

    1; by head, how often it chose a related word, and its attention to them; by rule, how often it named one; the
    expected hits of an equal choice.
    """
    row_of_item = np.array([number for number, row in enumerate(rows) for _ in row.items.query])
    query_of_item = np.concatenate([np.searchsorted(row.queries, row.items.query) for row in rows])
    n, width = len(row_of_item), max(row.items.related.shape[1] for row in rows)
    of_words = np.zeros((2, n, 1, width), dtype=bool)
    start = 0
    for row in rows:
        here = slice(start, start + len(row.items.query))
        of_words[0, here, 0, : row.items.related.shape[1]] = row.items.related
        of_words[1, here, 0, : row.items.allowed.shape[1]] = row.items.allowed
        start = here.stop
    device, _ = place_of(model)
    number, query, (related, allowed) = (sent(each, device) for each in (row_of_item, query_of_item, of_words))
    shape = (2, n, model.cfg.n_layers, model.cfg.n_heads)
    hits, attention = found = torch.zeros(shape, dtype=torch.float64, device=device)

    def take(layer: int, words: WordAttention) -> None:
        for start in range(0, n, ITEMS_AT_ONCE):
            part = slice(start, start + ITEMS_AT_ONCE)
            own, right = words[number[part], :, query[part]], related[part]
            open_to = own.masked_fill(~allowed[part], -1.0)
            most = open_to == open_to.amax(-1, keepdim=True)
            hits[part, layer] = (most & right).sum(-1) / most.sum(-1)
            attention[part, layer] = (own * right).sum(-1)

    read_words(model, rows, take, special=special)
    rules = np.concatenate([row.items.rules for row in rows])
    return np.column_stack([np.ones(n), *found.flatten(2).cpu().numpy(), rules])


Key = tuple[str, int]
"""A cluster of documents, and the number of a direction."""


@dataclass
class Counted:
    """What was counted in some documents.

    Attributes:
        sums: Of ``values_of``, by cluster and number of the direction.
        left_out: How many pairs were not scored, by number of the direction and reason.
        too_long: Tokens of each sentence that is longer than the context, by document and name.
        n_words: How many were read, each as often as it was.
    """

    sums: dict[Key, Float[np.ndarray, " value"]] = field(default_factory=dict)
    left_out: Counter[tuple[int, str]] = field(default_factory=Counter)
    too_long: dict[str, int] = field(default_factory=dict)
    n_words: int = 0

    def count(self, items: Iterable[tuple[Key, Float[np.ndarray, " value"]]]) -> None:
        """Take in values, or sums, which become part of these."""
        for key, values in items:
            self.sums[key] = self.sums.get(key, 0.0) + values

    def add(self, other: "Counted") -> None:
        """Take in what was counted in the documents that follow."""
        self.count(other.sums.items())
        self.left_out.update(other.left_out)
        self.too_long |= other.too_long
        self.n_words += other.n_words

    def frame(self) -> pd.DataFrame:
        """A row for each cluster and direction."""
        keys = pd.DataFrame(list(self.sums), columns=["cluster", "direction"])
        return keys.assign(sums=list(self.sums.values()))

    def facts(self) -> dict[str, Any]:
        """What is not in ``frame``, as JSON has it."""
        left_out = [[at, reason, n] for (at, reason), n in self.left_out.items()]
        return {"left_out": left_out, "too_long": self.too_long, "n_words": self.n_words}

    @classmethod
    def of(cls, frame: pd.DataFrame, facts: Mapping[str, Any]) -> "Counted":
        """What was counted, as ``frame`` and ``facts`` have it."""
        keys = zip(frame["cluster"].astype(str), frame["direction"].astype(int), strict=True)
        left_out = Counter({(at, reason): n for at, reason, n in facts["left_out"]})
        return cls(dict(zip(keys, frame["sums"], strict=True)), left_out, dict(facts["too_long"]), facts["n_words"])


@dataclass(frozen=True)
class RelationCounts:
    """What was counted in a corpus, with the model's (layers, heads) and the cluster of each document."""

    directions: Sequence[Direction]
    shape: tuple[int, int]
    clusters: Mapping[str, str]
    counted: Counted


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
    words = corpus.contents.documents
    before = np.cumsum([0, *words.values()]) // WORDS_AT_ONCE
    place = dict(zip(words, before.tolist(), strict=False))
    for number, (_, documents) in enumerate(groupby(corpus, lambda document: place[document.id])):
        held = tuple(documents)
        yield Group(number, held, {each.id: clusters[each.id] for each in held})


class RelationReader:
    """One model that reads groups of documents, which other processes can do as well."""

    def __init__(self, model: Any, directions: Sequence[Direction], asked: AttendOptions):
        """Raises an error for a model whose tokenizer is missing, or gives no offsets."""
        self.model, self.directions, self.exclude = model, directions, asked.exclude
        self._tokenizer = with_offsets(model, "attend")
        self.causal = looks_back_only(model)
        self.max_window = min(model.cfg.n_ctx, asked.max_window)

    def words(self, there: Contents) -> int:
        """How many words are read, for the progress."""
        return len({each.context for each in self.directions}) * sum(there.documents.values())

    def run(self, group: Group) -> Counted:
        """Count hits by cluster."""
        counted = Counted()
        for context, n_ctx in (("sentence", self.model.cfg.n_ctx), ("document", self.max_window)):
            own = {at: each for at, each in enumerate(self.directions) if each.context == context}
            if own:
                windows = Windows(self._tokenizer, n_ctx, both_sides=not self.causal)
                cut = windows.sentences if context == "sentence" else windows.documents
                read = (window for document in group.documents for window in cut(document))
                self._count(read, own, group.clusters, counted)
                counted.too_long |= windows.too_long
        return counted

    def _count(
        self, windows: Iterable[Window], own: Mapping[int, Direction], clusters: Mapping[str, str], into: Counted
    ) -> None:
        """Score every head on every pair of `windows`; `own` are the directions of some numbers."""
        numbers = list(own)
        for batch in batched(self._rows(windows, own, into)):
            owners = [(clusters[row.window.document], numbers[at]) for row in batch for at in row.items.direction]
            into.count(zip(owners, values_of(self.model, batch, special="special" not in self.exclude), strict=True))
            into.n_words += sum(len(row.window.words) - row.window.first_query for row in batch)

    def _rows(self, windows: Iterable[Window], own: Mapping[int, Direction], into: Counted) -> Iterator[ItemRow]:
        numbers, wanted = list(own), list(own.values())
        for window in windows:
            items = items_of(window, wanted, causal=self.causal, exclude=self.exclude)
            for (at, reason), n in items.left_out.items():
                into.left_out[numbers[at], reason] += n
            if len(items.query):
                yield ItemRow(window, tuple(np.unique(items.query).tolist()), items)


def _table(counted: Counted) -> pa.Table:
    facts = json.dumps(counted.facts()).encode()
    return pa.Table.from_pandas(counted.frame(), preserve_index=False).replace_schema_metadata({_FACTS: facts})


def _found(_name: str, table: pa.Table) -> Counted:
    return Counted.of(table.to_pandas(), json.loads(table.schema.metadata[_FACTS]))


GROUPS = PartKind(lambda group: f"{group.number:06d}", _table, _found)
"""How a group's sums are kept."""


def counts_of(
    corpus: Corpus, reader: RelationReader, own: Mapping[str, Any], run: Run | None, tell: Callable[[int], None]
) -> RelationCounts:
    """Count hits by cluster.

    `own` is the model's provenance; `run` says who reads, and where the sums are kept; `tell` is called with the number
    of words that are read.
    """
    there, model = corpus.contents, reader.model
    clusters = clusters_of(there.documents)

    def request() -> dict[str, Any]:
        return {
            "kind": "attention to related words",
            **model_asked(model, own),
            "data_hash": there.hash,
            "relations": named(reader.directions),
            "exclude": sorted(reader.exclude),
            "max_window": reader.max_window,
            "words_at_once": WORDS_AT_ONCE,
        }

    def count(folder: RunFolder | None) -> Finished:
        executor = HERE if run is None else run.executor
        counted = _in_order(stream_parts(folder, executor, reader, groups_of(corpus, clusters), GROUPS), tell)
        return Finished({FRAME: counted.frame()}, counted.facts())

    found = once(run, request, own, count)
    counted = Counted.of(found.tables[FRAME], found.facts)
    if not counted.sums:
        raise InputError(
            "attend: no pair of the corpus can be scored; expected sentences that fit into the model's context of "
            f"{model.cfg.n_ctx} tokens with related words that it can look at, got {len(counted.too_long)} sentences "
            f"that are too long and {counted.left_out.total()} pairs that cannot be scored; take another corpus, "
            "relation or model"
        )
    return RelationCounts(reader.directions, (model.cfg.n_layers, model.cfg.n_heads), clusters, counted)


def _in_order(parts: Iterable[tuple[str, Counted]], tell: Callable[[int], None]) -> Counted:
    """Add the groups' sums in the corpus' order: those that come before their turn wait."""
    total, early, turn, n_words = Counted(), dict[int, Counted](), 0, 0
    for name, found in parts:
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
