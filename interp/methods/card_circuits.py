"""Which of a task's words a head would look for, and which it would make likelier: its QK and OV circuits on them.

1. The commonest tokens at the query, and those that end a related word.
2. To which of the task's tokens a query gives the largest scores (QK), and which of their logits an attended token
   raises and lowers (OV). Among the whole vocabulary, tokens that training hardly ever showed would come first.

Circuits are of the weights alone, on the direct path from the embedding; ``residual/circuits.py`` says what they leave
out.
"""

from collections import Counter
from typing import Any

import pandas as pd
import torch
from jaxtyping import Float, Int
from torch import Tensor

from interp.errors import InputError
from interp.model.loading.bridge import require_ours
from interp.model.transformer import HookedTransformer
from interp.options import Head
from interp.residual.circuits import copying_score, ov_circuit, qk_circuit
from interp.residual.readout import token_texts
from interp.tasks.task import Task

COLUMNS = ("word", "role", "n_examples", "circuit", "place", "token", "text", "score")


def circuits(model: Any, head: Head, task: Task, *, most_words: int = 3, top: int = 5) -> pd.DataFrame:
    """What a head looks for from the commonest queries, and what it writes of the commonest related words.

    One row a word and listed token, the strongest first, columns ``COLUMNS``: the ``word`` (``#id`` without a
    tokenizer), its ``role`` (``query`` or ``related``), in how many examples it has it, the ``circuit`` (``looks for``,
    ``raises``, ``lowers``), ``place`` (from 0), ``token``, ``text``, and ``score``: the attention score less its mean
    over the task's tokens, or the logit less its mean over the vocabulary (times the last norm's scale).
    """
    require_ours(model, "circuits")
    rows = [(each, each.prompt + each.right + each.wrong) for each in task.examples]
    queries = Counter(tokens[each.query] for each, tokens in rows if each.query is not None)
    related = Counter(tokens[each.related[-1]] for each, tokens in rows if each.related)
    if not queries:
        raise InputError(f"circuits: {task.name!r} has no tagged relation, so nothing says which word looks for which")
    words = torch.tensor(sorted({token for _, tokens in rows for token in tokens}))
    parts, qk, ov = [], qk_circuit(model, *head), ov_circuit(model, *head)
    for token, n in queries.most_common(most_words):
        scores = (qk.A[token] @ qk.B).cpu()[words]
        listed = _listed(model, words, scores - scores.mean(), top)
        parts.append(listed.assign(word=token, role="query", n_examples=n, circuit="looks for"))
    for token, n in related.most_common(most_words):
        logits = (ov.A[token] @ ov.B).cpu()
        logits = (logits - logits.mean())[words]
        for circuit, sign in (("raises", 1.0), ("lowers", -1.0)):
            listed = _listed(model, words, sign * logits, top)
            listed["score"] *= sign
            parts.append(listed.assign(word=token, role="related", n_examples=n, circuit=circuit))
    found = pd.concat(parts, ignore_index=True)
    found["word"] = _texts(model, torch.tensor(found["word"].to_numpy()))
    return found[list(COLUMNS)]


def copying(model: Any, head: Head) -> float:
    """How much a head copies what it attends to, from -1 to 1 (``copying_score``)."""
    require_ours(model, "circuits")
    return copying_score(model, *head)


def _listed(
    model: HookedTransformer, tokens: Int[Tensor, " token"], scores: Float[Tensor, " token"], top: int
) -> pd.DataFrame:
    """The tokens with the largest scores, the largest first."""
    best = scores.topk(min(top, len(scores))).indices
    columns = {"place": range(len(best)), "token": tokens[best].numpy(), "text": _texts(model, tokens[best])}
    return pd.DataFrame({**columns, "score": scores[best].numpy()})


def _texts(model: HookedTransformer, tokens: Int[Tensor, " token"]) -> list[str]:
    texts = token_texts(model, tokens)
    return [f"#{token}" if text is None else text for token, text in zip(tokens.tolist(), texts, strict=True)]
