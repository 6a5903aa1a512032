"""Where do the top heads look on example sentences? Rows for drawing, not evidence.

1. Of each task the top heads, by verdict and then by the drop, and the head with the largest effect; on the first
   sentence of each template.
2. Of a short sentence the whole pattern, so that a reader can ask where every word looks; of a long one the query's
   row alone, as a pattern grows with the square of the length.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from interp.claims.rules import ORDER
from interp.methods.attention_baselines import query_of
from interp.methods.query_attention import patterns
from interp.methods.task_attention import is_testable
from interp.tasks.task import EncodedExample, Task

TOP_HEADS, SENTENCES = 8, 4
LONGEST_WHOLE = 48
"""Positions of a sentence up to which the rows of all queries are kept."""
COLUMNS = (
    *("task", "rank", "layer", "head", "verdict", "example", "text", "query_pos", "key_pos", "token"),
    *("weight", "is_query", "is_related", "is_distractor"),
)


def attention_maps(model: Any, tasks: Sequence[Task], heads: pd.DataFrame) -> pd.DataFrame:
    """Attention of the top heads, one row per head, sentence, query position and key position up to it.

    Args:
        model: Follows TransformerLens' protocol.
        tasks: Those of `heads`.
        heads: With ``task``, ``layer``, ``head``, ``verdict`` and ``effect``.

    Returns:
        Columns as in ``COLUMNS``; ``rank`` from 1, by verdict and then by the drop; ``example`` is its number in the
        task. ``is_query`` says of a key that it is the position that is scored. Nothing for tasks that attention cannot
        test.
    """
    rows: list[dict[str, Any]] = []
    for task in tasks:
        chosen = _sentences(task)
        if not chosen:
            continue
        top = _top(heads[heads["task"] == task.name])
        places = list(zip(top["layer"], top["head"], strict=True))
        drawn = patterns(model, [encoded for _, encoded in chosen], places)
        for (rank, (_, head)), of_head in zip(enumerate(top.iterrows(), start=1), drawn, strict=True):
            labels = {"task": task.name, "rank": rank, **head[["layer", "head", "verdict"]].to_dict()}
            for (number, encoded), pattern in zip(chosen, of_head, strict=True):
                shown = {**labels, "example": number, "text": encoded.example.text}
                rows += [{**shown, **pair} for pair in _pairs(model, encoded, pattern)]
    return pd.DataFrame(rows, columns=list(COLUMNS))


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


def _pairs(model: Any, encoded: EncodedExample, pattern: np.ndarray) -> list[dict[str, Any]]:
    """Every query and key of one sentence up to the scored query."""
    scored, tokens = query_of(encoded), encoded.prompt + encoded.right
    distractors = {position for each in encoded.distractors.values() for position in each}
    keys = [
        {
            "token": _text(model, tokens[key]),
            "is_query": key == scored,
            "is_related": key in encoded.related,
            "is_distractor": key in distractors,
        }
        for key in range(scored + 1)
    ]
    queries = range(scored + 1) if scored < LONGEST_WHOLE else (scored,)
    return [
        {"query_pos": query, "key_pos": key, "weight": float(pattern[query, key]), **keys[key]}
        for query in queries
        for key in range(query + 1)
    ]


def _text(model: Any, token: int) -> str:
    tokenizer = getattr(model, "tokenizer", None)
    return f"#{token}" if tokenizer is None else str(tokenizer.decode([token]))
