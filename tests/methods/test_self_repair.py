import dataclasses

import numpy as np
import pytest
import torch
from as_users_call import unchecked
from hand_model import ARE, BOS, BY, IS, KEY, KEYS, N_CLUSTERS, THERE, WORDS, HandModel, pair, task_of, varied_task
from tiny_models import random_model

from interp.errors import InputError
from interp.methods.ablation import ablate
from interp.methods.self_repair import self_repair
from interp.model.config import TransformerConfig
from interp.model.transformer import HookedTransformer
from interp.residual.stream import direct_logit_attribution, residual_stream
from interp.tasks.task import Unit, task_of_units
from interp.tasks.token_ids import example_of_ids

LARGE = 100.0
"""Of the two dimensions that hold LayerNorm's scale still."""
CONSTANT = len(WORDS)


def repairing_model(share):
    """Layer 0 writes which noun there was as an answer; layer 1 reads that at the last word and takes `share` back.

    The residual stream is one-hot, beside two large constants; the answer's logit difference is ``1 - share``.
    """
    size = len(WORDS) + 2
    config = TransformerConfig(
        n_layers=2, n_heads=1, d_model=size, d_head=1, d_mlp=1, d_vocab=len(WORDS), n_ctx=12, tied=False
    )
    model = HookedTransformer(config).double()
    scale = LARGE * np.sqrt(2 / size)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.fill_(1.0 if name.endswith(".w") else 0.0)
        model.ln_final.w.fill_(scale)
        model.embed.W_E[:, : len(WORDS)] = model.unembed.W_U[: len(WORDS)] = torch.eye(len(WORDS))
        model.pos_embed.W_pos[:, CONSTANT:] = torch.tensor([LARGE, -LARGE])
        nouns, words = [KEY, KEYS], [block.attn for block in model.blocks]
        for attention, looked_at in zip(words, (nouns, [THERE]), strict=True):
            attention.W_Q[0, CONSTANT, 0] = 1
            attention.W_K[0, looked_at, 0] = 30 * scale
        words[0].W_V[0, nouns, 0] = scale * torch.tensor([1.0, -1.0], dtype=torch.float64)
        words[1].W_V[0, [IS, ARE], 0] = scale * torch.tensor([1.0, -1.0], dtype=torch.float64)
        words[0].W_O[0, 0, [IS, ARE]] = torch.tensor([0.5, -0.5], dtype=torch.float64)
        words[1].W_O[0, 0, [IS, ARE]] = -share * torch.tensor([0.5, -0.5], dtype=torch.float64)
    return model


def test_where_no_head_has_a_direct_effect_no_share_is_told():
    """A model in which nothing writes an answer."""
    model = repairing_model(0.0)
    with torch.no_grad():
        model.blocks[0].attn.W_O.zero_()
    found = self_repair(model, varied_task(), replacement="zero", heads=[(1, 0)]).summary()
    assert found["direct"].tolist() == pytest.approx([0.0])
    assert found[["repaired", "repaired_low", "repaired_high"]].isna().all(axis=None)


@pytest.mark.parametrize("share", [0.4, 1.0, -0.5])
@pytest.mark.parametrize("kind", ["zero", "mean"])
def test_a_later_head_that_compensates_is_found(share, kind):
    result = self_repair(repairing_model(share), varied_task(), replacement=kind, heads=[(0, 0)])
    np.testing.assert_allclose(result.examples["base"], 1 - share, atol=1e-3)
    np.testing.assert_allclose(result.examples["direct"], -1, atol=1e-3)
    np.testing.assert_allclose(result.examples["total"], share - 1, atol=1e-3)
    np.testing.assert_allclose(result.examples["repair"], share, atol=1e-3)
    np.testing.assert_allclose(result.examples["repair_by_later"], share, atol=1e-3)
    np.testing.assert_allclose(result.examples["repair_by_norm"], 0, atol=1e-3)
    summary = result.summary()
    assert summary["repaired"].item() == pytest.approx(share, abs=1e-3)
    assert summary["p_adjusted"].item() < 0.01
    assert (summary["n_units"].item(), summary["n_clusters"].item()) == (4 * N_CLUSTERS, N_CLUSTERS)


@pytest.mark.filterwarnings("ignore:.*changed nothing")
def test_where_nothing_follows_nothing_is_repaired():
    result = self_repair(repairing_model(0.0), varied_task(), replacement="zero")
    np.testing.assert_allclose(result.examples["repair_by_later"], 0, atol=1e-9)
    np.testing.assert_allclose(result.examples["repair"], 0, atol=1e-3)
    summary = result.summary().set_index("layer")
    assert summary.loc[0, "repaired"] == pytest.approx(0, abs=1e-3)
    assert np.isnan(summary.loc[1, "repaired"])  # it does nothing, so there is nothing to repair


@pytest.fixture
def model():
    return random_model(d_vocab=8, n_ctx=12)


def without_last_mlp(model):
    with torch.no_grad():
        model.blocks[-1].mlp.W_out.zero_()
    return model


@pytest.mark.parametrize("kind", ["zero", "mean", "positional_mean", "resample"])
def test_after_the_last_head_only_the_last_norm_can_repair(model, kind):
    """Resamples are the same in the direct and in the total effect, draw by draw."""
    frame = self_repair(without_last_mlp(model), varied_task(8), replacement=kind, seed=4).examples
    last = frame["layer"] == 1
    np.testing.assert_allclose(frame[last]["repair_by_later"], 0, atol=1e-9)
    assert (frame[last]["repair_by_norm"].abs() > 1e-6).any()
    assert (frame[~last]["repair_by_later"].abs() > 1e-3).any()


def test_the_last_norm_repairs_what_its_scale_takes_back():
    """One head is all there is: halving what it writes leaves LN as it was, and the frozen scale does not see that."""
    model = without_last_mlp(random_model(d_vocab=8, n_ctx=12, n_layers=1, n_heads=2))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith(("b_O", "b_out", "b_U", "ln_final.b", "W_E", "W_pos")):
                parameter.zero_()
        attention = model.blocks[0].attn
        for weight in (attention.W_V, attention.W_O, attention.W_Q, attention.W_K):
            weight[1] = weight[0]
        for bias in (attention.b_V, attention.b_Q, attention.b_K):
            bias[1] = bias[0]
        model.ln_final.eps = 1e-12
    summary = self_repair(model, varied_task(), replacement="zero", heads=[(0, 0)])
    frame = summary.examples
    np.testing.assert_allclose(frame["total"], 0, atol=1e-6)
    np.testing.assert_allclose(frame["direct"], -frame["base"] / 2, rtol=1e-6)
    np.testing.assert_allclose(frame["repair_by_norm"], frame["base"] / 2, rtol=1e-6)


def test_direct_effects_are_those_of_direct_logit_attribution(model):
    task = varied_task(4)
    frame = self_repair(model, task, replacement="zero").examples
    for number, example in enumerate(task.examples):
        stream = residual_stream(model, torch.tensor([example.prompt]))
        parts = direct_logit_attribution(model, stream, example.right[0], example.wrong[0]).summary()
        heads = parts[parts["kind"] == "head"].set_index(["layer", "head"])["attribution"]
        found = frame[frame["example"] == number].set_index(["layer", "head"])["direct"]
        np.testing.assert_allclose(found, -heads.loc[found.index], rtol=1e-6)


def test_direct_and_norm_together_are_the_direct_path(model):
    """The head's output is taken from the last stream with a hook; all else is run as it was."""
    task = task_of([pair([BOS, KEY, BY, THERE]), pair([BOS, BY, KEY, THERE])], [])
    frame = self_repair(model, task, replacement="zero", heads=[(0, 1)]).examples.sort_values("example")
    for row, example in zip(frame.itertuples(), task.examples, strict=True):
        tokens = torch.tensor([example.prompt])
        z = model.run_with_cache(tokens)[1]["blocks.0.attn.hook_z"][:, :, 1]

        def without(x, *, hook, written=z @ model.blocks[0].attn.W_O[1]):
            return x - written

        logits = model.run_with_hooks(tokens, fwd_hooks=[("blocks.1.hook_resid_post", without)])[0, -1].detach()
        by_hand = float(logits[example.right[0]] - logits[example.wrong[0]])
        assert row.direct + row.repair_by_norm == pytest.approx(by_hand - row.base, rel=1e-6)


def test_total_effects_are_those_of_ablation(model):
    task = varied_task(8)
    for kind in ("mean", "resample"):
        found = self_repair(model, task, replacement=kind, seed=2).examples
        np.testing.assert_allclose(
            found["total"], ablate(model, task, replacement=kind, seed=2).examples["effect"], rtol=1e-9
        )
        np.testing.assert_allclose(found["repair"], found["total"] - found["direct"])
        np.testing.assert_allclose(found["repair"], found["repair_by_norm"] + found["repair_by_later"], atol=1e-12)


def test_models_of_others_are_refused():
    with pytest.raises(InputError, match="self_repair: expected one of our own models, got a HandModel"):
        unchecked(self_repair)(HandModel(), varied_task())


def test_answers_are_single_tokens(model):
    unit = pair([BOS, KEY, BY, THERE])
    long = Unit(dataclasses.replace(unit.item, right=(IS, BY)), None, "c")
    task = dataclasses.replace(task_of([long], [unit]), metric="sentence_log_probability")
    with pytest.raises(InputError, match="a logit difference needs answers of one token"):
        self_repair(model, task)


def test_a_minimum_is_a_share(model):
    with pytest.raises(InputError, match=r"min_effect: expected a share between 0 and 1, got 1\.5"):
        self_repair(model, varied_task(), min_effect=1.5)


def test_interrupted_it_holds_what_is_complete(model):
    def stop(done, total):
        if done == 3:
            raise KeyboardInterrupt

    task = varied_task(8)
    with pytest.warns(RuntimeWarning, match="interrupted"):
        part = self_repair(model, task, replacement="zero", progress=stop)
    assert not part.provenance["complete"]
    assert 0 < part.examples["example"].nunique() < len(task.examples)
    assert part.examples["repair"].notna().all()


def test_a_cap_of_logits_is_no_repair():
    model = random_model(parallel=True, logit_cap=4.0)  # after whose last heads there is nothing
    units = [Unit(example_of_ids([1, 7 + n, 3, 9], n + 1, n + 20), None, str(n)) for n in range(6)]
    frame = self_repair(model, task_of_units(units, name="ids", description="Ids."), heads=[(1, 0)], replacement="zero")
    assert frame.examples["total"].abs().min() > 1e-3
    assert frame.examples["repair_by_later"].abs().max() < 1e-9
