"""Activations at given points, of one run, without the logits where the model is ours."""

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from interp.errors import InputError, suggest
from interp.model.transformer import HookedTransformer
from interp.shapes import Tokens


def read(
    model: Any, tokens: Tokens, hook_names: Iterable[str], device: torch.device | None = None
) -> Mapping[str, Tensor]:
    """The activations of `model` on `tokens`, by the name of their point; brought to `device` as they are computed.

    Raises InputError for a point that the model does not have, or does not run.
    """
    names = sorted(set(hook_names))
    require_points(model, names)
    with torch.inference_mode():
        _, cache = model.run_with_cache(tokens, names_filter=names, device=device, **without_logits(model))
    require_run(names, cache)
    return {name: cache[name] for name in names}


def without_logits(model: Any) -> dict[str, int]:
    """Options of a forward pass that stops after the blocks; only models of ours have one.

    The logits of a whole batch can be larger than all activations together.
    """
    return {"stop_at_layer": model.cfg.n_layers} if isinstance(model, HookedTransformer) else {}


def require_points(model: Any, hook_names: Iterable[str]) -> None:
    """Refuse points that a model does not have."""
    known = getattr(model, "hook_dict", None)  # TransformerLens' protocol does not promise one
    for name in hook_names:
        if known is not None and name not in known:
            raise InputError(f"the model has no point {name!r}; {suggest(name, known)}")


def require_run(hook_names: Iterable[str], kept: Iterable[str]) -> None:
    """Refuse points that a model has and did not run: those that are not among the `kept`."""
    ran = set(kept)
    silent = [name for name in hook_names if name not in ran]
    if silent:
        raise InputError(
            f"{silent[0]}: the model did not run this point, so nothing is known of it; switch it on "
            "(TransformerLens: model.set_use_attn_result(True) and the like), or choose another site"
        )
