"""What trains a model, in one file: the text, the tokenizer, the shape, how long. ``interp train`` reads it.

A recipe is a TOML file; ``default.toml`` and ``books.toml``, which make the embedded models, lie beside this module.
One that says ``base = "default"`` is that recipe, but for what it says itself, field by field.
The same recipe and seed on the same machine, versions and number of threads give the same weights, bit for bit.
"""

import dataclasses
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Literal, get_args

from interp.errors import ConfigError, LoadError, shown, suggest
from interp.model.config import TransformerConfig
from interp.model.devices import resolve_dtype
from interp.model.training import TrainingConfig

Source = Literal["grammar", "text"]
Kind = Literal["lexicon", "bpe"]
SECTIONS = {
    "data": ("source", "text", "held_out"),
    "tokenizer": ("kind", "size"),
    "model": tuple(each.name for each in dataclasses.fields(TransformerConfig) if each.name != "d_vocab"),
    "training": tuple(each.name for each in dataclasses.fields(TrainingConfig)),
}
TOP, BASE = ("seed", "save_as"), "base"
SMALLEST = 1e-6
"""Share of paragraphs that can be held out, if any."""


@dataclass(frozen=True)
class Recipe:
    """A model's making.

    Attributes:
        name: What the recipe is called.
        source: ``grammar`` for this project's own English, ``text`` for a file.
        text: The file, where there is one: plain or ``.xz``, a paragraph a line.
        held_out: Share of a file's paragraphs that is never trained on.
        kind: ``lexicon`` for one token a word form of our English, ``bpe`` for a byte-pair encoding learned from the
            text.
        size: Entries of a ``bpe`` vocabulary.
        model: Fields of ``TransformerConfig``, less ``d_vocab``, which the tokenizer gives.
        training: How to train.
        seed: Of the weights and of the order of the text.
        save_as: The dtype that the finished weights are rounded to.
    """

    name: str
    source: Source
    text: Path | None
    held_out: float
    kind: Kind
    size: int
    model: Mapping[str, Any]
    training: TrainingConfig
    seed: int = 0
    save_as: str = "float32"

    def config(self, d_vocab: int) -> TransformerConfig:
        """The model's shape with a vocabulary of this size."""
        return TransformerConfig.from_dict({**self.model, "d_vocab": d_vocab})


def recipes() -> list[str]:
    """Names of the recipes that come with the package."""
    names = (Path(each.name) for each in resources.files("recipes").iterdir())
    return sorted(name.stem for name in names if name.suffix == ".toml")


def read_recipe(name_or_path: str | Path) -> Recipe:
    """The recipe of an embedded model by its name, or a TOML file.

    Raises:
        LoadError: There is no such file, or it is no TOML.
        ConfigError: It lacks something, holds an unknown field, or a value that describes no training.
    """
    name = str(name_or_path)
    if name in recipes():
        return _recipe(_embedded(name), name)
    path = Path(os.path.expanduser(name))
    if not path.is_file():
        raise LoadError(f"{name}: no such recipe; expected a TOML file or one of {', '.join(recipes())}")
    try:
        return _recipe(_on_its_base(_parsed(path.read_bytes(), name)), path.stem)
    except OSError as error:
        raise LoadError(f"{name}: cannot be read ({error.strerror})") from error
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}") from error


def _embedded(name: str) -> dict[str, Any]:
    return _parsed(resources.files("recipes").joinpath(f"{name}.toml").read_bytes(), name)


def _on_its_base(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields, and for those that are not there the base's, where there is one."""
    if BASE not in fields:
        return fields
    base = _embedded(_choice(BASE, fields[BASE], tuple(recipes())))
    over = {name: value for name, value in fields.items() if name != BASE}
    sections = {
        name: {**base[name], **over[name]} for name in SECTIONS.keys() & over.keys() if isinstance(over[name], dict)
    }
    return {**base, **over, **sections}


def _parsed(content: bytes, name: str) -> dict[str, Any]:
    try:
        return tomllib.loads(content.decode())
    except (ValueError, RecursionError) as error:  # also what is no UTF-8, and endless nesting
        raise LoadError(f"{name}: expected a recipe in TOML, got {error}") from error


def _recipe(fields: dict[str, Any], name: str) -> Recipe:
    _check_names(fields)
    data, tokenizer = fields["data"], fields["tokenizer"]
    source = _choice("data: source", data.get("source"), get_args(Source))
    kind = _choice("tokenizer: kind", tokenizer.get("kind"), get_args(Kind))
    held_out, size, seed = data.get("held_out", 0.0), tokenizer.get("size", 0), fields.get("seed", 0)
    if not isinstance(held_out, int | float) or not (held_out == 0 or SMALLEST <= held_out <= 0.5):
        raise ConfigError(f"data: held_out: expected 0, or a share from {SMALLEST} to 0.5, got {shown(held_out)}")
    if not isinstance(data.get("text", ""), str):
        raise ConfigError(f"data: text: expected the name of a file, got {shown(data['text'])}")
    if kind == "bpe" and source != "text":
        raise ConfigError("tokenizer: kind 'bpe' is learned from a text; expected source = \"text\", got 'grammar'")
    if not isinstance(size, int) or (kind == "bpe" and size < 257):
        raise ConfigError(f"tokenizer: size: expected at least 257 (the bytes and BOS), got {shown(size)}")
    if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < 2**63:
        raise ConfigError(f"seed: expected a whole number from 0 to 2**63 - 1, got {shown(seed)}")
    save_as = fields.get("save_as", "float32")
    resolve_dtype(save_as)
    recipe = Recipe(
        name=name,
        source=source,
        text=Path(os.path.expanduser(data["text"])) if "text" in data else None,
        held_out=float(held_out),
        kind=kind,
        size=size,
        model=fields["model"],
        training=TrainingConfig.from_dict(fields["training"]),
        seed=seed,
        save_as=save_as,
    )
    # A shape that describes no model is found before the text is read.
    if not recipe.config(max(size, 1)).causal:
        raise ConfigError("model: causal: next tokens are what is learned, and a bidirectional model sees them")
    return recipe


def _check_names(fields: dict[str, Any]) -> None:
    for name in fields:
        if name not in (*SECTIONS, *TOP):
            raise ConfigError(f"unknown field {name!r}; {suggest(name, (BASE, *SECTIONS, *TOP))}")
    for section, known in SECTIONS.items():
        if not isinstance(fields.get(section), dict):
            raise ConfigError(f"expected a section [{section}]; it is missing")
        for name in fields[section]:
            if name not in known:
                raise ConfigError(f"{section}: unknown field {name!r}; {suggest(name, known)}")


def _choice(what: str, value: Any, known: tuple[Any, ...]) -> Any:
    if value not in known:
        raise ConfigError(f"{what}: expected one of {', '.join(known)}, got {shown(value)}")
    return value
