"""What is in the wheel and in the sdist? All of the package and nothing else; all that a clone needs."""

import ast
import re
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder
from public_api import tomllib

import interp

ROOT = Path(__file__).resolve().parent.parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def files_of(builder):
    """The paths of a distribution's files, in it."""
    data = builder.get_default_build_data()
    builder.set_build_data_defaults(data)
    with builder.config.set_build_data(data):
        return {each.distribution_path for each in builder.recurse_included_files()}


def test_the_wheel_holds_every_file_of_the_package_and_nothing_else():
    package = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "interp").rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    held = files_of(WheelBuilder(str(ROOT)))
    assert held == package
    assert {"interp/py.typed", "interp/__init__.pyi", "interp/model/zoo/default/model.safetensors"} <= held
    assert {Path(each).suffix for each in held} >= {".html", ".css", ".js", ".toml", ".tsv", ".safetensors"}


def test_the_sdist_holds_what_a_clone_needs_and_nothing_that_was_made():
    held = files_of(SdistBuilder(str(ROOT)))
    needed = (
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "Makefile",
        "constraints.txt",
        "CITATION.cff",
        "CONTRIBUTING.md",
    )
    assert set(needed) <= held
    assert {
        "tests/conftest.py",
        "analyses/blimp/run.py",
        "forerunners/ngram.py",
        "recipes/published.npy",
        "docs/overview.png",
        ".ci/audit.py",
    } <= held
    made = re.compile(r"(^|/)(\.venv|out|dist|build|report|__pycache__|\.\w+_cache)/|\.pyc$")
    assert [each for each in held if made.search(each) and not each.startswith(("interp/report", "tests/report"))] == []


def test_the_version_is_the_same_everywhere():
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)[1]
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)[1]
    assert {PROJECT["version"], interp.__version__, cited} == {PROJECT["version"]}
    assert newest in (PROJECT["version"], "Unreleased")
    assert re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", PROJECT["version"])


def test_the_licence_is_the_one_that_is_declared():
    assert (ROOT / "LICENSE").read_text(encoding="utf-8").startswith(f"{PROJECT['license']} License")
    assert f"license: {PROJECT['license']}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_what_is_imported_is_declared():
    """Of what is no part of Python and imported by the package wherever it runs."""
    homes = packages_distributions()
    imported = set()
    for path in (ROOT / "interp").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) else []
            imported |= {name.split(".")[0] for name in names}
    foreign = imported - set(sys.stdlib_module_names) - {"interp"}
    extras = [each for name, extra in PROJECT["optional-dependencies"].items() if name != "dev" for each in extra]
    declared = {re.match(r"[\w-]+", each)[0] for each in [*PROJECT["dependencies"], *extras]}
    named = {name: {each.lower().replace("_", "-") for each in homes.get(name, [name])} for name in foreign}
    assert [name for name in foreign if not named[name] & declared] == []
