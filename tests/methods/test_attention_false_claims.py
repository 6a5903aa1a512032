"""How often does a head that knows nothing get a claim? Trees at random places, models that were never trained."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import binomtest, kstest
from tiny_models import random_model

import interp
from interp.methods.attention import attend
from interp.tasks.readers.conllu import read_conllu

RUNS = 400


def documents(data_dir, n_sentences=None):
    """GUM's test documents, or the beginning of each."""
    for each in read_conllu(data_dir / "gum" / "en_gum-ud-test.conllu"):
        yield replace(each, sentences=each.sentences[:n_sentences], mentions=() if n_sentences else each.mentions)


def replanted(sentence, generator):
    """The sentence with its tree put on its words in another order: the structure is kept, who is whose head is not."""
    place = generator.permutation(len(sentence.words))
    words = list(sentence.words)
    for number, word in enumerate(sentence.words):
        head = word.head if word.head < 0 else int(place[word.head])
        words[place[number]] = replace(sentence.words[place[number]], head=head, deprel="dep")
    return replace(sentence, words=tuple(words))


def untrained(*, causal, seed):
    tokenizer = interp.load_model("books").tokenizer
    return random_model(tokenizer=tokenizer, causal=causal, dtype=torch.float32, seed=seed, n_ctx=256)


@pytest.mark.slow
@pytest.mark.parametrize("causal", [True, False])
def test_relations_at_random_places_give_uniform_p_and_few_claims(data_dir, causal):
    """All arcs count as one relation: with few pairs, p would be uniform only in steps."""
    model, generator = untrained(causal=causal, seed=0), np.random.default_rng(0)
    whole = list(documents(data_dir, 6))
    p, claims = [], 0
    for run in range(RUNS):
        text = [replace(each, sentences=tuple(replanted(one, generator) for one in each.sentences)) for each in whole]
        frame = attend(model, text, ["dep"], seed=run).frame
        p.append(frame["p"].sample(1, random_state=run).item())
        claims += bool((frame["q"] <= 0.05).any())
        assert "tracks" not in set(frame["verdict"])
    for part in (p[: RUNS // 2], p[RUNS // 2 :]):
        assert kstest(part, "uniform").pvalue > 0.01
    bound = binomtest(claims, RUNS).proportion_ci(0.9).high
    assert bound <= 0.08, f"{claims} of {RUNS} runs with a claim"


@pytest.mark.slow
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_an_untrained_model_tracks_nothing_in_real_text(data_dir, causal, seed):
    """Its positional preferences are real, and explained by position."""
    frame = attend(untrained(causal=causal, seed=seed), list(documents(data_dir))).frame
    assert frame["n"].max() > 2000
    assert "tracks" not in set(frame["verdict"])
