"""Modules, functions, files, commands and options that a page names in its text are there."""

import inspect
import re
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import get_args

import pytest
import typer
from markdown_pages import FENCE
from typer.core import TyperGroup

from interp.cli import app
from interp.interventions.intervention import WRITTEN
from interp.methods.erasure.readings import SITES as ERASED
from interp.model.loading.huggingface import families
from interp.model.sites import SITES

pytestmark = pytest.mark.unchecked

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "benchmarks/RESULTS.md")),
    *sorted(
        path for folder in ("docs", "analyses", "forerunners", "recipes") for path in (ROOT / folder).rglob("*.md")
    ),
]
FOLDERS = ("interp", "tests", "docs", "analyses", "forerunners", "recipes", "benchmarks", "notebooks")
SCRIPTS = {path.name for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")}
CODE = re.compile(r"`([^`\n]+)`")
LINKED = re.compile(r"\]\[(interp[\w.]*)\]")
DOTTED = re.compile(r"(?P<name>interp(?:\.\w+)+)(?:\((?P<arguments>.*)\))?")
KEYWORD = re.compile(r"(\w+)=")
FILE = re.compile(rf"(?:python )?((?:{'|'.join(FOLDERS)})/[\w./-]*)(?: .*)?")
SCRIPT = re.compile(r"(\w+\.py)(?: .*)?")
OPTION = re.compile(r"--[a-z][a-z-]*")
OF_OTHERS = {"--help", "--install-completion"}
"""Options that every command has, and no command lists."""


def text_of(page):
    """A page without its blocks of code."""
    return FENCE.sub("", page.read_text())


def commands_below(command, name=""):
    """Every command by its name, groups and the program itself among them."""
    yield name, command
    if isinstance(command, TyperGroup):
        for each, below in command.commands.items():
            yield from commands_below(below, f"{name} {each}".strip())


COMMANDS = dict(commands_below(typer.main.get_command(app)))


def options_of(command):
    return {each for parameter in command.params for each in (*parameter.opts, *parameter.secondary_opts)}


def resolved(dotted):
    """What a dotted name stands for; an error names what is not there, or a package that holds nothing itself."""
    parts = dotted.split(".")
    for n in range(len(parts), 0, -1):
        try:
            found = import_module(".".join(parts[:n]))
        except ModuleNotFoundError:
            continue
        for each in parts[n:]:
            found = getattr(found, each)
        if inspect.ismodule(found) and not Path(found.__file__).read_text():
            raise AttributeError(f"{dotted} is a folder of modules, from which nothing can be imported")
        return found
    raise ModuleNotFoundError(dotted)


def wrong_in(text):
    """By each name that is wrong, what is."""
    return {code: found for code in CODE.findall(text) if (found := wrong_of(code)) is not None}


def wrong_of(code):
    """What is not there of the names in some code; None where all is, or it names nothing of ours."""
    if dotted := DOTTED.fullmatch(code):
        return wrong_call(dotted["name"], dotted["arguments"])
    if file := FILE.fullmatch(code):
        return None if "NAME" in file[1] or (ROOT / file[1]).exists() else f"no file {file[1]}"
    if script := SCRIPT.fullmatch(code):
        return None if script[1] in SCRIPTS else f"no file is called {script[1]}"
    if code.startswith("interp ") or code.startswith("--"):
        return wrong_command(code)
    return None


def wrong_call(name, arguments):
    try:
        found = resolved(name)
    except (ModuleNotFoundError, AttributeError) as error:
        return str(error)
    keywords = set(KEYWORD.findall(arguments or ""))
    unknown = keywords - taken_by(found) if keywords else set()
    return f"{name} does not take {', '.join(unknown)}" if unknown else None


def taken_by(function):
    """The names of a call's arguments, and of the fields of its options."""
    parameters = inspect.signature(function).parameters
    kinds = get_args(parameters["options"].annotation) if "options" in parameters else ()
    return {*parameters, *(each.name for kind in kinds if is_dataclass(kind) for each in fields(kind))}


def wrong_command(code):
    words = code.split()
    options = set(OPTION.findall(code)) - OF_OTHERS
    if words[0] != "interp":
        return wrong_options(options, set().union(*map(options_of, COMMANDS.values())), "any command")
    if "COMMAND" in words:
        return None
    named = [word for word in words[1:3] if re.fullmatch("[a-z-]+", word) and not word.startswith("-")]
    name = " ".join(named if " ".join(named) in COMMANDS else named[:1])
    if name not in COMMANDS or (len(named) > 1 and isinstance(COMMANDS[name], TyperGroup)):
        return f"no command {code}"
    return wrong_options(options, options_of(COMMANDS[name]), f"interp {name}")


def wrong_options(named, known, what):
    return f"{what} does not take {', '.join(named - known)}" if named - known else None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_what_a_page_names_is_there(page):
    text = text_of(page)
    linked = {name: found for name in LINKED.findall(text) if (found := wrong_call(name, None)) is not None}
    assert not wrong_in(text) | linked


def test_scripts_that_are_named_are_there():
    """In backticks, by the end of their path, in any file; but those of TransformerLens' tests."""
    files = [
        file for folder in FOLDERS for file in (ROOT / folder).rglob("*") if file.suffix in (".py", ".toml", ".ipynb")
    ]
    parts = [file.relative_to(ROOT).parts for file in files]
    ends = {"/".join(each[n:]) for each in parts for n in range(len(each))}
    named = re.compile(r"`(?:python )?(?!(?:unit|integration|acceptance)/)([\w/-]+\.py)\b")
    found = {(str(file), name) for file in (*files, *PAGES) for name in named.findall(file.read_text())}
    assert len(found) > 100
    assert [
        each for each in found if each[1] not in ends and not {"NAME", "FILE"} & set(re.split(r"\W", each[1]))
    ] == []


def listed(path, pattern):
    """The names in what a pattern finds in a file: those in backticks, or else between commas."""
    found = re.search(pattern, (ROOT / path).read_text(), re.DOTALL)[1]
    return re.findall(r"`(\w+)`", found) or re.split(r", | and ", found.replace(" (Pythia)", ""))


def test_sites_and_families_are_listed_whole():
    sites = listed("docs/explanation/residual-stream.md", r"## Sites\n.*?\|---\|\n(.*?)\n\n")
    axes = {"batch", "pos", "head", "d_model", "d_head", "d_mlp", "W_O"}
    assert set(sites) - axes == set(SITES)
    assert sorted(listed("docs/how-to/patch.md", r"patch at (.*?)\. ")) == sorted(WRITTEN)
    assert sorted(listed("interp/options.py", r"What is patched: (.*?)\.\n")) == sorted(WRITTEN)
    assert sorted(listed("interp/options.py", r"site: (``z``, head by head.*?)\.\n")) == sorted(ERASED)
    page = (ROOT / "docs/explanation/architectures.md").read_text()
    rows = [
        tuple(row.strip(" |").split(" | "))
        for row in re.findall(r"^\| .* \| `\w+For\w+` .*|^\| .*LMHead.*", page, re.M)
    ]
    table = families()
    expected = zip(table["family"], "`" + table["architecture"] + "`", table["about"], strict=True)
    assert [(*row, "")[:3] for row in rows] == list(expected)
    n = len(table)
    for where, said in (
        ("docs/how-to/own-checkpoint.md", f"[{n} families]"),
        ("interp/model/loading/load.py", f"of {n} families"),
    ):
        assert said in (ROOT / where).read_text()
    counts = re.findall(r"(\d+) families", (ROOT / "README.md").read_text())
    assert counts == 3 * [str(n)]


def names_in(text):
    """The dotted names in some text; one that begins with a dot has the parent of the full name before it."""
    last = ""
    for name in re.findall(r"`((?:interp|analyses|forerunners|recipes)?(?:\.\w+)+)`", text):
        last = last.rpartition(".")[0] + name if name.startswith(".") else name
        yield last


def is_there(name):
    try:
        return resolved(name) is not None
    except (ModuleNotFoundError, AttributeError):
        return False


def test_the_changelog_says_where_names_went():
    text = (ROOT / "CHANGELOG.md").read_text()
    moved, gone = text[text.index("**Modules**") : text.index("\nFunctions that")].split("Gone are:")
    rows = [row.split("|")[1:3] for row in moved.splitlines() if row.startswith("| `")]
    assert len(rows) > 40
    assert [name for _, new in rows for name in names_in(new) if not is_there(name)] == []
    assert [name for old in (*(old for old, _ in rows), gone) for name in names_in(old) if is_there(name)] == []


@pytest.mark.parametrize("module", sorted((ROOT / "interp").rglob("*.py")), ids=lambda path: path.stem)
def test_what_a_docstring_names_is_there(module):
    assert not wrong_in(module.read_text())


@pytest.mark.parametrize(
    "code",
    [
        "interp.nothing",
        "interp.model.nothing.train",
        "interp.residual",
        "interp.patch(sites=)",
        "interp/model/nothing.py",
        "python analyses/nothing/run.py --out out",
        "nothing.py",
        "interp nothing",
        "interp heads --nothing",
        "interp model nothing",
        "--nothing FILE",
    ],
)
def test_what_is_not_there_is_found(code):
    assert wrong_of(code)
