"""The engine watches itself: what is wrong with it raises, and what it cannot see it does not run."""

import dataclasses
import warnings

import numpy as np
import pytest
import torch
from hand_model import HandModel, varied_task
from random_tasks import change, every_replacement, random_task
from tiny_models import random_model

from interp.errors import AuditError
from interp.interventions import sweep_run as audit_module
from interp.interventions import sweep_run as sweep_module
from interp.interventions.engine.base_run import BaseRun
from interp.interventions.engine.editor import Editor
from interp.interventions.engine.layers import BlockAttention, Wavefront
from interp.interventions.engine.run import Engine
from interp.interventions.hooked_runs import PlainRun
from interp.interventions.reference_set import make_replacement
from interp.interventions.replacement import Zero
from interp.interventions.sweep import Cell, Sweep
from interp.interventions.sweep_run import TOLERANCE
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
            match=r"the sweep's own audit failed: \d+ prompts .* expected at most 1e-09; please report this",
        ):
            heads(model).run(model, task)
        heads(model).run(model, task, plainly=True)

    def test_a_small_error_raises_and_a_smaller_one_does_not(self, model, task, monkeypatch):
        for relative, wrong in ((1e-8, True), (1e-11, False)):
            with monkeypatch.context() as patched:
                damage = lambda found, by=relative: [  # noqa: E731
                    dataclasses.replace(
                        each, scores=dataclasses.replace(each.scores, value=each.scores.value * (1 + by))
                    )
                    for each in found
                ]
                patched.setattr(Engine, "_scores", broken(Engine, "_scores", damage))
                if wrong:
                    with pytest.raises(AuditError, match=r"differ by \d\.\de-0[89] of the largest score"):
                        heads(model).run(model, task)
                else:
                    found = heads(model).run(model, task).provenance["audit"]
                    assert 1e-13 < found["largest_difference"] < 1e-10

    def test_numbers_that_are_none_raise(self, model, task, monkeypatch):
        """A comparison with NaN must not pass."""
        scores = PlainRun.scores

        def none(self, interventions, draw):
            found = scores(self, interventions, draw)
            return dataclasses.replace(found, value=found.value * np.nan)

        monkeypatch.setattr(PlainRun, "scores", none)
        with pytest.raises(AuditError, match="differ by nan of the largest score"):
            heads(model).run(model, task)

    @pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
    def test_the_largest_difference_is_told(self, task, dtype):
        model = random_model(n_layers=3, dtype=dtype)
        found = heads(model).run(model, task).provenance["audit"]
        assert set(found) == {"cells", "rows", "largest_difference", "tolerance"}
        assert 0 <= found["largest_difference"] < TOLERANCE[dtype] == found["tolerance"]
        assert found["cells"] == 2
        assert 1 <= found["rows"] <= 16

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

    def test_every_draw_and_batch_may_be_in_the_sample(self, model, task, monkeypatch):
        """Among them batches of one row, and every draw of a replacement."""
        seen = []

        class Watched(PlainRun):
            def __init__(self, model, batch, metric, **options):
                super().__init__(model, batch, metric, **options)
                self.rows = tuple(row.example for row in batch.rows)

            def scores(self, interventions, draw=0):
                seen.append((self.rows, draw))
                return super().scores(interventions, draw)

        monkeypatch.setattr(audit_module, "PlainRun", Watched)
        single = dataclasses.replace(task.units[3], counterfactual=None)
        uneven = dataclasses.replace(task, units=(*task.units[:3], single))
        resample = make_replacement("resample", model, uneven, sites=[Site("z", 1)], draws=3)
        sweep = heads(model, resample, layers=(1,))
        for seed in range(12):
            found = sweep.run(model, uneven, seed=seed).provenance["audit"]
            assert found["largest_difference"] < 1e-10
        assert {draw for _, draw in seen} == {0, 1, 2}
        assert {rows for rows, _ in seen} == {tuple(range(6)), (6,)}

    def test_more_rows_than_are_audited(self, model, monkeypatch):
        many = random_task(1, lengths=(6,) * 10)
        first, other = (heads(model).run(model, many, seed=seed).provenance["audit"] for seed in (0, 1))
        assert first["rows"] == other["rows"] == 16

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


def test_asked_for_the_plain_way_no_engine_runs(model, task, monkeypatch):
    monkeypatch.setattr(sweep_module, "Engine", None)
    found = heads(model).run(model, task, plainly=True)
    assert found.provenance["engine"] == "plain"


def test_progress_counts_cells_once(model, task):
    seen = []
    heads(model).run(model, task, progress=lambda *step: seen.append(step))
    assert [done for done, _ in seen] == list(range(1, 10))
    assert {total for _, total in seen} == {9}
