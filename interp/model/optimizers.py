"""How a model's parameters step: Muon on the blocks' matrices and AdamW on the rest, or AdamW on all.

1. Muon (Jordan et al. 2024) makes each step a nearly orthogonal matrix. ``torch.optim.Muon`` takes matrices only, so a
   per-head weight ``[head d_model d_head]`` is stepped as its ``[d_model head * d_head]`` view.
2. AdamW (Loshchilov & Hutter 2019) decouples the weight decay from the gradient.
3. Their states are dense tensors with names, so that a checkpoint needs no pickle.
"""

from collections.abc import Mapping
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from interp.model.loading.tensors import Taker
from interp.model.transformer import HookedTransformer

OptimizerName = Literal["muon", "adamw"]
BETAS = (0.9, 0.98)
REMEMBERED: dict[type[torch.optim.Optimizer], dict[str, bool]] = {
    torch.optim.Muon: {"momentum_buffer": False},
    torch.optim.AdamW: {"step": True, "exp_avg": False, "exp_avg_sq": False},
}
"""What each keeps of a parameter, and whether that is one number."""


def make_optimizers(
    model: nn.Module, name: OptimizerName, *, muon_lr: float, adamw_lr: float, weight_decay: float
) -> list[torch.optim.Optimizer]:
    """The optimisers of a model; the ``b_U`` of a ``HookedTransformer``, which GPT-2 lacks, stays as it is."""
    if isinstance(model, HookedTransformer):
        model.unembed.b_U.requires_grad_(False)
    named = {name: p for name, p in model.named_parameters() if p.requires_grad}
    matrices = [each for each in named if name == "muon" and each.startswith("blocks.") and ".W_" in each]
    rest = [p for each, p in named.items() if each not in matrices]
    optimizers: list[torch.optim.Optimizer] = []
    if matrices:
        views = [as_matrix(each, named[each]) for each in matrices]
        optimizers.append(torch.optim.Muon(views, lr=muon_lr, weight_decay=weight_decay))
        share_gradients(optimizers[0], {each: named[each] for each in matrices})
    optimizers.append(torch.optim.AdamW(rest, lr=adamw_lr, betas=BETAS, weight_decay=weight_decay))
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["peak_lr"] = group["lr"]
    return optimizers


def share_gradients(optimizer: torch.optim.Optimizer, parameters: dict[str, nn.Parameter]) -> None:
    """Before each step, give the optimizer's matrices the gradients of the `parameters` that they view."""

    def copy(*_: object) -> None:
        matrices = optimizer.param_groups[0]["params"]
        for matrix, (name, parameter) in zip(matrices, parameters.items(), strict=True):
            matrix.grad = None if parameter.grad is None else as_matrix(name, parameter.grad)

    optimizer.register_step_pre_hook(copy)


def as_matrix(name: str, weight: Tensor) -> Float[Tensor, "d_out d_in"]:
    """A block's weight as the matrix ``[out in]`` that Muon's step is defined on.

    ``W_Q``, ``W_K`` and ``W_V`` are ``[head d_model d_head]`` with ``d_model`` outermost in memory, ``W_O`` is
    ``[head d_head d_model]``, ``W_in`` and ``W_out`` are ``[in out]``: each is viewed, not copied.
    """
    plain = weight.detach()
    # `view` raises where `reshape` would copy: a copy would be trained, and the model would stay as it was.
    if name.endswith(("W_Q", "W_K", "W_V")):
        plain = plain.permute(1, 0, 2)
        return plain.view(len(plain), -1).T
    return plain.view(-1, plain.shape[-1]).T


def optimizer_tensors(optimizers: list[torch.optim.Optimizer]) -> dict[str, Tensor]:
    """What the optimisers remember, by ``optimizer.parameter.name``."""
    return {
        f"{number}.{place}.{key}": value.detach().cpu().contiguous().clone()
        for number, optimizer in enumerate(optimizers)
        for place, parameter in enumerate(_parameters(optimizer))
        for key, value in optimizer.state[parameter].items()
    }


def check_optimizers(optimizers: list[torch.optim.Optimizer], tensors: Mapping[str, Tensor], source: str) -> None:
    """Refuse what is not exactly what these optimisers remember after a step."""
    take = Taker({name: tensor.to("meta") for name, tensor in tensors.items()}, source, family="these optimisers")
    for number, optimizer in enumerate(optimizers):
        for place, parameter in enumerate(_parameters(optimizer)):
            for key, scalar in REMEMBERED[type(optimizer)].items():
                take(f"{number}.{place}.{key}", *(() if scalar else parameter.shape))
    take.finish()


def restore_optimizers(optimizers: list[torch.optim.Optimizer], tensors: Mapping[str, Tensor]) -> None:
    """Let new optimisers remember `tensors`.

    In each parameter's own order in memory: with another one, the products of the next step would round differently.
    """
    for name, tensor in tensors.items():
        number, place, key = name.split(".")
        optimizer = optimizers[int(number)]
        parameter = _parameters(optimizer)[int(place)]
        kept: Any = torch.empty_like(parameter) if tensor.shape == parameter.shape else torch.empty_like(tensor)
        optimizer.state[parameter][key] = kept.detach().copy_(tensor)


def _parameters(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]
