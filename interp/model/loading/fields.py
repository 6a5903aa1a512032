"""What does another library's config say? Its fields, each checked under the name that it has there."""

from collections.abc import Mapping
from typing import Any

from interp.errors import ConfigError, LoadError, shown
from interp.model.config import LARGEST, Activation, TransformerConfig, require_count
from interp.model.loading.taker import UNQUANTISED

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
HIDDEN = {
    "n_layers": "num_hidden_layers",
    "n_heads": "num_attention_heads",
    "d_model": "hidden_size",
    "d_mlp": "intermediate_size",
    "d_vocab": "vocab_size",
}
"""Our names of the sizes, and those that most of Hugging Face's configs have for them."""
ROTARY_FIELDS = {"rope_type", "type", "rope_theta", "partial_rotary_factor"}


class ForeignConfig:
    """The fields of a config that is not ours."""

    def __init__(self, fields: Mapping[str, Any], source: str, family: str):
        """Keep `fields`; `source` says where they are from and `family` whose they are, for the messages.

        Raises:
            LoadError: They describe quantised weights.
        """
        self.fields, self.source, self.family = fields, source, family
        self._names: dict[str, str] = {}
        if self.get("quantization_config") is not None:
            raise LoadError(
                f"{source}: quantization_config={shown(fields['quantization_config'])} is not supported: its weights "
                f"are quantised; {UNQUANTISED}"
            )

    def __getitem__(self, name: str) -> Any:
        if name not in self.fields:
            raise LoadError(f"{self.source}: the config has no field {name!r}, which {self.family} needs")
        return self.fields[name]

    def get(self, name: str, default: Any = None) -> Any:
        """The field, or `default` where the config does not name it."""
        return self.fields.get(name, default)

    def named(self, theirs: Mapping[str, str]) -> dict[str, Any]:
        """Our fields' values, by the names that they have there; errors about them will use these.

        Raises:
            LoadError: One is missing.
        """
        self._names.update(theirs)
        return {ours: self[name] for ours, name in theirs.items()}

    def named_or(self, **theirs: tuple[str, Any]) -> dict[str, Any]:
        """The same of fields that have a default."""
        self._names.update({ours: name for ours, (name, _) in theirs.items()})
        return {ours: self.get(name, default) for ours, (name, default) in theirs.items()}

    def require(self, **supported: Any) -> None:
        """Refuse fields that ask for something else than what is supported; a field that is not there does not.

        Raises:
            LoadError: One does; it is named.
        """
        for name, value in supported.items():
            if self.get(name, value) != value:
                raise self.refusal(name, self.fields[name], value)

    def refusal(self, name: str, value: Any, expected: Any) -> LoadError:
        """The error that says that the field `name` asks for what is not supported."""
        return LoadError(f"{self.source}: {name}={shown(value)} is not supported, expected {expected!r}")

    def activation(self, name: str, default: str, names: Mapping[str, Activation] = ACTIVATIONS) -> Activation:
        """Our name of the activation that the field `name` names.

        Raises:
            LoadError: It is none of `names`.
        """
        value = self.get(name, default)
        if not isinstance(value, str) or value not in names:
            raise LoadError(f"{self.source}: {name}={shown(value)}, expected one of {', '.join(names)}")
        return names[value]

    def switch(self, name: str, default: bool) -> bool:
        """The field `name`, which is true or false.

        Raises:
            LoadError: It is neither.
        """
        value = self.get(name, default)
        if not isinstance(value, bool):
            raise LoadError(f"{self.source}: {name}: expected true or false, got {shown(value)}")
        return value

    def head_width(self, d_model: str, n_heads: str) -> int:
        """The width of one head, where all of them share the stream's, by the names of the two fields.

        Raises:
            LoadError: The heads cannot share it evenly.
        """
        try:
            require_count(d_model, self[d_model])
            require_count(n_heads, self[n_heads])
        except ConfigError as error:
            raise LoadError(f"{self.source}: {error}") from error
        if self[d_model] % self[n_heads]:
            raise LoadError(f"{self.source}: {d_model}={self[d_model]} is not a multiple of {n_heads}={self[n_heads]}")
        return int(self[d_model] // self[n_heads])

    def rotary(self, theta: str = "rope_theta", part: str = "partial_rotary_factor") -> tuple[Any, Any]:
        """The base of rotary positions, and the part of a head that turns; None where the config names no part.

        Since version 5, transformers writes ``rope_parameters``; before, the base and the part were fields of their
        own, called `theta` and `part`, and ``rope_scaling`` said how positions are stretched. Where there are both, it
        reads the latter.

        Raises:
            LoadError: Positions are stretched.
        """
        name = "rope_scaling" if self.get("rope_scaling") else "rope_parameters"
        parameters = self.get(name) or {}
        kind = parameters.get("rope_type", parameters.get("type", "default")) if isinstance(parameters, dict) else None
        if kind != "default" or set(parameters) - ROTARY_FIELDS:
            raise self.refusal(name, parameters, {"rope_type": "default"})
        base = parameters.get("rope_theta", self.get(theta, 10_000.0))
        whole = isinstance(base, int) and abs(base) < LARGEST
        return float(base) if whole else base, parameters.get("partial_rotary_factor", self.get(part))

    def transformer(self, **fields: Any) -> TransformerConfig:
        """Our config of `fields`.

        Raises:
            LoadError: It describes no model; a field is called as it is there.
        """
        try:
            return TransformerConfig.from_dict(fields)
        except ConfigError as error:
            name, _, rest = str(error).partition(":")
            raise LoadError(f"{self.source}: {self._names.get(name, name)}:{rest}") from error
