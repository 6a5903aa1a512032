"""By which program was it computed? A hash of the source that numbers depend on, and the versions they come from."""

import hashlib
import platform
from functools import cache
from importlib.metadata import version
from pathlib import Path

NO_PART = ("report", "cli")
"""Folders of this package on which no number depends."""
LIBRARIES = ("torch", "numpy", "scipy", "pandas")


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
