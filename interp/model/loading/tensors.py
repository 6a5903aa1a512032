"""From a checkpoint's tensors to a model, without holding the weights twice.

1. All names, shapes and dtypes are checked, on PyTorch's ``meta`` device: a wrong size makes room for nothing.
2. The model is made with weights that have no memory, and are not drawn.
3. Parameter by parameter, the values are copied from the file, which is mapped and not read, into memory of the dtype
   and on the device that were asked for, with the layout of the weight whose place they take.

So at most the model, in its dtype, and one tensor are in memory.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import einops
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from transformers import PreTrainedTokenizerBase

from interp.errors import LoadError, suggest
from interp.model.config import TransformerConfig
from interp.model.devices import DTYPES
from interp.model.transformer import HookedTransformer

Parameters = Iterator[tuple[str, Tensor]]
UNQUANTISED = "take the model as it was before it was quantised"


class Taker:
    """Gives each tensor of a checkpoint once, checked: its name, its shape, its dtype, and that it holds numbers.

    The values are left unread where the tensors are on PyTorch's ``meta`` device, which has shapes alone.
    """

    def __init__(
        self,
        state: Mapping[str, Tensor],
        source: str,
        *,
        family: str = "this architecture",
        left_out: re.Pattern[str] | None = None,
    ):
        """Start with every tensor of `state`."""
        self._left = {name: each for name, each in state.items() if left_out is None or not left_out.search(name)}
        self._taken: list[str] = []
        self.source, self.family = source, family

    def __contains__(self, name: str) -> bool:
        return name in self._left

    def __call__(self, name: str, *shape: int) -> Tensor:
        """The tensor `name`, which then is taken."""
        if name not in self._left:
            raise LoadError(f"{self.source}: tensor {name!r} is missing; {suggest(name, self._left)}")
        tensor = self._left.pop(name)
        self._taken.append(name)
        if tensor.shape != shape:
            raise LoadError(
                f"{self.source}: tensor {name!r}: expected shape {shape}, got {tuple(tensor.shape)}; "
                "does the config describe these weights?"
            )
        require_numbers(tensor, name, self.source)
        return tensor

    def arranged(self, name: str, kept: str, ours: str, sizes: Mapping[str, int]) -> Tensor:
        """The tensor `name`, whose axes are those of `kept`, rearranged to `ours`; both as einops has them."""
        used = {axis: sizes[axis] for axis in re.findall(r"\w+", kept)}
        shape = [prod(used[axis] for axis in re.findall(r"\w+", each)) for each in re.findall(r"\(.*?\)|\w+", kept)]
        return einops.rearrange(self(name, *shape), f"{kept} -> {ours}", **used)

    def prefix(self, prefix: str, embed: str) -> str:
        """`prefix` where names begin with it; nothing where the checkpoint is of the body alone.

        Where the whole model was a part of another module, as of Lightning's, which may call it ``model``, all names
        begin with that, too; it is taken off.
        """
        before = [name.removesuffix(embed) for name in self._left if name == embed or name.endswith(f".{embed}")]
        outer = before[0].removesuffix(prefix) if len(before) == 1 else ""
        if outer and all(name.startswith(outer) for name in self._left):
            self._left = {name.removeprefix(outer): tensor for name, tensor in self._left.items()}
        return prefix if any(name.startswith(prefix) for name in self._left) else ""

    def take_copy(self, name: str, original: Tensor, original_name: str) -> None:
        """Take `name` where it is there: a tied weight that was written a second time."""
        if name not in self._left:
            return
        copy = self(name, *original.shape)
        if not copy.is_meta and bool((copy != original).any()):
            raise LoadError(
                f"{self.source}: the config ties the embeddings, but {name!r} and {original_name!r} differ; "
                "set tie_word_embeddings to false in the config"
            )

    def finish(self) -> None:
        """Make sure that everything was taken."""
        if self._left:
            name = next(iter(self._left))
            raise LoadError(
                f"{self.source}: tensor {name!r} is not part of {self.family}; {suggest(name, self._taken)}"
            )


def require_numbers(tensor: Tensor, name: str, source: str) -> None:
    """Refuse what is not finite floating-point numbers; on the ``meta`` device there are no values to look at."""
    if tensor.dtype not in DTYPES.values():
        raise LoadError(
            f"{source}: tensor {name!r}: expected one of {', '.join(DTYPES)}, got {tensor.dtype}; if it is quantised, "
            f"{UNQUANTISED}"
        )
    if not tensor.is_meta and not tensor.isfinite().all():
        bad = int((~tensor.isfinite()).sum())
        raise LoadError(f"{source}: tensor {name!r}: {bad} of its {tensor.numel()} values are NaN or infinite")


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that was found and described, and is not yet a model."""

    source: str  # where it came from
    family: str  # whose tensors these are, for the messages
    config: TransformerConfig  # what the model is made of
    read: Callable[[], Mapping[str, Tensor]]  # gives the tensors, under their own names
    weights: Callable[[Taker, TransformerConfig], Parameters]  # makes our parameters of them
    tokenizer: PreTrainedTokenizerBase | None = None  # which goes with it
    left_out: re.Pattern[str] | None = None  # names of tensors that are no weights
    name: str | None = None  # what the model is called; None for `source`

    def parameters(self, state: Mapping[str, Tensor]) -> Parameters:
        """Our parameters from `state`, one by one."""
        take = Taker(state, self.source, family=self.family, left_out=self.left_out)
        yield from self.weights(take, self.config)
        take.finish()


def build(checkpoint: Checkpoint, device: torch.device, dtype: torch.dtype) -> HookedTransformer:
    """The model of `checkpoint`, in evaluation mode."""
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
    """The values of `tensor`, laid out in memory as those of `place` would be."""
    assert tensor.shape == place.shape, f"{what}: {tuple(tensor.shape)} for {tuple(place.shape)}"
    values = torch.empty_like(place, dtype=dtype, device=device).copy_(tensor)
    narrower = torch.finfo(dtype).max < torch.finfo(tensor.dtype).max
    if narrower and not values.isfinite().all():
        raise LoadError(
            f"{what} holds values beyond {torch.finfo(dtype).max:g}, the largest number of {dtype}; "
            "take bfloat16 or a wider dtype"
        )
    return values
