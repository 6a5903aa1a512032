"""Can the model be asked what comes at the end of a prompt? A causal one always; an encoder, where the end is masked.

Each position of an encoder (BERT) sees the words on both sides, so that it has no next token to predict: its logits at
a prompt's last word are about that word. What it was trained for is to fill in the mask token. A task of the user's
own whose prompts end in that token asks for this; no task that has a name here does.
"""

from typing import Any

from interp.errors import InputError
from interp.interventions.metrics import MetricName
from interp.model.loading.bridge import why_no_head
from interp.model.places import looks_back_only
from interp.tasks.task import Task


def require_prediction(model: Any, task: Task | str, metric: MetricName | None = None) -> None:
    """Refuse to measure what a model predicts that predicts nothing there.

    A model without a tokenizer has no mask token that is known: what its prompts ask for is then the user's to say.

    Args:
        model: Follows TransformerLens' protocol.
        task: A task, or the name of one.
        metric: What is measured; None for the task's own.

    Raises:
        InputError: The model has no head that predicts tokens; or it is an encoder, and a prompt does not end in its
            mask token, or the metric scores words that the encoder has read.
    """
    why = why_no_head(model)
    if why is not None:
        raise InputError(
            f"model: its checkpoint has no head that predicts tokens ({why}), so it has no logits",
            "save one of a class with a head (AutoModelForCausalLM, BertForMaskedLM) that was trained",
            "use interp.attend, which reads none",
        )
    tokenizer = getattr(model, "tokenizer", None)
    if looks_back_only(model) or (tokenizer is None and isinstance(task, Task)):
        return
    name = task if isinstance(task, str) else task.name
    mask, token = (getattr(tokenizer, key, None) for key in ("mask_token_id", "mask_token"))
    if isinstance(task, str) or mask is None or any(each.prompt[-1] != mask for each in task.examples):
        own = [] if mask is None else [f"measure a Task of your own whose prompts end in {token} (interp.encode_task)"]
        raise InputError(
            f"task {name!r} asks for the next token, which an encoder does not predict: it reads both sides of a word",
            "score its attention with interp.attend",
            *own,
        )
    asked = task.metric if metric in (None, "accuracy") else metric
    if asked == "sentence_log_probability":
        raise InputError(
            f"sentence_log_probability: task {name!r} would score words that the encoder has read, which is no "
            "prediction",
            "give metric='logit_difference'",
        )
