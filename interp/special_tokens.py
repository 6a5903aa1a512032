"""What stands around a text in token ids: one rule for prompts, tasks, corpora and generation.

1. In front stands what the tokenizer itself puts there (BERT's ``[CLS]``, Llama's ``<s>``). A tokenizer that puts
   nothing there and names a BOS token (GPT-2, GPT-NeoX) puts that, as in TransformerLens; one that names none
   (Qwen 2, GPT-1) puts nothing.
2. Behind stands what the tokenizer itself puts there (``[SEP]``), if the text is read whole, from both sides. What a
   model continues has no end.
"""

from collections.abc import Iterator
from typing import Any

Around = tuple[tuple[int, ...], tuple[int, ...]]
"""Token ids in front of a text, and behind it."""
_TRIED = 100


def special_around(tokenizer: Any, *, both_sides: bool | None = None) -> Around:
    """The special tokens in front of and behind every text.

    Args:
        tokenizer: Of ``transformers``, fast or slow.
        both_sides: Whether the model reads a text from both sides; None where the model is not known: then a tokenizer
            with a mask token is an encoder's.

    Returns:
        Ids in front, and ids behind; either may be empty.

    Examples:
        >>> from interp.special_tokens import special_around
        >>> special_around(interp.load_model().tokenizer)
        ((0,), ())
    """
    before, after = _own(tokenizer)
    if not before and tokenizer.bos_token_id is not None:
        before = (int(tokenizer.bos_token_id),)
    whole = tokenizer.mask_token_id is not None if both_sides is None else both_sides
    return before, after if whole else ()


def shown_around(tokenizer: Any, *, both_sides: bool) -> str:
    """The same for people: ``[CLS] text [SEP]``."""
    before, after = (
        tokenizer.convert_ids_to_tokens(list(ids)) for ids in special_around(tokenizer, both_sides=both_sides)
    )
    return " ".join(map(str, [*before, "text", *after]))


def _own(tokenizer: Any) -> Around:
    """What the tokenizer itself puts around a text that it can encode."""
    ends = {*tokenizer.encode("", add_special_tokens=True)}
    for text in _texts(tokenizer) if ends else ():
        try:
            plain, whole = (tokenizer.encode(text, add_special_tokens=special) for special in (False, True))
        except Exception:  # noqa: S112  # tokenizers raises bare Exceptions, as where a word and [UNK] are unknown
            continue
        for start in range(len(whole) - len(plain) + 1 if plain and not ends & {*plain} else 0):
            if whole[start : start + len(plain)] == plain:
                return tuple(whole[:start]), tuple(whole[start + len(plain) :])
    return (), ()


def _texts(tokenizer: Any) -> Iterator[str]:
    """Texts of which the tokenizer can probably encode one: a letter, then entries of its vocabulary."""
    yield "a"
    special = set(tokenizer.all_special_ids)
    yield from (tokenizer.decode([each]) for each in range(min(len(tokenizer), _TRIED)) if each not in special)
