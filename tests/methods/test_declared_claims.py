"""A dossier of declared claims: only they are tested, and corrected among themselves."""

import os
import time
from datetime import datetime

import pytest
import torch
from noun_model import noun_model, noun_task

import interp
from interp.claims.rules import NOT_PROBED
from interp.errors import InputError
from interp.runs.run import Run

pytestmark = pytest.mark.unchecked

TASKS = (noun_task(), noun_task(name="others", feature=None))
ASKED = {"probes": False, "max_group": 0}
CLAIMS = """
min_effect = 0.2

[[claim]]
head = "0.0"
task = "nouns"
verdict = "attends and causal"

[[claim]]
head = "0.1"
task = "nouns"
verdict = "attends, not causal"
"""


@pytest.fixture(scope="module")
def model():
    """Its third head looks where the first does, and writes half of what that one writes."""
    model = noun_model()
    attention = model.blocks[0].attn
    with torch.no_grad():
        for weight in (attention.W_Q, attention.W_K, attention.W_V):
            weight[2] = weight[0]
        attention.W_O[2] = attention.W_O[0] / 2
    return model


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("declared") / "claims.toml"
    path.write_text(CLAIMS, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def reports(model, file):
    whole = interp.heads(model, TASKS[:1], **ASKED, min_effect=0.2)
    return whole, interp.heads(model, TASKS, **ASKED, claims=file)


def row(report, name):
    layer, head = map(int, name.split("."))
    found = report.summary().set_index(["layer", "head", "task"])
    return found.loc[layer, head, "nouns"]


def test_only_what_is_declared_is_tested(reports):
    whole, declared = reports
    tested = declared.summary()[declared.summary()["effect_p_adjusted"].notna()]
    assert [(each.layer, each.head, each.task) for each in tested.itertuples()] == [
        (0, 0, "nouns"),
        (0, 1, "nouns"),
    ]
    assert whole.summary()["effect_p_adjusted"].notna().all()
    rest = declared.summary()[declared.summary()["excess_p_adjusted"].isna()]
    assert not rest["verdict"].isin(["tracks", "attends and causal", "causal", "opposes"]).any()


def test_it_is_corrected_for_fewer_and_measured_alike(reports):
    whole, declared = reports
    for name in ("0.0", "0.1"):
        assert row(whole, name)["effect"] == row(declared, name)["effect"]
    assert row(declared, "0.1")["excess_p_adjusted"] <= row(whole, "0.1")["excess_p_adjusted"]


def test_what_became_of_it_stands_in_the_provenance(reports):
    described = reports[1].provenance["declared"]
    assert described["file"] == "claims.toml"
    assert described["thresholds"] == {"min_effect": 0.2}
    assert [each["outcome"] for each in described["claims"]] == ["confirmed", "refuted"]
    assert reports[0].provenance["declared"] is None


def test_another_file_about_the_same_heads_is_another_question_and_later_than_what_was_measured(model, tmp_path):
    """What was kept for one file is not told of the other; and a file written after measuring is found out."""
    asked = {**ASKED, "run": tmp_path / "runs"}
    first, second = tmp_path / "first.toml", tmp_path / "second.toml"
    first.write_text(CLAIMS, encoding="utf-8")
    os.utime(first, (time.time() - 60,) * 2)
    before = interp.heads(model, TASKS[:1], **asked, claims=first).provenance["declared"]
    second.write_text(CLAIMS.replace("attends, not causal", "none"), encoding="utf-8")
    os.utime(second, (datetime.fromisoformat(before["measured"]).timestamp() + 1,) * 2)  # while the first was measured
    after = interp.heads(model, TASKS[:1], **asked, claims=second).provenance["declared"]
    assert [each["expected"] for each in before["claims"]] == ["attends and causal", "attends, not causal"]
    assert [each["expected"] for each in after["claims"]] == ["attends and causal", "none"]
    assert (before["file"], after["file"]) == ("first.toml", "second.toml")
    assert before["measured"] >= before["written"]
    assert before["measured"] <= after["measured"] < after["written"]
    again = interp.heads(model, TASKS[:1], **asked, claims=first).provenance["declared"]
    assert again == before
    anew = Run(tmp_path / "runs", fresh=True)
    seen = interp.heads(model, TASKS[:1], **{**asked, "run": anew}, claims=second).provenance["declared"]
    assert seen["measured"] < seen["written"]  # what was seen is known, though it is measured again


def test_who_is_not_declared_and_what_was_not_probed_for_is_said(reports):
    reasons = reports[1].summary().query("task == 'nouns' and verdict == 'undecided'")["reason"]
    assert reasons.str.contains("not declared, and so cannot be shown: ").any()
    assert not reasons.str.contains("chosen").any()
    assert row(reports[1], "0.0")["reason"] == NOT_PROBED


def test_thresholds_of_the_file_hold(reports):
    effects = reports[1].examples.query("task == 'nouns' and layer == 0 and head == 0")
    assert row(reports[1], "0.0")["min_effect"] == pytest.approx(0.2 * effects["base"].mean())


def test_what_cannot_be_tested_is_refused_before_anything_is_measured(model, file, tmp_path):
    with pytest.raises(InputError, match="expected claims of tasks that are measured"):
        interp.heads(model, TASKS[1:], claims=file)
    with pytest.raises(InputError, match="max-T"):
        interp.heads(model, TASKS, claims=file, correction="fdr")
    with pytest.raises(InputError, match="claims: expected no siblings beside it"):
        interp.heads(model, TASKS, claims=file, siblings=[noun_model()])
    other = tmp_path / "claims.toml"
    other.write_text(CLAIMS.replace('"0.0"', '"7.2"'), encoding="utf-8")
    with pytest.raises(InputError, match=r"expected heads of the model \(0.0 to 0.2\), got 7.2"):
        interp.heads(model, TASKS, claims=other)
