"""One task that cannot be measured does not end the others; what is left out is said, with its reason."""

import json
from functools import cache
from html import unescape

import pytest
import torch
from tiny_models import random_model
from typer.testing import CliRunner

import interp
from analyses.development.development import development
from interp.claims.declared import read_claims
from interp.cli import app
from interp.errors import InputError, NotCarriedError, TaskError
from interp.interventions.engine.plan import NoRoomError
from interp.methods import ablation_looks, evidence
from interp.methods import judging as judged_models
from interp.methods.dossier import heads
from interp.methods.head_card import head_card, head_cards
from interp.methods.task_arguments import carried
from interp.model.loading import save_model
from interp.report.heads import page_of
from interp.report.html import as_page
from interp.report.words import left_out
from interp.runs.run import Run
from recipes.tokenizer import build_tokenizer

SPLIT = ("himself", "herself")
"""Words of which the tokenizer makes several tokens: the answers of ``reflexive``."""
REASON = (
    "the tokenizer can carry none of the 20 pairs (answer of more than one token: 20), such as ' herself': "
    "Ġ + h + e + r + s + e + l + f"
)
pytestmark = pytest.mark.unchecked
QUICK = {"n": 20, "probes": False, "max_group": 0, "anyway": True}


@cache
def model():
    """A model of no training, with all words of the embedded one but `SPLIT`."""
    words = [each[1:] for each in interp.load_model().tokenizer.get_vocab() if each[0] == "Ġ" and len(each) > 1]
    tokenizer = build_tokenizer(each for each in words if each not in SPLIT)
    return random_model(n_layers=1, n_heads=2, n_ctx=64, dtype=torch.float32, tokenizer=tokenizer)


@cache
def report():
    with pytest.warns(RuntimeWarning, match=r"^reflexive is left out: the tokenizer can carry none of the 20 pairs"):
        return heads(model(), ["reflexive", "agreement"], **QUICK)


def test_the_others_go_on():
    assert report().tasks["task"].tolist() == ["agreement"]
    assert report().provenance["left_out"] == {"reflexive": REASON}


def test_the_page_and_the_notebook_say_why():
    assert f"Left out: reflexive: {REASON}." in unescape(as_page(page_of(report())))
    assert f"Left out: reflexive: {REASON}." in unescape(report()._repr_html_())
    assert left_out({"model": "m"}) == []


def test_all_that_cannot_be_carried_is_an_error_with_every_reason():
    with pytest.raises(NotCarriedError, match=r"^reflexive: the tokenizer can carry none"):
        heads(model(), ["reflexive"], **QUICK)
    bytes_alone = random_model(n_ctx=64, tokenizer=build_tokenizer(["The"]))
    with pytest.raises(TaskError, match=r"^none of the 2 tasks can be measured: ioi: the tok.*; reflexive: the tok"):
        heads(bytes_alone, ["ioi", "reflexive"], **QUICK)


@pytest.mark.parametrize("name", ["agrement", "blimp:nowhere.jsonl"])
def test_what_is_wrong_with_the_question_is_an_error_before_anything_is_measured(name):
    with pytest.raises(TaskError, match=r"did you mean 'agreement'|no such file"):
        heads(model(), ["agreement", name], **QUICK)


def test_a_task_that_fails_in_the_middle_is_left_out_with_its_choosing_items(monkeypatch):
    def of_some(model, task, asked, **options):
        if task.name == "ioi":
            raise InputError("ioi: its rows are odd", "use others")
        return ablation_looks.begin(model, task, asked, **options)

    monkeypatch.setattr(judged_models, "begin", of_some)
    choosing = [carried([name], model(), n=20, seed=0, split="select")[0][0] for name in ("ioi", "agreement")]
    with pytest.warns(RuntimeWarning, match=r"^ioi is left out: its rows are odd$"):
        found = heads(model(), ["ioi", "agreement"], choose_on=choosing, **QUICK)
    assert set(found.summary()["task"]) == {"agreement"}
    assert found.provenance["left_out"] == {"ioi": "its rows are odd"}
    with pytest.raises(InputError, match=r"^ioi: its rows are odd; use others$"):
        heads(model(), ["ioi"], **QUICK)


def test_probes_that_are_refused_leave_the_other_evidence(monkeypatch):
    def refused(*_arguments, **_options):
        raise InputError("cv: nothing to train on", "give more text")

    monkeypatch.setattr(evidence, "representation", refused)
    found = heads(model(), ["agreement"], n=20, max_group=0, anyway=True)
    assert found.summary()["effect"].notna().all()
    assert found.summary()["probe"].isna().all()
    assert found.provenance["left_out"] == {"agreement, probes": "cv: nothing to train on"}


def test_an_exchange_that_is_refused_leaves_the_other_evidence(monkeypatch):
    """At the end of an hour's ablations it costs no task."""

    def refused(*_arguments, **_options):
        raise InputError("a logit difference needs answers of one token", "leave the item out")

    monkeypatch.setattr(evidence, "exchange_word", refused)
    monkeypatch.setattr(evidence, "_able", lambda *_: [(0, 0)])
    found = heads(model(), ["agreement"], n=20, probes=False, max_group=0, anyway=True)
    assert found.summary()["effect"].notna().all()
    assert set(found.summary()["exchange_state"]) == {"not testable"}
    assert found.provenance["left_out"] == {"agreement, exchange": "a logit difference needs answers of one token"}


@pytest.mark.parametrize("part", ["representation", "exchange_word", "ReferenceAttention"])
def test_memory_that_ran_out_leaves_nothing_out(part, monkeypatch):
    """The next time it may suffice: what is kept as an answer would be one for ever."""

    def full(*_arguments, **_options):
        raise NoRoomError("out of memory")

    monkeypatch.setattr(evidence, "_able", lambda *_: [(0, 0)])
    monkeypatch.setattr(evidence if hasattr(evidence, part) else ablation_looks, part, full)
    with pytest.raises(NoRoomError):
        heads(model(), ["agreement"], n=20, max_group=0, anyway=True)


def test_what_is_kept_says_what_this_question_left_out(tmp_path):
    with pytest.warns(RuntimeWarning, match="reflexive is left out"):
        one = heads(model(), ["agreement", "reflexive"], run=tmp_path, **QUICK)
    other = heads(model(), ["agreement"], run=tmp_path, **QUICK)
    assert one.provenance["run"] == other.provenance["run"]
    assert (one.provenance["left_out"], other.provenance["left_out"]) == ({"reflexive": REASON}, {})


def test_a_claim_on_a_task_that_is_left_out_is_refused(tmp_path):
    file = tmp_path / "claims.toml"
    file.write_text('[[claim]]\nhead = "0.0"\ntask = "reflexive"\nverdict = "tracks"\n')
    with (
        pytest.warns(RuntimeWarning, match="reflexive is left out"),
        pytest.raises(
            InputError, match=r"expected claims of tasks that can be measured, got one on 'reflexive', which"
        ),
    ):
        heads(model(), ["agreement", "reflexive"], claims=file, **QUICK)
    read_claims(file).require_measured({"agreement": "odd"})


def test_a_card_has_the_others_and_says_what_it_lacks(tmp_path):
    with pytest.warns(RuntimeWarning, match="reflexive is left out"):
        card = head_card(model(), "0.1", ["agreement", "reflexive"], n=20, probes=False, max_units=2)
    assert card.tasks["task"].tolist() == ["agreement"]
    assert card.provenance["left_out"] == {"reflexive": REASON}
    assert f"Left out: reflexive: {REASON}." in unescape(
        (card.save(tmp_path / "card") / "report.html").read_text("utf-8")
    )


def test_cards_of_a_report_are_of_the_tasks_in_it(monkeypatch):
    tasks, _ = carried(["agreement", "ioi"], model(), n=20, seed=0)
    lacking = heads(model(), tasks[:1], probes=False, max_group=0, anyway=True)
    lacking.provenance["left_out"]["ioi"] = "its rows are odd"
    assert head_cards(model(), tasks, lacking) == ()


def test_every_checkpoint_leaves_out_the_same(tmp_path):
    save_model(model(), tmp_path / "1")
    with pytest.warns(RuntimeWarning, match="reflexive is left out"):
        found = development({1: tmp_path / "1"}, ["agreement", "reflexive"], n=20, run=Run(tmp_path / "runs"))
    assert found.last.provenance["left_out"] == {"reflexive": REASON}


HEAD = pytest.param(["head", "0.0", "--no-probes"], marks=pytest.mark.slow)


@pytest.mark.parametrize("command", [["heads", "--no-cards", "--no-probes", "--anyway"], HEAD])
def test_the_command_line_says_what_is_left_of_each_task_before_it_begins_and_in_its_json(command, tmp_path):
    save_model(model(), tmp_path / "model")
    options = ["--task", "reflexive", "--task", "agreement", "--n", "20", "--model", str(tmp_path / "model")]
    options += ["--out", str(tmp_path / "report"), "--runs", str(tmp_path / "runs"), "--json"]
    done = CliRunner().invoke(app, [*command, *options])
    assert done.exit_code == 0, done.output
    assert done.stderr.splitlines()[:2] == [
        f"warning: reflexive is left out: {REASON}",
        "agreement: 20 units",
    ]
    assert json.loads(done.stdout)["left_out" if command[0] == "heads" else "tasks_left_out"] == {"reflexive": REASON}
    assert f"Left out: reflexive: {REASON}." in unescape((tmp_path / "report" / "report.html").read_text("utf-8"))
