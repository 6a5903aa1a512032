"""Writing on from a prompt: greedy, or sampled with temperature, top-k and top-p (Holtzman et al. 2020)."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float, Int
from torch import Tensor

from interp.errors import InputError
from interp.model.cache import KeyValueCache

if TYPE_CHECKING:
    from interp.model.transformer import HookedTransformer


@torch.inference_mode()
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
        InputError: A setting is out of range, or a prompt leaves no room in the context.
    """
    _check(max_new_tokens, temperature, top_k, top_p, seed)
    tokens, mask = model.tokenize(prompts, padding_side="left")
    if tokens.shape[1] >= model.config.n_ctx:
        raise InputError(
            f"generate: the longest prompt has {tokens.shape[1]} tokens, expected at most "
            f"{model.config.n_ctx - 1} (the context less one); shorten it"
        )
    generator = torch.Generator(device="cpu").manual_seed(seed)
    cache = KeyValueCache.empty(model.config.n_layers)
    eos = -1 if model.tokenizer.eos_token_id is None else model.tokenizer.eos_token_id
    running = torch.ones(len(tokens), dtype=torch.bool, device=tokens.device)
    written, new, new_mask = tokens, tokens, mask
    for _ in range(max_new_tokens):
        logits = model(new, attention_mask=new_mask, cache=cache)[:, -1]
        choice = _choose(logits.float(), temperature, top_k, top_p, generator)
        new, new_mask = choice[:, None], running[:, None]  # what follows a prompt's end is padding
        written, mask = torch.cat([written, new], 1), torch.cat([mask, new_mask], 1)
        running = running & (choice != eos) & (mask.sum(-1) < model.config.n_ctx)
        if not running.any():
            break
    return [
        model.tokenizer.decode(row[keep], skip_special_tokens=True) for row, keep in zip(written, mask, strict=True)
    ]


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
