"""What a model is made of, checked before it is made, whether it is written in Python or read from a file."""

import dataclasses
import sys
from collections.abc import Mapping
from typing import Any

from interp.errors import ConfigError, shown, suggest
from interp.model.config import require_count

NO_LIMIT = sys.maxsize
"""The context of a model that takes a prompt of any length."""


class CheckedConfig:
    """Base of the configs, which are frozen dataclasses."""

    def __post_init__(self) -> None:
        self.check(vars(self))

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> "CheckedConfig":
        """The config of `fields`.

        Raises:
            ConfigError: A field is unknown or missing, or its value describes no model.
        """
        described: Any = cls
        known = {each.name: each.default for each in dataclasses.fields(described)}
        for name in fields:
            if name not in known:
                raise ConfigError(f"config: unknown field {name!r}; {suggest(name, known)}")
        missing = [name for name, default in known.items() if default is dataclasses.MISSING and name not in fields]
        if missing:
            raise ConfigError(f"config: expected the fields {', '.join(known)}; missing {', '.join(missing)}")
        cls.check(fields)
        return cls(**fields)

    @classmethod
    def check(cls, fields: Mapping[str, Any]) -> None:
        """Refuse values that describe no model; fields that are not given have their defaults.

        Raises:
            ConfigError: It says which.
        """
        raise NotImplementedError


class ForerunnerConfig(CheckedConfig):
    """Base of the configs of language models."""

    d_vocab: int

    @property
    def n_ctx(self) -> int:
        """The longest prompt: there is no limit."""
        return NO_LIMIT


def require_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Refuse what is none of the choices.

    Raises:
        ConfigError: `value` is none.
    """
    if value not in choices:
        raise ConfigError(f"{name}: expected one of {', '.join(choices)}, got {shown(value)}")


def require_counts(fields: Mapping[str, Any], names: tuple[str, ...]) -> None:
    """Refuse fields that are not whole numbers of at least 1.

    Raises:
        ConfigError: One is none; it is named.
    """
    for name in names:
        require_count(name, fields[name])
