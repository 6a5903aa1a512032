"""What the source never does: run text as code, open a pickle, unpack an archive, print what was not made legible."""

import ast
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.unchecked

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted(
    path for folder in ("interp", "analyses", "benchmarks", ".ci") for path in (ROOT / folder).rglob("*.py")
)
CALLS = {
    *("eval", "exec", "compile", "__import__", "builtins.eval", "builtins.exec"),
    *("pickle.load", "pickle.loads", "pickle.Unpickler", "dill.load", "dill.loads", "cloudpickle.load", "joblib.load"),
    *("cloudpickle.loads", "marshal.load", "marshal.loads", "shelve.open", "pandas.read_pickle", "numpy.loads"),
    *("yaml.load", "yaml.load_all", "yaml.full_load", "yaml.unsafe_load"),
    *("os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput", "tempfile.mktemp"),
    *("shutil.unpack_archive", "markupsafe.Markup", "jinja2.utils.markupsafe.Markup"),
}
METHODS = {"extractall", "read_pickle", "to_pickle"}
OPTIONS = {"trust_remote_code": False, "allow_pickle": False, "shell": False}
"""Each may have this value alone, where it is given."""
ALLOWED = {("interp/runs/pickling.py", "pickle.loads")}
"""Bytes that this program pickled itself, on their way between its processes."""
PRINTING = {"print", "typer.echo", "typer.secho", "click.echo", "sys.stdout.write", "sys.stderr.write"}


def forbidden(tree):
    """What is called that must not be, in the order of the source."""
    names = imported(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield from of_call(node, dotted(node.func, names))
        elif isinstance(node, ast.Dict):
            pairs = [
                (key.value, value)
                for key, value in zip(node.keys, node.values, strict=True)
                if isinstance(key, ast.Constant)
            ]
            yield from of_options(pairs)


def of_call(node, name):
    options = {keyword.arg: keyword.value for keyword in node.keywords}
    if name in CALLS:
        yield name
    if isinstance(node.func, ast.Attribute) and node.func.attr in METHODS:
        yield node.func.attr
    if name == "torch.load" and not is_constant(options.get("weights_only"), True):
        yield "torch.load without weights_only=True"
    yield from of_options(options.items())


def of_options(pairs):
    for name, value in pairs:
        if name in OPTIONS and not is_constant(value, OPTIONS[name]):
            yield name


def is_constant(node, value):
    return isinstance(node, ast.Constant) and node.value is value


def imported(tree):
    """What each imported name stands for, wherever it is imported."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {each.asname: each.name for each in node.names if each.asname}
        elif isinstance(node, ast.ImportFrom):
            names |= {each.asname or each.name: f"{node.module}.{each.name}" for each in node.names}
    return names


def dotted(node, names):
    """A function's full name; empty where it is no plain name."""
    if isinstance(node, ast.Name):
        return names.get(node.id, node.id)
    if isinstance(node, ast.Attribute):
        owner = dotted(node.value, names)
        return f"{owner}.{node.attr}" if owner else ""
    return ""


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_forbidden_is_called(path):
    name = path.relative_to(ROOT).as_posix()
    found = [each for each in forbidden(ast.parse(path.read_text())) if (name, each) not in ALLOWED]
    assert found == []


def test_what_is_allowed_is_there():
    for name, call in ALLOWED:
        assert call in forbidden(ast.parse((ROOT / name).read_text()))


def test_only_what_is_made_legible_is_printed():
    printing = set()
    for path in (path for path in SOURCES if path.is_relative_to(ROOT / "interp")):
        tree = ast.parse(path.read_text())
        names = imported(tree)
        called = {dotted(node.func, names) for node in ast.walk(tree) if isinstance(node, ast.Call)}
        # Rich reads plain text as its markup.
        printing |= {path.relative_to(ROOT).as_posix() for each in called & (PRINTING | {"rich.text.Text"}) if each}
    # __main__ speaks by itself only where what the others are made of is missing; a page's cells are made legible.
    assert printing == {
        "interp/__main__.py",
        "interp/cli/messages.py",
        "interp/cli/terminal.py",
        "interp/report/terminal.py",
    }


def test_templates_mark_nothing_but_their_own_files_as_safe():
    for path in (ROOT / "interp" / "report" / "templates").glob("*.html"):
        source = path.read_text()
        own = ("{{ script|safe }}", "{{ styles|safe }}") if path.name == "layout.html" else ()
        for each in own:
            assert each in source
            source = source.replace(each, "")
        assert not re.search(r"\|\s*safe", source), path.name
        assert "autoescape" not in source, path.name


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("eval('1')", "eval"),
        ("from builtins import exec as run\nrun('1')", "builtins.exec"),
        ("import pickle as p\np.load(file)", "pickle.load"),
        ("from pickle import loads\nloads(text)", "pickle.loads"),
        ("def f():\n    import yaml\n    return yaml.load(file)", "yaml.load"),
        ("import torch\ntorch.load(file)", "torch.load without weights_only=True"),
        ("import torch as t\nt.load(file, weights_only=False)", "torch.load without weights_only=True"),
        ("from torch import load\nload(file, weights_only=wanted)", "torch.load without weights_only=True"),
        ("AutoModel.from_pretrained(name, trust_remote_code=True)", "trust_remote_code"),
        ("load(**{'trust_remote_code': asked})", "trust_remote_code"),
        ("run(command, shell=True)", "shell"),
        ("np.load(file, allow_pickle=True)", "allow_pickle"),
        ("zipfile.ZipFile(file).extractall(folder)", "extractall"),
        ("pd.read_pickle(file)", "read_pickle"),
    ],
)
def test_what_is_forbidden_is_found(source, found):
    assert found in forbidden(ast.parse(source))


@pytest.mark.parametrize(
    "source",
    ["model.eval()", "torch.load(file, weights_only=True)", "load(name, trust_remote_code=False)", "pickle.dumps(x)"],
)
def test_what_is_harmless_is_not(source):
    assert list(forbidden(ast.parse(source))) == []
