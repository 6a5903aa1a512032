"""What a model reads: between text and tokens, and the checks of token ids and their padding mask."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from numbers import Integral
from operator import index
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float, Int, Integer
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from interp.arguments import named_arguments
from interp.errors import InputError, LoadError, shown
from interp.model.positions import SeenMask, looks_back_only
from interp.shapes import PaddingMask, Tokens
from interp.special_tokens import Around, special_around

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


def require_fit(tokens: Tokens, seen: SeenMask | None = None, *, n_ctx: int, d_vocab: int) -> bool:
    """Refuse tokens that a model of this context and vocabulary cannot take; of all that are `seen`, if these are more.

    Returns whether none of them is padding. What has to be known of them comes from the device at once.
    """
    if tokens.numel() == 0:
        raise InputError("the model was given no tokens; expected at least one prompt of at least one token")
    counts = tokens.new_full((1,), tokens.shape[1]) if seen is None else seen.sum(-1)
    facts = (tokens.min(), tokens.max(), counts.min(), counts.max())
    low, high, shortest, longest = torch.stack(facts).tolist()
    if longest > n_ctx:
        raise InputError(
            f"the longest prompt has {longest} tokens, but the model's context is {n_ctx}; "
            "shorten the prompt or take a model with a longer context"
        )
    if low < 0 or high >= d_vocab:
        raise InputError(
            f"token ids: expected 0 to {d_vocab - 1}, got {low} to {high}; were they made by another model's tokenizer?"
        )
    return seen is None or bool(shortest == seen.shape[1])


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


PaddingSide = Literal["left", "right"]
_AS_IT_IS = {"padding_side": "right", "move_to_device": True, "truncate": False}
"""What TransformerLens' options of ``to_tokens`` are here."""
Ids = Integer[Tensor, "*rows"] | Integer[np.ndarray, "*rows"] | Sequence[int]


class TextMixin:
    """TransformerLens' text methods; ``special_tokens.py`` says what stands around a text."""

    tokenizer: Any
    embed: Any
    unembed: Any

    @named_arguments
    def tokenize(
        self, texts: str | Sequence[str], *, prepend_bos: bool | None = None, padding_side: PaddingSide = "right"
    ) -> tuple[Tokens, PaddingMask]:
        """Token ids and the mask of real tokens, padded to the longest text.

        Args:
            texts: One or several.
            prepend_bos: False for a part of a text, without the special tokens around it; True asks that there be one
                in front.
            padding_side: Where shorter texts are padded.

        Returns:
            Ids ``[batch pos]``, and the mask of the same shape: True for tokens, False for padding.

        Raises:
            InputError: There is no tokenizer, no text, a text without a token, one that is no Unicode text, or one that
                the tokenizer cannot encode; or no token to put in front, where one is asked for.
        """
        if padding_side not in ("left", "right"):
            raise InputError(f"padding_side: expected 'left' or 'right', got {shown(padding_side)}")
        if isinstance(texts, Mapping) or hasattr(texts, "columns"):  # whose elements are names
            raise InputError(f"texts: expected one text or a list of them, got {shown(texts)}")
        texts = [texts] if isinstance(texts, str) else list(texts)
        if not texts:
            raise InputError("tokenize: expected at least one text, got none")
        around = self._around(prepend_bos)
        rows = [self._encode(text, around) for text in texts]
        # What fills the rows is masked, so where the tokenizer has no BOS, any id will do.
        pad = partial(pad_sequence, batch_first=True, padding_side=padding_side)
        ids = [torch.tensor(row, device=self.embed.W_E.device) for row in rows]
        tokens = pad(ids, padding_value=self._tokenizer().bos_token_id or 0)
        return tokens, pad([torch.ones_like(row, dtype=torch.bool) for row in ids])

    @named_arguments
    def to_tokens(self, input: str | Sequence[str], prepend_bos: bool | None = None, **unused: Any) -> Tokens:
        """Token ids with the special tokens around them (see ``tokenize``); several texts are padded on the right.

        On the right, padding needs no mask in a causal model; for padding on the left take
        ``tokenize``, whose mask the forward pass then needs.

        Args:
            input: One text or several.
            prepend_bos: As of ``tokenize``.
            **unused: Other options of TransformerLens' method; only what changes nothing here may be given.

        Returns:
            Ids ``[batch pos]``.

        Raises:
            InputError: As ``tokenize``; an option that this model does not have; or texts of different lengths for a
                model that reads both sides, and so padding, too.
        """
        for name, value in unused.items():
            if value is not None and repr(value) != repr(_AS_IT_IS.get(name)):
                left = "use tokenize(..., padding_side='left'), which also gives the attention mask"
                advice = left if name == "padding_side" else "leave it out"
                raise InputError(f"to_tokens: pads on the right and has no option {name}={shown(value)}; {advice}")
        if not isinstance(input, str | Iterable):
            raise InputError(f"input: expected one text or a list of them, got {shown(input)}")
        tokens, mask = self.tokenize(input, prepend_bos=prepend_bos)
        if not (mask.all() or looks_back_only(self)):
            raise InputError(
                "to_tokens: this model reads both sides, and so the padding of shorter texts, too; take "
                "tokens, mask = model.tokenize(texts) and then model(tokens, attention_mask=mask)"
            )
        return tokens

    @named_arguments
    def to_string(self, tokens: Ids | int) -> str | list[str]:
        """The text of tokens, special tokens included.

        Args:
            tokens: One id, a row of ids, or rows ``[batch pos]``.

        Returns:
            One text; of several rows, a list of texts.

        Raises:
            InputError: There is no tokenizer, or these are no ids of its vocabulary.
        """
        ids = self.to_ids(tokens, of_tokenizer=True)
        if ids.ndim > 2:
            raise InputError(f"to_string: expected ids of shape [batch pos], got {tuple(ids.shape)}")
        return [self.decoded(row) for row in ids] if ids.ndim == 2 else self.decoded(ids.reshape(-1))

    def decoded(self, ids: Int[Tensor, " pos"], *, skip_special_tokens: bool = False) -> str:
        """The text of ids, special tokens included unless they are to be left out."""
        return str(self._tokenizer().decode(ids.tolist(), skip_special_tokens=skip_special_tokens))

    @named_arguments
    def to_str_tokens(self, input: str | Sequence[str] | Ids, prepend_bos: bool | None = None) -> list[Any]:
        """The text of each token of one prompt, each with its leading space.

        Args:
            input: A prompt, as text or as ids; or a list of texts.
            prepend_bos: Of text, as of ``tokenize``.

        Returns:
            One text for each token; of a list of texts, a list of such lists.

        Raises:
            InputError: There is no tokenizer, there are several rows of ids, or ids that the vocabulary does not have.
        """
        if isinstance(input, str):
            ids = self.to_tokens(input, prepend_bos)
        elif isinstance(input, Sequence) and not all(isinstance(each, Integral) for each in input):
            return [self.to_str_tokens(each, prepend_bos) for each in input]  # type: ignore[arg-type]  # no ids now
        else:
            ids = self.to_ids(input, of_tokenizer=True)
        decode = self._tokenizer().decode
        # Behind itself, because a decoder may strip the space in front of a text's first word.
        return [decode([each, each])[len(decode([each])) :] for each in _one_row(ids, "to_str_tokens").tolist()]

    @named_arguments
    def to_single_str_token(self, token: int) -> str:
        """The text of one token, with its leading space."""
        return str(self.to_str_tokens([index(token)])[0])

    @named_arguments
    def get_token_position(
        self,
        single_token: str | int | Int[Tensor, ""],
        input: str | Int[Tensor, "*rows"],
        mode: Literal["first", "last"] = "first",
        prepend_bos: bool | None = None,
    ) -> int:
        """Where a token stands in one prompt, counted from 0.

        Args:
            single_token: Its text, such as ``" keys"``, or its id.
            input: The prompt, as text or as ids.
            mode: Which of several places is meant.
            prepend_bos: Of text, as of ``tokenize``.

        Returns:
            Its position.

        Raises:
            InputError: It does not stand there, is no single token, or there are several prompts.
        """
        if mode not in ("first", "last"):
            raise InputError(f"mode: expected 'first' or 'last', got {shown(mode)}")
        ids = self.to_tokens(input, prepend_bos) if isinstance(input, str) else torch.as_tensor(input)
        row = _one_row(ids, "get_token_position")
        places = (row == self.to_ids(single_token).to(row.device)).nonzero().flatten().tolist()
        if not places:
            raise InputError(f"{single_token!r}: expected one of the prompt's tokens, got {shown(input)} without it")
        return int(places[0 if mode == "first" else -1])

    @named_arguments
    def to_single_token(self, text: str) -> int:
        """The id of a text that is exactly one token.

        Args:
            text: Such as ``" keys"``, with its leading space.

        Returns:
            The id.

        Raises:
            InputError: The text is no token, or several.
        """
        ids = self._encode(text, ((), ()))
        if len(ids) != 1:
            pieces = self._tokenizer().convert_ids_to_tokens(ids)
            raise InputError(f"{text!r}: expected one token, got {len(ids)} ({' | '.join(pieces)})")
        return ids[0]

    def tokens_to_residual_directions(self, tokens: str | int | Int[Tensor, "*rows"]) -> Float[Tensor, "*rows d_model"]:
        """The unembedding's columns for `tokens`: the directions that write their logits.

        Args:
            tokens: A text of one token, an id, or a tensor of ids of any shape.

        Returns:
            ``[d_model]`` for one token; of a tensor, its shape and ``d_model`` behind.
        """
        return self.unembed.W_U.T[self.to_ids(tokens)]

    def to_ids(self, tokens: object, *, of_tokenizer: bool = False) -> Int[Tensor, "*rows"]:
        """Checked ids on the model's device, of a text that is one token, of an id, or of a tensor of ids.

        Args:
            tokens: Text, one number or several.
            of_tokenizer: Whether ids that the tokenizer alone has will do, as for who wants their text.

        Raises:
            InputError: Neither of these, or ids that the vocabulary does not have.
        """
        of_tokenizer = of_tokenizer and self.tokenizer is not None
        n_known = max(len(self.embed.W_E), len(self._tokenizer()) if of_tokenizer else 0)
        given = self.to_single_token(tokens) if isinstance(tokens, str) else tokens
        try:
            ids = torch.as_tensor(given, device=self.embed.W_E.device)
        except (TypeError, ValueError, RuntimeError, OverflowError) as error:
            raise InputError(f"tokens: expected a text of one token, or token ids, got {shown(tokens)}") from error
        if ids.dtype not in TOKEN_DTYPES and ids.numel():
            raise InputError(f"tokens: expected a text of one token, or token ids, got {shown(tokens)}")
        ids = ids.long()
        if ids.numel() and not 0 <= int(ids.min()) <= int(ids.max()) < n_known:
            raise InputError(f"token ids: expected 0 to {n_known - 1}, got {shown(ids.tolist())}")
        return ids

    def _around(self, prepend_bos: bool | None) -> Around:
        """What stands around every text."""
        if prepend_bos is False:
            return (), ()
        around = special_around(self._tokenizer(), both_sides=not looks_back_only(self))
        if prepend_bos and not around[0]:
            raise InputError(
                "prepend_bos=True: the tokenizer names no BOS token and puts nothing in front of a text; "
                "leave prepend_bos out"
            )
        return around

    def _encode(self, text: object, around: Around) -> list[int]:
        if not isinstance(text, str):
            raise InputError(f"expected text, got {type(text).__name__}")
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InputError(f"{text!r}: expected Unicode text, got half of a surrogate pair; read it again") from error
        tokenizer = self._tokenizer()
        try:
            ids = tokenizer.encode(text, add_special_tokens=False)
        except Exception as error:  # tokenizers raises bare Exceptions, as where a word and [UNK] are unknown
            raise InputError(f"{text!r}: the tokenizer cannot encode this ({error}); use another text") from error
        before, after = around
        ids = [*before, *ids, *after]
        if not ids:
            raise InputError("expected a text of at least one token, got an empty text")
        return ids

    def _tokenizer(self) -> Any:
        if self.tokenizer is None:
            raise InputError("this model has no tokenizer: give token ids instead of text, or set model.tokenizer")
        if not isinstance(self.tokenizer, PreTrainedTokenizerBase):
            raise InputError(what_instead(self.tokenizer))
        return self.tokenizer


def _one_row(ids: Int[Tensor, "*rows"], what: str) -> Int[Tensor, " pos"]:
    """The ids of one prompt, with a batch axis or without."""
    if ids.ndim > 1 and len(ids) != 1:
        raise InputError(f"{what}: expected one prompt, got {len(ids)}; call it for each row")
    return ids.reshape(-1)
