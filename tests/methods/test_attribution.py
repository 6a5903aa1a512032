import copy
import dataclasses
import gc

import numpy as np
import pytest
import torch
from hand_model import HandModel, varied_task
from random_tasks import encoded, random_task, relative
from tiny_models import random_gpt2, random_model
from transformer_lens.hook_points import HookPoint
from transformer_lens.model_bridge.sources import build_bridge_from_module

from interp.errors import InputError
from interp.interventions.hooked_runs import DifferentiableRun
from interp.interventions.replacement import Add
from interp.interventions.rows import batches, task_rows
from interp.interventions.sweep import Cell, Sweep
from interp.methods.attribution import attribute
from interp.methods.grid import Grid, patch_cells
from interp.methods.patching import patch
from interp.model.loading import load_model
from interp.residual.collecting import read
from interp.tasks.task import Unit

pytestmark = pytest.mark.filterwarnings("ignore:.*the intervention changed nothing:RuntimeWarning")

FINEST = {
    "resid_pre": ("layer", "pos"),
    "resid_mid": ("pos", "layer"),
    "resid_post": ("layer", "pos"),
    "attn_out": ("layer", "pos"),
    "mlp_out": ("layer", "pos"),
    "z": ("layer", "head", "pos"),
    "result": ("pos", "layer", "head"),
    "q": ("head", "layer", "pos"),
    "k": ("layer", "head", "pos"),
    "v": ("layer", "head", "pos"),
    "pattern": ("key", "head", "layer", "pos"),
    "mlp_pre": ("layer", "pos", "neuron"),
    "mlp_post": ("neuron", "layer", "pos"),
}
SAME_LENGTH = (4, 4)


def small_model(**fields):
    return random_model(**{"n_heads": 2, "d_model": 6, "d_head": 3, "d_mlp": 4} | fields)


def nudge(model, share):
    """Adds a share of the way to the source's activation."""
    unhooked, run = copy.deepcopy(model), {}

    def at(name, tokens):
        key = (name, str(tokens.tolist()))
        if key not in run:
            run[key] = unhooked.run_with_cache(tokens, names_filter=name)[1][name].detach()
        return run[key]

    return Add(lambda site, batch: share * (at(site.hook_name, batch.source_tokens) - at(site.hook_name, batch.tokens)))


def slopes(model, task, site, by, direction, metric=None):
    """The metric's central difference in every cell on the way to the source, one hooked forward a cell."""
    cells = patch_cells(model, task, Grid(site, by), direction)
    values = []
    for share in (1e-5, -1e-5):
        there = nudge(model, share)
        moved = [
            Cell(cell.labels, tuple(dataclasses.replace(each, replacement=there) for each in cell.interventions))
            for cell in cells
        ]
        values.append(Sweep(moved).run(model, task, metric=metric, direction=direction, plainly=True).examples)
    up, down = values
    return up.assign(estimate=(up["value"] - down["value"]) / 2e-5)


def same(found, expected, column="estimate", tolerance=1e-7):
    keys = [each for each in found.columns if each != "estimate"]
    assert found[keys].astype(str).equals(expected[keys].astype(str))
    assert found["estimate"].abs().max() > 1e-3
    assert relative([(found["estimate"].to_numpy(), expected[column].to_numpy())]) < tolerance


@pytest.mark.unchecked
@pytest.mark.parametrize("direction", ["denoise", "noise"])
@pytest.mark.parametrize("site", FINEST)
def test_estimates_are_the_metrics_slopes_toward_the_source(site, direction):
    model, task, by = small_model(), random_task(lengths=SAME_LENGTH), FINEST[site]
    found = attribute(model, task, site=site, by=by, direction=direction)
    same(found.examples, slopes(model, task, site, by, direction))


@pytest.mark.parametrize(
    ("metric", "answers"), [("probability", (1, 1)), ("sentence_log_probability", (2, 1)), ("logit_difference", (1, 1))]
)
@pytest.mark.parametrize("site", ["k", "pattern"])
def test_of_every_metric(metric, answers, site):
    model, by = small_model(), ("layer", "head")
    task = random_task(lengths=(5, 4, 6), answers=answers)
    found = attribute(model, task, site=site, by=by, metric=metric)
    same(found.examples, slopes(model, task, site, by, "denoise", metric))


@pytest.mark.parametrize("site", FINEST)
def test_coarse_cells_are_sums_of_fine_ones(site):
    model, task = small_model(), random_task(lengths=SAME_LENGTH)
    fine = attribute(model, task, site=site, by=FINEST[site]).examples
    for axis in FINEST[site]:
        coarse = attribute(model, task, site=site, by=(axis,)).examples
        sums = fine.groupby([axis, "example"], sort=False)["estimate"].sum().reset_index()
        both = coarse.merge(sums, on=[axis, "example"], validate="1:1")
        assert len(both) == len(coarse)
        np.testing.assert_allclose(both["estimate_x"], both["estimate_y"], rtol=1e-9, atol=1e-12)


def test_exact_where_the_metric_is_linear():
    """The hand-made model has no LayerNorm: what its heads write is added to the logits."""
    task, by = varied_task(), ("layer", "head", "pos")
    found, exact = attribute(HandModel(), task, by=by).examples, patch(HandModel(), task, by=by).examples
    keys = ["layer", "head", "pos", "example"]
    assert found[keys].equals(exact[keys])
    assert exact["effect"].abs().max() > 0.5
    np.testing.assert_allclose(found["estimate"], exact["effect"], atol=1e-6)


@pytest.mark.parametrize("method", ["attribution", "integrated_gradients"])
@pytest.mark.parametrize(("site", "by"), [("z", ("layer", "head", "pos")), ("resid_pre", ("layer", "pos"))])
def test_on_transformer_lens_own_model(site, by, method):
    module, task = random_gpt2(), random_task(lengths=(6, 6))
    bridge = build_bridge_from_module(copy.deepcopy(module), architecture="GPT2LMHeadModel", hf_config=module.config)
    ours, theirs = (attribute(model, task, site=site, by=by, method=method) for model in (load_model(module), bridge))
    same(theirs.examples, ours.examples, tolerance=1e-5)  # parts of theirs are in 32 bits


def test_a_point_that_the_model_does_not_run_is_no_zero():
    model = HandModel()
    model.blocks[0].attn.hook_result = HookPoint()
    model.setup()
    with pytest.raises(InputError, match=r"hook_result: the model did not run this point.*set_use_attn_result"):
        attribute(model, varied_task(), site="result")
    with pytest.raises(
        InputError, match=r"site 'mlp_post': expected one that the model has, got blocks.0.mlp.hook_post"
    ):
        attribute(model, varied_task(), site="mlp_post", by=("layer",))


def test_estimates_become_exact_as_the_prompts_come_together():
    """What is left is of the next order: a tenth of the distance, a tenth of the error relative to the effect."""
    task, errors = random_task(lengths=SAME_LENGTH), []
    for distance in (1e-2, 1e-3):
        model = small_model()
        with torch.no_grad():
            model.embed.W_E[:] = model.embed.W_E[:1] + distance * model.embed.W_E
        found, exact = attribute(model, task).examples["estimate"], patch(model, task).examples["effect"]
        errors.append((found - exact).abs().max() / exact.abs().max())
    assert 1e-4 < errors[0] < 0.1
    assert errors[1] == pytest.approx(errors[0] / 10, rel=0.2)


def test_the_formula_by_transformer_lens_hooks():
    model, task = random_model(), random_task(lengths=(6,), seed=3)
    clean, corrupted = (torch.tensor([each.prompt]) for each in task.units[0].examples)
    (right,), (wrong,) = task.units[0].item.right, task.units[0].item.wrong
    _, source = model.run_with_cache(clean)
    acts, grads = {}, {}
    with model.hooks(
        fwd_hooks=[(lambda name: name.endswith("hook_z"), lambda x, hook: acts.update({hook.name: x.detach()}))],
        bwd_hooks=[(lambda name: name.endswith("hook_z"), lambda x, hook: grads.update({hook.name: x.detach()}))],
    ):
        logits = model(corrupted)[0, -1]
        (logits[right] - logits[wrong]).backward()
    expected = [
        ((source[name] - acts[name]) * grads[name]).sum((0, 1, 3)).detach()
        for name in ("blocks.0.attn.hook_z", "blocks.1.attn.hook_z")
    ]
    found = attribute(model, task).examples.query("example == 0")["estimate"]
    np.testing.assert_allclose(found, torch.cat(expected).numpy(), rtol=1e-9)


@pytest.mark.parametrize(
    ("metric", "answers"),
    [("logit_difference", (1, 1)), ("sentence_log_probability", (1, 2)), ("kl_divergence", (1, 1))],
)
def test_integrated_gradients_are_complete(metric, answers):
    """Over the embeddings of all positions they sum to what the metric changes; the more steps, the nearer."""
    model, task = random_model(), random_task(lengths=(6, 5, 6), answers=answers)
    exact = patch(model, task, site="resid_pre", by=("layer",), layers=[0], metric=metric).examples
    gaps = []
    for steps in (1, 8, 32):
        found = attribute(
            model,
            task,
            site="resid_pre",
            by=("layer",),
            layers=[0],
            metric=metric,
            method="integrated_gradients",
            steps=steps,
        )
        gap = np.abs(found.examples["estimate"] - (exact["source"] - exact["base"])).max()
        said = found.provenance["completeness"]
        assert said["largest_gap"] == pytest.approx(gap, rel=1e-6, abs=1e-12)
        assert said["largest_change"] == pytest.approx(np.abs(exact["source"] - exact["base"]).max())
        gaps.append(gap)
    assert gaps[0] > 10 * gaps[1] > 1e4 * gaps[2]
    assert gaps[2] < 1e-8 * said["largest_change"]


def test_integrated_gradients_are_the_mean_slope_of_the_way():
    """At any site: the difference there, with the gradient averaged as the embeddings go from run to source."""
    model, task = random_model(), random_task(lengths=(6, 6))
    (batch,) = batches(model, task_rows(task.metric, task.units, "denoise"))
    names = ["blocks.0.hook_resid_pre", "blocks.1.attn.hook_z"]
    run = DifferentiableRun(model, batch, "logit_difference", names)
    here, there = (read(model, tokens, names) for tokens in (batch.tokens, batch.source_tokens))
    points = [(step + 0.5) / 60 for step in range(60)]
    embeddings = [here[names[0]] + point * (there[names[0]] - here[names[0]]) for point in points]
    mean = sum(run.gradients(each)[1][names[1]] for each in embeddings) / 60
    expected = ((there[names[1]] - here[names[1]]) * mean).sum((1, 3)).T.flatten()
    found = attribute(model, task, layers=[1], method="integrated_gradients", steps=24)
    order = found.examples.sort_values(["head", "example"])["estimate"]
    np.testing.assert_allclose(order, expected.detach(), rtol=1e-3, atol=1e-5)
    assert found.provenance["steps"] == 24


def test_positions_of_unequal_prompts_go_by_their_names():
    model, task = random_model(d_vocab=8), varied_task(4)
    by_position = attribute(model, task, by=("layer", "pos"))
    same(by_position.examples, slopes(model, task, "z", ("layer", "pos"), "denoise"))
    n_short = sum(len(each.prompt) == 3 for each in task.examples)
    counts = by_position.examples.query("layer == 0").groupby("pos")["example"].count()
    assert 0 < n_short < len(task.examples)
    assert counts["rest"] == len(task.examples) - n_short
    assert counts["related"] == len(task.examples)


def unequal_task():
    """The related word has one token in one prompt and two in the other; the last word differs, too."""
    units = [
        Unit(
            encoded([0, *before, 5 + number, 11, 12], (3,), (4,), related=(1 + len(before),)),
            encoded([0, *before, 8, 9 + number, 11, 13], (4,), (3,), related=(1 + len(before), 2 + len(before))),
            f"c{number}",
        )
        for number, before in enumerate([(1, 2), (1, 2, 3), (2,)])
    ]
    return dataclasses.replace(random_task(), units=tuple(units))


@pytest.mark.parametrize("direction", ["denoise", "noise"])
def test_a_source_of_another_length_is_read_where_it_corresponds(direction):
    """As the prompts come together the estimates become the effects, of a source read at the right positions."""
    errors = []
    for distance in (1e-2, 1e-3):
        model = random_model()
        with torch.no_grad():
            model.embed.W_E[:] = model.embed.W_E[:1] + distance * model.embed.W_E
            model.pos_embed.W_pos[:] = model.pos_embed.W_pos[:1]
            exact = patch(model, unequal_task(), by=("layer", "pos"), direction=direction).examples
        found = attribute(model, unequal_task(), by=("layer", "pos"), direction=direction).examples
        assert found[["layer", "pos", "example"]].equals(exact[["layer", "pos", "example"]])
        errors.append((found["estimate"] - exact["effect"]).abs().max() / exact["effect"].abs().max())
    assert 1e-5 < errors[0] < 0.1
    assert errors[1] == pytest.approx(errors[0] / 10, rel=0.3)


def test_what_a_source_of_another_length_does_not_give_is_refused():
    with pytest.raises(InputError, match="some positions correspond to none there; patch by pos"):
        attribute(random_model(), unequal_task())
    with pytest.raises(InputError, match=r"no line leads from the embeddings of \d tokens to those of \d; use method="):
        attribute(random_model(), unequal_task(), by=("pos",), method="integrated_gradients")


def test_summary_is_over_balanced_units():
    model, task = random_model(), random_task(lengths=(6, 6, 6, 6))
    result = attribute(model, task, seed=4)
    summary = result.summary()
    assert list(summary.columns) == ["layer", "head", "estimate", "low", "high", "n_units", "n_clusters"]
    by_unit = result.examples.query("layer == 1 and head == 2").groupby("unit")["estimate"].mean()
    row = summary.query("layer == 1 and head == 2").iloc[0]
    assert row["estimate"] == pytest.approx(by_unit.mean())
    assert row["low"] < row["estimate"] < row["high"]
    assert (row["n_units"], row["n_clusters"]) == (4, 4)
    said = result.provenance
    assert (said["method"], said["metric"], said["site"], said["direction"], said["seed"]) == (
        "attribution",
        "logit_difference",
        "z",
        "denoise",
        4,
    )
    assert said["data_hash"] == task.hash
    assert "completeness" not in said


@pytest.mark.parametrize("wanted", [True, False])
def test_the_model_is_left_as_it_was(wanted):
    model, task = random_model().requires_grad_(wanted), random_task()
    model.ln_final.w.requires_grad_(not wanted)
    before = copy.deepcopy(model.state_dict())
    with torch.inference_mode():
        found = attribute(model, task)
    expected = attribute(random_model(), task)
    np.testing.assert_allclose(found.examples["estimate"], expected.examples["estimate"], rtol=1e-12)
    for name, parameter in model.named_parameters():
        assert parameter.requires_grad == (wanted != (name == "ln_final.w")), name
        assert parameter.grad is None
        assert torch.equal(parameter, before[name])
    assert not any(point.listened for point in model.hook_dict.values())


def test_a_budget_makes_batches_and_leaves_the_numbers():
    model, task = random_model(), random_task(lengths=(6,) * 8)
    whole = attribute(model, task).examples
    (batch,) = batches(model, task_rows(task.metric, task.units, "denoise"))
    names = [f"blocks.{layer}.attn.hook_z" for layer in range(2)]
    one = DifferentiableRun(model, batch.take([0]), "logit_difference", names).graph_bytes()
    assert DifferentiableRun(model, batch, "logit_difference", names).graph_bytes() <= 16 * one
    parts = attribute(model, task, memory_budget=3 * one).examples
    np.testing.assert_allclose(parts["estimate"], whole["estimate"], rtol=1e-9, atol=1e-12)
    with pytest.raises(InputError, match=rf"memory budget: the gradients of one row of 6 tokens take {one:,} bytes"):
        attribute(model, task, memory_budget=one - 1)


def test_nothing_is_left_of_a_graph_that_was_measured():
    model, task = small_model(), random_task(lengths=(5, 5))
    (batch,) = batches(model, task_rows(task.metric, task.units, "denoise"))
    run = DifferentiableRun(model, batch, task.metric, ["blocks.0.attn.hook_z"])

    def alive():
        gc.collect()
        return sum(isinstance(each, torch.Tensor) for each in gc.get_objects())

    run.graph_bytes()
    before = alive()
    assert run.graph_bytes() > 0
    assert alive() == before


def test_what_has_no_gradient_is_refused():
    model, task = random_model(), random_task()
    with pytest.raises(InputError, match="accuracy is a step and has no gradient"):
        attribute(model, task, metric="accuracy")
    with pytest.raises(
        InputError, match=r"estimates nothing; use another metric, or .* method='integrated_gradients' \(attr"
    ):
        attribute(model, task, metric="kl_divergence")
    with pytest.raises(InputError, match="steps: expected at least 1, got 0"):
        attribute(model, task, method="integrated_gradients", steps=0)
    with pytest.raises(InputError, match="has a counterfactual; ablate instead"):
        attribute(model, dataclasses.replace(task, units=(Unit(encoded([0, 1], [1], [2]), None, "c"),)))
    unhookable = HandModel()
    with pytest.raises(InputError, match=r"the model has no point 'blocks.0.hook_resid_pre'"):
        attribute(unhookable, varied_task(), method="integrated_gradients")


def test_a_metric_that_overflows_is_refused():
    model = random_model()
    with torch.no_grad():
        model.embed.W_E[1] = torch.nan
    with pytest.raises(InputError, match="NaN or infinite"):
        attribute(model, random_task())
