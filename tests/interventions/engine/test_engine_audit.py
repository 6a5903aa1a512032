"""The engine watches itself: what is wrong with it raises, and what it cannot see it does not run."""

import dataclasses
import warnings

import numpy as np
import planted_faults
import pytest
import torch
from hand_model import HandModel, varied_task
from random_tasks import change, every_replacement, random_task
from tiny_models import random_model

import interp
from interp.errors import AuditError
from interp.interventions import sweep_run as sweep_module
from interp.interventions.audit import _moving, draw_sample
from interp.interventions.engine.base_run import BaseRun
from interp.interventions.engine.editor import Editor
from interp.interventions.engine.layers import BlockAttention, Wavefront
from interp.interventions.engine.plan import Classifier
from interp.interventions.engine.run import Engine
from interp.interventions.hooked_runs import MixedRun
from interp.interventions.reference_set import make_replacement
from interp.interventions.replacement import Zero
from interp.interventions.rows import batches, task_rows
from interp.interventions.sweep import Cell, Sweep
from interp.model.sites import Site


@pytest.fixture
def model():
    return random_model(n_layers=3)


@pytest.fixture(scope="module")
def task():
    return random_task(0, lengths=(6, 6, 6, 5))


def heads(model, replacement=None, layers=(0, 1, 2)):
    replacement = replacement or Zero()
    return Sweep(
        [
            Cell({"layer": layer, "head": head}, (change("z", layer, replacement, heads=(head,)),))
            for layer in layers
            for head in range(model.config.n_heads)
        ]
    )


def sample_of(model, task, replacement, **options):
    """The batches and cells that a sample is drawn of."""
    return batches(model, task_rows("logit_difference", task.units)), [
        each.interventions for each in heads(model, replacement, **options).cells
    ]


def broken(owner, name, damage):
    """The method with its result damaged."""
    method = getattr(owner, name)
    return lambda *given, **named: damage(method(*given, **named))


BREAKS = {
    "the MLP": (Wavefront, "_mlp", lambda out: 1.01 * out),
    "what heads write": (Wavefront, "_write", lambda out: 1.01 * out),
    "the last stream": (Wavefront, "_final", lambda out: out.flip(0)),
    "the attention": (BlockAttention, "run", lambda z: 0.99 * z),
    "the base run": (BaseRun, "row_scores", lambda found: dataclasses.replace(found, value=found.value + 0.1)),
    "the margins": (BaseRun, "row_scores", lambda found: dataclasses.replace(found, margin=-found.margin)),
    "the changes": (Editor, "apply", lambda tensor: tensor.roll(1, -1)),
}


class TestAudit:
    @pytest.mark.parametrize("part", BREAKS)
    def test_an_engine_that_is_broken_raises(self, model, task, monkeypatch, part):
        owner, name, damage = BREAKS[part]
        heads(model).run(model, task)
        monkeypatch.setattr(owner, name, broken(owner, name, damage))
        with pytest.raises(
            AuditError,
            match=r"the sweep's own audit failed: \d+ prompts .* expected at most \de-1[345]; please report this",
        ):
            heads(model).run(model, task)
        heads(model).run(model, task, plainly=True)

    def test_a_small_error_raises_and_a_smaller_one_does_not(self, model, task, monkeypatch):
        for relative, wrong in ((1e-12, True), (2e-15, False)):
            with monkeypatch.context() as patched:
                damage = lambda found, by=relative: [  # noqa: E731
                    dataclasses.replace(
                        each, scores=dataclasses.replace(each.scores, value=each.scores.value * (1 + by))
                    )
                    for each in found
                ]
                patched.setattr(Engine, "_scores", broken(Engine, "_scores", damage))
                if wrong:
                    with pytest.raises(AuditError, match=r"differ by \d\.\de-1[23] of the largest score"):
                        heads(model).run(model, task)
                else:
                    found = heads(model).run(model, task).provenance["audit"]
                    assert 1e-15 < found["largest_difference"] < 1e-14

    def test_numbers_that_are_none_raise(self, model, task, monkeypatch):
        """A comparison with NaN must not pass."""
        scores = MixedRun.scores

        def none(self, before=()):
            found = scores(self, before)
            return dataclasses.replace(found, value=found.value * np.nan)

        monkeypatch.setattr(MixedRun, "scores", none)
        with pytest.raises(AuditError, match="differ by nan of the largest score"):
            heads(model).run(model, task)

    @pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
    def test_the_largest_difference_is_told(self, task, dtype):
        model = random_model(n_layers=3, dtype=dtype)
        found = heads(model).run(model, task).provenance["audit"]
        assert set(found) == {"cells", "rows", "largest_difference", "tolerance"}
        eps = torch.finfo(dtype).eps
        assert 0 <= found["largest_difference"] < found["tolerance"]
        assert 16 * eps <= found["tolerance"] < 1000 * eps
        assert found["rows"] == 4
        assert 2 <= found["cells"] <= 4

    @pytest.mark.parametrize("metric", ["kl_divergence", "probability", "accuracy"])
    def test_metrics(self, model, task, metric):
        """Heads that get the same items right are no twins: what is bit-identical is not what was measured."""
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = heads(model).run(model, task, metric=metric).provenance["audit"]
        assert found["largest_difference"] < 1e-10

    @pytest.mark.parametrize("scale", [1.0, 10.0])
    def test_small_probabilities(self, scale):
        """Their margins are in logits: what rounding does to these is no share of a probability."""
        model = random_model(n_layers=3, d_vocab=5000, dtype=torch.float32)
        with torch.no_grad():
            model.unembed.W_U.mul_(scale)
        found = heads(model).run(model, random_task(0, d_vocab=5000), metric="probability")
        assert found.examples["base"].max() < 0.1
        assert found.provenance["audit"]["largest_difference"] < 1e-4

    def test_a_patch_whose_source_is_far_more_probable(self):
        """The rounding of its run is not to be held against the scores of the others."""
        model = interp.load_model()
        task = interp.load_task("agreement", n=8, tokenizer=model.tokenizer)
        found = interp.patch(model, task, site="z", metric="probability")
        largest = found.examples[["base", "value", "source"]].max()
        assert largest["source"] > 30 * largest["base"]
        assert found.provenance["audit"]["largest_difference"] < 1e-5

    def test_rounding_of_a_model_that_carries_it_far_is_none_of_the_engines_faults(self, task):
        """Its scores lie beyond a few units of rounding from each other, and a unit moves them as far."""
        torch.manual_seed(0)
        model = random_model(n_layers=3, dtype=torch.float32)
        with torch.no_grad():
            # What all logits share, a difference takes away, and not what is rounded of it.
            model.unembed.W_U.add_(30 * torch.randn(model.config.d_model, 1))
        found = heads(model).run(model, task).provenance["audit"]
        assert found["tolerance"] > 1.5 * 16 * torch.finfo(torch.float32).eps
        assert found["largest_difference"] > 16 * torch.finfo(torch.float32).eps

    def test_every_draw_and_batch_may_be_in_the_sample(self, model, task):
        """Among them batches of one row, and every draw of a replacement."""
        single = dataclasses.replace(task.units[3], counterfactual=None)
        uneven = dataclasses.replace(task, units=(*task.units[:3], single))
        resample = make_replacement("resample", model, uneven, sites=[Site("z", 1)], draws=3)
        parts, cells = sample_of(model, uneven, resample, layers=(1,))
        drawn = [
            each
            for seed in range(40)
            for each in draw_sample(parts, cells, np.array([3] * len(cells)), causal=True, seed=seed)
        ]
        assert {each.draw for each in drawn} == {0, 1, 2}
        assert {(each.batch, each.row) for each in drawn} == {(0, 0), *((1, row) for row in range(6))}
        assert {each.cell for each in drawn} == set(range(len(cells)))

    @pytest.mark.parametrize("seed", range(5))
    def test_every_layer_and_kind_of_row_is_in_the_sample(self, model, seed):
        """Those that compute all of themselves, and those whose beginning another row computes."""
        parts, cells = sample_of(model, random_task(1, lengths=(6,) * 60), Zero())
        drawn = draw_sample(parts, cells, np.ones(len(cells), dtype=int), causal=True, seed=seed)
        assert len(drawn) == 120 * len(cells) // 96
        classes = Classifier(parts[0], causal=True).classes(cells[0], 0).classes
        for layer in range(3):
            mine = [each.row for each in drawn if cells[each.cell][0].site.layer == layer]
            assert len({each.own for each in classes for row in mine if row in each.rows}) >= 3

    @pytest.mark.parametrize("kind", ["patch", "positional_mean"])
    def test_a_sweep_leaves_what_it_puts_in_as_it_was(self, model, task, monkeypatch, kind):
        """The audit puts the same values in."""
        patched = dataclasses.replace(task, units=task.units[:3])
        replacement = every_replacement(model, patched, [Site("z", 1)], patched=True)[kind]
        values, seen = type(replacement).values, []

        def watched(self, site, batch, draw):
            found = values(self, site, batch, draw)
            seen.append((found, found.clone()))
            return found

        monkeypatch.setattr(type(replacement), "values", watched)
        heads(model, replacement, layers=(1,)).run(model, patched, direction="denoise")
        assert seen
        assert all(torch.equal(now, before) for now, before in seen)

    def test_the_plain_way_is_not_audited(self, model, task):
        assert heads(model).run(model, task, plainly=True).provenance["audit"] is None


@pytest.mark.unchecked  # a wrong type is a fault that the audit itself is to find
class TestPlantedFaults:
    """``python tests/interventions/engine/planted_faults.py`` prints the rates, of more sweeps."""

    @pytest.mark.parametrize("fault", planted_faults.FAULTS, ids=lambda fault: fault.__name__)
    def test_they_are_caught(self, fault):
        assert planted_faults.rates(fault, 3, one_layer=False) == (3, 3)

    @pytest.mark.slow
    @pytest.mark.parametrize("fault", planted_faults.FAULTS, ids=lambda fault: fault.__name__)
    def test_they_are_caught_in_one_layer_alone(self, fault):
        caught, planted = planted_faults.rates(fault, 60, one_layer=fault is not planted_faults.answers_of_another_row)
        assert planted == 60
        assert caught >= 57

    @pytest.mark.slow
    @pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
    def test_sweeps_without_any_pass(self, dtype):
        for seed in range(60):
            found = planted_faults.RandomSweep(seed, dtype).run().provenance["audit"]
            assert found["largest_difference"] <= 0.5 * found["tolerance"]


class TestHooksOfOthers:
    @pytest.mark.parametrize("name", ["blocks.1.hook_mlp_out", "blocks.0.attn.hook_result", "hook_embed"])
    def test_they_are_honoured_and_left_in_place(self, model, task, name):
        without = heads(model).run(model, task)
        calls = []

        def louder(value, *, hook):
            calls.append(hook.name)
            return 1.5 * value

        model.add_hook(name, louder)
        found = heads(model).run(model, task)
        assert found.provenance["engine"] == "plain"
        assert without.provenance["engine"] == "incremental"
        assert set(calls) == {model.hook_dict[name].name}
        assert (found.examples["base"] - without.examples["base"]).abs().min() > 1e-6
        assert (found.examples["value"] - without.examples["value"]).abs().max() > 1e-6
        before = len(calls)
        model(torch.tensor([task.examples[0].prompt]))
        assert len(calls) == before + 1
        model.reset_hooks()
        again = heads(model).run(model, task)
        assert again.provenance["engine"] == "incremental"
        np.testing.assert_array_equal(again.examples["value"], without.examples["value"])

    def test_a_hook_that_only_looks_changes_nothing(self, model, task):
        without = heads(model).run(model, task).examples
        model.add_hook("blocks.2.hook_resid_post", lambda value, hook: None)
        found = heads(model).run(model, task).examples
        np.testing.assert_allclose(found["value"], without["value"], rtol=1e-10)
        np.testing.assert_allclose(found["change_norm"], without["change_norm"], rtol=1e-10)

    def test_the_engine_leaves_no_hooks(self, model, task):
        heads(model).run(model, task)
        assert not [name for name, point in model.hook_dict.items() if point.fwd_hooks or point.bwd_hooks]

    def test_other_models_run_the_plain_way(self):
        sweep = Sweep([Cell({"head": 0}, (change("z", 0, Zero(), heads=(0,)),))])
        assert sweep.run(HandModel(), varied_task()).provenance["engine"] == "plain"

    def test_so_do_subclasses_of_ours(self, model, task):
        """They may run something else."""
        model.__class__ = type("Other", (type(model),), {})
        assert heads(model).run(model, task).provenance["engine"] == "plain"


@pytest.mark.parametrize(("precision", "unit"), [("ieee", 2.0**-23), ("tf32", 2.0**-10), ("bf16", 2.0**-7)])
def test_products_of_fewer_bits_are_allowed_their_rounding(precision, unit):
    """On a CPU, too, which may be asked for them."""
    products = torch.backends.mkldnn.matmul
    before, products.fp32_precision = products.fp32_precision, precision
    try:
        (_, move), *_ = _moving(random_model(dtype=torch.float32))
    finally:
        products.fp32_precision = before
    moved = move(torch.ones(4, 5, 6), hook=None)
    assert set((moved - 1).unique().tolist()) == {-unit, unit}


def test_asked_for_the_plain_way_no_engine_runs(model, task, monkeypatch):
    monkeypatch.setattr(sweep_module, "Engine", None)
    found = heads(model).run(model, task, plainly=True)
    assert found.provenance["engine"] == "plain"


def test_progress_counts_cells_once(model, task):
    seen = []
    heads(model).run(model, task, progress=lambda *step: seen.append(step))
    assert [done for done, _ in seen] == list(range(1, 10))
    assert {total for _, total in seen} == {9}
