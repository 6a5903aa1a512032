"""By which program was it computed? A hash of the source that numbers depend on, and the versions they come from."""

import hashlib
import platform
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version

from interp.errors import InputError
from interp.source import PACKAGE, changed, modules

LIBRARIES = ("torch", "numpy", "scipy", "pandas", "transformers", "transformer_lens")


def code_hash() -> str:
    """SHA-256 of the modules that numbers depend on, as this process imports them.

    Raises:
        InputError: They are no longer those that it began with.
    """
    if changed():
        raise InputError(
            "interp: expected the source that this process began with, got one that was changed since, so that no hash "
            "could tell what it computes with; begin anew (in a notebook: restart the kernel)"
        )
    return _hash()


@cache
def _hash() -> str:
    digest = hashlib.sha256()
    for path in modules():
        digest.update(f"{path.relative_to(PACKAGE).as_posix()}\n".encode() + path.read_bytes())
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
