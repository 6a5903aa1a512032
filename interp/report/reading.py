"""What pages say, as texts that anybody can edit: ``reading.toml`` has the verdicts, sentences, and what terms mean."""

from functools import cache
from importlib.resources import files
from typing import Any

import tomllib


@cache
def texts() -> dict[str, Any]:
    """All of ``reading.toml``, each text in one line."""
    found: dict[str, Any] = tomllib.loads((files("interp.report") / "reading.toml").read_text(encoding="utf-8"))
    return {name: each if isinstance(each, list) else _joined(each) for name, each in found.items()}


def _joined(table: dict[str, str]) -> dict[str, str]:
    return {name: text.strip("\n").replace("\n", " ") for name, text in table.items()}


def explained(page: str, **known: Any) -> dict[str, str]:
    """By its term, what one page explains; `known` fills in what stands in braces."""
    return {term: text.format(**known) for term, text in texts()[page].items()}
