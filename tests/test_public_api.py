"""What whoever uses interp relies on: the names, once, and their signatures, held by a file that a review sees."""

import ast
import inspect
import re
from importlib import import_module
from pathlib import Path

from public_api import ROOT, public_api, public_modules

import interp

WRITTEN = Path(__file__).with_suffix("").parent / "public_api.txt"


def test_signatures_are_those_that_were_written_down():
    written = WRITTEN.read_text(encoding="utf-8").splitlines()
    assert public_api() == written, "where that is meant: python tests/public_api.py > tests/public_api.txt"


def test_the_names_are_at_home_where_the_stub_says():
    stub = ast.parse((ROOT / "interp" / "__init__.pyi").read_text(encoding="utf-8"))
    named = {
        alias.asname: each.module for each in stub.body if isinstance(each, ast.ImportFrom) for alias in each.names
    }
    modules = {name for name, home in named.items() if home == "interp"}
    assert modules == {"plots"}
    assert interp.__all__ == sorted(set(named) - modules)
    for name, home in named.items():
        assert getattr(interp, name) is getattr(import_module(home), name)
    assert {*interp.__all__, *modules, "__version__"} == set(dir(interp))


def test_every_public_name_is_in_a_public_module():
    homes = {inspect.getmodule(getattr(interp, name)).__name__ for name in interp.__all__}
    assert homes <= set(public_modules())


def test_every_public_name_is_documented():
    for name in interp.__all__:
        assert re.match(r"[A-Z].*[.?]$", inspect.getdoc(getattr(interp, name)).splitlines()[0]), name


def test_the_readme_imports_public_names_alone():
    """Of modules that are no less public than it says."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    modules = set(re.findall(r"^(?:    )?from (interp\.methods[\w.]*) import", readme, re.MULTILINE))
    assert modules
    assert modules <= set(public_modules())
