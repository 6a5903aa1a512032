"""``interp.probe`` on ambiguous words: a model of English tells their senses apart, a random one does not."""

import pytest
from tiny_models import random_model

import interp
from interp.errors import InputError, TaskError
from interp.tasks.generated_corpus import LEMMAS, senses
from recipes.tokenizer import build_tokenizer

pytestmark = pytest.mark.unchecked

FEW = {"site": "resid_post", "penalties": (1e-1, 1e-3)}


def known_words(lemma):
    words = {word.form for document in senses(lemma) for sentence in document.sentences for word in sentence.words}
    return sorted(each for each in words if each.isalpha())


@pytest.mark.parametrize("lemma", [LEMMAS[0], *(pytest.param(each, marks=pytest.mark.slow) for each in LEMMAS[1:])])
def test_the_books_model_tells_them_apart_and_no_control_does(lemma):
    model = interp.load_model("books")
    (row,) = interp.probe(model, f"senses:{lemma}", f"sense:{lemma}", layers=[5], **FEW).summary().to_dict("records")
    assert row["verdict"] == "encodes"
    assert row["score"] > 0.7
    for name in ("majority", "embedding", "position", "untrained", "control"):
        assert row[name] == pytest.approx(0.5, abs=0.12), name
    assert row["n_documents"] == row["n"] == len(senses(lemma))


@pytest.mark.parametrize("lemma", LEMMAS)
@pytest.mark.parametrize("seed", range(3))
def test_a_random_model_encodes_no_sense(lemma, seed):
    """Though it has a token for every word that is said."""
    model = random_model(tokenizer=build_tokenizer(known_words(lemma)), seed=seed, n_ctx=32)
    found = interp.probe(model, senses(lemma), f"sense:{lemma}", **FEW).summary()
    assert "encodes" not in set(found["verdict"])
    assert found["excess"].max() < 0.15


def test_one_word_is_not_asked_for_another():
    model = random_model(tokenizer=build_tokenizer(known_words("bank")), n_ctx=32)
    with pytest.raises(InputError, match="'sense:run': no word of the corpus has it; there are: sense:b"):
        interp.probe(model, "senses:bank", "sense:run")
    with pytest.raises(TaskError, match="known are 'bank', 'run'"):
        interp.probe(model, "senses:spring", "sense:spring")
