"""Writing on from a prompt: greedy, or sampled with temperature, top-k and top-p (Holtzman et al. 2020)."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from interp.errors import InputError
from interp.model.cache import KeyValueCache
from interp.shapes import Tokens

if TYPE_CHECKING:
    from interp.model.transformer import HookedTransformer


def generate(
    model: "HookedTransformer",
    prompts: str | Sequence[str],
    max_new_tokens: int = 20,
    *,
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int = 0,
) -> list[str]:
    """Continue each prompt and return prompt and continuation as text.

    Prompts of unequal length are padded on the left; padding changes nothing. A prompt stops at
    the end-of-text token, or where it fills the context.

    Args:
        model: The model; it needs a tokenizer.
        prompts: One text or several.
        max_new_tokens: Tokens to write, at most.
        temperature: 0 takes the most probable token; above, logits are divided by it and sampled.
        top_k: Sample among this many most probable tokens only.
        top_p: Sample among the smallest set of tokens that holds this probability.
        seed: Of the sampling.

    Raises:
        InputError: A setting is out of range, a prompt leaves no room in the context, or the model is bidirectional.
    """
    tokens, mask = model.tokenize(prompts, padding_side="left")
    eos = model.tokenizer.eos_token_id
    settings: dict[str, Any] = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed, "eos": eos}
    written, mask = generate_tokens(model, tokens, max_new_tokens, attention_mask=mask, **settings)
    return [
        model.tokenizer.decode(row[keep], skip_special_tokens=True) for row, keep in zip(written, mask, strict=True)
    ]


@torch.inference_mode()
def generate_tokens(
    model: "HookedTransformer",
    tokens: Tokens,
    max_new_tokens: int = 20,
    *,
    attention_mask: Tensor | None = None,
    eos: int | None = None,
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int = 0,
) -> tuple[Int[Tensor, "batch written"], Bool[Tensor, "batch written"]]:
    """Continue each row of tokens, as ``generate`` does with text.

    Args:
        model: The model.
        tokens: Prompts, padded on the left where they are of unequal length.
        max_new_tokens: Tokens to write, at most.
        attention_mask: 1 for tokens, 0 for padding; None for no padding.
        eos: The token that ends a row; None for none.
        temperature: As in ``generate``, and so the rest.
        top_k: Sample among this many most probable tokens only.
        top_p: Sample among the smallest set of tokens that holds this probability.
        seed: Of the sampling.

    Returns:
        The rows with what was written, and where they hold tokens: what follows a row's end is padding.

    Raises:
        InputError: A setting is out of range, a prompt leaves no room in the context, or the model is bidirectional.
    """
    _check(max_new_tokens, temperature, top_k, top_p, seed)
    tokens, mask = model.as_tokens(tokens, attention_mask)
    _require_room(model, tokens)
    if not bool(mask[:, -1].all()):
        raise InputError(
            "attention_mask: what is written follows a row's last column, but one is padding; pad on the left"
        )
    generator = torch.Generator(device="cpu").manual_seed(seed)
    cache = KeyValueCache.empty(model.config.n_layers)
    running = torch.ones(len(tokens), dtype=torch.bool, device=tokens.device)
    written, new, new_mask = tokens, tokens, mask
    for _ in range(max_new_tokens):
        logits = model(new, attention_mask=new_mask, cache=cache, last_only=True)[:, -1]
        choice = _choose(logits.float(), temperature, top_k, top_p, generator)
        new, new_mask = choice[:, None], running[:, None]  # what follows a prompt's end is padding
        written, mask = torch.cat([written, new], 1), torch.cat([mask, new_mask], 1)
        running = running & (choice != (-1 if eos is None else eos)) & (mask.sum(-1) < model.config.n_ctx)
        if not running.any():
            break
    return written, mask


def _require_room(model: "HookedTransformer", tokens: Tokens) -> None:
    if not model.config.causal:
        raise InputError("generate: a bidirectional model has no next token; read its logits where a token is masked")
    if tokens.shape[1] >= model.config.n_ctx:
        raise InputError(
            f"generate: the longest prompt has {tokens.shape[1]} tokens, expected at most "
            f"{model.config.n_ctx - 1} (the context less one); shorten it"
        )


def _check(max_new_tokens: int, temperature: float, top_k: int | None, top_p: float | None, seed: int) -> None:
    if not 0 <= seed < 2**63:
        raise InputError(f"seed: expected a whole number from 0 to 2**63 - 1, got {seed}")
    if max_new_tokens < 1:
        raise InputError(f"max_new_tokens: expected at least 1, got {max_new_tokens}")
    if not 0 <= temperature < math.inf:
        raise InputError(f"temperature: expected 0 (greedy) or more, got {temperature}")
    if top_k is not None and top_k < 1:
        raise InputError(f"top_k: expected at least 1, got {top_k}")
    if top_p is not None and not 0 < top_p <= 1:
        raise InputError(f"top_p: expected a share above 0 and at most 1, got {top_p}")
    if temperature == 0 and (top_k is not None or top_p is not None):
        raise InputError("top_k and top_p choose what is sampled from, but temperature=0 samples nothing; raise it")


def _choose(
    logits: Float[Tensor, "batch d_vocab"],
    temperature: float,
    top_k: int | None,
    top_p: float | None,
    generator: torch.Generator,
) -> Int[Tensor, " batch"]:
    if temperature == 0:
        return logits.argmax(-1)
    below = logits - logits.max(-1, keepdim=True).values  # the same distribution, and no quotient overflows
    smallest = torch.finfo(logits.dtype).tiny  # below it, the temperature itself would become 0
    ordered, index = (below / max(temperature, smallest)).sort(-1, descending=True)
    if top_k is not None:
        ordered[:, top_k:] = -torch.inf
    probability = ordered.softmax(-1)
    if top_p is not None:
        before = probability.cumsum(-1) - probability
        probability = probability.masked_fill(before >= top_p, 0.0)
    draw = torch.multinomial(probability.cpu(), 1, generator=generator).to(index.device)
    return index.gather(-1, draw)[:, 0]
