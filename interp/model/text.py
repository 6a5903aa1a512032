"""Between text and tokens: the part of the model that knows the tokenizer. BOS is always explicit."""

from collections.abc import Sequence
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from interp.errors import InputError
from interp.model.token_ids import TOKEN_DTYPES
from interp.shapes import PaddingMask, Tokens


class TextMixin:
    """TransformerLens' text methods, for a model with ``tokenizer``, ``embed`` and ``unembed``."""

    tokenizer: Any
    embed: Any
    unembed: Any

    def tokenize(
        self,
        texts: str | Sequence[str],
        *,
        prepend_bos: bool = True,
        padding_side: Literal["left", "right"] = "right",
    ) -> tuple[Tokens, PaddingMask]:
        """Token ids and the mask of real tokens, padded to the longest text.

        Raises:
            InputError: There is no tokenizer, no text, a text without a token, one that is no Unicode text, or one that
                the tokenizer cannot encode.
        """
        texts = [texts] if isinstance(texts, str) else list(texts)
        if not texts:
            raise InputError("tokenize: expected at least one text, got none")
        rows = [self._encode(text, prepend_bos) for text in texts]
        width = max(len(row) for row in rows)
        device = self.embed.W_E.device
        # What fills the rows is masked, so where the tokenizer has no BOS, any id will do.
        tokens = torch.full((len(rows), width), self._tokenizer().bos_token_id or 0, device=device)
        mask = torch.zeros(len(rows), width, dtype=torch.bool, device=device)
        for i, row in enumerate(rows):
            columns = slice(width - len(row), width) if padding_side == "left" else slice(0, len(row))
            tokens[i, columns] = torch.tensor(row, device=device)
            mask[i, columns] = True
        return tokens, mask

    def to_tokens(self, input: str | Sequence[str], prepend_bos: bool | None = None, **unused: Any) -> Tokens:
        """Token ids, BOS first; several texts are padded on the right.

        On the right, padding needs no mask in a causal model; for padding on the left take
        ``tokenize``, whose mask the forward pass then needs.

        Raises:
            InputError: There is no tokenizer, no text, or an option that this model does not have.
        """
        if unused.get("padding_side") == "right":
            unused.pop("padding_side")
        lacking = {name: value for name, value in unused.items() if value is not None}
        if lacking:
            options = ", ".join(f"{name}={value!r}" for name, value in lacking.items())
            raise InputError(
                f"to_tokens: pads on the right and has no option {options}; "
                "use tokenize(..., padding_side='left'), which also gives the attention mask"
            )
        return self.tokenize(input, prepend_bos=prepend_bos is not False)[0]

    def to_string(self, tokens: Int[Tensor, "*rows"] | Sequence[int] | int) -> str | list[str]:
        """The text of one row of tokens, or a list of texts for several rows."""
        ids = torch.as_tensor(tokens)
        if ids.ndim > 1:
            return [str(self.to_string(row)) for row in ids]
        return self._tokenizer().decode(ids.reshape(-1).tolist())

    def to_str_tokens(self, input: str | Int[Tensor, "*rows"], prepend_bos: bool = True) -> list[str]:
        """The text of each token of one prompt, each with its leading space.

        Raises:
            InputError: There is no tokenizer, or there are several prompts.
        """
        ids = self.to_tokens(input, prepend_bos) if isinstance(input, str) else input
        if ids.ndim > 1 and len(ids) != 1:
            raise InputError(f"to_str_tokens: expected one prompt, got {len(ids)}; call it for each row")
        decode, bos = self._tokenizer().decode, self._bos()
        # Behind BOS, because a decoder may strip the space in front of a text's first word.
        return [decode([bos, each])[len(decode([bos])) :] for each in ids.reshape(-1).tolist()]

    def to_single_token(self, text: str) -> int:
        """The id of a text that is exactly one token, such as ``" keys"``.

        Raises:
            InputError: It is not one token.
        """
        ids = self._encode(text, prepend_bos=False)
        if len(ids) != 1:
            pieces = self._tokenizer().convert_ids_to_tokens(ids)
            raise InputError(f"{text!r}: expected one token, got {len(ids)} ({' | '.join(pieces)})")
        return ids[0]

    def tokens_to_residual_directions(self, tokens: str | int | Int[Tensor, "*rows"]) -> Float[Tensor, "*rows d_model"]:
        """The unembedding's columns for `tokens`: the directions that write their logits.

        Raises:
            InputError: A text that is not one token, or ids that the vocabulary does not have.
        """
        return self.unembed.W_U.T[self.to_ids(tokens)]

    def to_ids(self, tokens: object) -> Int[Tensor, "*rows"]:
        """Checked ids on the model's device, of a text that is one token, of an id, or of a tensor of ids.

        Raises:
            InputError: Neither of these, or ids that the vocabulary does not have.
        """
        given = self.to_single_token(tokens) if isinstance(tokens, str) else tokens
        try:
            ids = torch.as_tensor(given, device=self.embed.W_E.device)
        except (TypeError, ValueError, RuntimeError) as error:
            raise InputError(f"tokens: expected a text of one token, or token ids, got {tokens!r}") from error
        if ids.dtype not in TOKEN_DTYPES:
            raise InputError(f"tokens: expected a text of one token, or token ids, got {tokens!r}")
        if ids.numel() and not 0 <= int(ids.min()) <= int(ids.max()) < len(self.embed.W_E):
            raise InputError(f"token ids: expected 0 to {len(self.embed.W_E) - 1}, got {ids.tolist()}")
        return ids.long()

    def _encode(self, text: object, prepend_bos: bool) -> list[int]:
        if not isinstance(text, str):
            raise InputError(f"expected text, got {type(text).__name__}")
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InputError(f"{text!r}: expected Unicode text, got half of a surrogate pair; read it anew") from error
        tokenizer = self._tokenizer()
        try:
            ids = tokenizer.encode(text, add_special_tokens=False)
        except Exception as error:  # tokenizers raises bare Exceptions, as where a word and [UNK] are unknown
            raise InputError(f"{text!r}: the tokenizer cannot encode this ({error}); use another text") from error
        ids = [self._bos(), *ids] if prepend_bos else ids
        if not ids:
            raise InputError("expected a text of at least one token, got an empty text")
        return ids

    def _bos(self) -> int:
        bos = self._tokenizer().bos_token_id
        if bos is None:
            raise InputError("the tokenizer names no BOS token; give it one (tokenizer.bos_token = ...)")
        return bos

    def _tokenizer(self) -> Any:
        if self.tokenizer is None:
            raise InputError("this model has no tokenizer: give token ids instead of text, or set model.tokenizer")
        return self.tokenizer
