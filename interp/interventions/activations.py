"""What does a model hold at given points? One run, without the logits where the model is ours."""

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from interp.model.transformer import HookedTransformer
from interp.shapes import Tokens


def read(model: Any, tokens: Tokens, hook_names: Iterable[str]) -> Mapping[str, Tensor]:
    """The activations of `model` on `tokens`, by the name of their point.

    Args:
        model: Follows TransformerLens' protocol.
        tokens: Rows of equal length.
        hook_names: Points within the blocks.
    """
    names = sorted(set(hook_names))
    # The logits of a whole batch can be larger than all activations together.
    stop = {"stop_at_layer": model.cfg.n_layers} if isinstance(model, HookedTransformer) else {}
    with torch.inference_mode():
        _, cache = model.run_with_cache(tokens, names_filter=names, **stop)
    return {name: cache[name] for name in names}
