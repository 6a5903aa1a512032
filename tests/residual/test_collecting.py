"""Pooled activations against those that are gathered by hand from a cache, one row at a time."""

from types import SimpleNamespace

import pytest
import torch
from bridges import MODULES, booted
from random_passages import random_passages
from tiny_models import random_model, relative_error

from interp.errors import InputError
from interp.model.sites import Site
from interp.residual import collecting as batching
from interp.residual.collecting import word_activations
from interp.tasks.passages import Passage, ReadWord

SITES = (
    *(Site(name) for name in ("embed", "pos_embed")),
    *(Site(name, layer) for layer in range(2) for name in ("z", "resid_pre", "resid_mid", "resid_post", "attn_out")),
    *(Site(name, 1) for name in ("mlp_out", "q", "k", "v", "mlp_pre", "mlp_post", "result", "mlp_in", "q_input")),
)
POOLINGS = {"first": lambda own: own[0], "last": lambda own: own[-1], "mean": lambda own: own.mean(0)}


@pytest.fixture
def model():
    return random_model()


def by_hand(model, passages, site, pooling):
    """Row after row, word after word."""
    found = []
    for passage in passages:
        _, cache = model.run_with_cache(torch.tensor([passage.ids]), names_filter=[site.hook_name])
        own = cache[site.hook_name][0]
        found += [POOLINGS[pooling](own[list(word.tokens)]) for word in passage.words]
    return torch.stack(found)


def in_order(batches, site):
    """All words' values at a site, in the order of the passages."""
    batches = list(batches)
    numbers = torch.cat([batch.numbers for batch in batches])
    assert sorted(numbers.tolist()) == list(range(len(numbers)))
    return torch.cat([batch.values[site] for batch in batches])[numbers.argsort()]


@pytest.mark.parametrize("pooling", POOLINGS)
def test_values_are_those_of_a_cache(model, pooling):
    passages = random_passages()
    assert {len(word.tokens) for passage in passages for word in passage.words} == {1, 2, 3}
    batches = list(word_activations(model, passages, SITES, pooling=pooling))
    assert max(len(batch.passages) for batch in batches) > 1
    for site in SITES:
        assert relative_error(in_order(batches, site), by_hand(model, passages, site, pooling)) < 1e-13, site


def test_poolings_differ(model):
    passages, site = random_passages(), Site("z", 1)
    first, last, mean = (in_order(word_activations(model, passages, [site], pooling=each), site) for each in POOLINGS)
    single = torch.tensor([len(word.tokens) == 1 for passage in passages for word in passage.words])
    assert single.any()
    assert torch.equal(first[single], last[single])
    assert torch.equal(mean[single], last[single])
    assert ((first - last).abs().amax((1, 2)) > 1e-3)[~single].all()
    assert ((mean - last).abs().amax((1, 2)) > 1e-3)[~single].all()


def test_a_batch_is_what_one_row_after_the_other_is(model, monkeypatch):
    passages = random_passages(30)
    together = in_order(word_activations(model, passages, [Site("resid_post", 1)]), Site("resid_post", 1))
    monkeypatch.setattr(batching, "TOKENS_AT_ONCE", 1)
    batches = list(word_activations(model, passages, [Site("resid_post", 1)]))
    assert [len(batch.passages) for batch in batches] == [1] * 30
    assert relative_error(in_order(batches, Site("resid_post", 1)), together) < 1e-13


def test_words_can_be_found_again(model):
    passages = random_passages(20)
    everyone = [word for passage in passages for word in passage.words]
    batches = list(word_activations(model, passages, [Site("embed")], first=100))
    assert [passage for batch in batches for passage in batch.passages] != passages
    for batch in batches:
        words = [word for passage in batch.passages for word in passage.words]
        assert [everyone[number - 100] for number in batch.numbers.tolist()] == words
        assert batch.values[Site("embed")].shape == (len(words), 12)


def test_only_some_rows_are_held(model, monkeypatch):
    monkeypatch.setattr(batching, "BUFFERED", 60)
    given = []

    def stream():
        for passage in random_passages(200):
            given.append(passage)
            yield passage

    done = 0
    for batch in word_activations(model, stream(), [Site("embed")]):
        assert sum(len(passage.ids) for passage in given[done:]) <= 60 + 15
        done += len(batch.passages)
    assert done == 200


@pytest.mark.parametrize(("site", "stop"), [(Site("z", 0), 1), (Site("resid_post", 1), 2), (Site("embed"), 0)])
def test_nothing_is_run_behind_the_last_site(model, site, stop):
    ran = []

    def note(activation, hook):
        if activation.shape[1] > 1:  # that of a single token only asks whether the points are there
            ran.append(hook.name)

    for name in ("blocks.0.hook_resid_pre", "blocks.1.hook_resid_pre", "ln_final.hook_normalized"):
        model.hook_dict[name].add_perma_hook(note)
    list(word_activations(model, random_passages(1), [site]))
    assert len(ran) == stop


def test_hooks_are_gone_and_a_probe_can_be_trained_on_the_values(model):
    (batch, *_) = word_activations(model, random_passages(), [Site("z", 0)])
    assert not model.hook_dict["blocks.0.attn.hook_z"].listened
    weight = torch.zeros(5, dtype=torch.float64, requires_grad=True)
    (batch.values[Site("z", 0)] @ weight).sum().backward()
    assert weight.grad.abs().sum() > 0


@pytest.mark.parametrize("name", [name for name in MODULES if name != "codegen"])
def test_on_models_of_others(name, tmp_path):
    """Also of grouped heads, without position embeddings, and looking both ways."""
    bridge = booted(name, tmp_path)
    passages = random_passages(6)
    sites = [Site("attn_out", 0), Site("z", 1), Site("k", 1), Site("mlp_out", 1)]
    sites += [Site("resid_post", 0)] if name != "gpt1" else []  # which TransformerLens' bridge of it does not run
    for pooling in POOLINGS:
        batches = list(word_activations(bridge, passages, sites, pooling=pooling))
        for site in sites:
            assert relative_error(in_order(batches, site), by_hand(bridge, passages, site, pooling)) < 1e-5


def test_a_mean_of_16_bit_floats_is_computed_in_32():
    model = random_model(dtype=torch.bfloat16)
    passages = random_passages(3)
    found = in_order(word_activations(model, passages, [Site("embed")], pooling="mean"), Site("embed"))
    expected = [
        model.W_E[list(passage.ids)][list(word.tokens)].float().mean(0).bfloat16()
        for passage in passages
        for word in passage.words
    ]
    assert found.dtype == torch.bfloat16
    assert torch.equal(found, torch.stack(expected).detach())


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_what_is_no_number_is_named(model, pooling, bad):
    word = ReadWord("s7", 3, "keys", (2, 3), {})
    other = ReadWord("s6", 0, "The", (1,), {})
    passages = [
        Passage("d1", "", (1, 2, 3, 4), (other,)),
        Passage("d2", "", (1, 2, 39, 39), (ReadWord("s7", 2, "to", (1,), {}), word)),
    ]
    with torch.no_grad():
        model.embed.W_E[39] = bad
    with pytest.raises(InputError) as error:
        list(word_activations(model, passages, [Site("embed"), Site("resid_pre", 0)], pooling=pooling))
    said = "embed: expected finite activations, got others at document 'd2', sentence 's7', word 3 ('keys'), token 2"
    assert str(error.value).startswith(said)
    assert "(id 39); a weight is not a number, or values overflow in the model's dtype: use float32" in str(error.value)
    with pytest.raises(InputError, match=r"^resid_pre of layer 0: expected finite"):
        list(word_activations(model, passages, [Site("resid_pre", 0)], pooling=pooling))


def test_large_numbers_are_numbers():
    """Their sum overflows, they do not."""
    model = random_model(dtype=torch.float32)
    with torch.no_grad():
        model.embed.W_E[:] = 3e38
    for batch in word_activations(model, random_passages(2), [Site("embed")]):
        assert torch.isfinite(batch.values[Site("embed")]).all()
        assert torch.isinf(batch.values[Site("embed")].sum())


@pytest.mark.parametrize(
    ("sites", "said"),
    [
        ([], "sites: expected at least one, got none; name one such as z or resid_post"),
        ([Site("pattern", 0)], "site 'pattern': expected one with an activation for each position, got one for pairs"),
        ([Site("z", 0), Site("scores", 1)], "site 'scores': expected one with an activation for each position"),
        ([Site("z", 9)], "the model has no point 'blocks.9.attn.hook_z'; did you mean"),
    ],
)
def test_sites_that_cannot_be_read(model, sites, said):
    with pytest.raises(InputError) as error:
        next(word_activations(model, random_passages(1), sites))
    assert str(error.value).startswith(said)


def test_a_point_that_a_model_does_not_run(tmp_path):
    bridge = booted("gpt2", tmp_path)
    with pytest.raises(InputError, match=r"did not run this point|has no point"):
        list(word_activations(bridge, random_passages(1), [Site("result", 0)]))


@pytest.mark.parametrize("tokens", [(), (4,), (-1,), (1, 9)])
def test_words_without_tokens_of_their_row(model, tokens):
    passage = Passage("d", "", (1, 2, 3, 4), (ReadWord("s", 5, "it", tokens, {}),))
    with pytest.raises(InputError) as error:
        next(word_activations(model, [passage], [Site("embed")]))
    said = f"document 'd', sentence 's', word 5 ('it'): expected tokens among the 4 of its row, got {tokens}"
    assert str(error.value) == said


def test_a_row_without_words_is_not_run(model):
    model.run_blocks = None
    assert list(word_activations(model, [Passage("d", "", (1, 2), ())], [Site("embed")])) == []


def test_anything_with_these_attributes_is_a_passage(model):
    word = SimpleNamespace(sentence="s", word=0, form="a", tokens=[1])
    passage = SimpleNamespace(document="d", ids=[3, 4], words=[word])
    (batch,) = word_activations(model, [passage], [Site("embed")])
    assert batch.passages == (passage,)
    assert torch.equal(batch.values[Site("embed")], model.W_E[4:5].detach())
