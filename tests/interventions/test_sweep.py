import dataclasses
import warnings

import numpy as np
import pytest
import torch
from hand_model import (
    ARE,
    BOS,
    BY,
    IS,
    KEY,
    N_CLUSTERS,
    NEAR,
    THERE,
    HandModel,
    encode,
    pair,
    prompts,
    task_of,
    varied_task,
)
from random_tasks import random_task
from tiny_models import random_model

from interp.claims.bootstrap import FEWEST_CLUSTERS
from interp.errors import InputError
from interp.interventions.intervention import Intervention
from interp.interventions.metrics import Answers, score
from interp.interventions.reference_set import make_replacement
from interp.interventions.replacement import Add, Patch, Zero
from interp.interventions.rows import batches, task_rows
from interp.interventions.sweep import Cell, Sweep
from interp.model.config import TransformerConfig
from interp.model.sites import Site
from interp.model.transformer import HookedTransformer
from interp.tasks.task import Unit

Z = Site("z", 0)


def cell(layer, head, replacement, *, label=None, positions=None):
    """One head, replaced."""
    change = Intervention(Site("z", layer), replacement, heads=(head,), positions=positions)
    return Cell({"layer": layer, "head": head if label is None else label}, (change,))


def zero_heads(*cells):
    return Sweep([cell(layer, head, Zero()) for layer, head in cells])


def test_zero_ablation_by_hand_leaves_the_bias():
    frame = zero_heads((0, 0)).run(HandModel(), task_of([pair([BOS, KEY, BY, THERE])], [])).examples
    # The noun gets 9/12; b_O adds .2 to "is", for the plural's wrong answer.
    np.testing.assert_allclose(frame["base"], [0.95, 0.55], rtol=1e-6)
    np.testing.assert_allclose(frame["value"], [0.2, -0.2], rtol=1e-6)
    np.testing.assert_allclose(frame["effect"], -0.75, rtol=1e-6)
    assert frame["base_correct"].tolist() == [1, 1]
    assert frame["value_correct"].tolist() == [1, 0]
    assert frame["fired"].tolist() == [1, 1]
    # z was 0, 1/2, 1/3, 3/4 of the noun.
    np.testing.assert_allclose(frame["change_norm"], np.sqrt(1 / 4 + 1 / 9 + 9 / 16), rtol=1e-6)
    assert frame["status"].tolist() == ["changed", "changed"]


def test_a_head_that_writes_elsewhere_has_no_effect():
    frame = zero_heads((0, 1)).run(HandModel(), varied_task()).examples
    assert (frame["effect"] == 0).all()
    assert (frame["change_norm"] > 0).all()


def test_resampled_effects_are_averaged_over_draws():
    task = task_of([Unit(encode([BOS, KEY, NEAR, THERE]), None, "c")], [pair([BOS, KEY, BY, THERE])])
    model = HandModel(bias=0.0)
    replacement = make_replacement("resample", model, task, sites=[Z], draws=8)
    (batch,) = batches(model, task_rows(task.metric, task.units))
    plural = np.mean([float(replacement.values(Z, batch, draw)[0, -1, 0, 2]) > 0 for draw in range(8)])
    frame = Sweep([cell(0, 0, replacement)]).run(model, task).examples
    # A plural donor turns .75 into -.75; the singular one changes nothing.
    assert 0 < plural < 1
    assert frame["effect"].item() == pytest.approx(-1.5 * plural)
    assert frame["value_correct"].item() == pytest.approx(1 - plural)
    assert frame["fired"].item() == 8


def test_sentence_log_probability_by_hand():
    model, task = HandModel(), task_of([pair([BOS, KEY, BY, THERE])], [], metric="sentence_log_probability")
    right, wrong = (IS, BY, NEAR), (ARE, BY)
    item = dataclasses.replace(task.units[0].item, right=right, wrong=wrong)
    task = dataclasses.replace(task, units=(Unit(item, None, "c"),))

    def log_probability(continuation):
        tokens = torch.tensor([[*item.prompt, *continuation]])
        nats = model(tokens).detach()[0].log_softmax(-1)
        return sum(float(nats[3 + index, token]) for index, token in enumerate(continuation))

    frame = zero_heads((0, 0)).run(model, task).examples
    assert frame["base"].item() == pytest.approx(log_probability(right) - log_probability(wrong), rel=1e-5)
    assert frame["fired"].item() == 2


def test_right_and_wrong_of_different_length_in_one_batch():
    model = HandModel()
    long = dataclasses.replace(encode([BOS, KEY, THERE]), right=(IS, BY))
    rows = [
        row
        for row in task_rows("sentence_log_probability", [Unit(long, None, "c"), pair([BOS, BY, KEY, THERE])])
        if len(row.tokens) == 5
    ]
    (batch,) = batches(model, rows)
    assert {len(row.continuation) for row in batch.rows} == {1, 2}
    nats = model(batch.tokens).log_softmax(-1)
    answers = Answers.of("sentence_log_probability", batch)
    logits = model(batch.tokens)[:, answers.positions.start : answers.positions.stop]
    scores = score("sentence_log_probability", logits, answers).value
    for index, row in enumerate(batch.rows):
        start = len(row.encoded.prompt) - 1
        expected = sum(nats[index, start + step, token] for step, token in enumerate(row.continuation))
        torch.testing.assert_close(scores[index], expected)


def test_twins_with_bit_identical_results_warn():
    model = HandModel()
    with torch.no_grad():
        model.blocks[0].attn.W_O[:] = 0
    with pytest.warns(RuntimeWarning, match=r"head 0\.0 and head 0\.1 give bit-identical results"):
        zero_heads((0, 0), (0, 1)).run(model, varied_task())


def test_healthy_sweeps_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        zero_heads((0, 0), (0, 1)).run(HandModel(), varied_task())


def test_a_last_layer_position_that_the_metric_does_not_read_is_unreachable():
    task = task_of([pair([BOS, KEY, BY, THERE])], [])
    at = {position: cell(0, 0, Zero(), label=position, positions=(position,)) for position in (1, 3)}
    frame = Sweep(list(at.values())).run(HandModel(), task).examples
    assert frame[frame["head"] == 1]["status"].tolist() == ["unreachable", "unreachable"]
    assert (frame[frame["head"] == 1]["effect"] == 0).all()
    assert frame[frame["head"] == 3]["status"].tolist() == ["changed", "changed"]
    np.testing.assert_allclose(frame[frame["head"] == 3]["effect"], -0.75, rtol=1e-6)


@pytest.mark.parametrize(
    "bad", [{"positions": (-1,)}, {"positions": (1, 1)}, {"positions": ()}, {"heads": ()}], ids=str
)
def test_places_that_are_none_are_refused(bad):
    with pytest.raises(InputError, match=f"{next(iter(bad))}: expected different numbers from 0, at least one, got"):
        Intervention(**{"site": Z, "heads": (0,), "replacement": Zero(), **bad})


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_metric_that_is_no_number_is_refused(value):
    model = HandModel()
    with torch.no_grad():
        model.blocks[0].attn.b_O[IS] = value
    with pytest.raises(InputError, match=r"NaN or infinite on 72 of 72 prompts or sentences: .* give dtype='float32'"):
        zero_heads((0, 0)).run(model, varied_task(48))


def test_summary_averages_units_and_decides():
    result = zero_heads((0, 0), (0, 1)).run(HandModel(), varied_task())
    summary = result.summary().set_index("head")
    assert summary["n_units"].tolist() == [4 * N_CLUSTERS] * 2
    assert summary["n_clusters"].tolist() == [N_CLUSTERS] * 2
    assert summary.loc[0, "effect"] == pytest.approx(result.examples.query("head == 0")["effect"].mean())
    # All that differs is the layout, of which there are equally many each: nothing is left to chance.
    assert summary.loc[0, ["low", "high"]].tolist() == pytest.approx([summary.loc[0, "effect"]] * 2)
    assert summary.loc[0, "high"] < 0
    assert summary.loc[0, "p_adjusted"] < 0.001
    assert summary.loc[1, "p"] == 1.0
    assert summary.loc[1, "p_adjusted"] == 1.0


def test_progress_counts_cells():
    seen = []
    zero_heads((0, 0), (0, 1)).run(HandModel(), varied_task(), progress=lambda *step: seen.append(step))
    assert seen == [(1, 2), (2, 2)]


def stop(done, total):
    raise KeyboardInterrupt


def test_an_interrupt_before_anything_is_complete_goes_on():
    model = HandModel()
    with pytest.raises(KeyboardInterrupt):
        zero_heads((0, 0), (0, 1)).run(model, task_of([pair([BOS, KEY, BY, THERE])], []), progress=stop)
    assert not model.blocks[0].attn.hook_z.fwd_hooks


def test_an_interrupt_leaves_what_is_complete():
    whole = zero_heads((0, 0), (0, 1)).run(HandModel(), varied_task())
    with pytest.warns(RuntimeWarning, match="interrupted: the result holds the examples that were complete"):
        part = zero_heads((0, 0), (0, 1)).run(HandModel(), varied_task(), progress=stop)
    assert (whole.provenance["complete"], part.provenance["complete"]) == (True, False)
    assert 0 < len(part.examples) < len(whole.examples)
    keys = ["head", "example"]
    both = part.examples.merge(whole.examples, on=keys, suffixes=("", "_whole"))
    assert len(both) == len(part.examples)
    np.testing.assert_array_equal(both["effect"], both["effect_whole"])


def test_provenance_says_what_was_run():
    said = zero_heads((0, 0)).run(HandModel(), varied_task(), seed=3).provenance
    assert said["data_hash"] == "hand"
    assert said["metric"] == "logit_difference"
    assert (said["site"], said["seed"], said["dtype"], said["device"]) == ("z", 3, "float32", "cpu")
    assert len(said["model_hash"]) == 64
    assert said["tokenizer_hash"] is None
    assert {"interp", "torch", "transformer_lens", "python"} <= set(said["versions"])
    assert zero_heads((0, 0)).run(HandModel(bias=0.3), varied_task()).provenance["model_hash"] != said["model_hash"]


def test_cells_have_labels_of_their_own():
    """Two with the same would be averaged into one row of the summary."""
    with pytest.raises(InputError, match=r"expected cells with different labels, got several of layer, head \(0, 1\)"):
        zero_heads((0, 0), (0, 1), (0, 1)).run(HandModel(), varied_task())


def test_rows_that_the_model_cannot_carry_are_refused():
    with pytest.raises(InputError, match="has 13 tokens, but the model's context is 12"):
        zero_heads((0, 0)).run(HandModel(), task_of([pair(prompts(5, 5))], []))
    for change in ({"prompt": (BOS, KEY, 99, THERE)}, {"right": (99,)}, {"wrong": (99,)}):
        strange = dataclasses.replace(encode(prompts(0, 1)), **change)
        with pytest.raises(InputError, match="token id 99, but the model's vocabulary has 8"):
            zero_heads((0, 0)).run(HandModel(), task_of([Unit(strange, None, "c")], []))
    answers = dataclasses.replace(encode(prompts(0, 1)), right=(IS, BY))
    with pytest.raises(InputError, match=r"needs answers of one token, got ' is' \(2 tokens\)"):
        zero_heads((0, 0)).run(HandModel(), task_of([Unit(answers, None, "c")], []))
    with pytest.raises(InputError, match="1 cells over 0 units"):
        zero_heads((0, 0)).run(HandModel(), task_of([], []))


@pytest.mark.parametrize("head", [(0, 1), (1, 2)])
def test_zeroing_equals_removing_the_heads_output_weights(head):
    config = TransformerConfig(n_layers=2, n_heads=4, d_model=16, d_head=4, d_mlp=32, d_vocab=8, n_ctx=12, init_std=0.5)
    model, layer, number = HookedTransformer(config), *head
    task = varied_task()
    found = zero_heads(head).run(model, task).examples
    with torch.no_grad():
        model.blocks[layer].attn.W_O[number] = 0
    without = zero_heads((0, 0)).run(model, task).examples
    np.testing.assert_allclose(found["value"], without["base"], atol=1e-6)
    assert (found["effect"].abs() > 1e-7).mean() > 0.9


@pytest.mark.parametrize("labels", [[1, "1"], [(0,), (0, 1)], [0, 1]])
def test_labels_stay_what_they_are(labels):
    """A number is not the text of it, and a tuple is one label."""
    cells = [
        Cell({"which": label}, (Intervention(Site("z", 0), Zero(), heads=(head,)),))
        for head, label in enumerate(labels)
    ]
    found = Sweep(cells).run(HandModel(), varied_task())
    assert found.examples["which"].drop_duplicates().tolist() == labels
    assert found.table("effect").cells.tolist() == labels
    assert found.estimates()["effect"].nunique() == 2


def test_a_patch_without_a_direction_is_refused():
    """It would patch a run with itself, and nothing would change."""
    change = Intervention(Z, Patch(HandModel(), (Z,)), heads=(0,))
    with pytest.raises(InputError, match="z: its replacement is taken from another run, expected direction='denoise'"):
        Sweep([Cell({"head": 0}, (change,))]).run(HandModel(), varied_task())


def test_a_divergence_is_not_tested():
    """It is above 0 wherever anything changes, so that no sign says anything."""
    sweep = Sweep([Cell({"head": head}, (Intervention(Site("z", 1), Zero(), heads=(head,)),)) for head in range(3)])
    model, task = random_model(), random_task(0, lengths=(6,) * FEWEST_CLUSTERS)
    tested, untested = (sweep.run(model, task, metric=name).summary() for name in ("logit_difference", "kl_divergence"))
    assert tested[["p", "p_adjusted"]].notna().all(axis=None)
    assert untested[["p", "p_adjusted"]].isna().all(axis=None)
    assert (untested["low"] > 0).all()


@pytest.mark.parametrize("leading", [0, 1, 2])
@pytest.mark.parametrize("plainly", [True, False])
def test_what_is_added_may_leave_out_leading_axes(leading, plainly):
    model, task = random_model(), random_task(0)
    vector = torch.linspace(-1, 1, model.config.d_model, dtype=torch.float64)
    whole = Sweep([_adding(vector.reshape(1, 1, -1))]).run(model, task, plainly=True).examples
    found = Sweep([_adding(vector.reshape((1,) * leading + (-1,)))]).run(model, task, plainly=plainly).examples
    assert whole["effect"].abs().max() > 0.01
    np.testing.assert_allclose(found["value"], whole["value"], rtol=1e-10)


def _adding(vector):
    return Cell({"layer": 1}, (Intervention(Site("resid_pre", 1), Add(lambda site, batch: vector)),))
