"""What the embedded model is claimed to do, measured on it."""

import re

import numpy as np
import pytest

import interp
from interp.methods.behaviour import behaviour
from interp.model.loading import embedded_models
from interp.model.loading.load import model_folder
from interp.tasks.catalogue import TASKS
from recipes.recipe import read_recipe
from recipes.text import PARADIGMS

pytestmark = pytest.mark.unchecked

MEGABYTE = 1_000_000
SYNTAX = ("coreference", "reflexive")
FAMILY = ("default", "sibling-1", "sibling-2")


@pytest.fixture(scope="module")
def model():
    return interp.load_model()


@pytest.fixture(scope="module")
def report(model):
    return interp.heads(model)


def tracking(report, task):
    frame = report.summary()
    return frame[(frame["task"] == task) & frame["verdict"].isin(["tracks", "attends and causal"])]


def test_weights_and_tokenizers_are_small():
    files = [path for name in FAMILY for path in model_folder(name).iterdir()]
    assert sum(path.stat().st_size for path in files) <= 10 * MEGABYTE
    assert embedded_models()[0] == "default"


def test_the_card_is_about_these_weights(model):
    card = (model_folder("default") / "README.md").read_text()
    assert model.hash in card
    recipe = read_recipe("default")
    assert f"{recipe.training.steps:,} steps" in card
    assert f"(seed {recipe.seed})" in card
    for name in FAMILY:
        assert interp.load_model(name).hash in card


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_it_can_do_every_task(report, task):
    row = report.tasks.set_index("task").loc[task]
    assert row["base_low"] > 0
    assert row["accuracy_base"] > 0.97


@pytest.mark.slow
@pytest.mark.parametrize("task", ["agreement", "ioi", "induction"])
def test_a_head_attends_and_is_causal(report, task):
    found = tracking(report, task)
    assert len(found) >= 1
    assert (found["effect_high"] < 0).all()


@pytest.mark.slow
def test_a_head_attends_and_is_causal_for_coreference_or_reflexives(report):
    assert any(len(tracking(report, task)) for task in SYNTAX)


@pytest.mark.slow
@pytest.mark.parametrize("task", ["agreement", *SYNTAX])
def test_a_head_tracks_it_by_all_kinds_of_evidence(report, task):
    """It looks, matters, carries the feature, and another related word, for it alone, turns the answer."""
    found = report.summary().query("task == @task and verdict == 'tracks'")
    assert len(found) >= 1
    assert (found["exchange_high"] < -found["min_exchange"]).all()
    assert (found["tracks_p_adjusted"] <= 0.05).all()


@pytest.mark.slow
@pytest.mark.parametrize("task", ["ioi", "induction"])
def test_a_head_tracks_what_has_no_feature(report, task):
    found = report.summary().query("task == @task and verdict == 'tracks'")
    assert len(found) >= 1
    assert (found["exchange_state"] == "drop").all()


@pytest.mark.slow
def test_features_that_can_be_read_are_mostly_not_used(report):
    read = report.summary().query("representation == 'carried'")
    unused = read[read["verdict"] == "encodes, unused"]
    assert len(unused) > 2 * (len(read) - len(unused)) > 0
    for replacement in ("effect", "mean_effect"):
        assert (unused[replacement].abs() < unused["min_effect"]).all()


@pytest.mark.slow
def test_the_agreement_head_does_not_matter_for_induction(report):
    best = tracking(report, "agreement").nsmallest(1, "effect").iloc[0]
    frame = report.summary()
    same = frame[(frame["layer"] == best["layer"]) & (frame["head"] == best["head"]) & (frame["task"] == "induction")]
    (induction,) = same.to_dict("records")
    minimum = induction["min_effect"]
    assert -minimum < induction["effect_low"] < induction["effect_high"] < minimum


@pytest.mark.slow
def test_nothing_is_found_where_right_and_wrong_are_shuffled(model):
    """The same heads on agreement items whose answers were swapped in a random half: no claim."""
    import dataclasses

    task = interp.load_task("agreement", n=100, seed=3, tokenizer=model.tokenizer)
    coin = np.random.default_rng(0)

    def shuffled(unit):
        if coin.random() < 0.5:
            return unit
        swap = [dataclasses.replace(each, right=each.wrong, wrong=each.right) for each in unit.examples]
        return dataclasses.replace(unit, item=swap[0], counterfactual=swap[1])

    permuted = dataclasses.replace(task, units=tuple(shuffled(unit) for unit in task.units))
    verdicts = set(interp.heads(model, [permuted], anyway=True).summary()["verdict"])
    assert verdicts <= {"none", "undecided", "attends, not causal"}


CHECKED = ("regular_plural_subject_verb_agreement_1", "determiner_noun_agreement_1", "anaphor_number_agreement")
"""One of each kind; the others are slow."""


@pytest.mark.parametrize(
    "paradigm", [pytest.param(each, marks=[pytest.mark.slow] * (each not in CHECKED)) for each in PARADIGMS]
)
def test_published_minimal_pairs(model, data_dir, paradigm):
    name = f"blimp:{data_dir / 'blimp' / paradigm}.jsonl"
    task = interp.load_task(name, tokenizer=model.tokenizer, n_ctx=model.cfg.n_ctx, known_words_only=True)
    answers = behaviour(model, task).query("not counterfactual")
    assert len(answers) >= 800
    assert answers["correct"].mean() >= 0.95


def test_it_writes_on(model):
    text = model.generate("Wendy found the key because", max_new_tokens=1)
    assert re.fullmatch(r"Wendy found the key because she", text)
