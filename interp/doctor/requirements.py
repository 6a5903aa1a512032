"""Is there what interp needs? Python and every dependency, in the versions that its own metadata ask for."""

import platform
import shlex
import sys
from collections.abc import Iterator
from importlib import import_module, metadata
from pathlib import Path

import interp
from interp.doctor.finding import Finding

NAME = "interp"
OPTIONAL = {"ray": "for several machines: --executor ray"}
"""The extras that are of use to who uses interp, and for what."""


def python() -> Iterator[Finding]:
    """This Python, and whether interp is made for it."""
    from packaging.specifiers import SpecifierSet

    needed, here = metadata.metadata(NAME)["Requires-Python"] or "", platform.python_version()
    says = f"{here} ({sys.executable})"
    if SpecifierSet(needed).contains(here, prereleases=True):
        yield Finding("Python", "well", says)
    else:
        todo = "install interp with a Python that it is made for"
        yield Finding("Python", "wrong", f"{says}; expected {needed}", todo)


def own() -> Iterator[Finding]:
    """Which interp this is: the one that is installed, or another one that lies before it."""
    folder, installed = Path(interp.__file__).parent, metadata.version(NAME)
    if installed == interp.__version__:
        yield Finding(NAME, "well", f"{installed} ({folder})")
    else:
        says = f"{interp.__version__} in {folder} runs, {installed} is installed"
        yield Finding(NAME, "wrong", says, "install interp again, or leave the folder that hides it")


def command_line() -> Iterator[Finding]:
    """Whether what the command line is made of can be imported."""
    for name in ("rich", "typer"):
        import_module(name)
    yield Finding("command line", "well", "can begin")


def dependencies() -> Iterator[Finding]:
    """Each dependency: whether it is there, and new enough; those of an extra may be absent."""
    from packaging.requirements import Requirement

    for each in map(Requirement, metadata.requires(NAME) or ()):
        if each.marker is None or each.marker.evaluate({"extra": ""}):
            yield _found(each.name, str(each.specifier), "wrong", "")
        elif each.name in OPTIONAL and each.marker.evaluate({"extra": each.name}):
            yield _found(each.name, str(each.specifier), "note", OPTIONAL[each.name])


def _found(name: str, needed: str, absent: str, purpose: str) -> Finding:
    from packaging.specifiers import SpecifierSet

    todo = f"{shlex.quote(sys.executable)} -m pip install '{name}{needed}'"
    try:
        here = metadata.version(name)
    except metadata.PackageNotFoundError:
        if absent == "note":
            return Finding(name, "note", f"not installed; {purpose}", todo)
        return Finding(name, "wrong", f"not installed; expected {needed}", todo)
    if SpecifierSet(needed).contains(here, prereleases=True):
        return Finding(name, "well", f"{here} ({needed})")
    return Finding(name, "wrong", f"{here}; expected {needed}", todo)
