"""By which program was it computed? A hash of the source that numbers depend on, and the versions they come from."""

import hashlib
import platform
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path

from interp.errors import InputError

NO_PART = ("report", "cli")
"""Folders of this package on which no number depends."""
LIBRARIES = ("torch", "numpy", "scipy", "pandas", "transformers", "transformer_lens")


@cache
def code_hash() -> str:
    """SHA-256 of this package's modules but those in ``NO_PART``."""
    package = Path(__file__).parents[1]
    modules = (path.relative_to(package) for path in sorted(package.rglob("*.py")))
    digest = hashlib.sha256()
    for each in modules:
        if each.parts[0] not in NO_PART:
            digest.update(f"{each.as_posix()}\n".encode() + (package / each).read_bytes())
    return digest.hexdigest()


@cache
def versions() -> dict[str, str]:
    """Of the libraries that compute, and of Python."""
    return {**{name: version(name) for name in LIBRARIES}, "python": platform.python_version()}


def program() -> dict[str, str]:
    """What has to be the same wherever parts of one answer are computed, by name."""
    return {"interp": code_hash(), **versions()}


def require_program(asked: Mapping[str, str]) -> None:
    """Refuse to compute for a process that runs another program.

    Args:
        asked: That process' ``program``.

    Raises:
        InputError: This one's is another.
    """
    own = {name: program().get(name, "none") for name in asked}
    different = [name for name in asked if own[name] != asked[name]]
    if different:
        here, there = (", ".join(f"{name} {each[name][:12]}" for name in different) for each in (own, asked))
        raise InputError(
            f"worker on {platform.node()}: expected the program of the process that asks ({there}), got {here}; "
            "install the same on both, and if a source was edited meanwhile, ask again"
        )
