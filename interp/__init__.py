"""Which attention heads track what? The table of contents: ``__init__.pyi`` lists the names, and where each is at home.

They are imported when first used.
"""

import ast
from importlib import import_module
from pathlib import Path
from typing import Any

import interp.source_files  # noqa: F401  notes what the source is, before any of it is imported

__version__ = "0.2.0"

_HOMES = {
    alias.name: str(node.module)
    for node in ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")).body
    if isinstance(node, ast.ImportFrom) and node.module != "interp"  # a module of its own is no name of this one
    for alias in node.names
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name == "plots":
        return import_module("interp.plots")
    if name not in _HOMES:
        raise AttributeError(f"module 'interp' has no attribute {name!r}; it has {', '.join([*__all__, 'plots'])}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__", "plots"]
