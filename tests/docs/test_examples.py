"""Every example of a docstring runs and prints what stands below it; every public name has one."""

import doctest
from functools import cache
from importlib import import_module
from inspect import getdoc, isfunction, signature
from pathlib import Path

import pytest
import torch
from test_documentation import documented

import interp

pytestmark = pytest.mark.unchecked

HOME = Path(interp.__file__).parent
LOADED = cache(interp.load_model)
"""One model for all examples that ask for the embedded one."""


def public(modules):
    """What modules define under public names, by the dotted name."""
    return {
        f"{name}.{each}": value
        for name in modules
        for each, value in vars(import_module(name)).items()
        if getattr(value, "__module__", None) == name and not each.startswith("_")
    }


WITH_EXAMPLES = [path for path in sorted(HOME.rglob("*.py")) if ">>> " in path.read_text(encoding="utf-8")]
MODULES = [".".join(path.relative_to(HOME.parent).with_suffix("").parts) for path in WITH_EXAMPLES]
EXAMPLES = {name: getdoc(value) for name, value in public(MODULES).items() if ">>> " in (getdoc(value) or "")}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_prints_what_it_says(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(interp, "load_model", LOADED, raising=False)
    example = doctest.DocTestParser().get_doctest(EXAMPLES[name], {"interp": interp, "torch": torch}, name, None, 0)
    told = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert runner.run(example, out=told.append).failed == 0, "".join(told)


def test_every_public_name_and_every_method_has_an_example():
    names = [f"{getattr(interp, each).__module__}.{each}" for each in interp.__all__]
    methods = [
        name
        for name, value in public(documented()).items()
        if isfunction(value) and "options" in signature(value).parameters
    ]
    assert len(methods) > 10
    assert sorted({*names, *methods} - set(EXAMPLES)) == []
