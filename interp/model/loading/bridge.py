"""Models of architectures that are not rebuilt here: through TransformerLens' ``TransformerBridge``."""

from typing import Any

import torch
from transformers import PreTrainedTokenizerBase

from interp.errors import LoadError

BRIDGE = "bridge:"


def load_bridge(name: str, device: torch.device, dtype: torch.dtype, tokenizer: PreTrainedTokenizerBase | None) -> Any:
    """The ``TransformerBridge`` of a model on the hub or in a folder, as TransformerLens makes it.

    Its points and parameters carry TransformerLens' names, so what is written for them runs on it. No code that comes
    with a model is run.

    Raises:
        LoadError: There is no name, or TransformerLens cannot load the model.
    """
    from transformer_lens.model_bridge import TransformerBridge

    if not name:
        raise LoadError(f"{BRIDGE!r}: the model's name is empty; expected a hub name or a folder, as in 'bridge:gpt2'")
    try:
        model = TransformerBridge.boot_transformers(name, device=device, dtype=dtype, tokenizer=tokenizer)
    except Exception as error:  # whatever transformers, the hub or the adapter raise
        raise LoadError(
            f"{BRIDGE}{name}: TransformerLens cannot load this model ({type(error).__name__}: {error}); "
            "check the name and the network"
        ) from error
    return model.eval()
