"""TransformerLens' own utilities run on our model unchanged and give the right numbers."""

import inspect

import pytest
import torch
from foreign_models import random_foreign
from tiny_models import random_model, random_tokens, relative_error, word_tokenizer
from transformer_lens import patching
from transformer_lens.head_detector import detect_head
from transformer_lens.model_protocol import TransformerLensModel, TransformerLensModelWithWeights
from transformer_lens.tools.analysis.logit_lens import logit_lens
from typing_extensions import get_protocol_members

from interp import load_model
from interp.model.folding import center_writing_weights, fold_layer_norm

HEADS, LAYERS, P = 3, 2, 5
SWEEPS = {
    patching.get_act_patch_resid_pre: (LAYERS, P),
    patching.get_act_patch_resid_mid: (LAYERS, P),
    patching.get_act_patch_attn_out: (LAYERS, P),
    patching.get_act_patch_mlp_out: (LAYERS, P),
    patching.get_act_patch_attn_head_out_by_pos: (LAYERS, P, HEADS),
    patching.get_act_patch_attn_head_q_by_pos: (LAYERS, P, HEADS),
    patching.get_act_patch_attn_head_k_by_pos: (LAYERS, P, HEADS),
    patching.get_act_patch_attn_head_v_by_pos: (LAYERS, P, HEADS),
    patching.get_act_patch_attn_head_pattern_by_pos: (LAYERS, HEADS, P),
    patching.get_act_patch_attn_head_pattern_dest_src_pos: (LAYERS, HEADS, P, P),
    patching.get_act_patch_attn_head_out_all_pos: (LAYERS, HEADS),
    patching.get_act_patch_attn_head_q_all_pos: (LAYERS, HEADS),
    patching.get_act_patch_attn_head_k_all_pos: (LAYERS, HEADS),
    patching.get_act_patch_attn_head_v_all_pos: (LAYERS, HEADS),
    patching.get_act_patch_attn_head_pattern_all_pos: (LAYERS, HEADS),
    patching.get_act_patch_attn_head_all_pos_every: (5, LAYERS, HEADS),
    patching.get_act_patch_attn_head_by_pos_every: (5, LAYERS, P, HEADS),
    patching.get_act_patch_block_every: (3, LAYERS, P),
}


def name_of(sweep):
    return next(name for name, value in vars(patching).items() if value is sweep)


@pytest.fixture(autouse=True)
def _no_gradients():
    with torch.no_grad():
        yield


@pytest.fixture(scope="module")
def model():
    return random_model(tokenizer=word_tokenizer())


@pytest.fixture(scope="module")
def clean(model):
    return random_tokens(model, 2, P, seed=1)


@pytest.fixture(scope="module")
def corrupted(clean):
    changed = clean.clone()
    changed[:, 2] += 1
    return changed


def metric(logits):
    return logits[:, -1, 5].mean() - logits[:, -1, 9].mean()


class TestProtocol:
    def test_the_model_satisfies_the_protocols(self, model):
        assert isinstance(model, TransformerLensModel)
        assert isinstance(model, TransformerLensModelWithWeights)

    def test_also_as_python_3_12_looks_for_members(self, model):
        for name in get_protocol_members(TransformerLensModelWithWeights):
            inspect.getattr_static(model, name)

    def test_the_configuration_says_what_the_model_is(self, model):
        cfg = model.cfg
        assert (cfg.n_layers, cfg.n_heads, cfg.d_model, cfg.d_head, cfg.d_mlp) == (2, 3, 12, 5, 20)
        assert (cfg.n_ctx, cfg.d_vocab, cfg.dtype, cfg.device) == (16, len(model.tokenizer), torch.float64, "cpu")
        assert cfg.normalization_type == "LN"
        assert cfg.default_prepend_bos

    @pytest.mark.parametrize("switch", ["attn_result", "split_qkv_input", "attn_in", "hook_mlp_in"])
    def test_the_switches_change_nothing(self, model, clean, switch):
        before = model(clean)
        for use in (True, False):
            getattr(model, f"set_use_{switch}")(use)
            assert torch.equal(model(clean), before)


class TestPatching:
    @pytest.mark.parametrize("sweep", SWEEPS, ids=name_of)
    def test_patching_a_run_with_itself_changes_nothing(self, model, clean, sweep):
        logits, cache = model.run_with_cache(clean)
        values = sweep(model, clean, cache, metric)
        assert tuple(values.shape) == SWEEPS[sweep]
        assert torch.allclose(values.double(), metric(logits), atol=1e-5)

    @pytest.mark.parametrize("sweep", SWEEPS, ids=name_of)
    def test_patching_from_another_run_matters_where_it_can(self, model, clean, corrupted, sweep):
        _, cache = model.run_with_cache(clean)
        assert (sweep(model, corrupted, cache, metric) - metric(model(corrupted))).abs().max() > 1e-3

    def test_the_stream_at_the_changed_position_is_all_there_is(self, model, clean, corrupted):
        logits, cache = model.run_with_cache(clean)
        values = patching.get_act_patch_resid_pre(model, corrupted, cache, metric)
        assert values[0, 2].item() == pytest.approx(metric(logits).item(), rel=1e-5)
        assert values[:, :2].flatten().tolist() == pytest.approx([metric(model(corrupted)).item()] * 4)

    @pytest.mark.parametrize("component", "qkv")
    def test_direct_paths(self, model, clean, corrupted, component):
        _, cache = model.run_with_cache(clean)
        _, other = model.run_with_cache(corrupted)
        values = patching.get_act_patch_direct_path_all_sources(
            model, corrupted, cache, other, metric, component, verbose=False
        )
        assert values.shape == (LAYERS, HEADS, LAYERS, HEADS)
        got = values[0, 1, 1, 2].item()
        assert got == pytest.approx(
            metric(self.direct_path(model, corrupted, cache, other, component)).item(), rel=1e-5
        )
        assert abs(got - metric(model(corrupted)).item()) > 1e-6
        same = patching.get_act_patch_direct_path(model, clean, cache, cache, metric, 0, 1, component, verbose=False)
        assert same[1].tolist() == pytest.approx([metric(model(clean)).item()] * HEADS, rel=1e-5)

    @staticmethod
    def direct_path(model, corrupted, cache, other, component):
        """The path from L0H1 to L1H2 by hand: recompute that head's q, k or v from the changed stream."""
        block = model.blocks[1]
        written = (cache["z", 0] - other["z", 0])[:, :, 1] @ model.blocks[0].attn.W_O[1]
        x = block.ln1(other["resid_pre", 1] + written)
        weight, bias = (
            getattr(block.attn, f"W_{component.upper()}")[2],
            getattr(block.attn, f"b_{component.upper()}")[2],
        )

        def set_vector(vector, *, hook):
            vector = vector.clone()
            vector[:, :, 2] = x @ weight + bias
            return vector

        return model.run_with_hooks(corrupted, fwd_hooks=[(f"blocks.1.attn.hook_{component}", set_vector)])


class TestActivationCache:
    @pytest.fixture
    def cache(self, model, clean):
        return model.run_with_cache(clean)[1]

    def test_the_decomposition_sums_to_the_stream(self, cache):
        for layer, mlp_input, expected in (
            (1, False, "resid_pre"),
            (1, True, "resid_mid"),
            (None, False, "resid_post"),
        ):
            parts = cache.decompose_resid(layer, mlp_input=mlp_input)
            assert relative_error(parts.sum(0), cache[expected, 1]) < 1e-12

    def test_the_stream_accumulates(self, cache):
        stack, labels = cache.accumulated_resid(incl_mid=True, return_labels=True)
        assert labels == ["0_pre", "0_mid", "1_pre", "1_mid", "final_post"]
        names = [("resid_pre", 0), ("resid_mid", 0), ("resid_pre", 1), ("resid_mid", 1), ("resid_post", 1)]
        assert torch.equal(stack, torch.stack([cache[name] for name in names]))

    def test_head_results_and_neurons_are_the_layers_without_their_biases(self, model, cache):
        heads, labels = cache.stack_head_results(return_labels=True)
        assert labels == [f"L{layer}H{head}" for layer in range(LAYERS) for head in range(HEADS)]
        neurons = cache.stack_neuron_results(layer=2)
        for layer, block in enumerate(model.blocks):
            attn = heads[HEADS * layer : HEADS * (layer + 1)].sum(0) + block.attn.b_O
            mlp = neurons[20 * layer : 20 * (layer + 1)].sum(0) + block.mlp.b_out
            assert relative_error(attn, cache["attn_out", layer]) < 1e-12
            assert relative_error(mlp, cache["mlp_out", layer]) < 1e-12

    @pytest.mark.parametrize("expand_neurons", [True, False])
    def test_the_full_decomposition_sums_to_the_stream(self, cache, expand_neurons):
        parts = cache.get_full_resid_decomposition(expand_neurons=expand_neurons)
        assert relative_error(parts.sum(0), cache["resid_post", 1]) < 1e-12

    def test_biases_accumulate(self, model):
        attn, mlp = [block.attn.b_O for block in model.blocks], [block.mlp.b_out for block in model.blocks]
        assert model.accumulated_bias(0).abs().max() == 0
        assert torch.equal(model.accumulated_bias(0, mlp_input=True), attn[0])
        assert torch.allclose(model.accumulated_bias(2), attn[0] + mlp[0] + attn[1] + mlp[1])
        assert torch.allclose(model.accumulated_bias(1, mlp_input=True, include_mlp_biases=False), attn[0] + attn[1])

    def test_biases_of_experts_are_none_that_all_tokens_get(self):
        module = random_foreign("gpt_oss", dtype=torch.float32)
        model = load_model(module)
        assert torch.equal(model.accumulated_bias(2), model.blocks[0].attn.b_O + model.blocks[1].attn.b_O)

    def test_logit_attributions_sum_to_the_logits(self, model, clean):
        """TransformerLens asks for LayerNorm to be folded: then only ``b_U`` is left over."""
        folded = center_writing_weights(fold_layer_norm(model))
        logits, cache = folded.run_with_cache(clean)
        tokens = torch.tensor([5, 9])
        parts = cache.get_full_resid_decomposition(pos_slice=-1, expand_neurons=False)
        written = cache.logit_attrs(parts, tokens=tokens, pos_slice=-1, has_batch_dim=True).sum(0)
        expected = logits[torch.arange(2), -1, tokens] - folded.b_U[tokens]
        assert relative_error(written, expected) < 1e-10

    def test_logit_attributions_of_words(self, model, clean):
        folded = center_writing_weights(fold_layer_norm(model))
        logits, cache = folded.run_with_cache(clean)
        parts = cache.get_full_resid_decomposition(pos_slice=-1, expand_neurons=False)
        written = cache.logit_attrs(parts, tokens=" keys", incorrect_tokens=" key", pos_slice=-1).sum(0)
        right, wrong = (folded.to_single_token(word) for word in (" keys", " key"))
        expected = logits[:, -1, right] - logits[:, -1, wrong] - folded.b_U[right] + folded.b_U[wrong]
        assert relative_error(written, expected) < 1e-10

    def test_the_logit_lens_ends_at_the_logits(self, model, clean):
        values = logit_lens(model, clean, positions=None, incl_mid=True).values
        assert values.shape == (2 * LAYERS + 1, 2, P, model.config.d_vocab)
        assert relative_error(values[-1], model(clean)) < 1e-12

    def test_directions_of_words(self, model):
        key = model.to_single_token(" key")
        assert torch.equal(model.tokens_to_residual_directions(" key"), model.W_U[:, key])
        assert torch.equal(model.tokens_to_residual_directions(key), model.W_U[:, key])
        assert model.tokens_to_residual_directions(torch.tensor([[1, 2, 3]])).shape == (1, 3, 12)


class TestHeadDetector:
    TEXT = "The keys to the cabinet The keys to the cabinet"

    @pytest.fixture
    def attending(self):
        """A model whose pattern is set by hand: layer 0 looks back by one, two, and zero positions."""
        model = random_model(tokenizer=word_tokenizer())

        def look_back(pattern, *, hook):
            n = pattern.shape[-1]
            for head in range(HEADS):
                source = (torch.arange(n) - (1, 2, 0)[head]).clamp(min=0)
                pattern[:, head] = torch.eye(n, dtype=pattern.dtype)[source]
            return pattern

        model.add_hook("blocks.0.attn.hook_pattern", look_back)
        return model

    @pytest.mark.parametrize("kind", ["previous_token_head", "duplicate_token_head", "induction_head"])
    @pytest.mark.parametrize("measure", ["mul", "abs"])
    def test_it_runs_on_text(self, model, kind, measure):
        scores = detect_head(model, self.TEXT, kind, error_measure=measure)
        assert scores.shape == (LAYERS, HEADS)
        assert scores.isfinite().all()

    def test_a_previous_token_head_is_found(self, attending):
        scores = detect_head(attending, self.TEXT, "previous_token_head")
        n = len(attending.to_str_tokens(self.TEXT))
        assert scores[0, 0].item() == pytest.approx((n - 1) / n)  # BOS has no previous token
        assert scores[0, 1].item() == pytest.approx(1 / n)  # two back: only position 1 lands on BOS
        assert scores[0, 2].item() == 0

    def test_several_texts_and_chosen_heads(self, attending):
        scores = detect_head(attending, [self.TEXT, "The key"], "previous_token_head", heads=[(0, 0)])
        assert scores[0, 0].item() == pytest.approx((10 / 11 + 2 / 3) / 2)
        assert set(scores.flatten()[1:].tolist()) == {-1}
