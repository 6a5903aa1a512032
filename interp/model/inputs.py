"""Checks of what a model is given: token ids and their padding mask, and the tokenizer."""

from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from interp.errors import InputError, LoadError, shown
from interp.shapes import PaddingMask, Tokens

TOKEN_DTYPES = (
    *(torch.int64, torch.int32, torch.int16, torch.int8),
    *(torch.uint64, torch.uint32, torch.uint16, torch.uint8),  # as nanoGPT's data are
)


def as_token_ids(given: Any, device: torch.device) -> Tokens:
    """`given` as ids ``[batch pos]`` on `device`; one row may come without its batch axis."""
    if not isinstance(given, Tensor):
        raise InputError(f"token ids: expected a tensor of whole numbers [batch pos], got {given!r:.80}")
    if given.ndim not in (1, 2) or given.dtype not in TOKEN_DTYPES:
        raise InputError(
            f"token ids: expected whole numbers of shape [batch pos], got {given.dtype} of shape {tuple(given.shape)}"
        )
    return torch.atleast_2d(given).to(device, torch.long)


def as_padding_mask(given: Any, tokens: Tokens, name: str = "attention_mask") -> PaddingMask:
    """`given` as True for tokens and False for padding; without one, all are tokens."""
    if given is None:
        return torch.ones_like(tokens, dtype=torch.bool)
    if not isinstance(given, Tensor):
        raise InputError(f"{name}: expected a tensor of the tokens' shape, got {given!r:.80}")
    mask = torch.atleast_2d(given).to(tokens.device)
    if mask.shape != tokens.shape:
        raise InputError(f"{name}: expected the tokens' shape {tuple(tokens.shape)}, got {tuple(mask.shape)}")
    if not bool(((mask == 0) | (mask == 1)).all()):
        raise InputError(f"{name}: expected 1 for tokens and 0 for padding, got other values")
    return mask.bool()


def require_fit(tokens: Tokens, longest: int, *, n_ctx: int, d_vocab: int) -> None:
    """Refuse tokens that a model of this context and vocabulary cannot take."""
    if tokens.numel() == 0:
        raise InputError("the model was given no tokens; expected at least one prompt of at least one token")
    if longest > n_ctx:
        raise InputError(
            f"the longest prompt has {longest} tokens, but the model's context is {n_ctx}; "
            "shorten the prompt or take a model with a longer context"
        )
    low, high = int(tokens.min()), int(tokens.max())
    if low < 0 or high >= d_vocab:
        raise InputError(
            f"token ids: expected 0 to {d_vocab - 1}, got {low} to {high}; were they made by another model's tokenizer?"
        )


_FIRST = "tokenizer: expected one of transformers, got"


def as_tokenizer(given: Any) -> PreTrainedTokenizerBase | None:
    """`given`, where it is a tokenizer of ``transformers`` or None; one of ``tokenizers``, wrapped."""
    if given is None or isinstance(given, PreTrainedTokenizerBase):
        return given
    if isinstance(given, Tokenizer):
        return PreTrainedTokenizerFast(tokenizer_object=given)
    raise LoadError(what_instead(given))


def what_instead(given: object) -> str:
    """What to give in the place of something that is no tokenizer of ``transformers``. No other library is imported."""
    kind = type(given)
    library = kind.__module__.partition(".")[0]
    if library == "sentencepiece":
        return (
            f"{_FIRST} SentencePiece's {kind.__name__}; write its serialized_model_proto() to FOLDER/tokenizer.model, "
            "and give what LlamaTokenizer.from_pretrained(FOLDER) returns, or T5Tokenizer.from_pretrained(FOLDER) "
            "where it is a unigram model"
        )
    if library == "tiktoken":
        return (
            f"{_FIRST} tiktoken's {kind.__name__}; call transformers.integrations.tiktoken.convert_tiktoken_to_fast("
            "encoding, FOLDER), and give what PreTrainedTokenizerFast.from_pretrained(FOLDER) returns"
        )
    if isinstance(given, Tokenizer):
        return f"{_FIRST} one of tokenizers; give PreTrainedTokenizerFast(tokenizer_object=tokenizer)"
    return f"{_FIRST} {shown(given)}; give what AutoTokenizer.from_pretrained(FOLDER) returns"
