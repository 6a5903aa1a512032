"""Which tokenizers can a model be given? Those of ``transformers``; of others, how to make one of these."""

from typing import Any

from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from interp.errors import LoadError, shown

_FIRST = "tokenizer: expected one of transformers, got"


def as_tokenizer(given: Any) -> PreTrainedTokenizerBase | None:
    """`given`, where it is a tokenizer of ``transformers`` or None; one of ``tokenizers``, wrapped.

    Raises:
        LoadError: It is something else; who makes a tokenizer of it is said.
    """
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
