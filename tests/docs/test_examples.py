"""Every example of a docstring runs and prints what stands below it; every name that a user imports has one."""

import ast
import doctest
import json
import re
from functools import cache, partial
from importlib import import_module
from inspect import getdoc, isclass, isfunction, ismodule, signature
from pathlib import Path
from typing import Self

import pytest
import torch
from markdown_pages import blocks
from public_api import reference
from test_documentation import DOCS, PAGES, ROOT, documented

import interp

pytestmark = pytest.mark.unchecked

HOME = Path(interp.__file__).parent
LOADED, HEADS = cache(interp.load_model), interp.heads
"""One model for all examples that ask for the embedded one."""
JUDGED = cache(lambda _references, *args, **fields: HEADS(*args, **fields))
"""One dossier for all examples that ask for the same."""


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
NAMES = public(MODULES)
METHODS = {
    f"{name}.{own}": each
    for name, value in NAMES.items()
    if isclass(value)
    for own, each in vars(value).items()
    if isfunction(each)
}
SAID = {**NAMES, **METHODS, **{name: import_module(name) for name in MODULES}}
EXAMPLES = {name: getdoc(value) for name, value in SAID.items() if ">>> " in (getdoc(value) or "")}


@pytest.mark.parametrize("references", [200, pytest.param(1_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_prints_what_it_says(name, references, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(interp, "load_model", LOADED, raising=False)
    monkeypatch.setattr(interp, "heads", partial(JUDGED, references), raising=False)
    monkeypatch.setattr("interp.tasks.catalogue.REFERENCES", references)
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


def codes():
    """What README, the pages and the notebooks run, piece by piece."""
    for page in (ROOT / "README.md", *(DOCS / page for page in PAGES)):
        yield from (block.code for block in blocks(page, "python"))
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        yield from (re.sub("^%.*$", "", "".join(each["source"]), flags=re.M) for each in cells)


def imported():
    """Our functions and classes that a user imports, by their dotted names; figures have a test of their own."""
    nodes = [each for code in codes() if _parses(code) for each in ast.walk(ast.parse(code))]
    named = {
        each.name: _imported(node.module, each.name)
        for node in nodes
        if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] == "interp"
        for each in node.names
    }
    of_modules = [
        getattr(named[node.value.id], node.attr)
        for node in nodes
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and ismodule(named.get(node.value.id))
    ]
    found = [*(getattr(interp, each) for each in interp.__all__), *named.values(), *of_modules]
    figures = {getattr(interp.plots, each) for each in interp.plots.__all__}
    own = [each for each in found if (isfunction(each) and each not in figures) or isclass(each)]
    return {f"{each.__module__}.{each.__name__}": each for each in own}


def _imported(module, name):
    """What a name of a module stands for, which may be a module, too."""
    found = import_module(module)
    return getattr(found, name) if hasattr(found, name) else import_module(f"{module}.{name}")


def _parses(code):
    """A cell of text is no code."""
    try:
        ast.parse(code)
    except SyntaxError:
        return False
    return True


IMPORTED = imported()
SHOWN = {
    f"{module}.{name}": value
    for module, names in reference().items()
    for name, value in vars(import_module(module)).items()
    if (isfunction(value) or isclass(value)) and value.__module__ == module and not name.startswith("_")
    if names is None or name in names
}
"""The functions and classes on pages of the reference, by their dotted names."""


def lacking(name, value):
    """The sections that its docstring should have and has not."""
    text = getdoc(value) or ""
    made = isclass(value) and "__init__" in vars(value) and not getattr(value, "_is_protocol", False)
    takes = signature(value).parameters if made or isfunction(value) else {}
    returns = signature(value).return_annotation if isfunction(value) else None
    if takes and not re.search("^(Args|Attributes):$", text, re.M):
        yield "Args"
    if returns not in (None, "None", Self, "Self") and not re.search("^(Returns|Yields):$", text, re.M):
        yield "Returns"
    if ">>> " not in text + (getdoc(import_module(value.__module__)) or "") and (name in IMPORTED or isfunction(value)):
        yield "an example"


def test_pages_and_notebooks_import_more_than_the_package():
    homes = {name.rsplit(".", 1)[0] for name in IMPORTED}
    assert len(IMPORTED) > len(interp.__all__) + 10
    assert {"interp.errors", "interp.methods.erasure.erase", "interp.residual.circuits"} <= homes


@pytest.mark.parametrize("name", {**IMPORTED, **SHOWN})
def test_a_name_of_the_reference_says_what_it_takes_and_returns_with_an_example(name):
    """A class that no page imports is what a call returns or takes; there stands the example."""
    assert list(lacking(name, {**IMPORTED, **SHOWN}[name])) == []


@pytest.mark.parametrize("name", IMPORTED)
def test_what_a_user_imports_is_on_the_reference(name):
    module, own = name.rsplit(".", 1)
    assert own in (reference()[module] or [own])


@pytest.mark.parametrize("name", sorted(set(interp.__all__) - {"list_tasks"}))
def test_a_public_name_says_what_it_refuses(name):
    """All but that which is given nothing."""
    assert re.search("^Raises:$", getdoc(getattr(interp, name)), re.M)


OF_OTHERS = {"ablate", "attend", "patch", "path_patch", "probe"}
OF_OTHERS |= {"direct_logit_attribution", "fold_layer_norm", "residual_stream"}
"""Public names behind which stands a method of others."""


@pytest.mark.parametrize("name", sorted(OF_OTHERS))
def test_a_method_of_others_says_whose_it_is(name):
    assert re.search(r"^Source: .+ \(\d{4}\)", getdoc(getattr(interp, name)), re.M)


def test_the_page_of_figures_says_what_every_one_returns():
    """Once, with an example: they differ in what they show."""
    text = getdoc(interp.plots)
    assert "returns a ``matplotlib.figure.Figure``" in text
    assert ">>> " in text
    returned = {name: signature(getattr(interp.plots, name)).return_annotation for name in interp.plots.__all__}
    others = {name for name, each in returned.items() if getattr(each, "__name__", each) != "Figure"}
    assert others == {"attention_words"}
    assert all(f"``{name}``" in text for name in interp.plots.__all__)
