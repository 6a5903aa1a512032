"""A head's output with another word's keys and values: by the engine, by the plain way, and by plain torch here."""

import math
import pickle
import random
from dataclasses import replace

import pytest
import torch
from bridges import booted
from random_tasks import TOLERANCE, assert_equal, change, differences, encoded, random_task
from tiny_models import random_model
from variants import every_value

from interp.errors import InputError
from interp.interventions.intervention import Cell
from interp.interventions.rows import batches, task_rows
from interp.interventions.sweep import Sweep
from interp.methods.word_exchange import WordExchange, against_other_words, exchange_word
from interp.model.loading import load_model
from interp.model.sites import Site
from interp.tasks.task import Unit

LLAMA = {"positions": "rotary", "normalization": "RMS", "gated": True, "act_fn": "silu", "biases": ()}
MODELS = {
    "multi-head": {"n_layers": 3},
    "grouped, rotary": {"n_layers": 3, "n_heads": 4, "n_kv_heads": 2, "d_head": 6, **LLAMA},
    "multi-query, no positions": {"n_layers": 3, "n_heads": 4, "n_kv_heads": 1, "positions": "none"},
}
EXACT = TOLERANCE["float64"]
every_model = pytest.mark.parametrize("fields", MODELS.values(), ids=MODELS.keys())


def word_units(seed=0, *, lengths=(8, 8, 8, 6), related=((2, 3), (3, 4), (1,), (2,)), answers=1, d_vocab=30):
    """Pairs of prompts that differ at the related word alone; many begin alike."""
    rng = random.Random(seed)
    for number, (length, places) in enumerate(zip(lengths, related, strict=True)):
        item = [0, *(rng.randrange(3) for _ in range(length - 1))]
        other = list(item)
        for place in places[: 1 + number % 2]:
            other[place] = rng.randrange(3, d_vocab)
        right, wrong = (tuple(rng.randrange(d_vocab) for _ in range(answers)) for _ in range(2))
        twins = encoded(item, right, wrong, related=places), encoded(other, wrong, right, related=places)
        yield Unit(*twins, f"c{number}")


def word_task(seed=0, *, metric="logit_difference", **options):
    """A task of such pairs, each with its word counterfactual."""
    units = tuple(word_units(seed, **options))
    return against_other_words(replace(random_task(metric=metric), units=units))


def words_of(task):
    return {number: each.related for number, each in enumerate(task.examples)}


def exchange_of(model, task, layers=None):
    layers = range(model.cfg.n_layers) if layers is None else layers
    return WordExchange(model, tuple(Site("z", layer) for layer in layers), words=words_of(task))


def turned(model, x):
    """Rotary positions, pair by pair as complex numbers."""
    if getattr(model.config, "positions", None) != "rotary":
        return x
    n = x.shape[-1] // 2
    angles = torch.arange(len(x))[:, None, None] * model.config.rotary_base ** (-torch.arange(n).double() / n)
    pairs = torch.complex(x[..., :n], x[..., n:]) * torch.polar(torch.ones_like(angles), angles)
    return torch.cat([pairs.real, pairs.imag], dim=-1)


def z_by_hand(model, encoded, layer, head):
    """``z`` of one head from queries of the example, and keys and values with the word's of its counterfactual."""
    runs = [model.run_with_cache(torch.tensor([each.prompt]))[1] for each in (encoded, encoded.word_counterfactual)]
    q, k, v = (runs[0][f"blocks.{layer}.attn.hook_{name}"][0].double().clone() for name in "qkv")
    for name, here in (("k", k), ("v", v)):
        for place in encoded.related:
            here[place] = runs[1][f"blocks.{layer}.attn.hook_{name}"][0, place]
    shared = head // (q.shape[1] // k.shape[1])
    q, k = turned(model, q)[:, head], turned(model, k)[:, shared]
    z = torch.zeros_like(q)
    for query in range(len(q)):
        scores = k[: query + 1] @ q[query] / math.sqrt(q.shape[1])
        weights = (scores - scores.max()).exp()
        z[query] = weights / weights.sum() @ v[: query + 1, shared]
    return z


def value_by_hand(model, encoded, layer, head):
    """The logit difference with that ``z`` in place."""

    new = z_by_hand(model, encoded, layer, head)

    def put(z, hook):
        z = z.clone()
        z[0, :, head] = new
        return z

    tokens = torch.tensor([encoded.prompt])
    logits = model.run_with_hooks(tokens, fwd_hooks=[(f"blocks.{layer}.attn.hook_z", put)])[0, -1]
    return float(logits[encoded.right[0]] - logits[encoded.wrong[0]])


@every_model
@pytest.mark.parametrize("plainly", [False, True], ids=["engine", "plain"])
def test_every_head_s_numbers_are_those_by_hand(fields, plainly):
    model, task = random_model(**fields), word_task(1)
    exchange = exchange_of(model, task)
    cells = [
        Cell({"layer": layer, "head": head}, (change("z", layer, exchange, heads=(head,)),))
        for layer in range(model.config.n_layers)
        for head in range(model.config.n_heads)
    ]
    frame = Sweep(cells).run(model, task, direction="word", plainly=plainly).examples
    expected = [value_by_hand(model, task.examples[row.example], row.layer, row.head) for row in frame.itertuples()]
    assert frame["value"].tolist() == pytest.approx(expected, abs=1e-9)
    assert (frame["effect"].abs() > 1e-6).mean() > 0.9


@every_value
def test_in_every_architecture_as_one_layer_after_the_other(fields):
    """Positions, norms, scores, grouped heads, directions: a run for each layer with the keys and values in place."""
    model, task = random_model(**fields), word_task(7)
    layers = range(2) if model.config.causal else range(1)
    exchange = exchange_of(model, task, layers)
    for batch in batches(model, task_rows(task.metric, task.units, "word")):
        _, other = model.run_with_cache(batch.source_tokens)
        for layer in layers:

            def put(value, hook, other=other, rows=batch.rows):
                value = value.clone()
                for number, row in enumerate(rows):
                    value[number, list(row.run.related)] = other[hook.name][number, list(row.run.related)]
                return value

            found = []
            hooks = [(f"blocks.{layer}.attn.hook_{name}", put) for name in "kv"]
            hooks.append((f"blocks.{layer}.attn.hook_z", lambda value, hook, found=found: found.append(value)))
            model.run_with_hooks(batch.tokens, fwd_hooks=hooks)
            assert torch.allclose(found[0], exchange.values(Site("z", layer), batch, 0), atol=1e-10)


@every_model
@pytest.mark.parametrize("metric", ["logit_difference", "sentence_log_probability", "kl_divergence"])
def test_the_engine_equals_the_plain_way(fields, metric):
    model = random_model(**fields)
    task = word_task(2, answers=2 if metric == "sentence_log_probability" else 1)
    task = replace(task, metric=metric)
    exchange = exchange_of(model, task)
    cells = [(change("z", layer, exchange, heads=(head,)),) for layer in range(3) for head in range(2)]
    cells.append((change("z", 0, exchange, heads=(0,)), change("z", 2, exchange)))
    assert_equal(differences(model, task, cells, direction="word", metric=metric))


def test_rows_that_begin_alike_share_nothing_where_their_words_differ():
    """Equal tokens in both runs, of which two are the word in one row, and one in the other."""
    model = random_model(n_layers=3)
    item, other, end = (0, 1, 2, 2, 1, 1, 2), (0, 1, 9, 2, 1, 1, 2), ((3,), (4,))
    units = [
        Unit(encoded(item, *end, related=places), encoded(other, *end[::-1], related=places), f"c{number}")
        for number, places in enumerate([(2,), (2, 3)])
    ]
    task = against_other_words(replace(random_task(), units=tuple(units)))
    exchange = exchange_of(model, task)
    found = differences(model, task, [(change("z", 1, exchange, heads=(0,)),)], direction="word")
    assert max(found.values()) < EXACT
    z = exchange.values(Site("z", 1), batches(model, task_rows(task.metric, task.units, "word"))[0], 0)
    assert not torch.allclose(z[0], z[2])


@every_model
def test_nothing_before_the_word_changes(fields):
    model, task = random_model(**fields), word_task(3)
    exchange = exchange_of(model, task)
    for batch in batches(model, task_rows(task.metric, task.units, "word")):
        _, cache = model.run_with_cache(batch.tokens)
        for layer in range(model.config.n_layers):
            base, new = cache[f"blocks.{layer}.attn.hook_z"], exchange.values(Site("z", layer), batch, 0)
            for number, row in enumerate(batch.rows):
                first = row.first_difference
                assert torch.allclose(base[number, :first], new[number, :first], atol=1e-12)
                assert not torch.allclose(base[number, first], new[number, first], atol=1e-6)


@every_model
def test_a_word_exchanged_with_itself_changes_nothing(fields):
    model, task = random_model(**fields), word_task(4)
    units = [
        replace(
            unit,
            item=replace(unit.item, word_counterfactual=unit.item),
            counterfactual=replace(unit.counterfactual, word_counterfactual=unit.counterfactual),
        )
        for unit in task.units
    ]
    task = replace(task, units=tuple(units))
    exchange = exchange_of(model, task)
    cells = [Cell({"layer": layer, "head": 1}, (change("z", layer, exchange, heads=(1,)),)) for layer in range(3)]
    frame = Sweep(cells).run(model, task, direction="word").examples
    assert set(frame["status"]) == {"identical input"}
    assert (frame["effect"] == 0).all()
    for batch in batches(model, task_rows(task.metric, task.units, "word")):
        _, cache = model.run_with_cache(batch.tokens)
        for layer in range(3):
            new = exchange.values(Site("z", layer), batch, 0)
            assert torch.allclose(cache[f"blocks.{layer}.attn.hook_z"], new, atol=1e-12)


@pytest.mark.parametrize("name", ["gpt2", "llama, grouped", "neox"])
def test_behind_a_bridge_as_in_our_own_model(name, tmp_path):
    bridge, task = booted(name, tmp_path, dtype=torch.float64), word_task(5)
    model = load_model(tmp_path, dtype="float64")
    for batch in batches(model, task_rows(task.metric, task.units, "word")):
        for layer in range(2):
            ours, theirs = (exchange_of(each, task).values(Site("z", layer), batch, 0) for each in (model, bridge))
            assert torch.allclose(ours, theirs, atol=1e-6)
    ours, theirs = (exchange_word(each, task).examples["value"].tolist() for each in (model, bridge))
    assert ours == pytest.approx(theirs, abs=1e-5)


def test_behind_a_bridge_that_is_measured_plainly(tmp_path):
    torch.manual_seed(0)  # of its weights
    result = exchange_word(booted("codegen", tmp_path), word_task(5))
    assert result.provenance["engine"] == "plain"
    assert (result.examples["effect"].abs() > 1e-6).all()


class TestBidirectional:
    def test_later_layers_are_refused(self):
        model, task = random_model(causal=False), word_task()
        with pytest.raises(InputError, match="layer 1: expected layer 0 of a bidirectional model, where alone"):
            exchange_of(model, task)

    def test_the_first_layer_is_exchanged(self):
        model, task = random_model(causal=False), word_task()
        exchange = exchange_of(model, task, [0])
        assert differences(model, task, [(change("z", 0, exchange, heads=(1,)),)], direction="word")["value"] < EXACT
        batch = batches(model, task_rows(task.metric, task.units, "word"))[0]
        _, cache = model.run_with_cache(batch.tokens)
        new = exchange.values(Site("z", 0), batch, 0)
        assert not torch.isclose(new[:, 0], cache["blocks.0.attn.hook_z"][:, 0]).all(-1).any()


class TestAsked:
    def test_examples_without_another_word_are_refused(self):
        model, task = random_model(), word_task()
        exchange = exchange_of(model, task)
        cell = Cell({"head": 0}, (change("z", 0, exchange, heads=(0,)),))
        elsewhere = encoded((0, 1, 2, 9, 1, 1, 1, 1), (3,), (4,), related=(1,))
        for other, said in ((None, "got None"), (elsewhere, "got '0 1 2 9 1 1 1 1 ")):
            unit = replace(task.units[0], item=replace(task.units[0].item, word_counterfactual=other))
            with pytest.raises(InputError, match=f"exchanging a word: expected .* {said}"):
                Sweep([cell]).run(model, replace(task, units=(unit,)), direction="word")
        with pytest.raises(InputError, match="expected direction='denoise', 'noise' or 'word'"):
            Sweep([cell]).run(model, task)

    def test_its_identity_is_that_of_its_words(self):
        model, task = random_model(), word_task()
        exchange = exchange_of(model, task)
        other = replace(exchange, words={**exchange.words, 0: (2,)})
        assert exchange.identity == exchange_of(model, task, [0]).identity != other.identity
        assert type("Other", (WordExchange,), {})(model, exchange.sites, words=exchange.words).identity is None

    def test_it_is_sent_without_what_it_has_run(self):
        model, task = random_model(), word_task()
        exchange = exchange_of(model, task)
        batch = batches(model, task_rows(task.metric, task.units, "word"))[0]
        before = exchange.values(Site("z", 1), batch, 0)
        sent = pickle.loads(pickle.dumps(exchange))
        assert (sent.words, sent._kept) == (exchange.words, {})
        assert torch.equal(sent.values(Site("z", 1), batch, 0), before)

    def test_of_a_batch_only_a_third_is_run_at_once(self):
        """Three runs go side by side, so that no more is held than when the sources are read."""
        model, task = random_model(), word_task(6, lengths=(8,) * 7, related=((2,),) * 7)
        exchange, seen = exchange_of(model, task), []
        model.hook_embed.add_hook(lambda value, hook: seen.append(len(value)))
        (batch,) = batches(model, task_rows(task.metric, task.units, "word"))
        exchange.values(Site("z", 0), batch, 0)
        exchange.values(Site("z", 1), batch, 0)
        assert seen == [15, 15, 12]
