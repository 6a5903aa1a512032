"""The command line with its work faked: what is called, printed and left behind is what the tests see."""

from types import SimpleNamespace

import pytest
from fake_evidence import REPORT, SUMMARY, effects
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
        return SimpleNamespace(name=name, metric="logit_difference")

    def heads(_model, tasks, *, progress, **options):
        noted["heads"] = ([task.name for task in tasks], options)
        progress(1, 2)
        progress(2, 2)
        return REPORT

    def ablate(_model, task, *, progress, **options):
        noted["ablate"] = (task.name, options)
        progress(1, 1)
        return SimpleNamespace(frame=effects(), summary=lambda: SUMMARY)

    monkeypatch.setattr("interp.model.loading.load_model", load_model)
    monkeypatch.setattr("interp.tasks.catalogue.load_task", load_task)
    monkeypatch.setattr("interp.methods.dossier.heads", heads)
    monkeypatch.setattr("interp.methods.ablation.ablate", ablate)
    return noted


@pytest.fixture
def run():
    """The command line with these arguments."""
    return lambda *arguments: CliRunner().invoke(app, [str(each) for each in arguments])


@pytest.fixture
def fail_with(monkeypatch):
    """Makes what stands at `target` raise `error`."""

    def set_up(target, error):
        def fail(*_arguments, **_options):
            raise error

        monkeypatch.setattr(target, fail)

    return set_up
