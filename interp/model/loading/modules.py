"""What somebody gives as a model: wrapped by a library, one of TransformerLens' protocol, or one of ours.

PyTorch and training libraries wrap modules (compilation, data parallelism, sharding, recomputation). Each keeps the
module as its only child and runs it as it is; any block may be wrapped as well as the whole.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from torch import Tensor, nn
from transformers import PreTrainedModel

from interp.errors import InputError, LoadError, shown
from interp.model.transformer import HookedTransformer

WRAPPERS = ("_orig_mod", "module", "_forward_module", "_fsdp_wrapped_module", "_checkpoint_wrapped_module")
"""What wrappers call the module within: ``torch.compile``; data parallelism and DeepSpeed; Lightning; FSDP; torch's
activation checkpointing."""
LIBRARIES = ("torch", "accelerate", "deepspeed", "fairscale", "lightning", "lightning_fabric", "pytorch_lightning")
"""Whose wrappers compute what the module within does."""
_WRAPPED = re.compile(rf"(?:^|(?<=\.))(?:{'|'.join(WRAPPERS)})\.")
_REPARAMETRISED = re.compile(r"\.parametrizations\.|\.weight_[gv]$")
_ADAPTED = re.compile(r"^base_model\.|\.lora_[A-Za-z_]+\.")


def module_within(module: nn.Module) -> nn.Module:
    """The module that was wrapped, or that is all of a ``Sequential``; `module` itself where nothing wraps it alone."""
    classes = [each for each in type(module).__mro__ if each is not nn.Module]
    if not any(each.__module__.partition(".")[0] in LIBRARIES for each in classes):
        return module  # somebody's own, which may compute anything with the module within
    names = {*WRAPPERS, *(["0"] if isinstance(module, nn.Sequential) and len(module) == 1 else [])}
    within = next((child for name, child in module.named_children() if name in names), None)
    if within is None or _has_more(module, within):
        return module
    return module_within(within)


def _has_more(module: nn.Module, within: nn.Module) -> bool:
    """Whether `module` has weights beside those of the module within, and so may compute something else."""
    inside = {id(each) for each in (*within.parameters(), *within.buffers())}
    return any(id(each) not in inside for each in (*module.parameters(), *module.buffers()))


def unwrapped(state: Mapping[str, Tensor], source: str | Path) -> dict[str, Tensor]:
    """`state` with the names that the module itself has, without those of what wrapped it."""
    plain: dict[str, Tensor] = {}
    for name, tensor in state.items():
        own = _WRAPPED.sub("", name)
        if own in plain:
            raise LoadError(f"{source}: tensor {own!r} is there twice, once as {name!r}; expected each tensor once")
        if _REPARAMETRISED.search(own):
            raise LoadError(
                f"{source}: tensor {own!r} is part of a weight that is computed; make it one again first, with "
                "torch.nn.utils.parametrize.remove_parametrizations or torch.nn.utils.remove_weight_norm"
            )
        if _ADAPTED.search(own):
            raise LoadError(
                f"{source}: tensor {own!r} is part of an adapter of PEFT; merge it into the weights first, and give "
                "what model.merge_and_unload() returns"
            )
        plain[own] = tensor
    return plain


def require_model(given: object) -> None:
    """Refuse what does not follow TransformerLens' protocol."""
    if not hasattr(given, "cfg"):
        raise InputError(f"model: expected a model, got {shown(given)}; {_advice(given)}")


def require_ours(given: object, what: str) -> None:
    """Refuse a model whose weights nobody here knows how to read."""
    if not isinstance(given, HookedTransformer):
        raise InputError(f"{what}: expected one of our own models, got {shown(given)}; {_advice(given)}")


def _advice(given: object) -> str:
    """Where a model comes from: of a ``transformers`` module, its weights can be read, whatever wraps it."""
    module = module_within(given) if isinstance(given, nn.Module) else None
    if isinstance(module, PreTrainedModel):
        return "give interp.load_model(module), which copies its weights"
    return "load its weights with interp.load_model"
