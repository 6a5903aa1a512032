"""TransformerLens' ``TransformerBridge``: made by name, and seen through to the model that it stands around.

A bridge puts components of its own into a ``transformers`` module, and lists every weight under several names: those
of its components, and the module's own with ``_original_component`` where a component stands in the way. Only the
latter, without that word, are the names of a checkpoint.
"""

import sys
import warnings
from collections.abc import Iterator
from functools import partial
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from interp.errors import LoadError

BRIDGE = "bridge:"
OTHER_HEADS = ("ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering", "ForMultipleChoice")
"""In the names of transformers' classes whose heads predict something else than tokens."""
WRAPPED = "_original_component"
"""What a component of TransformerLens calls the module in whose place it stands."""
LIBRARIES = ("transformer_lens", "transformers", "accelerate")
"""Whose own hooks on a bridge's modules are part of it."""
_OURS = {"interp", "torch", *LIBRARIES}
_STATES = {"name", "training", "is_caching", "context_level"}
"""What modules are called, and what they are at."""

_NAMES = {"_name_or_path", "model_name", "tokenizer_name", "transformers_version", "device", "dtype"}
"""Of a configuration what does not say how the model computes; its dtype is told by its weights."""


def load_bridge(name: str, device: torch.device, dtype: torch.dtype, tokenizer: PreTrainedTokenizerBase | None) -> Any:
    """The ``TransformerBridge`` of a model on the hub or in a folder, as TransformerLens makes it.

    Its points and parameters carry TransformerLens' names, so what is written for them runs on it. No code that comes
    with a model is run. A head that predicts tokens, where none was saved, is NaN, with a warning: transformers would
    draw one at random, another each time.

    Raises:
        LoadError: There is no name, TransformerLens cannot load the model, or a parameter of its body was not saved.
    """
    from transformer_lens.model_bridge import TransformerBridge

    if not name:
        raise LoadError(f"{BRIDGE!r}: the model's name is empty; expected a hub name or a folder, as in 'bridge:gpt2'")
    try:
        own = tokenizer or _tokenizer_of(name)
        model = TransformerBridge.boot_transformers(name, device=device, dtype=dtype, tokenizer=own)
    except Exception as error:  # whatever transformers, the hub or the adapter raise
        raise LoadError(
            f"{BRIDGE}{name}: TransformerLens cannot load this model ({type(error).__name__}: {error}); "
            "check the name and the network"
        ) from error
    _forget_what_was_drawn(model, name)
    return model.eval()


def _forget_what_was_drawn(bridge: Any, name: str) -> None:
    """Set the parameters of a head for which nothing was saved to NaN; refuse such ones of the body."""
    module = module_behind(bridge)
    parameters = dict(_parameters(module))
    if not any(map(_was_read, parameters.values())):  # a version of transformers that does not mark them
        return
    drawn = {each: parameter for each, parameter in parameters.items() if not _was_read(parameter)}
    base = str(getattr(module, "base_model_prefix", ""))
    body = [each for each in drawn if not hasattr(module, base) or each.startswith(f"{base}.")]
    if body:
        raise LoadError(
            f"{BRIDGE}{name}: tensor {body[0]!r} is missing ({len(body)} of the body's are); transformers would draw "
            "it at random: save the whole model, or fetch it again"
        )
    for parameter in drawn.values():
        parameter.data.fill_(torch.nan)
    written = [str(each) for each in getattr(module.config, "architectures", None) or ()]
    other = [each for each in written if any(kind in each for kind in OTHER_HEADS)]
    if drawn or other:
        why = f"nothing was saved for {', '.join(drawn)}" if drawn else f"it was saved by {other[0]}"
        bridge._without_head = why
        warnings.warn(
            f"{BRIDGE}{name}: this model has no head that predicts tokens ({why}); only what reads no logits can be "
            "measured, such as attend",
            RuntimeWarning,
            stacklevel=4,
        )


def _was_read(parameter: Tensor) -> bool:
    """Whether transformers has loaded it, which it marks; what it draws at random it does not."""
    return bool(getattr(parameter, "_is_hf_initialized", False))


def without_logits(model: Any) -> str | None:
    """Why a bridge has no head that predicts tokens; None where it has one, as every model of ours."""
    why: str | None = getattr(model, "_without_head", None)
    return why


def _tokenizer_of(name: str) -> PreTrainedTokenizerBase | None:
    """The tokenizer as it lies beside the weights: TransformerLens would change which special tokens it adds."""
    try:
        return AutoTokenizer.from_pretrained(name)
    except (OSError, ValueError, KeyError, ImportError):  # there is none; the model can do without
        return None


def is_bridge(model: object) -> bool:
    """Whether `model` is a ``TransformerBridge``; where nobody has imported these, which takes seconds, nothing is."""
    imported = sys.modules.get("transformer_lens.model_bridge")
    return imported is not None and isinstance(model, imported.TransformerBridge)


def module_behind(bridge: Any) -> nn.Module:
    """The module that a bridge stands around.

    Raises:
        LoadError: It runs elsewhere, and there is none here.
    """
    try:
        module = bridge.original_model
    except AttributeError as error:
        raise LoadError(f"{type(bridge).__name__}: there is no module behind it ({error}); load its weights") from error
    assert isinstance(module, nn.Module), f"a bridge around {type(module).__name__}"
    return module


def configuration(bridge: Any) -> dict[str, Any]:
    """What a bridge and the module behind it are made of, without their names and places."""
    module = getattr(module_behind(bridge), "config", None)
    parts = {"bridge": bridge.cfg.to_dict(), "module": {} if module is None else module.to_dict()}
    own = {part: {name: each for name, each in of.items() if name not in _NAMES} for part, of in parts.items()}
    return {**own, "compatibility_mode": bool(getattr(bridge, "compatibility_mode", False))}


def own_state(module: nn.Module) -> dict[str, Tensor]:
    """The state dict of `module`, by the names that it has where no bridge stands around it."""
    state = module.state_dict()
    if not any(WRAPPED in name for name in state):
        return state
    return {name: parameter.detach() for name, parameter in _parameters(module)}


def _parameters(module: nn.Module, prefix: str = "") -> Iterator[tuple[str, Tensor]]:
    """What is a parameter of `module`; the buffers beside them, such as a bias of zeros, are TransformerLens'."""
    while module._modules.get(WRAPPED) is not None:
        module = module.get_submodule(WRAPPED)
    yield from ((prefix + name, each) for name, each in module._parameters.items() if each is not None)
    for name, child in module._modules.items():
        if child is not None:
            yield from _parameters(child, f"{prefix}{name}.")


def modules_of(model: nn.Module) -> set[nn.Module]:
    """All modules of a model, and of the one behind a bridge."""
    return {*model.modules(), *module_behind(model).modules()} if is_bridge(model) else {*model.modules()}


def has_hooks(model: nn.Module) -> bool:
    """Whether somebody's hooks are on a model: not those by which TransformerLens or transformers work."""
    return any(map(listened, modules_of(model)))


def has_foreign_code(model: nn.Module) -> bool:
    """Whether a model has somebody's code in it: a module of another class, or a function in the place of its own."""
    return any(map(_is_foreign, modules_of(model)))


def settings_of(model: nn.Module) -> list[list[Any]]:
    """What modules hold beside weights and other modules: numbers, words and functions, which somebody may have set."""
    parts = [model, *([module_behind(model)] if is_bridge(model) else [])]
    named = [each for part in parts for each in part.named_modules()]
    return [
        [where, name, told]
        for where, module in named
        for name, value in sorted(vars(module).items())
        if not name.startswith("_") and name not in _STATES and "cached" not in name
        if (told := _told(value)) is not None
    ]


def _told(value: Any) -> str | None:
    """A number, a word or a function, in words that are the same in every process; None of anything else."""
    if isinstance(value, int | float | str):
        return repr(value)
    if isinstance(value, partial):
        return f"{_told(value.func)} {value.args} {sorted(value.keywords.items())}"
    if isinstance(value, FunctionType | MethodType | BuiltinFunctionType):
        return f"{value.__module__}.{value.__qualname__}"
    return None


def _is_foreign(module: nn.Module) -> bool:
    held = [each.func if isinstance(each, partial) else each for each in vars(module).values()]
    functions = [each for each in held if isinstance(each, FunctionType | MethodType)]
    roots = {str(getattr(each, "__module__", None)).partition(".")[0] for each in (type(module), *functions)}
    return not roots <= _OURS


def listened(module: nn.Module) -> bool:
    """Whether somebody's hooks are on a module, which do who knows what to it."""
    # A hook on one of TransformerLens' points is wrapped into one of its own functions; the handle has the original.
    handles = [handle for name in ("fwd_hooks", "bwd_hooks") for handle in getattr(module, name, ())]
    if any(not (handle.is_permanent and _of_a_library(handle.user_hook)) for handle in handles):
        return True
    kinds = (module._forward_hooks, module._forward_pre_hooks, module._backward_hooks, module._backward_pre_hooks)
    return any(not _of_a_library(hook) for kind in kinds for hook in kind.values())


def _of_a_library(hook: Any) -> bool:
    return str(getattr(hook, "__module__", None)).partition(".")[0] in LIBRARIES
