"""A task for a model that was trained to chat: each prompt is the beginning of its answer, in the tokenizer's template.

1. A user's turn asks for a text, and the assistant's turn begins with the prompt, which stays open: what the model
   predicts at the prompt's last token is still the answer. All prompts are asked for alike.
2. The relation's spans follow, by the characters that the template puts in front of the prompt.
3. The template writes the special tokens itself, so ``tokenize`` adds none.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import date
from typing import Any

from transformers import PreTrainedTokenizerBase

from interp.arguments import named_arguments
from interp.errors import TaskError
from interp.tasks.example import Example, MinimalPair, Relation, Span

REQUEST = "Write a text."
"""The user's turn: of no task's words, so that nothing is related to it."""
DAY = date(2024, 7, 26)
"""What day it is for templates that say so, such as Llama 3's: a prompt is the same tomorrow."""
_TODAY = re.compile(r"strftime_now\(\s*(['\"])(.*?)\1\s*\)")
_WAYS = ("take an instruct model", "leave chat=True out")


@named_arguments
def in_chat(pairs: Iterable[MinimalPair], tokenizer: PreTrainedTokenizerBase) -> Iterator[MinimalPair]:
    r"""Minimal pairs whose prompts begin an assistant's answer.

    Args:
        pairs: With prompts as they are.
        tokenizer: An instruct model's, which has a chat template.

    Returns:
        The same pairs, with all that the template puts in front of a prompt; to be given to ``interp.encode_task``
        with the same tokenizer.

    Raises:
        TaskError: The tokenizer has no chat template, or it cannot be filled in, or it changes a prompt.

    Examples:
        >>> from interp.tasks import agreement
        >>> from interp.tasks.chat import in_chat
        >>> tokenizer = interp.load_model().tokenizer
        >>> tokenizer.chat_template = "{% for turn in messages %}[{{ turn.role }}] {{ turn.content }}\n{% endfor %}"
        >>> (pair,) = in_chat(agreement.pairs(1, seed=0), tokenizer)
        >>> pair.item.prompt.splitlines()[0]
        '[user] Write a text.'
    """
    if not getattr(tokenizer, "chat_template", None):
        raise TaskError(
            f"chat: expected a tokenizer with a chat template, got {type(tokenizer).__name__} without one",
            *_WAYS,
        )
    for pair in pairs:
        item, *others = (_in_chat(each, tokenizer) for each in pair.examples)
        named = {name: _in_chat(each, tokenizer) for name, each in pair.counterfactuals.items()}
        yield replace(pair, item=item, counterfactual=others[0] if others else None, counterfactuals=named)


def _in_chat(example: Example, tokenizer: PreTrainedTokenizerBase) -> Example:
    before = _before(example.prompt, tokenizer)
    others = tuple(_in_chat(each, tokenizer) for each in example.word_counterfactuals)
    relation = example.relation and _moved(example.relation, len(before))
    return replace(example, prompt=before + example.prompt, relation=relation, word_counterfactuals=others, chat=True)


def _before(prompt: str, tokenizer: PreTrainedTokenizerBase) -> str:
    """What the template puts in front of a prompt, which may be empty, as of whole sentences."""
    turns = [{"role": "user", "content": REQUEST}, {"role": "assistant", "content": prompt}]
    try:
        template = _TODAY.sub(lambda found: repr(DAY.strftime(found[2])), tokenizer.get_chat_template())
        how: Any = {"tokenize": False, "chat_template": template}
        if prompt:
            text = tokenizer.apply_chat_template(turns, continue_final_message=True, **how)
        else:
            text = tokenizer.apply_chat_template(turns[:1], add_generation_prompt=True, **how)
    except Exception as error:  # of the template, whatever it raises of turns that it does not take
        raise TaskError(
            f"chat: the tokenizer's chat template cannot be filled in with {prompt!r:.80} ({error})", *_WAYS
        ) from error
    if not str(text).endswith(prompt):
        raise TaskError(
            f"chat: expected a chat template that leaves the prompt as it is, got {text!r:.200} of {prompt!r:.80}",
            *_WAYS,
        )
    return str(text).removesuffix(prompt)


def _moved(relation: Relation, by: int) -> Relation:
    query, related = _at(relation.query, by), _at(relation.related, by)
    return replace(
        relation,
        query=query,
        related=related,
        distractors={role: _at(span, by) for role, span in relation.distractors.items()},
    )


def _at(span: Span, by: int) -> Span:
    return Span(span.start + by, span.stop + by)
