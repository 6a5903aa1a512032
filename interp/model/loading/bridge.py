"""What somebody gives as a model: wrapped by a library, one of TransformerLens' protocol, or one of ours.

1. PyTorch and training libraries wrap modules (compilation, data parallelism, sharding, recomputation). Each keeps the
   module as its only child and runs it as it is; any block may be wrapped as well as the whole.
2. TransformerLens' ``TransformerBridge`` is made by name, and seen through to the model that it stands around. It puts
   components of its own into a ``transformers`` module, and lists every weight under several names: those of its
   components, and the module's own with ``_original_component`` where a component stands in the way. Only the latter,
   without that word, are the names of a checkpoint.
"""

import os
import re
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from interp.errors import InputError, LoadError, shown
from interp.hashing import hash_of_rows
from interp.model.transformer import HookedTransformer

WRAPPERS = ("_orig_mod", "module", "_forward_module", "_fsdp_wrapped_module", "_checkpoint_wrapped_module")
"""What wrappers call the module within: ``torch.compile``; data parallelism and DeepSpeed; Lightning; FSDP; torch's
activation checkpointing."""
WRAPPING = ("torch", "accelerate", "deepspeed", "fairscale", "lightning", "lightning_fabric", "pytorch_lightning")
"""Whose wrappers compute what the module within does."""
_WRAPPED = re.compile(rf"(?:^|(?<=\.))(?:{'|'.join(WRAPPERS)})\.")
_REPARAMETRISED = re.compile(r"\.parametrizations\.|\.weight_[gv]$")
_ADAPTED = re.compile(r"^base_model\.|\.lora_[A-Za-z_]+\.")


def module_within(module: nn.Module) -> nn.Module:
    """The module that was wrapped, or that is all of a ``Sequential``; `module` itself where nothing wraps it alone."""
    classes = [each for each in type(module).__mro__ if each is not nn.Module]
    if not any(each.__module__.partition(".")[0] in WRAPPING for each in classes):
        return module  # somebody's own, which may compute anything with the module within
    names = {*WRAPPERS, *(["0"] if isinstance(module, nn.Sequential) and len(module) == 1 else [])}
    within = next((child for name, child in module.named_children() if name in names), None)
    if within is None:
        return module
    inside = {id(each) for each in (*within.parameters(), *within.buffers())}
    # one with weights beside those of the module within may compute something else
    has_more = any(id(each) not in inside for each in (*module.parameters(), *module.buffers()))
    return module if has_more else module_within(within)


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
    from transformers import PreTrainedModel  # this takes a second, and only a refusal needs it

    module = module_within(given) if isinstance(given, nn.Module) else None
    if isinstance(module, PreTrainedModel):
        return "give interp.load_model(module), which copies its weights"
    return "load its weights with interp.load_model"


BRIDGE = "bridge:"
CLASSIFIERS = ("ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering", "ForMultipleChoice")
"""In the names of transformers' classes whose heads predict something else than tokens."""
BESIDE_THE_BODY = re.compile(r"\bpooler\.|\bmasked_spec_embed$")
"""What no logits and no pattern depend on: often left out of what is saved, or never trained."""
WRAPPED = "_original_component"
"""What a component of TransformerLens calls the module in whose place it stands."""
LIBRARIES = {"transformer_lens", "transformers", "accelerate"}
"""Whose own hooks on a bridge's modules are part of it."""
_STATES = {"name", "training", "is_caching", "context_level"}
"""What modules are called, and what they are at."""

_NAMES = {"_name_or_path", "model_name", "tokenizer_name", "transformers_version", "device", "dtype"}
"""Of a configuration what does not say how the model computes; its dtype is told by its weights."""


def load_bridge(name: str, device: torch.device, dtype: torch.dtype, tokenizer: PreTrainedTokenizerBase | None) -> Any:
    """The ``TransformerBridge`` of a model on the hub or in a folder, as TransformerLens makes it.

    Its points and parameters carry TransformerLens' names, so what is written for them runs on it. No code that comes
    with a model is run. A head that predicts tokens, where none was saved, is NaN, with a warning: transformers would
    draw one at random, another each time.
    """
    from transformer_lens.model_bridge import TransformerBridge

    if not name:
        raise LoadError(f"{BRIDGE!r}: the model's name is empty; expected a hub name or a folder, as in 'bridge:gpt2'")
    saved = _Saved()
    try:
        # As it lies beside the weights: TransformerLens would change which special tokens it adds.
        with suppress(OSError, ValueError, KeyError, ImportError):
            tokenizer = tokenizer or AutoTokenizer.from_pretrained(name)
        options: dict[str, Any] = {"device": device, "dtype": dtype, "tokenizer": tokenizer, "model_class": saved}
        model = TransformerBridge.boot_transformers(name, **options)
    except Exception as error:  # whatever transformers, the hub or the adapter raise
        raise LoadError(
            f"{BRIDGE}{name}: TransformerLens cannot load this model ({type(error).__name__}: {error}); "
            + (
                "save it again"
                if os.path.isdir(name)
                else "no folder here is called so: check the name and the network"
            )
        ) from error
    if saved.not_finite is not None:
        raise LoadError(f"{BRIDGE}{name}: tensor {saved.not_finite!r} has values that are NaN or infinite")
    if saved.of_body:
        raise LoadError(
            f"{BRIDGE}{name}: tensor {saved.of_body[0]!r} is missing, one of {len(saved.missing)}; transformers would "
            "draw it at random: save the whole model, or fetch it again"
        )
    model._without_head = saved.no_head
    told = [f"nothing was saved for {', '.join(saved.missing)}: what depends on it is NaN"] if saved.missing else []
    if saved.no_head is not None:
        told.append(f"it has no head that predicts tokens ({saved.no_head}): attend, which needs none, takes it")
    for each in told:
        warnings.warn(f"{BRIDGE}{name}: {each}", RuntimeWarning, stacklevel=4)
    return model.eval()


@dataclass(eq=False)
class _Saved:
    """What TransformerLens loads a module with: by the class that it chooses itself."""

    missing: Sequence[str] = ()  # tensors that were not saved, which transformers would draw at random. They are NaN
    of_body: Sequence[str] = ()  # those of them that every activation may depend on
    no_head: str | None = None  # why there is no trained head that predicts tokens; None where there is one
    not_finite: str | None = None  # a parameter that was saved, and holds NaN or infinity; None for none

    def from_pretrained(self, name: str, **how: Any) -> nn.Module:
        """The module, as transformers makes it of a checkpoint."""
        from transformer_lens.model_bridge.sources import transformers as lens

        architecture = lens.determine_architecture_from_hf_config(how["config"])
        kind = lens.get_hf_model_class_for_architecture(architecture)
        module, told = kind.from_pretrained(name, output_loading_info=True, **how)
        self.missing = sorted(told["missing_keys"])
        base = re.compile(rf"^{re.escape(module.base_model_prefix)}\.|\.\d+\.")
        self.of_body = [each for each in self.missing if base.search(each) and not BESIDE_THE_BODY.search(each)]
        saved = [each for each in module.named_parameters() if each[0] not in self.missing]
        self.not_finite = next((each for each, values in saved if not values.isfinite().all()), None)
        state = module.state_dict()
        for each in self.missing:
            state[each].fill_(torch.nan)
        head = [each for each in self.missing if not base.search(each)]
        written = [str(each) for each in module.config.architectures or ()]
        others = [each for each in written if any(kind in each for kind in CLASSIFIERS)]
        if head:
            self.no_head = f"nothing was saved for {head[0]}"
        elif others and others == written:
            self.no_head = f"it was saved by {others[0]}"
        return cast(nn.Module, module)


def why_no_head(model: Any) -> str | None:
    """Why a bridge has no head that predicts tokens; None where it has one, as every model of ours."""
    why: str | None = getattr(model, "_without_head", None)
    return why


def is_bridge(model: object) -> bool:
    """Whether `model` is a ``TransformerBridge``; where nobody has imported these, which takes seconds, nothing is."""
    imported = sys.modules.get("transformer_lens.model_bridge")
    return imported is not None and isinstance(model, imported.TransformerBridge)


def module_behind(bridge: Any) -> nn.Module:
    """The module that a bridge stands around."""
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
    return dict(_parameters(module)) if any(WRAPPED in name for name in state) else state


def _parameters(module: nn.Module, prefix: str = "") -> Iterator[tuple[str, Tensor]]:
    """What is a parameter of `module`; the buffers beside them, such as a bias of zeros, are TransformerLens'."""
    while module._modules.get(WRAPPED) is not None:
        module = module.get_submodule(WRAPPED)
    yield from ((prefix + name, each.detach()) for name, each in module._parameters.items() if each is not None)
    for name, child in module._modules.items():
        if child is not None:
            yield from _parameters(child, f"{prefix}{name}.")


def modules_of(model: nn.Module) -> set[nn.Module]:
    """All modules of a model, and of the one behind a bridge."""
    return {*model.modules(), *module_behind(model).modules()} if is_bridge(model) else {*model.modules()}


def has_hooks(model: nn.Module) -> bool:
    """Whether somebody's hooks are on a model: not those by which TransformerLens or transformers work."""
    modules = modules_of(model)
    # A hook on one of TransformerLens' points is wrapped into one of its own functions; the handle has the original.
    handles = [each for module in modules for name in ("fwd_hooks", "bwd_hooks") for each in getattr(module, name, ())]
    kinds = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    hooks = [hook for module in modules for kind in kinds for hook in getattr(module, kind).values()]
    libraries = {_library_of(each) for each in (*hooks, *(handle.user_hook for handle in handles))}
    return not (libraries <= LIBRARIES and all(handle.is_permanent for handle in handles))


def has_foreign_code(model: nn.Module) -> bool:
    """Whether a model has somebody's code in it: a module of another class, or a function in the place of its own."""
    modules = modules_of(model)
    held = [each.func if isinstance(each, partial) else each for module in modules for each in vars(module).values()]
    functions = [each for each in held if isinstance(each, FunctionType | MethodType)]
    return not {_library_of(each) for each in (*map(type, modules), *functions)} <= {"interp", "torch", *LIBRARIES}


def _library_of(code: Any) -> str:
    return str(getattr(code, "__module__", None)).partition(".")[0]


def settings_hash(model: nn.Module) -> str:
    """SHA-256 of what modules hold beside weights and modules, as an edited ``eps``, which is in no configuration."""
    parts = [model, *([module_behind(model)] if is_bridge(model) else [])]
    named = [each for part in parts for each in part.named_modules()]
    return hash_of_rows(
        [where, name, told]
        for where, module in named
        for name, value in sorted(vars(module).items())
        if not name.startswith("_") and name not in _STATES and "cached" not in name
        if (told := _told(value)) is not None
    )


def _told(value: Any) -> str | None:
    """A number, a word or a function, in words that are the same in every process; None of anything else."""
    if isinstance(value, int | float | str):
        return repr(value)
    if isinstance(value, partial):
        return f"{_told(value.func)} {value.args} {sorted(value.keywords.items())}"
    if isinstance(value, FunctionType | MethodType | BuiltinFunctionType):
        return f"{value.__module__}.{value.__qualname__}"
    return None
