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
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from interp.errors import InputError
from interp.interventions.provenance import model_asked
from interp.methods.relations.words import REASONS, Items, ReadingRow, WordAttention, items_of, read_words, with_offsets
from interp.model.positions import looks_back_only
from interp.options import AttendOptions, Excluded
from interp.residual.collecting import batched
from interp.runs.executors import HERE
from interp.runs.key import FRAME
from interp.runs.run import PartKind, Run, once, stream_parts
from interp.runs.run_folder import Finished, RunFolder
from interp.tasks.alignment import NONE
from interp.tasks.corpus import Contents, Corpus
from interp.tasks.relations import Direction
from interp.tasks.treebank import Document
from interp.tasks.windows import Window, Windows

ITEMS_AT_ONCE = 4096
"""Each with a row of attention for every head."""


Sums = dict[str, Any]
"""Of one cluster and direction, by the names in ``SUMMED``."""
SUMMED = ("n", "hits", "attention", "rules", "chance")
"""Items; by head, how often it chose a related word, and its attention to them; by rule, how often it named one;
expected hits of an equal choice."""


@dataclass(frozen=True)
class ItemRow(ReadingRow):
    """A window with what is scored in it."""

    items: Items


class RelationBatch:
    """The items of a batch and what is summed over them, layer by layer."""

    def __init__(self, rows: Sequence[ItemRow], shape: tuple[int, int], causal: bool, exclude: Collection[Excluded]):
        self._rows, self._causal, self._exclude = rows, causal, exclude
        items = [row.items for row in rows]
        self._row = torch.tensor([number for number, each in enumerate(items) for _ in each.query])
        self._query = torch.tensor(
            [place for row in rows for place in np.searchsorted(row.queries, row.items.query).tolist()]
        )
        n_units = max(row.window.tokens.n_units for row in rows)
        self._related = torch.zeros(len(self._row), n_units, dtype=torch.bool)
        start = 0
        for each in items:
            stop = start + len(each.query)
            self._related[start:stop, : each.related.shape[1]] = torch.from_numpy(each.related)
            start = stop
        owners = [(row.window.document, at) for row in rows for at in row.items.direction.tolist()]
        self._keys = list(dict.fromkeys(owners))
        number = {key: at for at, key in enumerate(self._keys)}
        self._key = torch.tensor([number[owner] for owner in owners])
        layers, heads = shape
        self._hits = torch.zeros(len(self._keys), layers, heads, dtype=torch.float64)
        self._attention = torch.zeros_like(self._hits)
        self._hidden: Tensor | None = None

    def take(self, layer: int, words: WordAttention) -> None:
        """Add one layer's heads."""
        device = words.device
        row, query, key = self._row.to(device), self._query.to(device), self._key.to(device)
        if self._hidden is None:
            self._hidden = ~self._candidates(words).to(device)
        related = torch.nn.functional.pad(self._related, (0, words.shape[-1] - self._related.shape[1])).to(device)
        for start in range(0, len(row), ITEMS_AT_ONCE):
            part = slice(start, start + ITEMS_AT_ONCE)
            own, right = words[row[part], :, query[part]], related[part, None]
            open_to = own.masked_fill(self._hidden[row[part], query[part]][:, None], -1.0)
            most = open_to == open_to.amax(-1, keepdim=True)
            for sums, found in ((self._attention, (own * right).sum(-1)), (self._hits, _share(most & right, most))):
                sums[:, layer].index_add_(0, key[part].cpu(), found.double().cpu())

    def _candidates(self, words: WordAttention) -> Bool[Tensor, "batch query_word key_word"]:
        """What each query's choice is made among."""
        n_batch, _, n_queries, n_keys = words.shape
        found = torch.zeros(n_batch, n_queries, n_keys, dtype=torch.bool)
        n_most = max(row.window.tokens.n_units for row in self._rows)
        for number, row in enumerate(self._rows):
            n_units = row.window.tokens.n_units
            for at, query in enumerate(row.queries):
                found[number, at, : query if self._causal else n_units] = True
                found[number, at, query] = "self" not in self._exclude
            if "special" not in self._exclude:
                own = len(row.window.tokens.ids) - int((row.window.tokens.unit_of_token >= 0).sum())
                found[number, : len(row.queries), n_most : n_most + own] = True
        return found

    def sums(self) -> Iterator[tuple[str, int, Sums]]:
        """By document and the number of the direction."""
        rules = np.concatenate([row.items.rules for row in self._rows])
        chance = np.concatenate([row.items.chance for row in self._rows])
        key = self._key.numpy()
        for number, (document, at) in enumerate(self._keys):
            own = key == number
            hits, attention = (each[number].flatten().numpy().copy() for each in (self._hits, self._attention))
            counted = (int(own.sum()), hits, attention, rules[own].sum(axis=0).astype(float), float(chance[own].sum()))
            yield document, at, dict(zip(SUMMED, counted, strict=True))


def _share(some: Bool[Tensor, "item head word"], of: Bool[Tensor, "item head word"]) -> Float[Tensor, "item head"]:
    return some.sum(-1) / of.sum(-1)


Key = tuple[str, int]
"""A cluster of documents, and the number of a direction."""


@dataclass
class Counted:
    """What was counted in some documents.

    Attributes:
        sums: By cluster and number of the direction.
        left_out: How many pairs were not scored, by number of the direction and reason.
        too_long: Tokens of each sentence that is longer than the context, by document and name.
        n_words: How many were read, each as often as it was.
    """

    sums: dict[Key, Sums] = field(default_factory=dict)
    left_out: Counter[tuple[int, str]] = field(default_factory=Counter)
    too_long: dict[str, int] = field(default_factory=dict)
    n_words: int = 0

    def add(self, other: "Counted") -> None:
        """Take in the sums of the documents that follow, which become part of these."""
        for key, sums in other.sums.items():
            own = self.sums.get(key)
            self.sums[key] = sums if own is None else {name: own[name] + sums[name] for name in SUMMED}
        self.left_out.update(other.left_out)
        self.too_long |= other.too_long
        self.n_words += other.n_words

    def frame(self) -> pd.DataFrame:
        """A row for each cluster and direction."""
        names = {"cluster": [key[0] for key in self.sums], "direction": [key[1] for key in self.sums]}
        return pd.DataFrame(names | {name: [each[name] for each in self.sums.values()] for name in SUMMED})

    def facts(self) -> dict[str, Any]:
        """What is not in ``frame``, as JSON has it."""
        left_out = [[at, reason, n] for (at, reason), n in self.left_out.items()]
        return {"left_out": left_out, "too_long": self.too_long, "n_words": self.n_words}

    @classmethod
    def of(cls, frame: pd.DataFrame, facts: Mapping[str, Any]) -> "Counted":
        """What was counted, as ``frame`` and ``facts`` have it."""
        sums = {
            (str(row.cluster), int(row.direction)): {name: getattr(row, name) for name in SUMMED}
            for row in frame.itertuples()
        }
        left_out = Counter({(at, reason): n for at, reason, n in facts["left_out"]})
        return cls(sums, left_out, dict(facts["too_long"]), facts["n_words"])


@dataclass(frozen=True)
class RelationCounts:
    """What was counted in a corpus, with the model's (layers, heads) and the cluster of each document."""

    directions: Sequence[Direction]
    shape: tuple[int, int]
    clusters: Mapping[str, str]
    counted: Counted

    def reasons(self, direction: int) -> dict[str, int]:
        """How many pairs of a direction were not scored, by reason."""
        return {reason: self.counted.left_out[direction, reason] for reason in REASONS}


def count(
    model: Any,
    windows: Iterable[Window],
    directions: Mapping[int, Direction],
    clusters: Mapping[str, str],
    *,
    causal: bool,
    exclude: Collection[Excluded],
    into: Counted,
) -> None:
    """Score every head on every pair of `windows`; `directions` are those of some numbers, sums are added to `into`."""
    numbers, shape = list(directions), (model.cfg.n_layers, model.cfg.n_heads)
    for batch in batched(_rows(windows, directions, causal, exclude, into)):
        scored = RelationBatch(batch, shape, causal, exclude)
        read_words(model, batch, scored.take, special="special" not in exclude)
        for document, at, sums in scored.sums():
            into.add(Counted({(clusters[document], numbers[at]): sums}))
        into.n_words += sum(len(row.window.words) - row.window.first_query for row in batch)


def _rows(
    windows: Iterable[Window],
    directions: Mapping[int, Direction],
    causal: bool,
    exclude: Collection[Excluded],
    into: Counted,
) -> Iterator[ItemRow]:
    numbers, wanted = list(directions), list(directions.values())
    for window in windows:
        items = items_of(window, wanted, causal=causal, n_further=_further(window, exclude))
        for (at, reason), n in items.left_out.items():
            into.left_out[numbers[at], reason] += n
        if len(items.query):
            yield ItemRow(window, tuple(np.unique(items.query).tolist()), items)


def _further(window: Window, exclude: Collection[Excluded]) -> int:
    """What a head can choose beside the other words."""
    special = 0 if "special" in exclude else int((window.tokens.unit_of_token == NONE).sum())
    return special + ("self" not in exclude)


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
        for context, n_ctx in (("sentence", self._model.cfg.n_ctx), ("document", self.max_window)):
            own = {at: each for at, each in enumerate(self._directions) if each.context == context}
            if own:
                windows = Windows(self._tokenizer, n_ctx, both_sides=not self.causal)
                cut = windows.sentences if context == "sentence" else windows.documents
                read = (window for document in group.documents for window in cut(document))
                how: Any = {"causal": self.causal, "exclude": self._exclude, "into": counted}
                count(self._model, read, own, group.clusters, **how)
                counted.too_long |= windows.too_long
        return counted


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
