"""The plan of the house, held: who may import whom, and what an import brings along."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
from sizes import files_run_by_heads, import_cycles, sizes

import interp

pytestmark = pytest.mark.unchecked

ROOT = Path(__file__).resolve().parent.parent
BASE = {"arguments", "errors", "hashing", "options", "result", "shapes", "special_tokens"}
MAY_IMPORT = {
    "arguments": {"errors"},
    "errors": set(),
    "hashing": {"errors"},
    "shapes": set(),
    "special_tokens": set(),
    "options": {"arguments", "errors"},
    "result": {"report"},
    "source_files": set(),
    "model": BASE,
    "residual": BASE | {"model"},
    "tasks": BASE,
    "claims": BASE,
    "interventions": BASE | {"model", "residual", "tasks", "claims"},
    "cluster": BASE | {"interventions", "runs"},
    "runs": BASE | {"source_files", "model", "residual", "tasks", "claims", "interventions"},
    "report": BASE,
    "plots": BASE | {"report"},
    "methods": BASE | {"model", "residual", "tasks", "claims", "interventions", "runs", "report"},
    "calibration": BASE | {"model", "tasks", "claims", "interventions", "runs", "methods"},
    "cli": BASE
    | {"model", "residual", "tasks", "claims", "interventions", "runs", "cluster"}
    | {"report", "methods", "calibration", "doctor"},
    "doctor": BASE | {"model", "tasks", "runs", "methods"},
    "__main__": {"cli", "doctor", "report"},
}
MODULES = sorted((ROOT / "interp").rglob("*.py"))


def room(path):
    return path.relative_to(ROOT / "interp").parts[0].removesuffix(".py")


def imported_rooms(path):
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            names = (
                [f"{node.module}.{alias.name}" for alias in node.names] if node.module == "interp" else [node.module]
            )
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        yield from (name.split(".")[1] for name in names if name.startswith("interp."))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_rooms_import_only_what_stands_below_them(path):
    own = room(path)
    if own == "__init__":
        return
    assert own in MAY_IMPORT, f"{own} is no room of the plan"
    foreign = set(imported_rooms(path)) - {own}
    assert foreign <= MAY_IMPORT[own]


RUN_NOTHING = {
    *("as_head", "check_heads", "check_sets", "choose_components"),
    *("mlp_nodes", "parse_path", "paths_from", "paths_to", "repeated"),
    *("require_additive", "require_sites", "shows_keys_and_values"),
    *("restore_checkpoint", "save_checkpoint", "save_forerunner", "save_model"),
}
"""Documented functions that are given a model and only look at it, or at its weights."""


def documented_functions():
    """Those of the modules that docs/reference has pages of, and their methods."""
    pages = (ROOT / "docs" / "reference").glob("*.md")
    for module in {name for page in pages for name in re.findall(r"^::: (\S+)", page.read_text(), re.MULTILINE)}:
        path = ROOT / f"{module.replace('.', '/')}.py"
        if not path.exists() or room(path) in ("claims", "report", "tasks"):
            continue
        yield from functions_of(module, path)
    for path in (*(ROOT / "forerunners").glob("*.py"), *(ROOT / "recipes").glob("*.py")):
        yield from functions_of(".".join(path.relative_to(ROOT).with_suffix("").parts), path)


def functions_of(module, path):
    return ((module, each) for each in ast.parse(path.read_text()).body if isinstance(each, ast.FunctionDef))


def test_the_package_needs_nothing_that_lies_beside_it():
    beside = {"analyses", "benchmarks", "forerunners", "recipes", "tests"}
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom | ast.Import):
                name = node.module if isinstance(node, ast.ImportFrom) else node.names[0].name
                assert name.split(".")[0] not in beside, path


def test_what_runs_a_model_does_so_in_ordinary_modes():
    """Or under a caller's autocast or inference mode it would measure something else, or nothing."""
    without = {
        f"{module}.{each.name}"
        for module, each in documented_functions()
        if {"model", "translator"} & {argument.arg for argument in each.args.args} and not each.name.startswith("_")
        if "documented" not in map(ast.unparse, each.decorator_list)
    }
    assert {each.rsplit(".", 1)[1] for each in without} == RUN_NOTHING


def test_what_is_given_a_model_names_a_wrong_argument():
    without = {
        each.name
        for _, each in documented_functions()
        if "model" in {argument.arg for argument in each.args.args} and not each.name.startswith("_")
        if not {"documented", "named_arguments"} & set(map(ast.unparse, each.decorator_list))
    }
    assert not without


MOST_LINES, MOST_FILES, LONGEST, MOST_RUN = 51_079, 265, 400, 64
"""Of the package, of a file, and of the files whose functions run in a second call of ``interp.heads``."""


def test_the_house_can_be_held_in_the_head():
    lines = sizes()
    assert sum(lines.values()) <= MOST_LINES
    assert len(lines) <= MOST_FILES
    assert {name for name, n in lines.items() if n > LONGEST} == set()
    assert import_cycles() == []


def test_one_call_runs_few_files():
    assert len(files_run_by_heads()) <= MOST_RUN


def test_no_function_takes_more_than_ten_parameters():
    """But those of the command line, whose parameters are options."""
    assert [
        f"{path.stem}.{each.name}"
        for path in MODULES
        if room(path) != "cli"
        for each in ast.walk(ast.parse(path.read_text()))
        if isinstance(each, ast.FunctionDef) and len([*each.args.args, *each.args.kwonlyargs]) > 10
    ] == []


def test_no_file_of_an_analysis_hides_a_package():
    """Python looks first in the folder of the script that it runs."""
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")} | sys.stdlib_module_names
    assert "forerunners" in packages
    assert [path for path in ROOT.glob("analyses/*/*.py") if path.stem in packages] == []


def test_no_two_modules_of_a_room_have_one_name():
    for each in {room(path) for path in MODULES}:
        names = [path.stem for path in MODULES if room(path) == each and path.stem != "__init__"]
        assert [name for name in names if names.count(name) > 1] == [], each


def test_no_module_is_called_utils():
    assert not [path for path in MODULES if "util" in path.name or "helper" in path.name]


def test_table_of_contents_is_short_and_complete():
    assert len(interp.__all__) <= 20
    for name in interp.__all__:
        assert getattr(interp, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        interp.nonsense  # noqa: B018


@pytest.mark.parametrize(
    ("code", "heavy"),
    [
        ("import interp", "torch transformers pandas"),
        ("import interp; assert interp.plots.sweep and 'plots' in dir(interp)", "torch"),
        ("import interp.cli", "torch transformers pandas"),
        ("import interp; interp.load_model()", "transformers.modeling_utils torch._dynamo sympy matplotlib sklearn"),
    ],
)
def test_what_takes_long_is_imported_where_it_is_needed(code, heavy):
    code = f"{code}; import sys; sys.exit(str({set(heavy.split())} & set(sys.modules) or 0))"
    assert subprocess.run([sys.executable, "-c", code], check=False, capture_output=True).stderr == b"0\n"


def test_a_folder_of_the_same_name_does_not_hide_the_package(tmp_path):
    """As the folder of a clone does, for who works beside it."""
    (tmp_path / "interp").mkdir()
    run = subprocess.run(
        [sys.executable, "-c", "import interp; print(interp.__version__)"], cwd=tmp_path, capture_output=True, text=True
    )
    assert run.stdout.strip() == "0.2.0", run.stderr
