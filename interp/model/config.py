"""The shape of a transformer: frozen, validated, without side effects."""

import dataclasses
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
from transformer_lens.config import TransformerLensConfig

from interp.errors import ConfigError, suggest

Activation = Literal["gelu_new", "gelu", "relu"]
LARGEST = sys.float_info.max  # JSON can hold whole numbers that no float can
DTYPES = {
    "float64": torch.float64,
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}


@dataclass(frozen=True)
class TransformerConfig:
    """What a GPT-2-style transformer is made of.

    Attributes:
        n_layers: Blocks.
        n_heads: Attention heads of a block.
        d_model: Width of the residual stream.
        d_head: Width of one head; ``n_heads * d_head`` need not equal ``d_model``.
        d_mlp: Neurons of one MLP.
        d_vocab: Entries of the vocabulary.
        n_ctx: The longest prompt, in tokens, BOS included.
        act_fn: The MLP's activation; GPT-2's is ``gelu_new`` (the tanh approximation).
        eps: Added to the variance in LayerNorm.
        tied: Whether the unembedding is the embedding's transpose.
        init_std: Standard deviation of the embeddings at initialisation.

    Raises:
        ConfigError: A value describes no model.
    """

    n_layers: int
    n_heads: int
    d_model: int
    d_head: int
    d_mlp: int
    d_vocab: int
    n_ctx: int
    act_fn: Activation = "gelu_new"
    eps: float = 1e-5
    tied: bool = True
    init_std: float = 0.02

    def __post_init__(self):
        _check(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """The fields as a JSON-ready dictionary."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> "TransformerConfig":
        """The config of `fields`.

        Raises:
            ConfigError: A field is unknown or missing, or its value describes no model.
        """
        known = [field.name for field in dataclasses.fields(cls)]
        for name in fields:
            if name not in known:
                raise ConfigError(f"config: unknown field {name!r}; {suggest(name, known)}")
        required = [f.name for f in dataclasses.fields(cls) if f.default is dataclasses.MISSING]
        missing = [name for name in required if name not in fields]
        if missing:
            raise ConfigError(f"config: expected the fields {', '.join(required)}; missing {', '.join(missing)}")
        _check(fields)
        return cls(**fields)

    def to_lens(self, device: torch.device, dtype: torch.dtype) -> TransformerLensConfig:
        """The same as TransformerLens describes it, for its own utilities."""
        return TransformerLensConfig(
            d_model=self.d_model,
            d_head=self.d_head,
            n_layers=self.n_layers,
            n_ctx=self.n_ctx,
            n_heads=self.n_heads,
            d_mlp=self.d_mlp,
            d_vocab=self.d_vocab,
            device=str(device),
            eps=self.eps,
            act_fn=self.act_fn,
            dtype=dtype,
            normalization_type="LN",
        )


def require_count(name: str, value: object) -> None:
    """Refuse what is not a whole number of at least 1.

    Raises:
        ConfigError: `value` is none.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ConfigError(f"{name}: expected a whole number of at least 1, got {value!r}")


def _check(fields: Mapping[str, Any]) -> None:
    for name, value in fields.items():
        if name in ("n_layers", "n_heads", "d_model", "d_head", "d_mlp", "d_vocab", "n_ctx"):
            require_count(name, value)
        elif name == "act_fn" and value not in get_args(Activation):
            raise ConfigError(f"act_fn: expected one of {', '.join(get_args(Activation))}, got {value!r}")
        elif name in ("eps", "init_std") and not (isinstance(value, int | float) and 0 < value <= LARGEST):
            raise ConfigError(f"{name}: expected a positive number, got {value!r}")
        elif name == "tied" and not isinstance(value, bool):
            raise ConfigError(f"tied: expected true or false, got {value!r}")


def resolve_device(device: str | torch.device | None) -> torch.device:
    """The torch device that `device` names; ``None`` is the CPU, ``"auto"`` CUDA where there is one.

    Raises:
        ConfigError: No such device on this machine.
    """
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        resolved = torch.device("cpu" if device is None else device)
    except (RuntimeError, TypeError) as error:
        raise ConfigError(f"device: expected cpu, cuda, cuda:N or auto, got {device!r}") from error
    if resolved.type == "cuda" and not torch.cuda.is_available():
        raise ConfigError(f"device: {device!r} was asked for, but PyTorch sees no CUDA device here; use cpu")
    if resolved.type == "cuda" and (resolved.index or 0) >= torch.cuda.device_count():
        raise ConfigError(
            f"device: {device!r} was asked for, but there are {torch.cuda.device_count()} CUDA devices, from 0"
        )
    if resolved.type not in ("cpu", "cuda"):
        raise ConfigError(f"device: expected cpu, cuda, cuda:N or auto, got {device!r}")
    return resolved


def resolve_dtype(dtype: str | torch.dtype | None) -> torch.dtype:
    """The torch dtype that `dtype` names; ``None`` is float32.

    Raises:
        ConfigError: Not one of float64, float32, bfloat16, float16.
    """
    if dtype is None:
        return torch.float32
    if isinstance(dtype, str) and dtype in DTYPES:
        return DTYPES[dtype]
    if isinstance(dtype, torch.dtype) and dtype in DTYPES.values():
        return dtype
    raise ConfigError(f"dtype: expected one of {', '.join(DTYPES)}, got {dtype!r}")
