"""What calls cost on a GPU: kernels launched, times the host waits, and the memory that is held at most.

A device runs behind the host: each launch takes the host some microseconds, and after each wait it has nothing to do
until the host has caught up. The model of 12 layers and 12 heads has GPT-2 small's shape, but for its width, on which
neither depends. Bounds are a tenth above what is counted, or less.
"""

from dataclasses import replace

import pytest
import torch
from device.counting import LOG
from random_tasks import random_task
from tiny_models import random_model

import interp
from interp.interventions.engine import plan
from interp.interventions.engine.run import Engine
from interp.methods.erasure.erase import erase
from interp.methods.plan import HARDWARE, head_sweep_chunks
from interp.methods.plan import plan as planned
from interp.tasks import agreement
from interp.tasks.generated_corpus import linked_documents

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.unchecked,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(torch.cuda.is_available(), reason="only the simulated device counts"),
]

BOUNDS = {  # launches, waits, bytes beside the model
    "ablate": (1_750, 7, 93.1e6),
    "ablate, positional_mean": (2_050, 8, 93.1e6),
    "patch z": (2_200, 13, 72.6e6),
    "patch resid_pre by pos": (3_900, 13, 49.4e6),
    "attend": (3_350, 69, 0.928e6),
    "probe": (1_950, 211, 6.98e6),
    "erase": (18_100, 247, 31.2e6),
    "heads": (28_000, 590, 43.2e6),
}


def cost(call):
    """Of a call whose model is known by its hash already."""
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    LOG.clear()
    call()
    return LOG.n_launches, LOG.n_waits, torch.cuda.max_memory_allocated() - before


@pytest.fixture(scope="module")
def calls():
    narrow = random_model(
        **{"n_layers": 12, "n_heads": 12, "d_head": 4, "d_model": 48, "d_mlp": 192, "d_vocab": 200, "n_ctx": 32},
        dtype=torch.float32,
    ).to("cuda")
    books = interp.load_model(device="cuda")
    assert narrow.hash != books.hash
    task = random_task(0, lengths=(20,) * 8, d_vocab=200)
    agreeing = interp.load_task("agreement", n=24, tokenizer=books.tokenizer)
    corpus = list(linked_documents(agreement.pairs(40, seed=0)))
    return {
        "ablate": lambda: interp.ablate(narrow, task, replacement="zero"),
        "ablate, positional_mean": lambda: interp.ablate(narrow, task, replacement="positional_mean"),
        "patch z": lambda: interp.patch(narrow, task, site="z", by=("layer", "head")),
        "patch resid_pre by pos": lambda: interp.patch(narrow, task, site="resid_pre", by=("layer", "pos")),
        "attend": lambda: interp.attend(books, corpus, ["subject"]),
        "probe": lambda: interp.probe(books, agreeing, site="z", feature="number", layers=[1]),
        "erase": lambda: erase(books, agreeing, "number"),
        "heads": lambda: interp.heads(books, ["agreement"], n=40, probes=False, max_group=0),
    }


@pytest.mark.parametrize("name", BOUNDS)
def test_it_costs_no_more(calls, name):
    found = cost(calls[name])
    bounds = BOUNDS[name]
    assert all(own <= most for own, most in zip(found, bounds, strict=True)), f"{found}, at most {bounds}"
    assert all(own > 0.75 * most for own, most in zip(found, bounds, strict=True)), (
        f"{found}: lower the bounds {bounds}"
    )


def test_a_cell_of_a_sweep(calls):
    """20 launches a cell are a third of what it was when every block sent its own indices."""
    launches, _, _ = cost(calls["ablate"])
    assert launches / 144 <= 20


EXPERTS = {"n_experts": 8, "n_active_experts": 2, "gated": True}


@pytest.mark.parametrize(
    ("fields", "more"),
    [
        ({}, 0),
        ({"positions": "alibi"}, 0),
        (EXPERTS, 8),  # in each layer how many tokens each expert has, and which
    ],
    ids=["learned positions", "ALiBi", "experts"],
)
@pytest.mark.parametrize("tokens", [288, 2**17])
def test_a_chunk_is_waited_for_once(monkeypatch, tokens, fields, more):
    """The scores of the one before, while it runs."""
    narrow = random_model(n_layers=4, **fields, dtype=torch.float32).to("cuda")
    task, seen = random_task(0, lengths=(6,) * 8), []
    monkeypatch.setitem(plan.TOKENS_AT_ONCE, "cuda", tokens)
    monkeypatch.setattr(plan, "LEAST_AT_ONCE", tokens)
    measure = Engine.measure

    def counted(self, base, chunks=None):
        base.row_scores()
        before = LOG.n_waits
        yield from measure(self, base, chunks)
        seen.append((LOG.n_waits - before, len(list(chunks))))

    monkeypatch.setattr(Engine, "measure", counted)
    interp.ablate(narrow, task, replacement="zero")
    ((n_waits, n_chunks),) = seen
    assert n_chunks <= n_waits <= n_chunks * (1 + more)
    assert (n_chunks > 2) == (tokens == 288)


def test_a_base_run_that_is_off_loaded_is_waited_for_once():
    """Not each of its activations, on the way out or in."""
    model = random_model(n_layers=8, dtype=torch.float32).to("cuda")
    task = random_task(0, lengths=(6,) * 4)
    LOG.clear()
    found = interp.ablate(model, task, replacement="zero", memory_budget=18_000)
    assert found.provenance["offloaded"]
    waits = {each: n for each, n in LOG.waits.items() if "collecting" in each[1] or "base_run" in each[1]}
    assert {reason for reason, _ in waits} == {"a stream"}
    assert sum(waits.values()) == found.provenance["batches"]


LLAMA = {"positions": "rotary", "d_head": 4, "normalization": "RMS", "gated": True, "n_kv_heads": 2}


@pytest.mark.parametrize("fields", [{}, LLAMA, {"n_layers": 3}], ids=["GPT-2", "Llama", "three layers"])
@pytest.mark.parametrize("tokens", [1500, 2**17])
def test_a_plan_counts_what_is_launched(monkeypatch, fields, tokens):
    """In the forward pass of a model, and in a sweep of its heads with all that belongs to it."""
    model = random_model(**{"n_layers": 8, "n_heads": 4, **fields}, dtype=torch.float32).to("cuda")
    monkeypatch.setitem(plan.TOKENS_AT_ONCE, "cuda", tokens)
    monkeypatch.setattr(plan, "LEAST_AT_ONCE", tokens)
    monkeypatch.setattr(plan.Classifier, "_owners", lambda *_: None)  # no prompt shares another's beginning
    task = random_task(0, lengths=(12,) * 8)
    assert model.hash
    counts = planned(model.config, HARDWARE["h100"], n_prompts=16, n_tokens=12).launches
    prompts = torch.zeros(16, 12, dtype=torch.long, device="cuda")
    forward, _, _ = cost(lambda: model(prompts))
    sweep, _, _ = cost(lambda: interp.ablate(model, task, replacement="zero"))
    assert counts["forward"] == pytest.approx(forward, rel=0.05)
    assert counts["sweep"] == pytest.approx(sweep, rel=0.05)


@pytest.mark.parametrize("budget", [19_000, 2**18, 2**20, 2**22, 2**32])
@pytest.mark.parametrize("lengths", [(12,) * 8, (12,) * 50, (5,) * 150])
def test_a_plan_has_the_engines_chunks(monkeypatch, budget, lengths):
    """Whether memory or work bounds them."""
    model, seen = random_model(n_layers=3, n_heads=4, dtype=torch.float32).to("cuda"), []
    monkeypatch.setattr(plan, "CHUNK_FLOPS", 0)
    monkeypatch.setattr(plan, "LEAST_AT_ONCE", 700)
    monkeypatch.setattr(plan.Classifier, "_owners", lambda *_: None)
    chunks = Engine.chunks

    def noted(self, batch):
        for chunk, n_tokens in chunks(self, batch):
            seen.append((len(batch.rows), chunk))
            yield chunk, n_tokens

    monkeypatch.setattr(Engine, "chunks", noted)
    interp.ablate(model, random_task(0, lengths=lengths), replacement="zero", memory_budget=budget)
    hardware = replace(HARDWARE["h100"], budget=budget)
    how = {"dtype": "float32", "n_prompts": 2 * len(lengths), "n_tokens": lengths[0]}
    assert sorted(seen, key=str) == sorted(
        [(each.prompts, each.heads) for each in head_sweep_chunks(model.config, hardware, **how)], key=str
    )
