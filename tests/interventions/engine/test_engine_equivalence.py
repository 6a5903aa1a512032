"""The engine's numbers are those of the plain way, on random models, tasks and cells."""

import itertools
import random

import pytest
import torch
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from random_tasks import WRITTEN, assert_equal, change, differences, every_replacement, random_task
from tiny_models import random_model
from variants import VARIANTS, each_variant, every_value, sites_of

from interp.errors import InputError
from interp.interventions.reference_set import make_replacement
from interp.interventions.replacement import Zero
from interp.interventions.sweep import Cell, Sweep
from interp.methods.ablation import ablate
from interp.methods.patching import patch
from interp.model.config import TransformerConfig
from interp.model.sites import SITES, Site
from interp.model.transformer import HookedTransformer

pytestmark = pytest.mark.unchecked

LAYERS, HEADS, NEURONS = 3, 3, 20
ANSWERS = {
    "logit_difference": [(1, 1)],
    "probability": [(1, 1)],
    "kl_divergence": [(1, 1)],
    "sentence_log_probability": [(1, 1), (2, 1), (1, 3), (2, 2)],
}
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
KINDS = ("zero", "mean", "positional_mean", "resample", "patch", "add")


def ways_to_choose(name, task):
    """Every kind of place that a site has."""
    lengths = [len(each.prompt) for each in task.examples]
    by_example = {number: tuple(range(1, length, 2))[: number % 3] for number, length in enumerate(lengths)}
    ways = [{}, {"positions": (2,)}, {"positions": (3, 1)}, {"positions": by_example}]
    axes = SITES[name][1]
    if "head" in axes:
        ways += [{"heads": (1,)}, {"heads": (2, 0)}, {"heads": (0,), "positions": (3,)}]
        ways += [{"heads": (2, 0), "positions": by_example}]
    if "d_mlp" in axes:
        ways += [{"units": (7,)}, {"units": (19, 0, 4), "positions": (3, 1)}]
    if "key_pos" in axes:
        ways += [{"keys": (1,)}, {"keys": (3, 0), "heads": (1,)}, {"keys": (2,), "heads": (0, 2), "positions": (3,)}]
    return ways


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", WRITTEN)
def test_every_replacement_at_every_kind_of_place(name, device):
    model = random_model(n_layers=LAYERS).to(device)
    task = random_task(WRITTEN.index(name), lengths=(6, 4, 6))
    replacements = every_replacement(model, task, [Site(name, layer) for layer in range(LAYERS)], patched=True)
    assert set(replacements) == set(KINDS) - ({"mean"} if name == "pattern" else set())
    layers = iter(range(10**6))
    cells = [
        (change(name, next(layers) % LAYERS, replacement, **where),)
        for replacement in replacements.values()
        for where in ways_to_choose(name, task)
    ]
    direction = ("denoise", "noise")[WRITTEN.index(name) % 2]
    assert_equal(differences(model, task, cells, direction=direction))


def numbers(n):
    return st.lists(st.integers(0, n - 1), min_size=1, max_size=3, unique=True).map(tuple)


@st.composite
def configs(draw):
    heads = draw(st.integers(1, 4))
    return {
        "n_layers": draw(st.integers(1, 4)),
        "n_heads": heads,
        "d_model": draw(st.integers(5, 16)),
        "d_head": draw(st.integers(1, 6)),
        "d_mlp": draw(st.integers(1, 24)),
        "act_fn": draw(st.sampled_from(["gelu_new", "gelu", "relu"])),
        "tied": draw(st.booleans()),
    }


@st.composite
def changes(draw, config, lengths, patched):
    """What ``change`` is given, with the kind of replacement in the place of one."""
    name = draw(st.sampled_from(WRITTEN))
    kinds = [each for each in KINDS if (patched or each != "patch") and (name, each) != ("pattern", "mean")]
    axes, where = SITES[name][1], {}
    if "head" in axes:
        where["heads"] = draw(st.none() | numbers(config["n_heads"]))
    if "d_mlp" in axes:
        where["units"] = draw(st.none() | numbers(config["d_mlp"]))
    if "key_pos" in axes:
        where["keys"] = draw(st.none() | numbers(min(lengths)))
    by_example = st.tuples(*(st.just(()) | numbers(each) for each in lengths)).map(lambda all_: dict(enumerate(all_)))
    where["positions"] = draw(st.none() | numbers(min(lengths)) | by_example)
    return name, draw(st.integers(0, config["n_layers"] - 1)), draw(st.sampled_from(kinds)), where


@st.composite
def sweeps(draw):
    config, metric = draw(configs()), draw(st.sampled_from(list(ANSWERS)))
    direction = draw(st.sampled_from([None, "denoise", "noise"]))
    lengths = draw(st.lists(st.integers(3, 7), min_size=1, max_size=4))
    by_example = [each for each in lengths for _ in range(2)]
    cell = st.lists(
        changes(config, by_example, direction is not None), min_size=1, max_size=3, unique_by=lambda each: each[:2]
    )
    return {
        "config": config,
        "metric": metric,
        "answers": draw(st.sampled_from(ANSWERS[metric])),
        "direction": direction,
        "lengths": lengths,
        "folds": draw(st.integers(1, 2)),
        "cells": draw(st.lists(cell, min_size=1, max_size=8)),
        "budget": draw(st.sampled_from([None, 1, 300_000])),
        "seed": draw(st.integers(0, 1000)),
    }


def run(sweep, dtype):
    """The differences of a drawn sweep."""
    model = random_model(dtype=getattr(torch, dtype), seed=sweep["seed"], **sweep["config"])
    its_own = sweep["metric"] if sweep["metric"] in ("logit_difference", "sentence_log_probability") else None
    task = random_task(
        sweep["seed"],
        lengths=sweep["lengths"],
        answers=sweep["answers"],
        folds=min(sweep["folds"], len(sweep["lengths"])),
        metric=its_own or "logit_difference",
    )
    used = sorted({each[:3] for cell in sweep["cells"] for each in cell}, key=str)
    replacements = {}
    for kind in {kind for _, _, kind in used}:
        sites = [Site(name, layer) for name, layer, its in used if its == kind]
        made = every_replacement(model, task, sites, patched=sweep["direction"] is not None)
        replacements[kind] = made.get(kind, made["zero"])  # sentences of several lengths have no positional mean
    cells = [
        tuple(change(name, layer, replacements[kind], **where) for name, layer, kind, where in cell)
        for cell in sweep["cells"]
    ]
    options = {"metric": sweep["metric"], "direction": sweep["direction"], "budget": sweep["budget"]}
    return differences(model, task, cells, **options)


DRAWN = settings(
    max_examples=20, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)


@DRAWN
@given(sweeps())
def test_random_sweeps_in_64_bits(sweep):
    event(sweep["metric"])
    assert_equal(run(sweep, "float64"))


@settings(DRAWN, max_examples=12)
@given(sweeps())
def test_random_sweeps_in_32_bits(sweep):
    assert_equal(run(sweep, "float32"), "float32")


@pytest.mark.parametrize("metric", ANSWERS)
def test_rows_that_begin_alike_with_draws_and_folds(metric):
    """Many rows of few tokens, under every replacement: prefixes are shared wherever they may be."""
    answers = ANSWERS[metric][-1]
    its_own = "sentence_log_probability" if metric == "sentence_log_probability" else "logit_difference"
    model = random_model(n_layers=2)
    task = random_task(5, lengths=(6,) * 6, answers=answers, folds=2, metric=its_own)
    sites = [Site(name, layer) for name in ("z", "resid_pre") for layer in range(2)]
    replacements = every_replacement(model, task, sites, patched=True)
    cells = [
        (change(site.name, site.layer, replacement, positions=positions),)
        for replacement in replacements.values()
        for site in sites
        for positions in (None, (1,), (4, 5))
    ]
    assert_equal(differences(model, task, cells, metric=metric, direction="denoise"))


def test_a_later_change_at_an_earlier_position():
    """It stands in what rows share; what follows it has to be computed from there on all the same."""
    model, task = random_model(n_layers=LAYERS), random_task(5, lengths=(7,) * 6)
    zero = Zero()
    places = [("resid_pre", 0), ("z", 0), ("mlp_post", 0), ("mlp_out", 0), ("z", 1), ("mlp_out", 1)]
    cells = [
        (change(*first, zero, positions=(late,)), change(*second, zero, positions=(early,)))
        for first, second in itertools.combinations(places, 2)
        for late, early in ((5, 1), (6, 2))
    ]
    assert_equal(differences(model, task, cells))


def test_cells_with_every_layer_and_site_at_once():
    """What is changed upstream is what is changed again downstream."""
    rng = random.Random(0)
    model, task = random_model(n_layers=LAYERS), random_task(3, lengths=(6, 6, 4))
    sites = [Site(name, layer) for name in WRITTEN if name != "pattern" for layer in range(LAYERS)]
    replacements = every_replacement(model, task, sites, patched=True)
    cells = []
    for size in (2, 5, 10, 20, len(sites)):
        for _ in range(2):
            chosen = rng.sample(sites, size)
            some = [rng.choice([None, (1,), (2, 3), (3,)]) for _ in chosen]
            kinds = [rng.choice(list(replacements)) for _ in chosen]
            cells.append(
                tuple(
                    change(site.name, site.layer, replacements[kind], positions=positions)
                    for site, kind, positions in zip(chosen, kinds, some, strict=True)
                )
            )
    assert_equal(differences(model, task, cells, direction="noise"))


SEVERAL = ["z", "result", "q_input", "pattern", "resid_pre", "mlp_post"]


def in_pairs(name, parts):
    """Cells of two changes at one site, in every order of three kinds; in both layers of two."""
    model, task = random_model(), random_task(4, lengths=(6, 4))
    made = every_replacement(model, task, [Site(name, 0), Site(name, 1)], patched=True)
    kinds = ("zero", "add", "patch")
    cells = [
        tuple(change(name, layer, made[kind], **where) for kind, where in zip(pair, parts, strict=True))
        for layer, pair in zip([0, 1] * 5, itertools.product(kinds, kinds), strict=False)
    ]
    return differences(model, task, cells, direction="denoise")


@pytest.mark.parametrize("name", SEVERAL)
def test_several_changes_at_different_places_of_one_site(name):
    axes = SITES[name][1]
    parts = [{"positions": (1,)}, {"positions": (3, 2)}]
    if "head" in axes:
        parts = [{"heads": (0,)}, {"heads": (2, 1), "positions": (1, 3)}]
    if "d_mlp" in axes:
        parts = [{"units": (3, 4)}, {"units": (5,), "positions": (2,)}]
    assert_equal(in_pairs(name, parts))


@pytest.mark.parametrize("name", SEVERAL)
def test_several_changes_at_one_place_come_one_after_the_other(name):
    """Zero and then add is not add and then zero, also where both orders are in one sweep."""
    assert_equal(in_pairs(name, [{"positions": (1, 2)}, {"positions": (2, 3)}]))


def test_a_sweep_that_changes_nothing_in_a_later_layer():
    """Nothing is run then, wherever the cells would begin."""
    model, task = random_model(n_layers=3), random_task(0, lengths=(6, 4))
    nowhere = dict.fromkeys(range(4), ())
    patch = every_replacement(model, task, [Site("resid_pre", 1), Site("z", 2)], patched=True)["patch"]
    for cell in (
        (change("z", 2, Zero(), positions=nowhere),),
        (change("resid_pre", 1, patch, positions=(0,)),),
        (change("resid_pre", 1, patch, positions=(0,)), change("z", 2, patch, positions=(0,))),
    ):
        assert_equal(differences(model, task, [cell], direction="denoise"))


@pytest.mark.parametrize("device", [pytest.param("cpu", marks=pytest.mark.slow), DEVICES[1]])
def test_the_shape_of_gpt2_small(device):
    config = TransformerConfig(
        n_layers=12, n_heads=12, d_model=768, d_head=64, d_mlp=3072, d_vocab=500, n_ctx=32, init_std=0.2
    )
    model = HookedTransformer(config).to(device)
    task = random_task(1, lengths=(10, 10, 7), d_vocab=500)
    places = [("z", 0), ("resid_pre", 3), ("q", 6), ("pattern", 8), ("mlp_post", 9), ("attn_out", 11)]
    replacements = every_replacement(model, task, [Site("resid_pre", 3)], patched=True)
    zero = Zero()
    mean = make_replacement("mean", model, task, sites=[Site("z", 0)])
    cells = [(change(name, layer, zero, positions=(2, 5)),) for name, layer in places]
    cells += [(change("z", 0, mean, heads=(3,)),), (change("resid_pre", 3, replacements["patch"], positions=(4,)),)]
    cells += [(change("z", 2, zero, heads=(1,)), change("z", 10, zero, heads=(11, 2)))]
    assert_equal(differences(model, task, cells, direction="denoise"), "float32")


METRICS = ("logit_difference", "probability", "kl_divergence")
every_variant = each_variant(40)


def numbered(fields):
    return list(VARIANTS.values()).index(fields)


def cells_at_every_site(model, fields, task):
    """At each site one replacement, drawn as its place is: the next variant has other ones."""
    rng, cells = random.Random(numbered(fields)), []
    for name in sites_of(fields):
        layer = rng.randrange(2)
        replacements = every_replacement(model, task, [Site(name, layer)], patched=True)
        where = {"positions": rng.choice([None, (2,), (3, 1)])}
        if "head" in SITES[name][1]:
            where["heads"] = rng.choice([None, (0,)])
        cells.append((change(name, layer, rng.choice(list(replacements.values())), **where),))
    return cells


@every_variant
@pytest.mark.parametrize("device", DEVICES)
def test_the_engine_equals_the_reference_at_every_site(fields, device):
    model = random_model(**fields).to(device)
    task = random_task(numbered(fields), lengths=(6, 4, 6))
    cells = cells_at_every_site(model, fields, task)
    direction = ("denoise", "noise")[numbered(fields) % 2]
    assert_equal(differences(model, task, cells, direction=direction, metric=METRICS[numbered(fields) % 3]))


@every_value
def test_several_changes_in_one_cell(fields):
    model = random_model(**fields)
    task = random_task(numbered(fields) + 100, lengths=(5, 5, 7))
    sites = sites_of(fields)
    mean = {
        name: make_replacement("positional_mean", model, task, sites=[Site(name, 0), Site(name, 1)]) for name in sites
    }
    cells = [
        (change(one, 0, mean[one], positions=(2,)), change(other, 1, Zero(), positions=(3,)), change("z", 1, mean["z"]))
        for one, other in zip(sites, sites[1:] + sites[:1], strict=True)
        if other != "z"
    ]
    assert_equal(differences(model, task, cells))


@every_value
def test_sweeps_over_heads_and_positions(fields):
    """The public calls, which audit themselves, with every key head as a cell of its own."""
    model, task = random_model(**fields), random_task(1, lengths=(6, 6, 6, 6))
    for site, n_heads in (("z", 4), ("k", fields.get("n_kv_heads") or 4)):
        found = patch(model, task, site=site, by=("layer", "head", "pos"), direction="noise")
        assert len(found.examples.groupby(["layer", "head"])) == 2 * n_heads
        assert (found.examples["status"] == "changed").any()
    assert len(ablate(model, task, components="heads", replacement="mean").summary()) == 8


class TestBidirectional:
    """Where attention looks forward, too, a change is felt everywhere."""

    def test_a_change_behind_the_answer_reaches_it(self):
        model = random_model(causal=False)
        task = random_task(3, lengths=(6, 6), metric="sentence_log_probability", answers=(2, 2))
        cells = [Cell({"pos": pos}, (change("resid_pre", 0, Zero(), positions=(pos,)),)) for pos in range(6)]
        frame = Sweep(cells).run(model, task).examples
        assert set(frame["status"]) == {"changed"}
        assert (frame["effect"].abs() > 1e-9).all()

    def test_what_the_source_reads_later_is_patched_in_earlier(self):
        """Behind the first layer, a position before the first token that differs is not the same in both runs."""
        task = random_task(3, lengths=(6, 6))
        for causal, expected in ((False, {"changed"}), (True, {"identical input"})):
            model = random_model(n_layers=2, causal=causal)
            result = patch(model, task, site="resid_pre", by=("layer", "pos"), layers=[1])
            assert set(result.examples[result.examples["pos"] == 0]["status"]) == expected


def test_a_key_head_that_is_not_there_raises():
    model, task = random_model(n_heads=4, n_kv_heads=2), random_task(0)
    with pytest.raises(InputError, match=r"heads: the model has 2 \(0 to 1\), got \(2,\)"):
        Sweep([Cell({"head": 2}, (change("k", 0, Zero(), heads=(2,)),))]).run(model, task)


def test_half_precision_agrees_within_its_own():
    llama = {"positions": "rotary", "d_head": 6, "n_heads": 4, "n_kv_heads": 2, "normalization": "RMS", "gated": True}
    model = random_model(dtype=torch.bfloat16, **llama)
    cells = [(change("z", layer, Zero(), heads=(1,)),) for layer in range(2)]
    assert differences(model, random_task(0), cells)["value"] < 0.05
