"""Reading the config of another library's model, field by field, in the names that it has there.

Fields that a config leaves out have the defaults of ``transformers``' own class, which also says what older spellings
mean, how rotary positions are stretched and which layers see a window only.
"""

from collections.abc import Mapping
from copy import deepcopy
from functools import cached_property
from typing import Any

from interp.errors import ConfigError, LoadError, shown
from interp.model.config import LARGEST, Activation, TransformerConfig, require_count
from interp.model.loading.tensors import UNQUANTISED

ACTIVATIONS: dict[str, Activation] = {
    "gelu_new": "gelu_new",
    "gelu_pytorch_tanh": "gelu_new",
    "gelu_fast": "gelu_new",
    "gelu": "gelu",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
}
"""Hugging Face's names of the activations that we have."""
ROTARY_FIELDS = {"rope_type", "type", "rope_theta", "partial_rotary_factor", "original_max_position_embeddings"}
STRETCHED = ("linear", "llama3", "yarn", "longrope", "dynamic")
"""How rotary positions are stretched. The last two do it by the length of the prompt, from the length on that a model
was trained with, and are read for prompts of that length."""

OLDER = {("bloom", "hidden_size"): "n_embed", ("falcon", "hidden_size"): "n_embed"}
"""Spellings of first configs, by model type and field."""


class ForeignConfig:
    """The fields of a config that is not ours; errors call a field as it is called there."""

    def __init__(self, fields: Mapping[str, Any], source: str, family: str):
        """Keep `fields`; `source` says where they are from and `family` whose they are, for the messages."""
        self.fields, self.source, self.family = fields, source, family
        self._names: dict[str, str] = {}
        if self.get("quantization_config") is not None:
            raise LoadError(
                f"{source}: quantization_config={shown(fields['quantization_config'])} is not supported: its weights "
                f"are quantised; {UNQUANTISED}"
            )

    def __getitem__(self, name: str) -> Any:
        spelled = self._spelled(name)
        if spelled not in self.fields:
            raise LoadError(f"{self.source}: the config has no field {name!r}, which {self.family} needs")
        return self.fields[spelled]

    def get(self, name: str, default: Any = None) -> Any:
        """The field, or `default` where the config does not name it."""
        return self.fields.get(self._spelled(name), default)

    def _spelled(self, name: str) -> str:
        """What this config calls the field that most of Hugging Face's call `name`."""
        if name in self.fields or "model_type" not in self.fields:
            return name
        others = (self._theirs.attribute_map.get(name), OLDER.get((self.fields["model_type"], name)))
        return next((each for each in others if each is not None and each in self.fields), name)

    @cached_property
    def _theirs(self) -> Any:
        """The class of ``transformers`` that reads such configs."""
        # importing it takes a second, and nothing that comes with this package needs it
        from transformers.models.auto.configuration_auto import CONFIG_MAPPING

        return CONFIG_MAPPING[self.fields["model_type"]]

    @cached_property
    def filled(self) -> Any:
        """The config as ``transformers`` reads it, with its defaults."""
        try:
            return self._theirs.from_dict(deepcopy(dict(self.fields)))  # it writes into what it is given
        except Exception as error:  # whatever its classes make of other kinds of values
            raise LoadError(f"{self.source}: transformers does not read this config ({error})") from error

    def named(self, theirs: Mapping[str, str | tuple[str, Any]]) -> dict[str, Any]:
        """Our fields' values, by the names that they have there; a missing one without a default beside it raises."""
        self._names.update({ours: name if isinstance(name, str) else name[0] for ours, name in theirs.items()})
        return {ours: self[name] if isinstance(name, str) else self.get(*name) for ours, name in theirs.items()}

    def usual(self, **theirs: str) -> dict[str, Any]:
        """Our fields' values, by their names there; where they are missing, the defaults of ``transformers``' class."""
        return self.named({ours: (name, self.default(name)) for ours, name in theirs.items()})

    def default(self, name: str) -> Any:
        """What ``transformers``' class takes where a config does not name the field."""
        return getattr(self._theirs, name, None)

    def require(self, **supported: Any) -> None:
        """Refuse fields that ask for something else than what is supported; a field that is not there does not."""
        for name, value in supported.items():
            if self.get(name, value) != value:
                raise self.refusal(name, self.get(name), value)

    def refusal(self, name: str, value: Any, expected: Any) -> LoadError:
        """The error that says that the field `name` asks for what is not supported."""
        return LoadError(f"{self.source}: {name}={shown(value)} is not supported, expected {expected!r}")

    def activation(self, name: str, default: str, names: Mapping[str, Activation] = ACTIVATIONS) -> Activation:
        """Our name of the activation that the field `name` names."""
        value = self.get(name, default)
        if not isinstance(value, str) or value not in names:
            raise LoadError(f"{self.source}: {name}={shown(value)}, expected one of {', '.join(names)}")
        return names[value]

    def switch(self, name: str, default: bool) -> bool:
        """The field `name`, which is true or false."""
        value = self.get(name, default)
        if not isinstance(value, bool):
            raise LoadError(f"{self.source}: {name}: expected true or false, got {shown(value)}")
        return value

    def head_width(self, d_model: str, n_heads: str) -> int:
        """The width of one head, where all of them share the stream's, by the names of the two fields."""
        width, heads = self.count(d_model), self.count(n_heads)
        if width % heads:
            raise LoadError(f"{self.source}: {d_model}={width} is not a multiple of {n_heads}={heads}")
        return width // heads

    def count(self, name: str) -> int:
        """The field `name`, which is a whole number of at least 1."""
        try:
            require_count(name, self[name])
        except ConfigError as error:
            raise LoadError(f"{self.source}: {error}") from error
        return int(self[name])

    def gpt_sizes(self) -> dict[str, Any]:
        """The sizes that have the same names in every GPT, nanoGPT's and minGPT's too."""
        sizes = self.named({"n_layers": "n_layer", "n_heads": "n_head", "d_model": "n_embd", "d_vocab": "vocab_size"})
        return {**sizes, "d_head": self.head_width("n_embd", "n_head"), "d_mlp": 4 * sizes["d_model"]}

    def rotary(
        self,
        theta: str = "rope_theta",
        part: str = "partial_rotary_factor",
        *,
        kind: str | None = None,
        filled: bool = False,
    ) -> tuple[dict[str, Any], Any]:
        """Our fields of rotary positions, and the part of a head that turns; None where the config names no part.

        Since version 5, transformers writes ``rope_parameters``; before, the base and the part were fields of their
        own, called `theta` and `part`, and ``rope_scaling`` said how positions are stretched. Where there are both, it
        reads the latter. `kind` says of which kind of layers, where these differ; `filled`, that positions are
        stretched where the config says nothing.
        """
        name = "rope_scaling" if self.get("rope_scaling") else "rope_parameters"
        given = self.get(name) or (self.filled.rope_parameters if filled else {})
        if not isinstance(given, dict):
            raise self.refusal(name, given, {"rope_type": "default"})
        parameters = given if kind is None else self.filled.rope_parameters[kind]
        how = parameters.get("rope_type", parameters.get("type", "default"))
        if how in STRETCHED:
            found: Any = self.filled.rope_parameters if kind is None else parameters
            return self._stretched(name, found, kind), self.filled.rope_parameters.get("partial_rotary_factor")
        if how != "default" or set(parameters) - ROTARY_FIELDS:
            raise self.refusal(name, given, " or ".join(map(repr, ("default", *STRETCHED))) + " as its rope_type")
        base = parameters.get("rope_theta", self.get(theta, self.default("default_theta")))
        whole = isinstance(base, int) and abs(base) < LARGEST
        fields = {"positions": "rotary", "rotary_base": float(base) if whole else base}
        return fields, parameters.get("partial_rotary_factor", self.get(part))

    def _stretched(self, name: str, parameters: Mapping[str, Any], kind: str | None) -> dict[str, Any]:
        """Our fields of stretched rotary positions, as ``transformers`` computes them of its own `parameters`."""
        from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

        try:
            how = parameters["rope_type"]  # Phi 3's first configs call LongRoPE "yarn", which is put right there
            frequencies, magnitude = ROPE_INIT_FUNCTIONS[how](self.filled, device="cpu", layer_type=kind)
            fields = {"positions": "rotary", "rotary_base": float(parameters["rope_theta"])}
            if how == "longrope":
                fields["n_ctx"] = int(parameters["original_max_position_embeddings"])
        except Exception as error:  # whatever it makes of numbers that are missing, or none
            said = f"{type(error).__name__}: {error}"
            raise LoadError(f"{self.source}: {name}={shown(self.get(name))}: cannot be computed ({said})") from error
        if how != "dynamic":
            fields |= {"rotary_frequencies": tuple(frequencies.tolist()), "rotary_magnitude": float(magnitude)}
        return fields

    def windows(self) -> dict[str, Any]:
        """Our fields of the window that queries see, and of the layers that have one."""
        given = self.get("sliding_window")
        try:
            require_count("sliding_window", 1 if given is None else given)
        except ConfigError:
            raise self.refusal("sliding_window", given, "a whole number of tokens, or null") from None
        if not hasattr(self._theirs, "sliding_window"):
            return {}
        window = self.filled.sliding_window
        # a class that does not know them keeps them, and its models have the window in every layer
        kinds = self.filled.layer_types if hasattr(self._theirs, "layer_types") else None
        other = next((each for each in kinds or () if each not in ("full_attention", "sliding_attention")), None)
        if other is not None:
            raise self.refusal("layer_types", kinds, "full_attention or sliding_attention for each layer")
        local = None if kinds is None else tuple(i for i, each in enumerate(kinds) if each == "sliding_attention")
        return {} if window is None or local == () else {"window": window, "local_layers": local}

    def transformer(self, **fields: Any) -> TransformerConfig:
        """Our config of `fields`."""
        try:
            return TransformerConfig.from_dict(fields)
        except ConfigError as error:
            name, _, rest = str(error).partition(":")
            raise LoadError(f"{self.source}: {self._names.get(name, name)}:{rest}") from error
