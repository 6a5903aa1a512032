"""What PyTorch and training libraries put around a module, and so into the names of its tensors.

Compilation, data parallelism, sharding and recomputation each keep the module that they wrap as their only child, and
run it as it is. Any block of a model may be wrapped as well as the whole.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from torch import Tensor, nn

from interp.errors import LoadError

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
    """`state` with the names that the module itself has, without those of what wrapped it.

    Raises:
        LoadError: Two tensors then have the same name, or some are adapters of PEFT, or parts of a weight that is
            computed, as by weight norm.
    """
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
