"""Patching gives TransformerLens' numbers, and those that one can work out by hand."""

import dataclasses
import math
import warnings

import numpy as np
import pytest
import torch
from as_users_call import unchecked
from hand_model import ARE, BOS, BY, IS, KEY, NEAR, THERE, WORDS, HandModel, encode, pair, prompts, task_of
from random_tasks import change, encoded, random_task
from tiny_models import random_model
from transformer_lens import patching

import interp
from interp.errors import InputError
from interp.interventions.replacement import Patch
from interp.interventions.sweep import Cell, Sweep
from interp.methods.patching import PatchResult
from interp.model.config import TransformerConfig
from interp.model.sites import Site
from interp.model.transformer import HookedTransformer
from interp.tasks.task import Unit

LAYERS, HEADS, P = 2, 3, 6


@pytest.fixture(autouse=True)
def _no_gradients():
    with torch.no_grad():
        yield


@pytest.fixture(scope="module")
def model():
    return random_model()


@pytest.fixture(scope="module")
def task(model):
    return with_gaps(model, random_task(7, lengths=(P,) * 4))


@pytest.fixture(scope="module")
def larger(model):
    """Of enough units to show that the two runs differ."""
    return with_gaps(model, random_task(7, lengths=(P,) * 24))


def with_gaps(model, task):
    """The task with the answers in the order that the model tells the clean from the corrupted prompt by."""
    units = []
    for unit in task.units:
        clean, corrupted = (model(torch.tensor([each.prompt]))[0, -1] for each in unit.examples)
        right, wrong = unit.item.right[0], unit.item.wrong[0]
        swap = clean[right] - clean[wrong] < corrupted[right] - corrupted[wrong]
        units.append(unit_with_answers(unit, wrong, right) if swap else unit)
    return dataclasses.replace(task, units=tuple(units))


BY_POS, ALL_POS = ("layer", "pos", "head"), ("layer", "head")
LENS = {
    "resid_pre": ("resid_pre", ("layer", "pos")),
    "resid_mid": ("resid_mid", ("layer", "pos")),
    "attn_out": ("attn_out", ("layer", "pos")),
    "mlp_out": ("mlp_out", ("layer", "pos")),
    "attn_head_out_by_pos": ("z", BY_POS),
    "attn_head_q_by_pos": ("q", BY_POS),
    "attn_head_k_by_pos": ("k", BY_POS),
    "attn_head_v_by_pos": ("v", BY_POS),
    "attn_head_out_all_pos": ("z", ALL_POS),
    "attn_head_q_all_pos": ("q", ALL_POS),
    "attn_head_k_all_pos": ("k", ALL_POS),
    "attn_head_v_all_pos": ("v", ALL_POS),
    "attn_head_pattern_all_pos": ("pattern", ALL_POS),
    "attn_head_pattern_by_pos": ("pattern", ("layer", "head", "pos")),
    "attn_head_pattern_dest_src_pos": ("pattern", ("layer", "head", "pos", "key")),
}
EVERY = {
    "block_every": [("resid_pre", ("layer", "pos")), ("attn_out", ("layer", "pos")), ("mlp_out", ("layer", "pos"))],
    "attn_head_all_pos_every": [(name, ALL_POS) for name in ("z", "q", "k", "v", "pattern")],
}


def lens(name, model, task, direction):
    """What TransformerLens gives: the mean logit difference of the patched runs."""
    clean = torch.tensor([each.prompt for each in task.examples])
    other = torch.tensor([each.prompt for unit in task.units for each in unit.examples[::-1]])
    right, wrong = (torch.tensor([getattr(each, of)[0] for each in task.examples]) for of in ("right", "wrong"))
    run, source = (other, clean) if direction == "denoise" else (clean, other)
    _, cache = model.run_with_cache(source)
    rows = torch.arange(len(right))
    sweep = getattr(patching, f"get_act_patch_{name}")
    return sweep(model, run, cache, lambda logits: (logits[rows, -1, right] - logits[rows, -1, wrong]).mean()).numpy()


def ours(site, by, model, task, direction, **options):
    """The mean value of every cell, in the order of the cells."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frame = interp.patch(model, task, site=site, by=by, direction=direction, **options).examples
    shape = [frame[label].nunique() for label in by]
    return frame.groupby(list(by))["value"].mean().to_numpy().reshape(shape)


class TestTransformerLens:
    @pytest.mark.parametrize("name", LENS)
    def test_the_same_numbers(self, model, task, name):
        site, by = LENS[name]
        direction = "noise" if len(name) % 2 else "denoise"
        expected, found = lens(name, model, task, direction), ours(site, by, model, task, direction)
        assert found.shape == expected.shape
        # TransformerLens keeps its results in 32 bits.
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6 * np.abs(expected).max())
        assert np.ptp(found) > 1e-3 * np.abs(found).max()

    @pytest.mark.parametrize("name", EVERY)
    def test_the_same_numbers_of_several_sites(self, model, task, name):
        expected = lens(name, model, task, "denoise")
        found = np.stack([ours(site, by, model, task, "denoise") for site, by in EVERY[name]])
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6 * np.abs(expected).max())

    def test_the_results_of_heads_are_their_outputs(self, model, task):
        z, result = (ours(site, BY_POS, model, task, "denoise") for site in ("z", "result"))
        np.testing.assert_allclose(result, z, rtol=1e-10)


def normalised(model, task, cells, direction="denoise"):
    """The normalised effect of cells whose interventions patch."""
    made = [Cell({"cell": number}, tuple(interventions)) for number, interventions in enumerate(cells)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = Sweep(made).run(model, task, direction=direction)
        result = PatchResult(result.examples, {**result.provenance, "direction": direction}, result.labels)
        return result, result.normalised()["normalised"].to_numpy()


class TestIdentities:
    @pytest.mark.parametrize("direction", ["denoise", "noise"])
    def test_patching_all_that_is_written_leaves_the_other_run(self, model, larger, direction):
        names = {"resid_pre": [0], "attn_out": range(LAYERS), "mlp_out": range(LAYERS)}
        sites = [Site(name, layer) for name, layers in names.items() for layer in layers]
        patch = Patch(model, (*sites, Site("resid_pre", 1), Site("resid_post", 1)))
        everything = [change(site.name, site.layer, patch) for site in sites]
        streams = [[change(name, layer, patch)] for name, layer in (("resid_pre", 0), ("resid_pre", 1))]
        result, effect = normalised(model, larger, [everything, *streams, [change("resid_post", 1, patch)]], direction)
        np.testing.assert_allclose(effect, 1.0 if direction == "denoise" else 0.0, atol=1e-10)
        np.testing.assert_allclose(result.examples["value"], result.examples["source"], rtol=1e-10)
        assert (result.examples["effect"].abs() > 1e-6).any()

    def test_patching_less_than_all_leaves_something(self, model, larger):
        sites = [Site(name, layer) for name in ("attn_out", "mlp_out") for layer in range(LAYERS)]
        patch = Patch(model, tuple(sites))
        _, effect = normalised(model, larger, [[change(site.name, site.layer, patch) for site in sites]])
        assert abs(effect[0] - 1) > 1e-3

    @pytest.mark.parametrize("site", ["resid_pre", "z", "pattern", "mlp_out"])
    def test_patching_a_run_with_itself_changes_nothing(self, model, task, site):
        twins = [dataclasses.replace(unit, counterfactual=dataclasses.replace(unit.item)) for unit in task.units]
        itself = dataclasses.replace(task, units=tuple(twins))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            frame = interp.patch(model, itself, site=site, by=("layer",)).examples
        assert (frame["effect"] == 0).all()
        assert (frame["value"] == frame["source"]).all()
        assert (frame["change_norm"] == 0).all()
        assert set(frame["status"]) == {"identical input"}

    def test_the_two_directions_meet(self, model, task):
        """Denoising one run is noising the other: the same run, scored with the other's answers."""
        one, other = (ours("z", ("layer", "pos"), model, task, direction) for direction in ("denoise", "noise"))
        np.testing.assert_allclose(one, -other, rtol=1e-10)

    def test_nothing_comes_from_before_the_first_different_token(self, model):
        task = dataclasses.replace(random_task(0), units=(two_that_differ_at(3),))
        frame = interp.patch(model, task, site="resid_pre", by=("layer", "pos")).examples
        before = frame[frame["pos"] < 3]
        assert set(before["status"]) == {"identical input"}
        assert (before["effect"] == 0).all()
        assert set(frame[(frame["pos"] == 3) & (frame["layer"] < 2)]["status"]) == {"changed"}


def two_that_differ_at(position, length=P):
    item = [0] * length
    other = [*item[:position], 5, *item[position + 1 :]]
    return Unit(encoded(item, (3,), (4,)), encoded(other, (4,), (3,)), "c")


WIDE, BIAS = 1e6, 0.2


def as_transformer():
    """The hand model as a HookedTransformer: one huge direction of the stream makes each LayerNorm a division."""
    hand, size = HandModel(bias=BIAS).blocks[0].attn, len(WORDS)
    config = {"n_layers": 1, "n_heads": 2, "d_model": size + 1, "d_head": size, "d_mlp": 1}
    model = HookedTransformer(TransformerConfig(**config, d_vocab=size, n_ctx=12, tied=False)).double()
    mean = (1 + WIDE) / (size + 1)
    divisor = math.sqrt((1 + WIDE**2) / (size + 1) - mean**2)
    for parameter in model.parameters():
        parameter.zero_()
    attn, mlp = model.blocks[0].attn, model.blocks[0].mlp
    for norm in (model.blocks[0].ln1, model.blocks[0].ln2, model.ln_final):
        norm.w.fill_(1)
    model.embed.W_E[:, :size] = torch.eye(size)
    model.pos_embed.W_pos[:, size] = WIDE
    for name, scale in (("Q", math.sqrt(size)), ("K", 1.0), ("V", 1.0)):
        weight = getattr(hand, f"W_{name}").double() * scale
        getattr(attn, f"W_{name}")[:, :size] = weight * divisor
        getattr(attn, f"b_{name}").copy_(weight.sum(1) * mean)
    attn.W_O[:, :, :size] = hand.W_O.double()
    attn.b_O[:size] = hand.b_O.double()
    model.unembed.W_U[:size] = torch.eye(size) * divisor
    assert mlp.W_out.count_nonzero() == 0
    return model


NOUN_TWICE = [BOS, KEY, BY, KEY, THERE]
# Each of the two nouns gets 9 of 9 + 9 + 3 from head 0, which writes that much to the noun's answer.
EACH = 9 / 21


@pytest.mark.parametrize("make", [lambda: HandModel(bias=BIAS), as_transformer], ids=["plain", "engine"])
class TestByHand:
    def result(self, make, site, by, direction="denoise", units=None):
        if make is not as_transformer and site not in ("z", "pattern"):
            pytest.skip("the plain model has no such point")
        units = units or [pair(NOUN_TWICE), pair([BOS, KEY, NEAR, KEY, THERE], "other")]
        return interp.patch(make(), task_of(units, []), site=site, by=by, direction=direction)

    def test_the_runs_are_those_of_the_hand_model(self, make):
        result = self.result(make, "z", ("layer", "head"))
        expected = "plain" if make is not as_transformer else "incremental"
        assert result.provenance["engine"] == expected
        # The clean prompt's answers are scored; the bias is for "is", right of the singular.
        clean = [2 * EACH + BIAS, 2 * EACH - BIAS]
        frame = result.examples[result.examples["head"] == 0]
        np.testing.assert_allclose(frame["source"], clean * 2, rtol=1e-4)
        np.testing.assert_allclose(frame["base"], [-2 * EACH + BIAS, -2 * EACH - BIAS] * 2, rtol=1e-4)

    @pytest.mark.parametrize(("direction", "half"), [("denoise", 0.5), ("noise", 0.5)])
    def test_half_of_the_answer_comes_from_each_noun(self, make, direction, half):
        result = self.result(make, "v", ("head", "pos"), direction)
        effect = result.normalised().set_index(["head", "pos"])["normalised"]
        none = 0.0 if direction == "denoise" else 1.0
        expected = {(head, pos): none for head in range(2) for pos in range(5)} | {(0, 1): half, (0, 3): half}
        for cell, value in expected.items():
            assert effect[cell] == pytest.approx(value, abs=1e-4), cell
        frame = result.examples.set_index(["head", "pos"])
        values = [BIAS, -BIAS] * 2  # one noun for each answer
        np.testing.assert_allclose(frame.loc[[(0, 1)], "value"], values, rtol=1e-4)

    def test_nothing_is_said_to_change_where_nothing_does(self, make):
        """The tokens after the nouns are the same in both runs, and so is what enters the first layer there."""
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            frame = self.result(make, "resid_pre", ("layer", "pos")).examples
        assert set(frame[frame["pos"].isin([2, 4])]["status"]) == {"identical input"}

    def test_one_head_at_the_last_position_has_it_all(self, make):
        frame = self.result(make, "z", ("head", "pos")).normalised().set_index(["head", "pos"])
        effect = frame["normalised"]
        assert effect[0, 4] == pytest.approx(1.0, abs=1e-4)
        assert effect.drop((0, 4)).to_numpy() == pytest.approx(np.zeros(9), abs=1e-4)
        assert frame.loc[(0, 4), ["clean", "corrupted"]].tolist() == pytest.approx([2 * EACH, -2 * EACH], rel=1e-4)

    @pytest.mark.parametrize("site", ["k", "q", "pattern"])
    def test_where_it_looks_is_the_same_in_both_runs(self, make, site):
        """Both nouns are keys alike, and the query word asks the same."""
        frame = self.result(make, site, ("head",)).examples
        np.testing.assert_allclose(frame["effect"], 0, atol=1e-6)

    def test_statuses(self, make):
        frame = self.result(make, "z", ("head", "pos")).examples
        by_position = frame.groupby("pos")["status"].agg(set)
        assert by_position[0] == {"identical input"}  # BOS
        assert by_position[1] == by_position[2] == by_position[3] == {"unreachable"}  # the metric reads the last
        assert by_position[4] == {"changed"}


class TestResult:
    def test_columns(self, model, task):
        result = interp.patch(model, task, site="z", by=("layer", "head"))
        frame = result.examples
        np.testing.assert_allclose(frame["effect"], frame["value"] - frame["base"])
        assert {"source", "base", "value", "status", "fired", "change_norm"} <= set(frame.columns)
        assert result.provenance["direction"] == "denoise"
        assert result.provenance["replacement"] == "patch"
        assert result.labels == ("layer", "head")

    def test_a_normalised_effect_is_a_ratio_of_means(self, model):
        task = with_gaps(model, random_task(11, lengths=(P,) * 24))
        result = interp.patch(model, task, site="resid_pre", by=("layer", "pos"))
        summary = result.summary()
        for _, row in summary.iterrows():
            cell = result.examples[(result.examples["layer"] == row["layer"]) & (result.examples["pos"] == row["pos"])]
            gap = (cell["source"] - cell["base"]).mean()
            assert row["normalised"] == pytest.approx((cell["value"] - cell["base"]).mean() / gap)
            assert row["clean"] - row["corrupted"] == pytest.approx(gap)

    def test_where_the_runs_do_not_differ_nothing_is_normalised(self):
        """The two clusters' gaps are of opposite signs."""
        swapped = [unit_with_answers(pair(prompts(1, 1), f"s{n}"), ARE, IS) for n in range(12)]
        units = [pair(prompts(1, 1), f"c{n}") for n in range(12)] + swapped
        result = interp.patch(HandModel(), task_of(units, []), site="z", by=("head",))
        with pytest.warns(
            RuntimeWarning, match="in 2 of 2 cells the clean and the corrupted run are not shown to differ"
        ):
            summary = result.summary()
        assert summary[["normalised", "normalised_low", "normalised_high"]].isna().all(axis=None)

    def test_where_nobody_knows_whether_the_runs_differ_there_is_no_interval(self):
        """A template has one cluster; the gaps of the other cancel."""
        swapped = [unit_with_answers(pair(prompts(1, 1), f"s{n}"), ARE, IS) for n in range(11)]
        units = [pair(prompts(1, 1), f"c{n}") for n in range(11)] + swapped + [pair(prompts(1, 1), "a", template="u")]
        result = interp.patch(HandModel(), task_of(units, []), site="z", by=("head",))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            summary = result.summary().set_index("head")
        assert summary["normalised"].tolist() == pytest.approx([1, 0])
        assert summary[["normalised_low", "normalised_high"]].isna().all(axis=None)

    def test_an_interval_covers_what_it_estimates(self):
        units = [pair(prompts(n % 4, 1 + n % 3), f"c{n}") for n in range(24)]
        summary = interp.patch(HandModel(), task_of(units, []), site="z", by=("head",)).summary().set_index("head")
        assert summary.loc[0, ["normalised", "normalised_low", "normalised_high"]].tolist() == pytest.approx([1, 1, 1])
        assert summary.loc[1, ["normalised", "normalised_low", "normalised_high"]].tolist() == pytest.approx([0, 0, 0])

    @pytest.mark.parametrize("metric", ["probability", "kl_divergence", "accuracy"])
    def test_other_metrics(self, model, task, metric):
        result = interp.patch(model, task, site="resid_pre", by=("layer",), metric=metric)
        assert result.provenance["metric"] == metric
        np.testing.assert_allclose(result.examples["value"], result.examples["source"], rtol=1e-10)

    def test_sentences(self, model):
        task = random_task(3, lengths=(5, 5, 5), answers=(2, 1), metric="sentence_log_probability")
        frame = interp.patch(model, task, site="resid_pre", by=("layer", "pos")).examples
        assert frame["pos"].max() == 4  # those of the prompt
        whole = interp.patch(model, task, site="resid_pre", by=("layer",)).examples
        np.testing.assert_allclose(whole["value"], whole["source"], rtol=1e-10)


def unit_with_answers(unit, right, wrong):
    item = dataclasses.replace(unit.item, right=(right,), wrong=(wrong,))
    return dataclasses.replace(
        unit, item=item, counterfactual=dataclasses.replace(unit.counterfactual, right=(wrong,), wrong=(right,))
    )


class TestPromptsOfSeveralLengths:
    @pytest.fixture
    def task(self):
        return task_of([pair(prompts(0, 1), "a"), pair(prompts(2, 0), "b"), pair(prompts(0, 0), "c")], [])

    def test_they_are_aligned_by_spans(self, task):
        frame = interp.patch(HandModel(), task, site="z", by=("pos",)).examples
        units = frame.groupby("pos")["unit"].agg(set).to_dict()
        assert units == {"BOS": {0, 1, 2}, "related": {0, 1, 2}, "rest": {0, 1}, "last": {0, 1, 2}}
        assert "absent" not in set(frame["status"])
        effect = frame.groupby("pos")["effect"].agg(lambda each: each.abs().min())
        assert effect["last"] > 0.5

    def test_units_that_are_not_measured_are_not_counted(self, task):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            summary = interp.patch(HandModel(), task, site="z", by=("pos",)).summary().set_index("pos")
        assert summary["n_units"].to_dict() == {"BOS": 3, "related": 3, "rest": 2, "last": 3}

    def test_without_spans_positions_mean_nothing(self):
        task = task_of([pair(prompts(0, 1), tagged=False), pair(prompts(2, 1))], [])
        with pytest.raises(
            InputError, match=r"pos: .* 4 to 6 tokens, .* and 2 of 4 have no tagged relation .* leave pos"
        ):
            interp.patch(HandModel(), task, by=("layer", "pos"))
        assert len(interp.patch(HandModel(), task, by=("head",)).examples) == 8

    def test_keys_need_one_length(self, task):
        with pytest.raises(InputError, match="key: the prompts of 'hand' have different lengths; choose"):
            interp.patch(HandModel(), task, site="pattern", by=("head", "key"))


def test_what_cannot_be_patched_is_refused(model, task):
    with pytest.raises(InputError, match="direction: 'denoised' is unknown; did you mean 'denoise'"):
        unchecked(interp.patch)(model, task, direction="denoised")
    alone = dataclasses.replace(task, units=(dataclasses.replace(task.units[0], counterfactual=None),))
    with pytest.raises(InputError, match=r"none of the 1 units of .* has a counterfactual; ablate instead"):
        interp.patch(model, alone)
    longer = dataclasses.replace(task.units[0], counterfactual=encode(prompts(3, 3)))
    with pytest.raises(InputError, match=r"has 6 tokens, .* 9, and no relation is tagged in both"):
        interp.patch(model, dataclasses.replace(task, units=(longer,)))
    with pytest.raises(InputError, match="no metric is called 'loss'"):
        unchecked(Sweep.run)(Sweep(one_cell(model)), model, task, metric="loss", direction="noise")


def one_cell(model):
    return [Cell({"layer": 0}, (change("z", 0, Patch(model, (Site("z", 0),))),))]
