"""One call for every source of a model: the embedded default, a folder, a file, a hub name, a transformers module.

1. Nothing given: the embedded default (``interp/model/zoo``); by name one of its siblings, or what was fetched
   (``fetched.py``).
2. A folder or a file, by what lies there: our own (``native.py``), Hugging Face's (``huggingface.py``), nanoGPT's,
   minGPT's or llama2.c's file (``one_file.py``), or llama.cpp's (``gguf.py``).
3. A ``transformers`` module: its state dict, in memory; a ``TransformerBridge``: that of the module behind it.
4. ``bridge:NAME``: TransformerLens' ``TransformerBridge``, for architectures that are not known here.
5. Anything else is a hub name, fetched once by ``huggingface_hub`` and then read as a folder.

Loading never changes weights; folding is a separate call.
"""

import os
from importlib import resources
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import nn
from transformers import PreTrainedTokenizerBase

from interp.errors import LoadError, shown, suggest
from interp.model.config import TransformerConfig
from interp.model.devices import documented, resolve_device, resolve_dtype
from interp.model.loading import bridge, tensors
from interp.model.loading.copy_check import ALLOWED, ModuleLogits, require_agreement
from interp.model.loading.fetched import FETCHABLE, fetched_folder
from interp.model.loading.gguf import gguf_checkpoint
from interp.model.loading.huggingface import family_of
from interp.model.loading.native import ARCHITECTURE, native_checkpoint
from interp.model.loading.one_file import PYTORCH, file_checkpoint
from interp.model.loading.tensors import Checkpoint, build
from interp.model.loading.tokenizer import FILES as TOKENIZER_FILES
from interp.model.loading.tokenizer import load_tokenizer, name_ends
from interp.model.text import as_tokenizer
from interp.model.transformer import HookedTransformer

CONFIG, ADAPTER, MINGPT = "config.json", "adapter_config.json", "model.pt"


def _checkpoint_at(path: Path, tokenizer: PreTrainedTokenizerBase | None, dtype: torch.dtype) -> Checkpoint:
    """The checkpoint in a folder or file, with its own tokenizer unless another is given.

    Args:
        path: Where it is.
        tokenizer: The other one.
        dtype: What weights are dequantised in, where they are quantised.
    """
    if path.is_dir():
        if (path / ADAPTER).is_file():  # it changes the weights, which may lie beside it or elsewhere
            raise LoadError(
                f"{path}: an adapter of PEFT ({ADAPTER}); merge it into its model's weights first, and give load_model "
                f"what AutoPeftModelForCausalLM.from_pretrained({str(path)!r}).merge_and_unload() returns"
            )
        if (path / CONFIG).is_file() and not _only_gguf(path):
            return _folder_checkpoint(path, tokenizer)
        path = _only_file(path)
    return gguf_checkpoint(path, tokenizer, dtype) if path.suffix == tensors.GGUF else file_checkpoint(path, tokenizer)


def _folder_checkpoint(folder: Path, tokenizer: PreTrainedTokenizerBase | None) -> Checkpoint:
    """The checkpoint in a folder with ``config.json``."""
    config = tensors.read_json(folder / CONFIG)
    if config.get("architecture") == ARCHITECTURE:
        return native_checkpoint(folder, config, tokenizer)
    if "model_type" not in config and isinstance(config.get("model"), dict):
        return file_checkpoint(folder / MINGPT, tokenizer)
    family = family_of(config, str(folder))
    if tokenizer is None and (tokenizer := load_tokenizer(folder, family.vocabulary)) is not None:
        name_ends(tokenizer, family.vocabulary)
    return family.checkpoint(config, lambda: tensors.read_weights(folder), str(folder), tokenizer)


def _only_gguf(folder: Path) -> bool:
    """Whether a folder's weights are in GGUF files alone, which do not need the ``config.json`` beside them."""
    return any(folder.glob(f"*{tensors.GGUF}")) and not tensors.holds_weights(folder)


def _only_file(folder: Path) -> Path:
    """The one file in a folder that may be a whole checkpoint."""
    found = sorted(path for path in folder.iterdir() if path.suffix in (*PYTORCH, ".bin", tensors.GGUF))
    found = [path for path in found if path.name != tensors.BIN and not path.name.startswith("tok")]
    if not found:
        raise tensors.no_weights(folder, "no config.json here; expected it, model.safetensors and a tokenizer")
    if len(found) > 1:
        names = ", ".join(path.name for path in found)
        raise LoadError(
            f"{folder}: the folder has no config.json with its weights, and several checkpoints ({names}); name one"
        )
    return found[0]


def module_checkpoint(module: nn.Module, tokenizer: PreTrainedTokenizerBase | None) -> Checkpoint:
    """The model in a ``transformers`` module; one that is not from there raises ``LoadError``."""
    if isinstance(module, HookedTransformer):
        raise LoadError(f"{module.name!r} already is an interp model; use it as it is, or move it with its own .to()")
    name = type(module).__name__
    if not _has_config(module):
        hint = _hint(module)
        raise LoadError(
            f"expected a transformers model, such as GPT2LMHeadModel, got {name}, which has no config{hint}"
        )
    config: Any = module.config
    # The state dict of a tied model lists the unembedding too; it is read as the embedding's transpose.
    fields = config.to_dict()
    return family_of(fields, name).checkpoint(
        fields, lambda: tensors.as_state(bridge.own_state(module), name), name, tokenizer
    )


def _has_config(module: nn.Module) -> bool:
    return hasattr(getattr(module, "config", None), "to_dict")


def _hint(module: nn.Module) -> str:
    """What to do with a module that is not from ``transformers``."""
    if hasattr(module, "run_with_cache"):
        return "; pass it to the methods as it is, which run on it, too"
    held = next(((name, each) for name, each in module.named_modules() if _has_config(each)), None)
    return f"; give the {type(held[1]).__name__} in it, module.get_submodule({held[0]!r})" if held else ""


DEFAULT = "default"
ZOO = Path(str(resources.files("interp.model.zoo")))
WEIGHTS = "model*.safetensors"  # not a second copy under other names, as some repositories hold
BIN_SHARDS = "pytorch_model-*.bin"
WITHOUT_WEIGHTS = ["config.json", ADAPTER, *TOKENIZER_FILES]
FILES = [*WITHOUT_WEIGHTS, WEIGHTS, "model.safetensors.index.json"]


@documented
def load_model(
    name_or_path: str | Path | nn.Module | None = None,
    *,
    device: str | torch.device | None = None,
    dtype: str | torch.dtype | None = None,
    tokenizer: PreTrainedTokenizerBase | Tokenizer | None = None,
) -> HookedTransformer | Any:
    """Load a model, in evaluation mode, with its weights unchanged.

    Args:
        name_or_path: None for the embedded default; the name of an embedded or fetched model; a folder, of
            ``save_model`` or of ``transformers`` (of 25 families, which ``interp model families`` lists: GPT-2, Llama,
            Qwen, Gemma ...); nanoGPT's or minGPT's ``.pt`` file, llama2.c's ``.bin`` or llama.cpp's ``.gguf``; a hub
            name; a ``transformers`` module; a ``TransformerBridge``, whose weights are copied into a model of ours; or
            ``bridge:NAME``, for which TransformerLens' ``TransformerBridge`` is returned as it is. A ``Path`` is always
            a folder or a file.
        device: ``cpu`` (default), ``cuda``, ``cuda:N``, or ``auto``.
        dtype: ``float32`` (default), ``float64``, ``bfloat16`` or ``float16``.
        tokenizer: Instead of the one that lies beside the weights, which is then not read; of ``transformers``, or of
            ``tokenizers``.

    Returns:
        A ``HookedTransformer``; of ``bridge:NAME`` TransformerLens' ``TransformerBridge``.

    Raises:
        LoadError: The source is missing, incomplete, damaged or of an unknown architecture, its name could mean
            two things, its weights do not fit into `dtype`, or `tokenizer` is none.
        ConfigError: No such device or dtype here.

    Examples:
        >>> model = interp.load_model()
        >>> model.name, model.cfg.n_layers, model.cfg.n_heads
        ('default', 3, 4)
    """
    to_device, to_dtype = resolve_device(device), resolve_dtype(dtype)
    tokenizer = as_tokenizer(tokenizer)
    if isinstance(name_or_path, str) and name_or_path.startswith(bridge.BRIDGE):
        return bridge.load_bridge(name_or_path.removeprefix(bridge.BRIDGE), to_device, to_dtype, tokenizer)
    if isinstance(name_or_path, nn.Module):
        return _from_module(bridge.module_within(name_or_path), tokenizer, to_device, to_dtype)
    if not isinstance(name_or_path, str | Path | None):
        raise LoadError(
            f"expected a model's name, its folder or file, a transformers module or None, got {shown(name_or_path)}; "
            "see help(interp.load_model)"
        )
    return build(_checkpoint(name_or_path, FILES, tokenizer, to_dtype), to_device, to_dtype)


def configuration_and_tokenizer(
    name_or_path: str | Path | None = None,
) -> tuple[TransformerConfig, PreTrainedTokenizerBase | None]:
    """What a model is made of, and the tokenizer beside it. Its weights are not fetched, nor read from a folder.

    Args:
        name_or_path: As of ``load_model``, but no module and no ``bridge:NAME``.

    Returns:
        The configuration, and the tokenizer or None.

    Raises:
        LoadError: As ``load_model``.

    Examples:
        >>> from interp.model.loading.load import configuration_and_tokenizer
        >>> configuration_and_tokenizer("books")[0].n_layers
        6
    """
    if isinstance(name_or_path, str) and name_or_path.startswith(bridge.BRIDGE):
        raise LoadError(
            f"{name_or_path}: its configuration is TransformerLens' own; expected a folder, a file, a hub name or an "
            "embedded model"
        )
    found = _checkpoint(name_or_path, WITHOUT_WEIGHTS)
    return found.config, found.tokenizer


def _checkpoint(
    name: str | Path | None,
    wanted: list[str],
    tokenizer: PreTrainedTokenizerBase | None = None,
    dtype: torch.dtype = torch.float32,
) -> Checkpoint:
    return _checkpoint_at(model_folder() if name is None else _find(name, wanted), tokenizer, dtype)


def _from_module(
    given: Any, tokenizer: PreTrainedTokenizerBase | None, device: torch.device, dtype: torch.dtype
) -> HookedTransformer:
    """A model of ours that computes what a module does, or a bridge, with the bridge's tokenizer unless one is given.

    That it does is seen in a dtype that holds the original's own and the one that was asked for.
    """
    name, bridged = type(given).__name__, bridge.is_bridge(given)
    if (why := bridge.why_no_head(given)) is not None:
        raise LoadError(f"{name}: it has no head that predicts tokens ({why}); pass it to interp.attend")
    try:
        module, beside = (bridge.module_behind(given), given.tokenizer) if bridged else (given, None)
        checkpoint = module_checkpoint(module, tokenizer or beside)
        if not bridged and torch.distributed.is_available() and torch.distributed.is_initialized():
            return build(checkpoint, device, dtype)  # a forward pass of the module may wait for the other processes
        own = next(given.parameters()).dtype
        model = build(checkpoint, device, torch.promote_types(own, dtype) if own in ALLOWED else dtype)
        require_agreement(given if bridged else ModuleLogits(given), model, name)
        if model.W_E.dtype == dtype:
            return model
        del model  # before the other takes its memory
        return build(checkpoint, device, dtype)
    except LoadError as error:
        if not bridged:
            raise
        raise LoadError(
            f"{name}: its weights cannot be read into a model of ours ({error}); pass the bridge "
            "itself to the methods (interp.attend, interp.ablate, ...), which run on it, too"
        ) from error


def embedded_models() -> list[str]:
    """Names of the models that come with the package, the default first.

    Returns:
        Each name can be given to ``interp.load_model``.

    Examples:
        >>> from interp.model.loading.load import embedded_models
        >>> embedded_models()[:2]
        ['default', 'books']
    """
    names = sorted(path.parent.name for path in ZOO.glob("*/config.json"))
    return sorted(names, key=lambda name: name != DEFAULT)


def model_folder(name: str = DEFAULT) -> Path:
    """The folder of an embedded model."""
    if name not in embedded_models():
        raise LoadError(f"this installation lacks the embedded {name} model; install interp again, or name a folder")
    return ZOO / name


def named_folder(name: str) -> Path | None:
    """The folder of a model that has a name of its own, embedded or fetched; None where no such one is here."""
    return model_folder(name) if name in embedded_models() else fetched_folder(name)


def _find(name: str | Path, wanted: list[str]) -> Path:
    """The folder or file that `name` stands for: an embedded model, a path, or a hub name's download."""
    if not str(name):
        raise LoadError("the model's name is empty; expected an embedded model, a folder or a hub name")
    path = Path(os.path.expanduser(name))
    try:
        here = path.is_dir() or path.is_file()
    except OSError as error:
        raise LoadError(f"{name!s:.80}: no name of a model, a folder or a file ({error.strerror})") from error
    if isinstance(name, str) and (known := named_folder(name)) is not None:
        if (path / "config.json").is_file():
            kind = "an embedded" if known.parent == ZOO else "a fetched"
            raise LoadError(
                f"{name!r} is {kind} model, and a folder with a model here is called so too; give './{name}' "
                "for the folder, or rename it"
            )
        return known
    if here:
        return path
    if isinstance(name, str) and name in FETCHABLE:
        raise LoadError(f"{name!r} is not fetched yet, and no folder here is called so; type interp model fetch {name}")
    if not isinstance(name, str) or name.startswith((".", "/", "~")) or name.count("/") > 1:
        raise LoadError(f"{name}: no such folder; expected one with config.json and weights")
    return _download(name, wanted)


def _download(name: str, wanted: list[str]) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    known = suggest(name, [*embedded_models(), *FETCHABLE])
    try:
        folder = Path(snapshot_download(name, allow_patterns=wanted))
        if WEIGHTS in wanted and not any(folder.glob(WEIGHTS)):
            snapshot_download(name, allow_patterns=[tensors.BIN, tensors.BIN_INDEX, BIN_SHARDS])
        return folder
    except HFValidationError as error:
        raise LoadError(f"{name!r}: neither a folder nor a hub name; {known}") from error
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        raise LoadError(
            f"{name!r}: not a folder here, not an embedded model ({known}), and it could not be fetched from "
            f"the hub ({type(error).__name__}); check the name and the network, or give a folder"
        ) from error
