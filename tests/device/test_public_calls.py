"""Every public call that is given a model, on the CPU and on the device: equal models and tasks, equal results.

In 64 bits, so that what is left of differences is the order of sums, which the simulated device does not change. On a
GPU it does: numbers differ there by some 1e-12 of the largest.
"""

import dataclasses
from collections.abc import Mapping

import numpy as np
import pandas as pd
import pytest
import torch
from test_house import RUN_NOTHING, documented_functions
from tiny_models import random_model
from torch import nn

import interp
from forerunners.alignment import alignment_frame
from forerunners.ngram import NGramConfig, fit_ngram
from forerunners.noisy_channel import sentence_scores
from forerunners.seq2seq import Translator, TranslatorConfig
from forerunners.toy_french import sentence_pairs
from forerunners.translation import (
    BOS_ID,
    ENGLISH_TO_FRENCH,
    EOS_ID,
    n_best,
    train_translator,
    translate,
    translation_scores,
)
from interp.interventions.intervention import Intervention
from interp.interventions.reference_set import make_means, make_replacement
from interp.interventions.replacement import Zero
from interp.interventions.rows import batches, task_rows
from interp.interventions.sweep import Cell
from interp.methods.ablation import as_replacement, choose_components, measure
from interp.methods.attribution import attribute
from interp.methods.behaviour import behaviour, require_able
from interp.methods.erasure.erase import erase
from interp.methods.function_heads import function_heads
from interp.methods.head_card import head_card, head_cards
from interp.methods.head_sets import greedy, pairwise
from interp.methods.path_patching import path_estimates
from interp.methods.probes.scores import untrained
from interp.methods.relations.examples import relation_maps
from interp.methods.replacements_compared import compare_replacements, measured_by
from interp.methods.self_repair import direct_effects, self_repair
from interp.methods.task_attention import task_attention
from interp.methods.word_exchange import exchange_word
from interp.model.attention import KeyValueCache
from interp.model.devices import place_of
from interp.model.folding import center_writing_weights, remade
from interp.model.sites import Site
from interp.model.training import TrainingConfig, train
from interp.options import AblateOptions, CompareOptions, MeasureOptions
from interp.residual import circuits
from interp.residual.logit_lens import logit_lens
from interp.residual.tuned_lens import TunedLens, TunedLensFitter, compare_lenses, train_tuned_lens
from interp.runs.collecting import collect
from interp.runs.store import ActivationStore
from interp.tasks import agreement
from interp.tasks.generated_corpus import linked_documents
from interp.tasks.passages import task_passages

pytestmark = [pytest.mark.gpu, pytest.mark.unchecked, pytest.mark.filterwarnings("ignore")]

TOLERANCE = 1e-9
TEXT, HEADS, SITE = "The keys to the cabinet", [(2, 1), (2, 2)], Site("z", 2)


def a_report(model, task):
    return interp.heads(model, [task], probes=False, max_group=0)


def cards(model, _task):
    """Of the heads that track something, for which more units are needed."""
    report = interp.heads(model, "agreement", n=40, probes=False, max_group=0)
    found = head_cards(model, "agreement", report, n=40, max_units=4)
    assert [each.name for each in found] == ["2.2"]
    return found


def attended(model):
    corpus = list(linked_documents(agreement.pairs(40, seed=0)))
    return corpus, interp.attend(model, corpus, ["subject"])


def values_of(replacement, model, task):
    """What it puts in the place of the first batch's activations."""
    return replacement.values(SITE, batches(model, task_rows(task.metric, task.units))[0], 0)


def factors(circuit):
    return circuit.A, circuit.B


def one_cell():
    return [Cell({"head": 2}, (Intervention(SITE, Zero(), heads=(2,)),))]


def tuned(model, _task=None):
    return train_tuned_lens(model, model.to_tokens([TEXT] * 4), steps=2, batch_size=2)


def trained(model, _task):
    """On the model's device, and the weights afterwards."""
    small = random_model(d_vocab=10, n_ctx=5).to(place_of(model)[0])
    curve = train(small, [[1, 2, 3, 4, 5], [5, 4, 3, 2, 1]] * 8, TrainingConfig(steps=4, batch_size=2))
    return curve, small


def collected(model, task, folder="store"):
    store = collect(model, task_passages(task), [SITE], folder, data_hash=task.hash)
    return store.read(SITE), store.index


def forward(model, _task):
    """Logits, loss, every activation of a run, and the gradients of the loss."""
    tokens, mask = model.tokenize([TEXT, "The dogs"])
    logits, cache = model.run_with_cache(tokens, attention_mask=mask)
    loss = model(tokens, attention_mask=mask, return_type="loss")
    gradients = torch.autograd.grad(loss, list(model.parameters()))
    return logits, dict(cache), loss, torch.cat([each.flatten() for each in gradients])  # those of b_K are 0


def read_on(model, _task):
    """The same logits in one pass as token by token, by way of a cache."""
    tokens, cache = model.to_tokens(TEXT), KeyValueCache.empty(model.config.n_layers)
    steps = [model(each, cache=cache) for each in tokens.split(1, dim=1)]
    whole = model(tokens)
    assert torch.allclose(torch.cat(steps, dim=1), whole, atol=1e-9)
    return whole


def written(model, _task):
    """Greedily and drawn, with a cache and without."""
    texts = [model.generate([TEXT, "The dogs"], 5, temperature=0.0, use_past_kv_cache=each) for each in (True, False)]
    assert texts[0] == texts[1]
    return (
        texts,
        model.generate(TEXT, 5, top_k=10, top_p=0.9, temperature=1.0, seed=1),
        model.generate(model.to_tokens(TEXT), 3),
    )


def kept(model, task):
    """Asked again, a run gives what it has kept."""
    run = interp.Run("run")
    found = [interp.ablate(model, task, heads=HEADS, replacement="mean", run=run) for _ in range(2)]
    assert found[0] == found[1]
    return found[0]


def saved(model, _task):
    interp.save_model(model, "saved")
    return interp.load_model("saved", device=place_of(model)[0], dtype="float64")


def probed_store(model, task):
    collected(model, task)
    return interp.probe(model, ActivationStore.open("store"), "number", heads=HEADS[1:], **LDA)


PAIRS = sentence_pairs(12, seed=0)
LDA = {"kind": "lda", "cv": 2, "penalties": [0.1], "description_lengths": False}
SOURCES = [each.source for each in PAIRS]


def a_translator(model, score="additive", decoder="bahdanau"):
    """On the model's device; it ends its sentences."""
    config = TranslatorConfig(len(ENGLISH_TO_FRENCH.source), len(ENGLISH_TO_FRENCH.target), 8, score, decoder)
    made = Translator(config).double().requires_grad_(False).to(place_of(model)[0])
    made.unembed.b_U[EOS_ID] = 1.5
    return made


def trained_translator(model, _task):
    config = TrainingConfig(steps=3, batch_size=4, adamw_lr=0.02, warmup_steps=1)
    translators = [
        a_translator(model, *each).requires_grad_(True) for each in (("dot", "luong"), ("bilinear", "luong"))
    ]
    return [(train_translator(each, PAIRS, config), each) for each in translators]


def scored_sentences(model, _task):
    words = ENGLISH_TO_FRENCH.target
    rows = [[BOS_ID, 3, 4, EOS_ID], [BOS_ID, 5, EOS_ID]]
    ngram = fit_ngram(rows, NGramConfig(2, len(words), bos=BOS_ID)).to(place_of(model)[0])
    return sentence_scores(ngram, [words[3:4], words[4:7]], words)


def compared_lenses(model, _task):
    """By a lens of the model's device, and by the same one on the host."""
    lens = TunedLensFitter(model).update(model.to_tokens([TEXT] * 4)).lens
    lens.save("lens.safetensors")
    on_host = dataclasses.replace(lens, W=lens.W.cpu(), b=lens.b.cpu())
    return [compare_lenses(model, TEXT, each) for each in (lens, on_host, TunedLens.load("lens.safetensors", model))]


CALLS = {
    "HookedTransformer": forward,
    "KeyValueCache": read_on,
    "Run": kept,
    "ablate": lambda model, task: interp.ablate(model, task, replacement="resample", draws=2),
    "alignment_frame": lambda model, _: alignment_frame(a_translator(model), PAIRS),
    "as_replacement": lambda model, task: values_of(
        as_replacement("template_mean", model, task, AblateOptions(), [SITE]), model, task
    ),
    "attend": lambda model, _: attended(model)[1],
    "attribute": lambda model, task: attribute(model, task),
    "behaviour": lambda model, task: behaviour(model, task),
    "center_writing_weights": lambda model, _: center_writing_weights(model),
    "collect": collected,
    "compare_lenses": compared_lenses,
    "compare_replacements": lambda model, task: compare_replacements(
        model, task, replacements=("zero", "mean"), heads=HEADS
    ),
    "composition_scores": lambda model, _: circuits.composition_scores(model),
    "copying_score": lambda model, _: circuits.copying_score(model, *HEADS[1]),
    "copying_scores": lambda model, _: circuits.copying_scores(model),
    "direct_effects": lambda model, task: direct_effects(
        model, task, choose_components(model, "heads", heads=HEADS), Zero()
    ),
    "direct_logit_attribution": lambda model, _: interp.direct_logit_attribution(
        model, interp.residual_stream(model, TEXT), " are", " is"
    ),
    "erase": lambda model, task: erase(model, task, "number", heads=HEADS[1:], methods=["leace"]),
    "exchange_word": lambda model, task: exchange_word(model, task, heads=HEADS),
    "fold_layer_norm": lambda model, _: interp.fold_layer_norm(model),
    "function_heads": lambda model, _: function_heads(model, n_rows=4),
    "generate": written,
    "greedy": lambda model, task: greedy(model, task, heads=HEADS, n_heads=1),
    "head_card": lambda model, task: head_card(model, "2.2", [task], a_report(model, task), max_units=4),
    "head_cards": cards,
    "heads": lambda model, task: interp.heads(model, [task], max_group=2),
    "load_model": lambda model, _: interp.load_model(device=place_of(model)[0]),
    "logit_lens": lambda model, _: logit_lens(model, [TEXT, "The dogs"], answer=" are"),
    "looks_for": lambda model, _: circuits.looks_for(model, 2, 2, " are"),
    "make_means": lambda model, task: [
        values_of(each, model, task)
        for each in make_means(["mean", "template_mean"], model, task, sites=[SITE]).values()
    ],
    "make_replacement": lambda model, task: values_of(
        make_replacement("resample", model, task, sites=[SITE]), model, task
    ),
    "measure": lambda model, task: measure(model, task, one_cell(), MeasureOptions()),
    "measured_by": lambda model, task: measured_by(
        model, task, choose_components(model, "heads", heads=HEADS), {"zero": Zero()}, CompareOptions()
    ),
    "n_best": lambda model, _: n_best(a_translator(model), SOURCES[:2], 3, most=6),
    "ov_circuit": lambda model, _: factors(circuits.ov_circuit(model, 2, 2)),
    "pairwise": lambda model, task: pairwise(model, task, heads=HEADS),
    "patch": lambda model, task: interp.patch(model, task, site="resid_pre", by=("layer", "pos"), layers=[2]),
    "path_estimates": lambda model, task: path_estimates(model, task, [["2.2", "logits"], ["0.1", "2.2.k"]]),
    "path_patch": lambda model, task: interp.path_patch(model, task, [["0.1", "2.2.k"]]),
    "probe": probed_store,
    "qk_circuit": lambda model, _: factors(circuits.qk_circuit(model, 2, 2)),
    "relation_maps": lambda model, _: relation_maps(model, *attended(model)),
    "remade": lambda model, _: remade(model),
    "require_able": lambda model, task: require_able(model, task),
    "residual_stream": lambda model, _: interp.residual_stream(model, [TEXT, "The dogs"]),
    "save_model": saved,
    "self_repair": lambda model, task: self_repair(model, task, heads=HEADS),
    "sentence_scores": scored_sentences,
    "task_attention": lambda model, task: task_attention(model, task),
    "train": trained,
    "train_translator": trained_translator,
    "train_tuned_lens": tuned,
    "translate": lambda model, _: translate(a_translator(model), SOURCES, most=6),
    "translation_scores": lambda model, _: translation_scores(a_translator(model), PAIRS),
    "untrained": lambda model, _: untrained(model),
    "writes": lambda model, _: circuits.writes(model, 2, 2, " keys"),
}

SLOW = {
    "compare_replacements",
    "exchange_word",
    "greedy",
    "head_card",
    "head_cards",
    "heads",
    "pairwise",
    "path_estimates",
}
SLOW |= {"relation_maps", "self_repair"}
"""Whose parts others run, too."""
OTHERS = {"HookedTransformer", "KeyValueCache", "Run", "generate", "load_model", "save_model"}
"""Which are given a model otherwise."""


@pytest.fixture(scope="module")
def given():
    """Equal models on both devices, and a task."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("interp.tasks.catalogue.REFERENCES", 40)
        models = [interp.load_model(device=device, dtype="float64") for device in ("cpu", "cuda")]
        assert [each.W_E.is_cuda for each in models] == [False, True]
        task = interp.load_task("agreement", n=12, seed=0, tokenizer=models[0].tokenizer, n_ctx=models[0].cfg.n_ctx)
        yield models, task


def test_every_public_call_is_here():
    documented = {
        each.name
        for _, each in documented_functions()
        if {"model", "translator"} & {argument.arg for argument in each.args.args} and not each.name.startswith("_")
    }
    assert (documented - RUN_NOTHING) | OTHERS == set(CALLS)


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=pytest.mark.slow) if each in SLOW else each for each in CALLS]
)
def test_a_public_call(name, given, tmp_path, monkeypatch):
    models, task = given
    found = []
    for folder, model in zip(("cpu", "cuda"), models, strict=True):
        (tmp_path / folder).mkdir()
        monkeypatch.chdir(tmp_path / folder)
        found.append(CALLS[name](model, task))
    assert_same(*found, name)


IN_64_BITS = {"KeyValueCache", "generate", *(name for name in CALLS if "translat" in name or "align" in name)}
"""Which compare two ways of their own exactly, or make their models themselves."""


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", [each for each in CALLS if each not in SLOW | IN_64_BITS])
def test_no_operation_lacks_a_kernel_in_half_precision(name, dtype, given, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    CALLS[name](interp.load_model(device="cuda", dtype=dtype), given[1])


def parts_of(given):
    """What a result is made of, by name, but for how it was made; None of numbers and texts."""
    if isinstance(given, nn.Module):
        return {**dict(given.named_parameters()), **dict(given.named_buffers())}
    if dataclasses.is_dataclass(given):
        return {each.name: getattr(given, each.name) for each in dataclasses.fields(given) if each.name != "provenance"}
    if isinstance(given, Mapping | pd.DataFrame):
        return dict(given)
    return dict(enumerate(given)) if isinstance(given, list | tuple) else None


def as_array(given):
    if isinstance(given, torch.Tensor):
        return given.detach().cpu().numpy()
    array = np.asarray(given.to_numpy(na_value=np.nan) if isinstance(given, pd.Series) else given)
    return array.astype(float) if array.dtype.kind in "iub" else array


def assert_same(one, other, where):
    """Equal; numbers up to ``TOLERANCE`` of the largest that stands beside them."""
    inner = parts_of(one)
    if inner is not None:
        others = parts_of(other)
        assert list(inner) == list(others), where
        for name, each in inner.items():
            assert_same(each, others[name], f"{where} {name}")
        return
    one, other = as_array(one), as_array(other)
    assert (one.shape, one.dtype) == (other.shape, other.dtype), where
    if one.dtype.kind == "f":
        largest = np.abs(one[np.isfinite(one)]).max(initial=0.0)
        np.testing.assert_allclose(other, one, rtol=0, atol=TOLERANCE * largest, err_msg=where)
    else:
        assert pd.Series(one.ravel()).equals(pd.Series(other.ravel())), where
