"""Attention from each example's query, of every head; whole patterns of few; and rows for drawing the top heads.

1. Of each task the top heads, by verdict and then by the drop, and the head with the largest effect; on the first
   sentence of each template.
2. Of a short sentence the whole pattern, so that a reader can ask where every word looks; of a long one the query's
   row alone, as a pattern grows with the square of the length.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float
from torch import Tensor

from interp.claims.rules import ORDER
from interp.errors import InputError
from interp.interventions.rows import Batch, Row, batches
from interp.methods.attention_baselines import is_testable, query_of
from interp.model.devices import sent
from interp.model.sites import Site
from interp.residual.collecting import listen, require_run
from interp.shapes import Pattern, Tokens
from interp.tasks.task import EncodedExample, Task

NO_NUMBERS = (
    "the attention pattern holds NaN: scores overflow in the model's dtype (use float32), or a weight is not a number"
)


def run_patterns(
    model: Any, tokens: Tokens, take: Callable[[int, Pattern], None], layers: Iterable[int] | None = None
) -> None:
    """Run rows of tokens, and give `take` layers (all of them, if None) and their patterns, in 32 bits or more.

    Refused, once all is taken, where one is no number: a GPU is waited for once.
    """
    chosen = range(model.cfg.n_layers) if layers is None else layers
    sums = dict[str, Tensor]()

    def give(layer: int, pattern: Pattern) -> None:
        # A sum is no number if a summand is none, and costs less than looking at each.
        sums[Site("pattern", layer).hook_name] = pattern.sum(dtype=torch.float32)
        take(layer, pattern.to(torch.promote_types(pattern.dtype, torch.float32)))

    readers = {Site("pattern", layer).hook_name: partial(give, layer) for layer in chosen}
    with torch.inference_mode():
        listen(model, tokens, readers)
        require_run(readers, sums)
        if sums and not bool(torch.isfinite(torch.stack([*sums.values()])).all()):
            raise InputError(NO_NUMBERS)


def query_attention(model: Any, examples: Sequence[EncodedExample]) -> Float[np.ndarray, "example cell key_pos"]:
    """Attention from each example's query, by head and key position; 0 beyond the query.

    Of a batch's patterns only the query's row is kept, so memory stays small. Heads are in the order (layer 0, head 0),
    (layer 0, head 1), ...
    """
    kept = KeptQueries(model, examples)
    for batch in _batches(model, examples):
        run_patterns(model, batch.tokens, partial(kept.take, batch))
    return kept.weights()


class KeptQueries:
    """The rows of the queries, of examples that run in batches; of one without a query in what is run, none is kept."""

    def __init__(self, model: Any, examples: Sequence[EncodedExample]):
        n_keys = 1 + max((query_of(each) for each in examples if each.query is not None), default=0)
        self._weights = np.zeros((len(examples), model.cfg.n_layers, model.cfg.n_heads, n_keys))
        self._batch: Batch | None = None  # that is run, and what is kept of its layers
        self._layers = dict[int, Tensor]()

    def weights(self) -> Float[np.ndarray, "example cell key_pos"]:
        """Of all heads of all layers, in order. Raises InputError where one is not a number."""
        if not np.isfinite(self._weights).all():
            raise InputError(NO_NUMBERS)
        n_examples, n_layers, n_heads, n_keys = self._weights.shape
        return self._weights.reshape(n_examples, n_layers * n_heads, n_keys)

    def take(self, batch: Batch, layer: int, pattern: Pattern) -> None:
        """Keep them of a batch whose rows have the numbers of their examples, once all layers are there."""
        if batch is not self._batch:
            known = ((at, row.encoded.query) for at, row in enumerate(batch.rows))
            self._asking = {at: query for at, query in known if query is not None and query < pattern.shape[-2]}
            self._at = sent(np.array([*self._asking.items()], dtype=int).reshape(-1, 2), pattern.device)
            self._batch, self._layers = batch, {}
        rows, queries = self._at.T
        width = min(pattern.shape[-1], self._weights.shape[-1])
        self._layers[layer] = pattern[rows, :, queries, :width].float()
        if len(self._layers) == self._weights.shape[1]:
            into = [batch.rows[at].example for at in self._asking]
            layers = [self._layers[each] for each in sorted(self._layers)]
            self._weights[into, :, :, :width] = torch.stack(layers, dim=1).cpu().numpy()


def patterns(
    model: Any, examples: Sequence[EncodedExample], heads: Sequence[tuple[int, int]]
) -> list[list[Float[np.ndarray, "query_pos key_pos"]]]:
    """For each head its whole attention pattern on each example, as long as what is run."""
    kept: dict[tuple[int, int], np.ndarray] = {}
    for batch in _batches(model, examples):

        def take(layer: int, pattern: Pattern, batch: Batch = batch) -> None:
            for number in [number for number, each in enumerate(heads) if each[0] == layer]:
                found = pattern[:, heads[number][1]].float().cpu().numpy()
                kept.update(zip(((number, example) for example in batch.examples), found, strict=True))

        run_patterns(model, batch.tokens, take, dict(heads))
    return [[kept[number, example] for example in range(len(examples))] for number in range(len(heads))]


def _batches(model: Any, examples: Sequence[EncodedExample]) -> list[Batch]:
    """The prompts, with the right continuation where the query stands in it."""
    rows = [
        Row(each, number, fold=0, continuation=each.right if query_of(each) >= len(each.prompt) else ())
        for number, each in enumerate(examples)
    ]
    return batches(model, rows)


TOP_HEADS, SENTENCES = 8, 4
LONGEST_WHOLE = 48
"""Positions of a sentence up to which the rows of all queries are kept."""
COLUMNS = (
    *("task", "rank", "layer", "head", "verdict", "example", "text", "query_pos", "key_pos", "token"),
    *("weight", "is_query", "is_related", "is_distractor"),
)


def attention_maps(model: Any, tasks: Sequence[Task], heads: pd.DataFrame) -> pd.DataFrame:
    """Attention of the top heads, one row per head, sentence, query position and key position up to it.

    `heads` have ``task``, ``layer``, ``head``, ``verdict`` and ``effect``. ``rank`` is from 1, by verdict and then by
    the drop; ``example`` is its number in the task; ``is_query`` says of a key that it is the position that is scored.
    Tasks that attention cannot test have no rows.
    """
    parts = []
    for task in tasks:
        chosen = _sentences(task)
        if not chosen:
            continue
        top = _top(heads[heads["task"] == task.name])[["task", "layer", "head", "verdict"]]
        places = list(zip(top["layer"], top["head"], strict=True))
        drawn = patterns(model, [encoded for _, encoded in chosen], places)
        for (rank, head), of_head in zip(enumerate(top.to_dict("records"), start=1), drawn, strict=True):
            for (number, encoded), pattern in zip(chosen, of_head, strict=True):
                shown = {**head, "rank": rank, "example": number, "text": encoded.example.text}
                parts.append(_pairs(model, encoded, pattern).assign(**shown))
    return pd.concat(parts, ignore_index=True)[list(COLUMNS)] if parts else pd.DataFrame(columns=list(COLUMNS))


def _top(heads: pd.DataFrame) -> pd.DataFrame:
    ordered = heads.assign(order=heads["verdict"].map(ORDER.index)).sort_values(["order", "effect"], kind="stable")
    top, size = ordered.head(TOP_HEADS), ordered["effect"].abs()
    if size.isna().all() or size.idxmax() in top.index:
        return top
    return pd.concat([top.head(TOP_HEADS - 1), ordered.loc[[size.idxmax()]]])


def _sentences(task: Task) -> list[tuple[int, EncodedExample]]:
    """The first scorable example of each template, then any other, up to the number wanted."""
    testable = [(number, each) for number, each in enumerate(task.examples) if is_testable(each)]
    firsts = {encoded.example.template: number for number, encoded in reversed(testable)}
    ranked = sorted(testable, key=lambda each: (each[0] not in firsts.values(), each[0]))
    return ranked[:SENTENCES]


def _pairs(model: Any, encoded: EncodedExample, pattern: np.ndarray) -> pd.DataFrame:
    """Every query and key of one sentence up to the scored query."""
    scored, tokens = query_of(encoded), encoded.prompt + encoded.right
    tokenizer = getattr(model, "tokenizer", None)
    texts = [f"#{each}" if tokenizer is None else str(tokenizer.decode([each])) for each in tokens]
    distractors = {position for each in encoded.distractors.values() for position in each}
    query, key = np.tril_indices(scored + 1)
    if scored >= LONGEST_WHOLE:
        query, key = query[query == scored], key[query == scored]
    columns = {
        "query_pos": query,
        "key_pos": key,
        "token": [texts[each] for each in key],
        "weight": pattern[query, key].astype(float),
        "is_query": key == scored,
        "is_related": np.isin(key, encoded.related),
        "is_distractor": np.isin(key, list(distractors)),
    }
    return pd.DataFrame(columns)
