"""The command line with its work faked: what is called, printed and left behind is what the tests see."""

from types import SimpleNamespace

import pytest
from fake_evidence import REPORT
from fake_sweeps import a_task, ablation, patching
from made_up_card import made_up_card
from typer.testing import CliRunner

from interp.cli import app


@pytest.fixture(autouse=True)
def calls(monkeypatch):
    """Stands in for the model, the tasks and the methods, and notes how they were called."""
    noted = {}

    def load_model(name, **options):
        noted["model"] = (name, options)
        return SimpleNamespace(tokenizer="tokenizer", cfg=SimpleNamespace(n_ctx=64))

    def load_task(name, **options):
        noted.setdefault("tasks", []).append((name, options))
        return a_task(name)

    def heads(_model, tasks, asked, *, progress, **more):
        noted["heads"] = ([task.name for task in tasks], asked, more)
        progress(1, 2)
        progress(2, 2)
        return REPORT

    def head_cards(_model, tasks, _report, *, memory_budget, run, progress):
        noted["cards"] = ([task.name for task in tasks], run, memory_budget)
        progress(1, 1)
        return (made_up_card(),)

    def ablate(_model, task, asked, *, progress, run):
        noted["ablate"] = (task.name, asked, run)
        progress(1, 1)
        heads = asked.heads or [(layer, head) for layer in range(2) for head in range(2)]
        layers, numbers = (sorted(set(each)) for each in zip(*heads, strict=True))
        metric = asked.metric or "logit_difference"
        return ablation({"layer": layers, "head": numbers}, metric=metric, replacement=asked.replacement)

    def patch(_model, task, asked, *, progress, run):
        noted["patch"] = (task.name, asked, run)
        progress(1, 1)
        values = {"layer": range(2), "head": range(2), "pos": ("BOS", "related", "last")}
        return patching({axis: values[axis] for axis in asked.by}, direction=asked.direction)

    monkeypatch.setattr("interp.model.loading.load_model", load_model)
    monkeypatch.setattr("interp.tasks.catalogue.load_task", load_task)
    monkeypatch.setattr("interp.methods.dossier.heads", heads)
    monkeypatch.setattr("interp.methods.head_card.head_cards", head_cards)
    monkeypatch.setattr("interp.methods.ablation.ablate", ablate)
    monkeypatch.setattr("interp.methods.patching.patch", patch)
    return noted


@pytest.fixture
def real(calls, monkeypatch):
    """Takes the fakes away; tasks have fewer references, which their numbers hardly show."""
    assert calls == {}
    monkeypatch.undo()
    monkeypatch.setattr("interp.tasks.catalogue.REFERENCES", 200)


@pytest.fixture
def run():
    """The command line with these arguments."""
    return lambda *arguments: CliRunner().invoke(app, [str(each) for each in arguments])


@pytest.fixture
def refused(run):
    """Bad input or usage is one line on standard error, exit code 2, and nothing on standard output; the line."""

    def given(*arguments):
        result = run(*arguments)
        assert result.exit_code == 2, result.output
        assert result.stderr.startswith("error: ")
        assert result.stderr.count("\n") == 1
        assert result.stdout == ""
        return result.stderr.removeprefix("error: ")

    return given


@pytest.fixture
def fail_with(monkeypatch):
    """Makes what stands at `target` raise `error`."""

    def set_up(target, error):
        def fail(*_arguments, **_options):
            raise error

        monkeypatch.setattr(target, fail)

    return set_up
