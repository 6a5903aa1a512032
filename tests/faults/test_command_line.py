"""Any arguments, in any order: exit code 0 or 2, one line that says why, and nothing is left behind."""

import json
import random
import re
from collections import Counter

import pytest
import torch
from cases import LONGEST, TookTooLong, bounded, files_of
from damage import ODD_FIELDS
from given import examples
from hypothesis import given
from hypothesis import strategies as st
from tiny_models import random_model, word_tokenizer
from typer.main import get_command
from typer.testing import CliRunner

from interp.cli import app
from interp.doctor.examine import LOOKS
from interp.model.loading import save_model

ONE_LINE = re.compile(r"error: [^\n]+\n\Z")
LEFT_OUT = ("--help", "--version", "--description-lengths", "--no-description-lengths", "--threads", "--text")
"""What prints something else, or leads on to a file that is read to its end."""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with files of every kind, not one of which is what it should be, and nowhere else to write to."""
    for name in ("damaged", "no_model"):
        (tmp_path / name).mkdir()
    save_model(random_model(dtype=torch.float32, tokenizer=word_tokenizer()), tmp_path / "damaged")
    weights = tmp_path / "damaged" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-7])
    for name in FILES:
        (tmp_path / name).write_bytes(random.Random(name).randbytes(200))
    (tmp_path / "no_model" / "manifest.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("interp.doctor.examine.LOOKS", LOOKS[:1])
    return tmp_path


def commands(command=None, path=()):
    command = command or get_command(app)
    if not hasattr(command, "commands"):
        return [(path, command)]
    return [found for name, each in command.commands.items() for found in commands(each, (*path, name))]


COMMANDS = {" ".join(path): (path, command) for path, command in commands()}
FILES = ("pairs.jsonl", "bank.conllu", "recipe.toml", "ckpt.pt", "model.bin")
NAMES = ("damaged", "no_model", "nowhere", "./nowhere", "/nowhere/at/all", ".", *FILES)
TASKS = ("blimp:pairs.jsonl", "agreement:bank.conllu", "gap", "agreement", "blimp:", "winobias:nowhere", ":", "hub:x")
WORDS = ("z", "resid_pre", "layer,head", "0", "1", "2.2", "-1", "mean", "cpu", "cuda", "float32", "1GB", "9" * 400)
ARGUMENTS = (*NAMES, *TASKS, *WORDS, *(field for field in ODD_FIELDS if "\0" not in field))


def drawn(rng, path, command):
    """A command with some of its options, and often one that it needs a value for, or does not know."""
    arguments = list(path)
    for each in command.params:
        names = [name for name in each.opts if name not in LEFT_OUT]
        needed = each.required or each.param_type_name == "argument"
        if names and rng.random() < (0.9 if needed else 0.2):
            value = rng.choice(_likely(each.name) if rng.random() < 0.7 else ARGUMENTS)
            arguments += [] if each.param_type_name == "argument" else [rng.choice(names)]
            arguments += [] if getattr(each, "is_flag", False) else [value]
    if rng.random() < 0.1:
        odd = rng.choice(("--nonsense", "", "-", "--", "--out", *ARGUMENTS))
        arguments.insert(rng.randrange(len(arguments) + 1), odd)
    return [*arguments, *_nothing_to_compute(command)]


def _likely(name):
    if name in ("task", "tasks"):
        return TASKS
    if name in ("out", "destination"):
        return ("new", "new/deep", "damaged", "pairs.jsonl", "no_model/new")
    return NAMES if name in ("model", "source", "data", "store", "choose_on", "config", "folder") else WORDS


def _nothing_to_compute(command):
    """The last option counts: whatever else is right, the model is none, or the place is taken."""
    options = {name for each in command.params for name in each.opts}
    return next((list(end) for end in (("--model", "damaged"), ("--out", "damaged")) if end[0] in options), [])


def assert_refused_or_done(result, arguments):
    shown = f"{arguments!r:.300}: {result.exception!r:.300} {result.output[-300:]}"
    assert result.exception is None or isinstance(result.exception, SystemExit), shown
    assert result.exit_code in (0, 2), shown
    assert "Traceback" not in result.output, shown
    if result.exit_code:
        assert ONE_LINE.search(result.stderr), shown
        if "--json" in arguments:
            assert json.loads(result.stdout)["exit_code"] == result.exit_code, shown
        else:
            assert result.stdout == "", shown


DIGITS, LETTERS = "9" * 5_000, "a" * 100_000


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (f"ablate --task agreement --memory {DIGITS}", "expected bytes, or a number with a unit"),
        (f"patch --task agreement --memory {DIGITS}GB", "expected bytes, or a number with a unit"),
        (f"activations collect --task agreement --site z --out new --layer {DIGITS}", "'--layer'"),
        (f"ablate --task agreement --n {DIGITS}", "--n"),
        (f"heads --out new --task {LETTERS}", "unknown task"),
        (f"model info --model {LETTERS}", "no name of a model"),
    ],
    ids=lambda text: text[:30],
)
def test_arguments_of_thousands_of_characters(arguments, said, here):
    result = CliRunner().invoke(app, arguments.split())
    assert_refused_or_done(result, arguments)
    assert result.exit_code == 2
    assert said in result.stderr
    assert len(result.stderr) < 2 * LONGEST
    assert not (here / "new").exists()


@pytest.mark.parametrize("n", [8, pytest.param(40, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", COMMANDS)
def test_any_arguments(name, n, here, record_property):
    path, command = COMMANDS[name]
    before, codes = files_of(here), Counter()

    @examples(n)
    @given(st.randoms(use_true_random=False))
    def check(rng):
        arguments = drawn(rng, path, command)
        try:
            with bounded(20):
                result = CliRunner().invoke(app, arguments)
        except TookTooLong:
            pytest.fail(f"hangs: {arguments!r:.300}")
        assert_refused_or_done(result, arguments)
        codes["refused" if result.exit_code else "read"] += 1
        assert files_of(here) == before, f"{arguments!r:.300} left something behind"
        assert not [path.name for path in here.iterdir() if "partial" in path.name or path.name.startswith("new")]

    check()
    record_property("malformed", dict(codes))
    assert codes.total() > 0
