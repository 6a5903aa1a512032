"""How often does a head that knows nothing get a claim? Trees at random places, models that were never trained."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import binomtest, kstest
from tiny_models import random_model

import interp
from interp.methods.attention import attend, default_relations
from interp.methods.relation_counts import RelationCounts, count
from interp.methods.relation_judging import tabulate
from interp.tasks.corpus import Corpus, contents
from interp.tasks.readers.conllu import read_conllu
from interp.tasks.relations import directions
from interp.tasks.treebank import Link
from interp.tasks.windows import Windows

RUNS, AT_ONCE = 1000, 20


def documents(data_dir, n_sentences=None):
    """GUM's test documents, or the beginning of each."""
    for each in read_conllu(data_dir / "gum" / "en_gum-ud-test.conllu"):
        yield replace(each, sentences=each.sentences[:n_sentences], mentions=() if n_sentences else each.mentions)


def replanted(sentence, generator):
    """The sentence's tree, put on its words in other orders: the structure is kept, who is whose head is not."""
    links = []
    for tree in range(AT_ONCE):
        place = generator.permutation(len(sentence.words)).tolist()
        arcs = [(place[at], place[word.head]) for at, word in enumerate(sentence.words) if word.head >= 0]
        links += [Link(f"tree {tree}", dependent, head) for dependent, head in arcs]
    return replace(sentence, links=tuple(links))


def frames(model, whole, generator, *, causal):
    """What `attend` says of each tree by itself; the attention of the sentences is read once for all of them."""
    text = [replace(each, sentences=tuple(replanted(one, generator) for one in each.sentences)) for each in whole]
    corpus = Corpus.of(text)
    asked = directions([f"tree {number}" for number in range(AT_ONCE)], contents(corpus).relations)
    cutter = Windows(model.tokenizer, model.cfg.n_ctx, both_sides=not causal)
    windows = (window for each in corpus for window in cutter.sentences(each))
    counts = RelationCounts(asked, (model.cfg.n_layers, model.cfg.n_heads))
    count(model, windows, asked, causal=causal, exclude=("special", "self"), into=counts, progress=lambda _: None)
    how = {"attention_dir": "causal" if causal else "bidirectional", "minimum": 0.1, "alpha": 0.05}
    for number in range(AT_ONCE):
        own = [at for at, each in enumerate(asked) if each.relation == f"tree {number}"]
        sums = {(name, own.index(at)): each for (name, at), each in counts.sums.items() if at in own}
        part = RelationCounts([asked[at] for at in own], counts.shape, sums)
        seed = int(generator.integers(2**31))
        yield tabulate(part, None, contents(corpus).documents, {**how, "correction": "max-T", "seed": seed}).frame


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
    for _ in range(RUNS // AT_ONCE):
        for frame in frames(model, whole, generator, causal=causal):
            p.append(frame["p"].sample(1, random_state=len(p)).item())
            claims += bool((frame["q"] <= 0.05).any())
            assert "tracks" not in set(frame["verdict"])
    for start in range(0, RUNS, 200):
        assert kstest(p[start : start + 200], "uniform").pvalue > 0.01
    bound = binomtest(claims, RUNS).proportion_ci(0.9).high
    print(
        f"{claims} of {RUNS} runs with a claim, upper bound {bound:.4f}; p uniform: {kstest(p, 'uniform').pvalue:.3f}"
    )
    assert bound <= 0.08


@pytest.mark.slow
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_an_untrained_model_tracks_nothing_in_real_text(data_dir, causal, seed):
    """Its positional preferences are real, and explained by position; so is what it gives to words of many tokens."""
    whole = list(documents(data_dir))
    names = [*default_relations(contents(Corpus.of(whole))), "coref:nearest", "pos:PROPN", "pos:NOUN", "entity:person"]
    frame = attend(untrained(causal=causal, seed=seed), whole, names).frame
    assert frame["n"].max() > 2000
    assert "tracks" not in set(frame["verdict"])
