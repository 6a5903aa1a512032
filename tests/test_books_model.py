"""What the card of the embedded model of real English says, measured on it."""

import re
from dataclasses import replace

import pytest

import interp
from interp.methods.behaviour import behaviour
from interp.model.loading.load import model_folder
from interp.tasks.blimp_task import blimp_pair
from interp.tasks.readers.blimp import read_blimp
from recipes.recipe import read_recipe

pytestmark = pytest.mark.unchecked

MEGABYTE = 1_000_000
PARADIGM = re.compile(r"^ *(\w+) +(\w+) +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+)$", re.MULTILINE)
"""Its name, its phenomenon, and the accuracies of this model, the 5-gram, the LSTM, Transformer-XL and GPT-2."""
CHECKED = (
    "anaphor_gender_agreement",
    pytest.param("distractor_agreement_relational_noun", marks=pytest.mark.slow),
    pytest.param("wh_questions_subject_gap", marks=pytest.mark.slow),
)


@pytest.fixture(scope="module")
def model():
    return interp.load_model("books")


@pytest.fixture(scope="module")
def card():
    return (model_folder("books") / "README.md").read_text()


@pytest.fixture(scope="module")
def paradigms(card):
    return {name: [float(each) for each in accuracies] for name, _, *accuracies in PARADIGM.findall(card)}


def test_it_is_small():
    size = sum(path.stat().st_size for path in model_folder("books").iterdir())
    assert size <= 25 * MEGABYTE


def test_the_card_is_about_these_weights(model, card):
    recipe = read_recipe("books")
    assert model.hash in card
    assert f"{recipe.training.steps:,} steps" in card
    assert f"{sum(p.numel() for p in model.parameters()):,}" in card
    assert recipe.config(len(model.tokenizer)) == model.config


def test_it_is_worth_shipping(paradigms):
    """Somewhere it is better than the published LSTM, which has read more."""
    assert len(paradigms) == 24
    assert any(ours > lstm for ours, _, lstm, *_ in paradigms.values())


@pytest.mark.parametrize("paradigm", CHECKED)
def test_published_minimal_pairs(model, paradigms, data_dir, paradigm):
    pairs = [
        replace(blimp_pair(item), counterfactual=None) for item in read_blimp(data_dir / "blimp" / f"{paradigm}.jsonl")
    ]
    asked = {"name": paradigm, "description": "Which is acceptable?", "metric": "sentence_log_probability"}
    answers = behaviour(model, interp.encode_task(pairs, tokenizer=model.tokenizer, **asked))
    assert len(answers) == 1000
    assert answers["correct"].mean() == pytest.approx(paradigms[paradigm][0], abs=0.0025)  # a machine may flip a tie


def test_it_writes_english(model):
    """It goes on with words: no byte is left over, and none is repeated without end."""
    text = model.generate("The old man sat down and", max_new_tokens=20)
    written = text.removeprefix("The old man sat down and").split()
    assert "\ufffd" not in text
    assert len(set(written)) >= 8
