"""From tensors in a file to a model, without holding the weights twice.

1. All names, shapes and dtypes are checked, on PyTorch's ``meta`` device: a wrong size makes room for nothing.
2. The model is made with weights that have no memory, and are not drawn.
3. Parameter by parameter, the values are copied from the file, which is mapped and not read, into memory of the dtype
   and on the device that were asked for, with the layout of the weight whose place they take.

So at most the model, in its dtype, and one tensor are in memory.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from transformers import PreTrainedTokenizerBase

from interp.errors import LoadError
from interp.model.config import TransformerConfig
from interp.model.loading.layers import Parameters
from interp.model.loading.taker import Taker
from interp.model.transformer import HookedTransformer


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that was found and described, and is not yet a model.

    Attributes:
        source: Where it came from.
        family: Whose tensors these are, for the messages.
        config: What the model is made of.
        read: Gives the tensors, under their own names.
        weights: Makes our parameters of them.
        tokenizer: Which goes with it.
        left_out: Names of tensors that are no weights.
        name: What the model is called; None for `source`.
    """

    source: str
    family: str
    config: TransformerConfig
    read: Callable[[], Mapping[str, Tensor]]
    weights: Callable[[Taker, TransformerConfig], Parameters]
    tokenizer: PreTrainedTokenizerBase | None = None
    left_out: re.Pattern[str] | None = None
    name: str | None = None

    def parameters(self, state: Mapping[str, Tensor]) -> Parameters:
        """Our parameters from `state`, one by one.

        Raises:
            LoadError: A tensor is missing, extra, of another shape or dtype, or holds what is no number.
        """
        take = Taker(state, self.source, family=self.family, left_out=self.left_out)
        yield from self.weights(take, self.config)
        take.finish()


def build(checkpoint: Checkpoint, device: torch.device, dtype: torch.dtype) -> HookedTransformer:
    """The model of `checkpoint`, in evaluation mode.

    Raises:
        LoadError: The tensors cannot be read, are not those of the config, or do not fit into `dtype`.
    """
    state = checkpoint.read()
    for _ in checkpoint.parameters({name: tensor.to("meta") for name, tensor in state.items()}):
        pass
    name = checkpoint.name or checkpoint.source
    with _EmptyWithoutMemory():
        model = HookedTransformer(checkpoint.config, checkpoint.tokenizer, name=name)
    left = dict(model.named_parameters())
    for each, tensor in checkpoint.parameters(state):
        module, _, leaf = each.rpartition(".")
        values = _copied(tensor, left.pop(each), f"{name}: tensor {each!r}", device, dtype)
        setattr(model.get_submodule(module), leaf, nn.Parameter(values))
    assert not left, f"nothing was read for {', '.join(left)}"
    return model.to(device=device, dtype=dtype)


class _EmptyWithoutMemory(TorchFunctionMode):
    """Makes ``torch.empty`` give tensors on the ``meta`` device; constants, which are small, keep their values."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        place = {"device": "meta"} if func is torch.empty else {}
        return func(*args, **{**(kwargs or {}), **place})


@torch.no_grad()
def _copied(tensor: Tensor, place: nn.Parameter, what: str, device: torch.device, dtype: torch.dtype) -> Tensor:
    """The values of `tensor`, laid out in memory as those of `place` would be.

    Raises:
        LoadError: They were finite, and are no longer in `dtype`.
    """
    assert tensor.shape == place.shape, f"{what}: {tuple(tensor.shape)} for {tuple(place.shape)}"
    values = torch.empty_like(place, dtype=dtype, device=device).copy_(tensor)
    narrower = torch.finfo(dtype).max < torch.finfo(tensor.dtype).max
    if narrower and not values.isfinite().all():
        raise LoadError(
            f"{what} holds values beyond {torch.finfo(dtype).max:g}, the largest number of {dtype}; "
            "take bfloat16 or a wider dtype"
        )
    return values
