"""Where do the top heads look on example sentences? Rows for drawing, not evidence."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from interp.methods.baselines import query_of
from interp.methods.query_attention import query_attention
from interp.methods.task_attention import is_testable
from interp.methods.verdict import ORDER
from interp.tasks.task import EncodedExample, Task

TOP_HEADS, SENTENCES = 3, 2
COLUMNS = (
    *("task", "rank", "layer", "head", "verdict", "example", "text", "query_pos", "key_pos", "token"),
    *("weight", "is_query", "is_related", "is_distractor"),
)


def attention_maps(model: Any, tasks: Sequence[Task], heads: pd.DataFrame) -> pd.DataFrame:
    """Attention from the query, one row per top head, sentence and key position up to the query.

    Args:
        model: Follows TransformerLens' protocol.
        tasks: Those of `heads`.
        heads: With ``task``, ``layer``, ``head``, ``verdict`` and ``effect``.

    Returns:
        Columns as in ``COLUMNS``; ``rank`` from 1, by verdict and then by the drop; ``example``
        is its number in the task. Nothing for tasks that attention cannot test.
    """
    rows: list[dict[str, Any]] = []
    for task in tasks:
        chosen = _sentences(task)
        if not chosen:
            continue
        weights = query_attention(model, [encoded for _, encoded in chosen])
        top = _top(heads[heads["task"] == task.name])
        for rank, (_, head) in enumerate(top.iterrows(), start=1):
            cell = head["layer"] * model.cfg.n_heads + head["head"]
            labels = {"task": task.name, "rank": rank, **head[["layer", "head", "verdict"]].to_dict()}
            for (number, encoded), attention in zip(chosen, weights[:, cell], strict=True):
                shown = {**labels, "example": number, "text": encoded.example.text}
                rows += [{**shown, **key} for key in _keys(model, encoded, attention)]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _top(heads: pd.DataFrame) -> pd.DataFrame:
    order = heads["verdict"].map(ORDER.index)
    return heads.assign(order=order).sort_values(["order", "effect"], kind="stable").head(TOP_HEADS)


def _sentences(task: Task) -> list[tuple[int, EncodedExample]]:
    """The first scorable example of each template, then any other, up to the number wanted."""
    testable = [(number, each) for number, each in enumerate(task.examples) if is_testable(each)]
    firsts = {encoded.example.template: number for number, encoded in reversed(testable)}
    ranked = sorted(testable, key=lambda each: (each[0] not in firsts.values(), each[0]))
    return ranked[:SENTENCES]


def _keys(model: Any, encoded: EncodedExample, attention: Any) -> list[dict[str, Any]]:
    query, tokens = query_of(encoded), encoded.prompt + encoded.right
    distractors = {position for each in encoded.distractors.values() for position in each}
    return [
        {
            "query_pos": query,
            "key_pos": key,
            "token": _text(model, tokens[key]),
            "weight": float(attention[key]),
            "is_query": key == query,
            "is_related": key in encoded.related,
            "is_distractor": key in distractors,
        }
        for key in range(query + 1)
    ]


def _text(model: Any, token: int) -> str:
    tokenizer = getattr(model, "tokenizer", None)
    return f"#{token}" if tokenizer is None else str(tokenizer.decode([token]))
