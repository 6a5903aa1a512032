"""GGUF, llama.cpp's format: a model's sizes, its tokenizer and its weights, mostly quantised, in one file.

1. The package ``gguf`` reads the table of contents. What is damaged, in parts, quantised in an unknown way, or turned
   by positions that are known neither to ``transformers`` nor here, is refused before a weight is read.
2. ``transformers`` makes the config and the tokenizer of it. The family is then one of ``huggingface.py``. What
   ``transformers`` leaves out of some is read here: Llama 3.1's stretched positions (``rope_freqs.weight``), windows,
   the rotary base, the scale of scores in the largest Gemmas. A file that then says something else than the config is
   refused.
3. ``transformers`` dequantises the weights, once, in the dtype that was asked for. Its module is read as one that was
   given, and freed. It must hold as many numbers as the file: what it has no place for, it would pass over.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from transformers import AutoConfig, AutoTokenizer, PreTrainedTokenizerBase

from interp.errors import LoadError, shown
from interp.model.config import TransformerConfig
from interp.model.loading.huggingface import family_of
from interp.model.loading.tensors import GGUF, UNQUANTISED, Checkpoint, State

_UNKNOWN_TYPE = re.compile(r"(\d+)\)? is not a valid GGMLQuantizationType")
_FACTORS = "rope_freqs.weight"
_SCALING = "rope.scaling.type"
_SCALED = ("rope_factors_long.weight", "rope_factors_short.weight")


def gguf_checkpoint(path: Path, tokenizer: PreTrainedTokenizerBase | None, dtype: torch.dtype) -> Checkpoint:
    """The checkpoint in `path`, with the file's own tokenizer unless another is given; weights are not read yet."""
    contents = _contents(path)
    architecture = _value(contents, "general.architecture")
    with _alone(path) as place:
        try:
            config = AutoConfig.from_pretrained(**place)
        except Exception as error:  # whatever transformers raises of metadata that it does not expect
            raise LoadError(
                f"{path}: transformers cannot read a GGUF file of architecture {architecture!r} ({error}); {_BEFORE}"
            ) from error
        said = partial(_said, contents, str(architecture), path)
        fields = _filled(config.to_dict(), said)
        _require_plain_positions(contents, said, fields, path)
        if tokenizer is None and "tokenizer.ggml.tokens" in contents.fields:
            tokenizer = _tokenizer(place, path)
    weights = [each.n_elements for each in contents.tensors if each.name != _FACTORS]
    read = partial(_weights, path, config, dtype, sum(weights))
    found = family_of(fields, str(path)).checkpoint(fields, read, str(path), tokenizer)
    _require_same(found.config, said, path)
    factors = next((each.data for each in contents.tensors if each.name == _FACTORS), None)
    return found if factors is None else replace(found, config=_stretched(found.config, factors, path))


_BEFORE = f"{UNQUANTISED}: its folder, or its name on the hub"


def require_gguf(path: Path) -> Any:
    """The package ``gguf``, which reads `path`; where it is missing, say how it is installed."""
    try:
        import gguf
    except ImportError as error:
        raise LoadError(f"{path}: a GGUF file is read by the package gguf; pip install 'interp[gguf]'") from error
    return gguf


def _contents(path: Path) -> Any:
    """The table of contents, of a whole file whose tensors can be dequantised."""
    gguf = require_gguf(path)
    try:
        contents = gguf.GGUFReader(path)
    except Exception as error:  # on a damaged file, whatever its bytes lead to
        if unknown := _UNKNOWN_TYPE.search(str(error)):
            raise LoadError(
                f"{path}: a tensor is quantised in a way (type {unknown[1]}) that gguf {version('gguf')} does not "
                f"know; update gguf, or {_BEFORE}"
            ) from error
        raise LoadError(
            f"{path}: expected a whole GGUF file, got {path.stat().st_size:,} bytes that are damaged or "
            "stop too early; fetch it again"
        ) from error
    if (parts := _value(contents, "split.count") or 1) > 1:
        raise LoadError(f"{path}: one of {parts} parts; join them with llama-gguf-split --merge, and give the whole")
    for tensor in {each.tensor_type: each for each in contents.tensors}.values():
        try:
            gguf.dequantize(tensor.data.reshape(-1)[: gguf.GGML_QUANT_SIZES[tensor.tensor_type][1]], tensor.tensor_type)
        except Exception as error:
            raise LoadError(
                f"{path}: tensor {tensor.name!r} is quantised as {tensor.tensor_type.name}, which gguf "
                f"{version('gguf')} cannot undo; {_BEFORE}"
            ) from error
    return contents


def _value(contents: Any, key: str) -> Any:
    """A value of the metadata; None where there is none."""
    field = contents.get_field(key)
    return None if field is None else field.contents()


def _said(contents: Any, architecture: str, path: Path, key: str) -> Any:
    """A number of the model's own metadata, or how its positions are scaled; None where there is none."""
    value = _value(contents, f"{architecture}.{key}")
    if key != _SCALING and not isinstance(value, int | float | None):
        raise LoadError(f"{path}: {architecture}.{key}: expected a number, got {shown(value)}; fetch the file again")
    return value


_GEMMA_27B = (("gemma2", 46), ("gemma3_text", 62))
"""Their scores are divided by the root of the width of a head if heads filled the stream; no key of a file says so."""


def _filled(fields: dict[str, Any], said: Callable[[str], Any]) -> dict[str, Any]:
    """The config's fields, with those of the file that ``transformers`` leaves out for some families."""
    found, rotary = dict(fields), fields.get("rope_parameters") or {}
    if (window := said("attention.sliding_window")) and found.get("sliding_window") is None:
        found["sliding_window"] = int(window)
    if (base := said("rope.freq_base")) and "rope_theta" in rotary:
        found["rope_parameters"] = {**rotary, "rope_theta": float(base)}
    if (found.get("model_type"), found.get("num_hidden_layers")) in _GEMMA_27B:
        found["query_pre_attn_scalar"] = found["hidden_size"] // found["num_attention_heads"]
    return found


def _require_plain_positions(contents: Any, said: Callable[[str], Any], fields: dict[str, Any], path: Path) -> None:
    """Refuse scaled rotary positions that ``transformers`` leaves out of the config; it would compute without them."""
    kind = (fields.get("rope_parameters") or {}).get("rope_type", "default")
    unread = _SCALED if kind == "default" else (_FACTORS,)
    held = [f"tensor {each.name!r}" for each in contents.tensors if each.name in unread]
    if kind == "default":
        how = said(_SCALING)  # where it is missing, llama.cpp takes the factor, too
        held += [] if how in (None, "none") else [f"{_SCALING} {how!r}"]
        factors = [] if how else ["rope.scaling.factor", "rope.scale_linear"]
        held += [f"{key} {said(key):g}" for key in factors if said(key) not in (None, 0, 1)]
    if held:
        raise LoadError(
            f"{path}: its rotary positions are scaled ({held[0]}), which transformers does not read from a GGUF file; "
            f"{_BEFORE}"
        )


_SAME: Mapping[str, Callable[[TransformerConfig], float | None]] = {
    "attention.key_length": lambda config: config.d_head,
    "attention.layer_norm_epsilon": lambda config: config.eps,
    "attention.layer_norm_rms_epsilon": lambda config: config.eps,
    "attention.sliding_window": lambda config: config.window or config.n_ctx,
    "attn_logit_softcapping": lambda config: config.score_cap,
    "expert_used_count": lambda config: config.n_active_experts,
    "final_logit_softcapping": lambda config: config.logit_cap,
    "rope.dimension_count": lambda config: config.rotary_dim or config.d_head,
    "rope.freq_base": lambda config: config.rotary_base,
}
"""What a file says of the model, and what of our config has to be the same."""


def _require_same(config: TransformerConfig, said: Callable[[str], Any], path: Path) -> None:
    """Refuse a config that is not the file's: ``transformers`` passes over keys that it does not know of a family."""
    for key, of in _SAME.items():
        expected, got = said(key), of(config)
        if key == "attention.sliding_window" and expected:
            expected = min(expected, config.n_ctx)
        if expected and (got is None or not math.isclose(expected, got, rel_tol=1e-5)):
            raise LoadError(
                f"{path}: {key} is {expected:g}, and transformers makes a model with {got} of the file; {_BEFORE}"
            )


def _stretched(config: TransformerConfig, factors: NDArray[np.float32], path: Path) -> TransformerConfig:
    """The config with each pair's frequency divided by its factor, as llama.cpp turns queries and keys."""
    pairs = (config.rotary_dim or config.d_head) // 2
    if config.positions != "rotary" or factors.shape != (pairs,) or not (factors > 0).all():
        raise LoadError(
            f"{path}: tensor {_FACTORS!r}: expected a number above 0 for each of the {pairs} pairs of components that "
            f"turn, got {factors.size} numbers, of which {int((factors > 0).sum())} are; {_BEFORE}"
        )
    frequencies = config.rotary_base ** (-np.arange(pairs) / pairs) / factors
    return replace(config, rotary_frequencies=tuple(frequencies.tolist()))


@contextmanager
def _alone(path: Path) -> Iterator[dict[str, Any]]:
    """Where ``transformers`` finds the file and nothing beside it, since it prefers another model's files there."""
    with TemporaryDirectory() as folder:
        name = f"model{GGUF}"
        (Path(folder) / name).symlink_to(path.absolute())
        yield {"pretrained_model_name_or_path": folder, "gguf_file": name}


def _tokenizer(place: dict[str, Any], path: Path) -> PreTrainedTokenizerBase:
    try:
        tokenizer = cast(PreTrainedTokenizerBase, AutoTokenizer.from_pretrained(**place))
        tokenizer.decode(tokenizer.encode("", add_special_tokens=False))  # some settings are looked at only then
    except Exception as error:  # tokenizers raises bare Exceptions
        raise LoadError(
            f"{path}: transformers cannot make a tokenizer of the file's ({error}); give load_model(..., tokenizer=...)"
        ) from error
    tokenizer.name_or_path = str(path)
    return tokenizer


def _weights(path: Path, config: Any, dtype: torch.dtype, numbers: int) -> State:
    """The weights in this dtype, under Hugging Face's names; of float64 in float32, in which they are dequantised."""
    from transformers import AutoModelForCausalLM  # whose import takes seconds

    kept = torch.float32 if dtype == torch.float64 else dtype
    with _alone(path) as place:
        try:
            how: Any = {**place, "config": config, "dtype": kept, "output_loading_info": True}
            loaded: Any = AutoModelForCausalLM.from_pretrained(**how)
        except Exception as error:
            raise LoadError(f"{path}: transformers cannot read these weights ({error}); {_BEFORE}") from error
    module, told = loaded
    if told["missing_keys"]:
        missing = min(told["missing_keys"])
        raise LoadError(f"{path}: nothing is stored for tensor {missing!r}; fetch it again, or {_BEFORE}")
    _require_all(module, numbers, path)
    return {name: tensor.detach() for name, tensor in module.state_dict().items()}


def _require_all(module: nn.Module, numbers: int, path: Path) -> None:
    """Refuse a module that does not hold all that the file has, or holds it in a dtype that is too narrow."""
    held = sum(each.numel() for each in module.parameters())
    if held != numbers:
        raise LoadError(
            f"{path}: the file has {numbers:,} numbers and transformers' {type(module).__name__} {held:,}, so it would "
            f"pass some over, such as a bias; {_BEFORE}"
        )
    for name, each in module.named_parameters():
        if each.dtype == torch.float16 and not each.isfinite().all():
            raise LoadError(
                f"{path}: tensor {name!r} holds NaN, or values beyond {torch.finfo(each.dtype).max:g}, the largest "
                "number of float16; take bfloat16 or a wider dtype"
            )
