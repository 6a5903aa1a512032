"""`interp tasks`, `interp doctor`, help and version: what can be asked, and is all here?"""

import json
import subprocess
import sys
from itertools import product

import pytest
from tiny_models import random_gpt2
from written_gguf import llama, save

from interp import load_model
from interp.cli.loading import tokenizer_named
from interp.doctor.examine import Finding, Look
from interp.tasks import catalogue
from interp.tasks.catalogue import TASKS, carried_by, list_tasks
from recipes.tokenizer import build_tokenizer

WELL = Look("b", lambda: [Finding("b", "well", "fine")], "")
WRONG = Look("c", lambda: [Finding("c", "wrong", "is broken", "mend it")], "")


def test_tasks_lists_what_can_be_loaded(run):
    names = list(list_tasks()["name"])
    listed = run("tasks")
    assert listed.exit_code == 0
    assert all(name in listed.stdout for name in names)
    assert [task["name"] for task in json.loads(run("tasks", "--json").stdout)["tasks"]] == names


@pytest.mark.parametrize("arguments", ["", "model"])
def test_no_command_at_all_shows_the_help(run, arguments):
    result = run(*arguments.split())
    assert "Usage: " in result.output
    assert "error:" not in result.output


def test_version(run):
    from importlib.metadata import version

    assert run("--version").stdout == f"interp {version('interp')}\n"


def test_python_m_interp_is_the_same_command(run):
    result = subprocess.run([sys.executable, "-m", "interp", "--version"], capture_output=True, text=True, check=True)
    assert result.stdout == run("--version").stdout


def test_help_loads_nothing_heavy(run):
    script = """if True:
        import sys
        from interp.cli import app
        try:
            app(["--help"])
        except SystemExit:
            pass
        print(sorted({"torch", "pandas", "matplotlib", "transformers", "scipy"} & set(sys.modules)))
    """
    printed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert printed.splitlines()[-1] == "[]"


@pytest.fixture
def looks(monkeypatch):
    return lambda *looks: monkeypatch.setattr("interp.doctor.examine.LOOKS", looks)


def test_all_is_well(run, looks):
    looks(WELL)
    result = run("doctor")
    assert (result.exit_code, result.stdout) == (0, "ok     b  fine\n\nAll is well.\n")
    assert result.stderr.startswith("next: interp heads --out report")


def test_what_is_wrong_is_exit_code_1_and_what_to_do(run, looks):
    looks(WELL, WRONG)
    result = run("doctor")
    assert result.exit_code == 1
    assert "WRONG  c  is broken\n          -> mend it\n" in result.stdout
    assert result.stderr == ""


def test_json(run, looks):
    looks(WELL, WRONG)
    result = run("doctor", "--json")
    printed = json.loads(result.stdout)
    assert result.exit_code == 1
    assert not printed["well"]
    assert printed["checks"][1] == {"what": "c", "state": "wrong", "says": "is broken", "todo": "mend it"}
    assert printed["seconds"] >= 0


WITHOUT = """if True:
    import sys
    class Missing:
        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] in {missing}:
                raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
    sys.meta_path.insert(0, Missing())
    sys.argv = ["interp", *{arguments}]
    from interp.__main__ import main
    main()
"""


def without(missing, *arguments):
    """The command where these libraries cannot be imported."""
    code = WITHOUT.format(missing=set(missing), arguments=list(arguments))
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("missing", [("torch", "pandas", "numpy"), ("rich", "typer", "packaging", "torch")])
def test_it_looks_without_what_it_looks_for(missing):
    done = without(missing, "doctor")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "ok     model default" in done.stdout
    assert done.stdout.splitlines()[-1].startswith(f"{done.stdout.count('WRONG')} wrong: ")


def test_other_commands_say_what_is_missing_in_a_line():
    done = without(["typer"], "heads", "--out", "r")
    assert done.returncode == 1
    why = "(No module named 'typer')"
    assert done.stderr == f"error: the command line cannot begin {why}; `interp doctor` says what to do\n"
    done = without(["pandas"], "tasks")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: pandas cannot be imported (No module named 'pandas'); see interp doctor\n"


def test_what_tokenizers_carry_is_a_row_for_each_and_each_task(run, tmp_path, monkeypatch):
    """Of some tasks: each draws its thousand references."""
    some = {name: catalogue._GENERATED[name] for name in ("agreement", "ioi", "capitals")}
    monkeypatch.setattr(catalogue, "_GENERATED", some)
    load_model().tokenizer.save_pretrained(tmp_path / "alone")
    asked = ("tasks", "--tokenizer", "books", "--tokenizer", tmp_path / "alone", "--n", 3)
    rows = json.loads(run(*asked, "--json").stdout)["carried"]
    alone = str(tmp_path / "alone")
    assert [(row["tokenizer"], row["task"]) for row in rows] == list(product(("books", alone), some))
    for row in rows:
        assert row["drawn"] == row["units"] + sum(row["replaced"].values())
        assert (row["units"] > 0) == (1 <= row["clusters"] <= 3)
    ours = [row for row in rows if row["task"] in TASKS]  # the others are of English that it has not read
    assert {row["units"] for row in ours} == {3}
    assert {len(row["replaced"]) > 0 for row in ours if row["tokenizer"] == "books"} == {True}
    assert [row["replaced"] for row in ours if row["tokenizer"] == alone] == [{}] * 2
    printed = run("tasks", "--tokenizer", alone, "--n", 3).stdout
    assert len([line for line in printed.splitlines() if "ioi" in line]) == 1


@pytest.mark.parametrize("name", ["ioi", "agreement"])
def test_where_a_tokenizer_carries_all_words_none_is_replaced(monkeypatch, name):
    """With fewer references than a task has, not all lengths would be there, and other units would be drawn."""
    monkeypatch.setattr(catalogue, "_GENERATED", {name: catalogue._GENERATED[name]})
    (found,) = carried_by(load_model().tokenizer).to_dict("records")
    assert (found["units"], found["drawn"], found["replaced"]) == (200, 200, {})


def test_a_tokenizer_in_a_gguf_file_and_one_without_a_model(tmp_path):
    save(tmp_path / "tiny.gguf", llama())
    (tmp_path / "bert").mkdir()
    (tmp_path / "bert" / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the"]))
    assert tokenizer_named(str(tmp_path))[1] == 64
    tokenizer, n_ctx = tokenizer_named(str(tmp_path / "bert"))
    assert (tokenizer.cls_token, n_ctx) == ("[CLS]", None)


def test_a_tokenizer_that_carries_nothing_is_a_row_of_zeros(run, tmp_path):
    build_tokenizer(["The"]).save_pretrained(tmp_path)
    rows = json.loads(run("tasks", "--tokenizer", tmp_path, "--n", 2, "--json").stdout)["carried"]
    found = [(row["units"], row["clusters"]) for row in rows if row["task"] in TASKS]  # others are of single bytes
    assert found == [(0, 0)] * len(TASKS)


def test_a_folder_without_a_tokenizer_and_a_number_without_one_are_refused(refused, tmp_path):
    assert "expected it, model.safetensors and a tokenizer; the folder is empty" in refused(
        "tasks", "--tokenizer", tmp_path
    )
    random_gpt2().save_pretrained(tmp_path / "gpt2")
    where = tmp_path / "gpt2"
    assert "expected a tokenizer, such as a tokenizer.json, found none; save" in refused("tasks", "--tokenizer", where)
    assert "--n: expected --tokenizer beside it" in refused("tasks", "--n", 3)
