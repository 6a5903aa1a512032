"""The shape of a transformer: frozen, validated, without side effects.

Each field picks a component of the model. The defaults are GPT-2's.
"""

import dataclasses
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import torch
from transformer_lens.config import TransformerLensConfig

from interp.errors import ConfigError, shown, suggest

Activation = Literal["gelu_new", "gelu", "relu", "silu", "swiglu_oai"]
Positions = Literal["none", "learned", "sinusoidal", "relative", "rotary", "alibi"]
Normalization = Literal["none", "LN", "RMS"]
NormPosition = Literal["pre", "post", "sandwich", "reordered"]
QKNorm = Literal["none", "by head", "flat"]
ScoreName = Literal["scaled_dot", "dot", "bilinear", "additive"]
Bias = Literal["qkv", "o", "mlp", "norm", "unembed"]
BIASES: tuple[Bias, ...] = get_args(Bias)
NUMBERS = ("eps", "init_std", "rotary_base", "rotary_magnitude", "embed_scale")
OPTIONAL_NUMBERS = ("score_scale", "score_cap", "logit_cap", "local_rotary_base")
LARGEST = sys.float_info.max  # JSON can hold whole numbers that no float can
LARGEST_TABLE = 2**27  # of positions, which is computed: no weights say whether its size is meant
LENS_POSITIONS = {"learned": "standard", "sinusoidal": "standard", "rotary": "rotary", "alibi": "alibi"}


@dataclass(frozen=True)
class TransformerConfig:
    """What a transformer is made of.

    Attributes:
        n_layers: Blocks.
        n_heads: Attention heads of a block.
        d_model: Width of the residual stream.
        d_head: Width of one head; ``n_heads * d_head`` need not equal ``d_model``.
        d_mlp: Neurons of one MLP; 0 for a model of attention alone.
        d_vocab: Entries of the vocabulary.
        n_ctx: The longest prompt, in tokens, special tokens included.
        act_fn: The MLP's activation; GPT-2's is ``gelu_new`` (the tanh approximation). ``swiglu_oai`` is gpt-oss's gate
            (OpenAI 2025): both factors are clamped at 7, ``g sigmoid(1.702 g) (u + 1)``.
        eps: Added to the variance, or the mean square, in a norm.
        tied: Whether the unembedding is the embedding's transpose.
        init_std: Standard deviation of the embeddings at initialisation.
        positions: How order is known. ``learned`` and ``sinusoidal`` (Vaswani et al. 2017) are added to the
            embedding; ``relative`` (Shaw et al. 2018), ``rotary`` (Su et al. 2021) and ``alibi`` (Press et al. 2022)
            act inside attention; ``none`` knows order only by the causal mask.
        rotary_dim: How many of a head's components turn; None for all.
        rotary_base: Pair ``i`` of ``n`` turns by ``rotary_base ** (-i / n)`` radians a position.
        rotary_frequencies: Radians a position by pair, where they are others (Llama 3, YaRN, LongRoPE ...).
        rotary_magnitude: What turned queries and keys are multiplied by (YaRN, Peng et al. 2023).
        relative_distance: Distances beyond it count as it, with ``relative`` positions.
        normalization: ``LN`` (LayerNorm), ``RMS`` (RMSNorm, Zhang & Sennrich 2019) or ``none``.
        norm_position: ``pre`` normalises what a layer reads and leaves the stream a sum; ``post`` normalises the stream
            itself after each addition (Vaswani et al. 2017; BERT; GPT-1), so it has no additive decomposition.
            ``sandwich`` normalises what a layer reads and what it writes (Gemma 2), ``reordered`` only what it writes
            (OLMo 2); both leave the stream a sum.
        n_kv_heads: Heads of keys and values, each shared by equally many query heads (grouped-query attention, Ainslie
            et al. 2023; 1 is multi-query attention); None for as many as ``n_heads``.
        scores: How a query is compared with a key: ``scaled_dot``, ``dot``, ``bilinear`` (Luong et al. 2015) or
            ``additive`` (Bahdanau et al. 2015).
        score_scale: What ``scaled_dot`` multiplies the products by; None for ``1 / sqrt(d_head)``.
        score_cap: Scores ``s`` become ``cap tanh(s / cap)`` (Gemma 2); None for no cap.
        qk_norm: Whether queries and keys are normalised (RMSNorm) before they turn: ``by head`` (Qwen 3), or ``flat``,
            all heads of a token as one vector (OLMo 2).
        sinks: Whether each head has a learned score of nothing, which takes its share of the softmax (gpt-oss): the
            rows of a pattern then sum to less than 1.
        window: How many positions a query sees, itself included, in the layers `local_layers`; None for all.
        local_layers: The layers with a window, from 0; None for all of them.
        local_rotary_base: The base of rotary positions in those layers, where it is another (Gemma 3).
        causal: Whether a position sees only itself and what is before.
        gated: Whether neurons are multiplied by a second linear map of the input (SwiGLU, Shazeer 2020).
        parallel: Whether the MLP reads what attention reads, and not what attention has written.
        biases: Which biases there are: of queries, keys and values (``qkv``), of what attention writes (``o``), of
            ``mlp``, ``norm`` and ``unembed``.
        embed_norm: Whether the embedding is normalised before the first block (BERT).
        n_token_types: Kinds of tokens with an embedding each (BERT's segments); every token is of kind 0.
        prediction_head: Whether a dense layer, the activation and a norm stand before the unembedding (BERT).
        embed_scale: What a token's embedding is multiplied by (Gemma: the root of `d_model`).
        logit_cap: Logits ``l`` become ``cap tanh(l / cap)`` (Gemma 2); None for no cap.
        n_experts: Gated MLPs of a block, of which a router chooses for each token (Shazeer et al. 2017); 0 for one MLP.
        n_active_experts: How many it chooses.
        expert_weights_sum_to_1: Whether the weights of the chosen ones are made to.

    Raises:
        ConfigError: A value describes no model, or two that exclude each other.

    Examples:
        >>> from interp.model.config import TransformerConfig
        >>> TransformerConfig(n_layers=1, n_heads=2, d_model=8, d_head=4, d_mlp=16, d_vocab=10, n_ctx=5).kv_heads
        2
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
    positions: Positions = "learned"
    rotary_dim: int | None = None
    rotary_base: float = 10_000.0
    relative_distance: int = 16
    normalization: Normalization = "LN"
    norm_position: NormPosition = "pre"
    n_kv_heads: int | None = None
    scores: ScoreName = "scaled_dot"
    causal: bool = True
    gated: bool = False
    parallel: bool = False
    biases: tuple[Bias, ...] = BIASES
    embed_norm: bool = False
    n_token_types: int = 0
    prediction_head: bool = False
    rotary_frequencies: tuple[float, ...] | None = None
    rotary_magnitude: float = 1.0
    score_scale: float | None = None
    score_cap: float | None = None
    qk_norm: QKNorm = "none"
    sinks: bool = False
    window: int | None = None
    local_layers: tuple[int, ...] | None = None
    local_rotary_base: float | None = None
    embed_scale: float = 1.0
    logit_cap: float | None = None
    n_experts: int = 0
    n_active_experts: int = 0
    expert_weights_sum_to_1: bool = True

    def __post_init__(self) -> None:
        require_kinds(self, least={"d_mlp": 0, "n_token_types": 0, "n_experts": 0, "n_active_experts": 0})
        for name in (*NUMBERS, *(each for each in OPTIONAL_NUMBERS if getattr(self, each) is not None)):
            value = getattr(self, name)
            if not (is_number(value) and value > 0):
                raise ConfigError(f"{name}: expected a positive number, got {shown(value)}")
            object.__setattr__(self, name, float(value))  # JSON may have a whole number that no tensor takes
        self._take_lists()
        given: Any = self.biases
        if (
            not isinstance(given, list | tuple)
            or any(each not in BIASES for each in given)
            or len({*given}) < len(given)
        ):
            raise ConfigError(f"biases: expected some of {', '.join(BIASES)}, each once, got {shown(given)}")
        object.__setattr__(self, "biases", tuple(given))
        for fault in _contradictions(self):
            raise ConfigError(fault)

    def _take_lists(self) -> None:
        """Layers and frequencies as tuples, which JSON has as lists."""
        for name, given, what in (
            ("local_layers", self.local_layers, "whole numbers, the layers from 0"),
            ("rotary_frequencies", self.rotary_frequencies, "numbers of at least 0"),
        ):
            kinds = int if name == "local_layers" else int | float
            if given is None:
                continue
            if not isinstance(given, list | tuple) or not all(isinstance(x, kinds) and is_number(x) for x in given):
                raise ConfigError(f"{name}: expected {what}, got {shown(given)}")
            object.__setattr__(self, name, tuple(given))

    def is_local(self, layer: int) -> bool:
        """Whether the queries of a layer see no more than the window."""
        return self.window is not None and (self.local_layers is None or layer in self.local_layers)

    @property
    def kv_heads(self) -> int:
        """Heads of keys and values."""
        return self.n_heads if self.n_kv_heads is None else self.n_kv_heads

    @property
    def additive_stream(self) -> bool:
        """Whether the residual stream is the sum of what was written to it."""
        return self.norm_position != "post"

    @property
    def normalises_what_is_written(self) -> bool:
        """Whether a norm stands between what attention and MLP write and the stream."""
        return self.norm_position in ("sandwich", "reordered")

    def to_dict(self) -> dict[str, Any]:
        """The fields as a JSON-ready dictionary."""
        return {
            name: list(value) if isinstance(value, tuple) else value for name, value in dataclasses.asdict(self).items()
        }

    def beside_gpt2(self) -> dict[str, Any]:
        """The fields that are chosen otherwise than GPT-2's."""
        mandatory, chosen = dataclasses.MISSING, self.to_dict()
        defaults = {field.name: field.default for field in dataclasses.fields(self)}
        return {name: chosen[name] for name, usual in defaults.items() if usual not in (mandatory, getattr(self, name))}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> "TransformerConfig":
        """The config of `fields`; one that is unknown, missing or of no model raises ``ConfigError``."""
        require_fields("config", cls, fields)
        return cls(**fields)

    def to_lens(self, device: torch.device, dtype: torch.dtype) -> TransformerLensConfig:
        """The same as TransformerLens describes it, for its own utilities."""
        same = ("d_model", "d_head", "n_layers", "n_ctx", "n_heads", "d_mlp", "d_vocab", "eps", "act_fn")
        return TransformerLensConfig(
            **{name: getattr(self, name) for name in same},
            device=str(device),
            positional_embedding_type=LENS_POSITIONS.get(self.positions, self.positions),
            n_key_value_heads=self.n_kv_heads,
            attn_only=self.d_mlp == 0,
            gated_mlp=self.gated,
            uses_rms_norm=self.normalization == "RMS",
            dtype=dtype,
            normalization_type=None if self.normalization == "none" else self.normalization,
            num_experts=self.n_experts or None,
            experts_per_token=self.n_active_experts or None,
        )


def require_fields(what: str, kind: Any, fields: Mapping[str, Any]) -> None:
    """Refuse fields that a dataclass does not have, and fewer than it needs, with a ``ConfigError``."""
    known = {field.name: field.default is dataclasses.MISSING for field in dataclasses.fields(kind)}
    for name in fields:
        if name not in known:
            raise ConfigError(f"{what}: unknown field {name!r}; {suggest(name, known)}")
    required = [name for name, needed in known.items() if needed]
    missing = [name for name in required if name not in fields]
    if missing:
        raise ConfigError(f"{what}: expected the fields {', '.join(required)}; missing {', '.join(missing)}")


def require_kinds(made: Any, least: Mapping[str, int]) -> None:
    """Refuse choices, whole numbers and switches of a dataclass that its annotations rule out, with a ``ConfigError``.

    Whole numbers are at least 1, or what `least` says.
    """
    for name, hint in get_type_hints(type(made)).items():
        value, kinds = getattr(made, name), (hint, *get_args(hint))
        if value is None and NoneType in kinds:
            continue
        if get_origin(hint) is Literal:
            if value not in get_args(hint):
                raise ConfigError(f"{name}: expected one of {', '.join(get_args(hint))}, got {shown(value)}")
        elif int in kinds:
            require_count(name, value, least.get(name, 1))
        elif hint is bool and not isinstance(value, bool):
            raise ConfigError(f"{name}: expected true or false, got {shown(value)}")


def is_number(value: object) -> bool:
    """Whether `value` is a number that a float can hold, and at least 0."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= LARGEST


def require_count(name: str, value: object, least: int = 1) -> None:
    """Refuse what is not a whole number of at least `least`, with a ``ConfigError``."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ConfigError(f"{name}: expected a whole number of at least {least}, got {shown(value)}")


def _contradictions(config: TransformerConfig) -> Iterator[str]:
    """What cannot be in one model, of fields that are right by themselves."""
    post = config.norm_position == "post"
    if config.n_heads % config.kv_heads:
        yield (
            f"n_kv_heads: expected a divisor of n_heads={shown(config.n_heads)}, so that each key head serves "
            f"equally many query heads, got {shown(config.kv_heads)}"
        )
    yield from _rotary_contradictions(config)
    yield from _layer_contradictions(config)
    if config.positions == "sinusoidal" and config.n_ctx * config.d_model > LARGEST_TABLE:
        yield (
            f"n_ctx: sinusoidal positions are a table of n_ctx times d_model numbers, expected at most "
            f"{LARGEST_TABLE:,}, got {shown(config.n_ctx)} times {shown(config.d_model)}"
        )
    if config.positions == "relative" and config.scores not in ("dot", "scaled_dot"):
        yield (
            f"positions: 'relative' adds to keys that are multiplied with queries, but scores is {config.scores!r}; "
            "choose dot or scaled_dot"
        )
    if config.norm_position != "pre" and config.normalization == "none":
        what = "the stream" if post else "what is written to it"
        said = f"norm_position: {config.norm_position!r} normalises {what}"
        yield f"{said}, but normalization is 'none'; choose LN or RMS"
    for name in ("parallel", "gated"):
        if getattr(config, name) and config.d_mlp == 0:
            yield f"{name}: speaks of the MLP, but d_mlp is 0: the model is of attention alone"
    if config.prediction_head and not post:
        yield "prediction_head: stands behind a normalised stream (BERT); expected norm_position='post'"
    if post and config.parallel:
        yield "parallel: attention and MLP cannot both read a stream that is normalised between them"


def _rotary_contradictions(config: TransformerConfig) -> Iterator[str]:
    d_head, turned = config.d_head, config.rotary_dim
    for name in ("rotary_dim", "rotary_frequencies", "local_rotary_base"):
        if config.positions != "rotary" and getattr(config, name) is not None:
            yield f"{name}: speaks of rotary positions, but positions is {config.positions!r}"
    if config.positions == "rotary" and turned is None and d_head % 2:
        yield (
            f"d_head: rotary positions turn pairs of components, expected an even number, got {shown(d_head)}; or give "
            "rotary_dim"
        )
    if turned is not None and (turned % 2 or turned > d_head):
        yield (
            f"rotary_dim: pairs of components turn, expected an even number of at most d_head={shown(d_head)}, got "
            f"{shown(turned)}"
        )
    pairs, given = (d_head if turned is None else turned) // 2, config.rotary_frequencies
    if given is not None and len(given) != pairs:
        yield f"rotary_frequencies: expected one for each of the {shown(pairs)} pairs that turn, got {len(given)}"


def _layer_contradictions(config: TransformerConfig) -> Iterator[str]:
    """What of windows, caps and experts."""
    if config.window is None and (config.local_layers is not None or config.local_rotary_base is not None):
        name = "local_rotary_base" if config.local_layers is None else "local_layers"
        yield f"{name}: speaks of layers with a window, but window is None"
    if config.window is not None and not config.causal:
        yield "window: counts the positions before a query; expected causal=True"
    if any(layer >= config.n_layers for layer in config.local_layers or ()):
        yield f"local_layers: expected layers below n_layers={shown(config.n_layers)}, got {shown(config.local_layers)}"
    if config.score_scale is not None and config.scores != "scaled_dot":
        yield f"score_scale: is that of scores='scaled_dot', but scores is {config.scores!r}"
    if config.act_fn == "swiglu_oai" and not config.gated:
        yield "act_fn: 'swiglu_oai' is of two factors; expected gated=True"
    if config.n_experts and not (config.gated and config.d_mlp and 1 <= config.n_active_experts <= config.n_experts):
        yield (
            f"n_experts: expected gated MLPs (gated, d_mlp above 0), 1 to {shown(config.n_experts)} of them active; "
            f"got gated={config.gated}, d_mlp={shown(config.d_mlp)}, n_active_experts={shown(config.n_active_experts)}"
        )
    if config.n_active_experts and not config.n_experts:
        yield "n_active_experts: speaks of experts, but n_experts is 0"
