"""Every block of every page runs, and prints what the page says; and the reference has what the pages name."""

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest
from markdown_pages import blocks, commands, parse_command, prints

import interp
from interp import plots

pytestmark = pytest.mark.unchecked

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
RUN = [page for page in PAGES if any(blocks(DOCS / page, "python", "sh"))]
SLOW = {
    "tutorial.md",
    *(f"explanation/{name}.md" for name in ("architectures", "engine", "evidence", "replacements")),
    *(f"how-to/{name}.md" for name in ("ablate", "calibrate", "figures", "heads-that-track", "how-many-examples")),
    *(f"how-to/{name}.md" for name in ("little-memory", "long-runs", "own-checkpoint", "patch", "probe", "reproduce")),
    *(f"how-to/{name}.md" for name in ("ci", "own-task", "train", "treebank", "warnings")),
}
NOT_RUN = {
    "how-to/long-runs.md": ["it needs a Ray cluster"],
    "how-to/treebank.md": ["it needs the files of GAP"],
}
"""Why a page has a block that the tests do not run, in the page's own words."""


def documented():
    """The modules that pages of the reference are made from."""
    return [name for page in PAGES for name in re.findall(r"^::: (\S+)$", (DOCS / page).read_text(), re.MULTILINE)]


@pytest.mark.parametrize("page", [pytest.param(page, marks=[pytest.mark.slow] * (page in SLOW)) for page in RUN])
def test_a_page_prints_what_it_says(page, tmp_path, monkeypatch):
    """One page is one session: what a block defines, those behind it know."""
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    for block in blocks(DOCS / page, "python", "sh"):
        if block.not_run is None:
            prints(block, DOCS / page, namespace)


@pytest.mark.parametrize("page", RUN)
def test_commands_are_those_of_the_command_line(page):
    for block in blocks(DOCS / page, "sh"):
        for arguments in commands(block):
            parse_command(arguments)


def test_what_is_not_run_is_known_with_its_reason():
    said = {page: [block.not_run for block in blocks(DOCS / page, "python", "sh") if block.not_run] for page in PAGES}
    assert {page: reasons for page, reasons in said.items() if reasons} == NOT_RUN
    assert set(SLOW) <= set(RUN)


def test_the_reference_has_every_public_name():
    names = documented()
    assert len(names) == len(set(names))
    for name in interp.__all__:
        assert getattr(interp, name).__module__ in names, name


def test_the_reference_has_every_module_that_a_page_imports():
    pages = [ROOT / "README.md", *(DOCS / page for page in PAGES)]
    used = {
        module
        for page in pages
        for block in blocks(page, "python")
        for node in ast.walk(ast.parse(block.code))
        if isinstance(node, ast.ImportFrom) and node.module.startswith("interp")
        for module in _modules(node)
    }
    assert used
    assert used - {"interp"} <= set(documented())


def _modules(node):
    """Where the names that are imported stand: ``from interp.tasks import agreement`` names a module."""
    return {
        name if (ROOT / f"{(name := f'{node.module}.{each.name}').replace('.', '/')}.py").is_file() else node.module
        for each in node.names
    }


@pytest.mark.parametrize("module", documented())
def test_a_module_of_the_reference_says_what_it_answers(module):
    found = import_module(module)
    public = [name for name, value in vars(found).items() if getattr(value, "__module__", None) == module]
    assert found.__doc__
    assert public or module in ("interp.shapes", "interp.plots")


def test_every_figure_is_on_the_page_about_figures():
    """In its table, which says what each is of."""
    page = (DOCS / "how-to" / "figures.md").read_text()
    table = [line.split("|")[2] for line in page.splitlines() if line.startswith("| ")]
    assert set(re.findall(r"`(\w+)`", " ".join(table))) >= set(plots.__all__)
