"""The stream is exactly the sum of what wrote to it."""

import pytest
import torch
from tiny_models import random_model, random_tokens, relative_error, word_tokenizer

from interp.errors import InputError
from interp.model.folding import fold_layer_norm
from interp.residual.stream import residual_stream

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}
SHAPES = {
    "default": {},
    "one layer, one head": {"n_layers": 1, "n_heads": 1},
    "deep": {"n_layers": 7, "d_head": 2},
    "wide": {"n_heads": 8, "d_model": 64, "d_head": 16, "d_mlp": 256},
    "untied relu": {"tied": False, "act_fn": "relu"},
}


def padded(model, side):
    tokens = random_tokens(model)
    mask = torch.ones_like(tokens)
    if side == "left":
        mask[0, :4], mask[1, :1] = 0, 0
    elif side == "right":
        mask[0, -4:], mask[1, -1:] = 0, 0
    return tokens, mask


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("side", ["left", "right", "none"])
@pytest.mark.parametrize("fields", SHAPES.values(), ids=SHAPES.keys())
def test_components_sum_to_the_stream(fields, side, dtype):
    model = random_model(dtype=dtype, **fields)
    tokens, mask = padded(model, side)
    stream = residual_stream(model, tokens, attention_mask=mask)
    assert relative_error(stream.components.sum(0), stream.total) < TOLERANCE[dtype]


def test_the_total_is_what_the_logits_are_made_of():
    model = random_model()
    tokens, mask = padded(model, "left")
    with torch.no_grad():
        stream = residual_stream(model, tokens, attention_mask=mask)
        assert relative_error(model.unembed(model.ln_final(stream.total)), model(tokens, attention_mask=mask)) < 1e-12


def test_the_labels_are_complete():
    stream = residual_stream(random_model(), random_tokens(random_model()))
    expected = ["embedding", "position"]
    for layer in range(2):
        heads = [f"L{layer}H{head}" for head in range(3)]
        expected += [*heads, f"L{layer} b_O", f"L{layer} mlp", f"L{layer} b_out"]
    labels = stream.labels
    assert list(labels["label"]) == expected
    assert labels["kind"].value_counts().to_dict() == {"head": 6, "bias": 4, "mlp": 2, "embedding": 1, "position": 1}
    assert len(stream.components) == len(labels)
    heads = labels[labels["kind"] == "head"]
    assert list(zip(heads["layer"], heads["head"], strict=True)) == [
        (lay, head) for lay in range(2) for head in range(3)
    ]
    assert labels.loc[labels["kind"] != "head", "head"].isna().all()
    assert labels.loc[labels["kind"].isin(["embedding", "position"]), "layer"].isna().all()


def test_every_component_is_what_its_label_says():
    model = random_model()
    tokens = random_tokens(model)
    stream = residual_stream(model, tokens)
    _, cache = model.run_with_cache(tokens)
    shape = stream.total.shape
    assert relative_error(stream["embedding"], model.W_E[tokens].detach()) < 1e-12
    assert relative_error(stream["position"], model.W_pos[:9].detach().expand(shape)) < 1e-12
    for layer, block in enumerate(model.blocks):
        for head in range(3):
            expected = (cache["z", layer][:, :, head] @ block.attn.W_O[head]).detach()
            assert relative_error(stream[f"L{layer}H{head}"], expected) < 1e-12
        mlp = cache["mlp_out", layer] - block.mlp.b_out.detach()
        assert relative_error(stream[f"L{layer} mlp"], mlp) < 1e-12
        assert torch.equal(stream[f"L{layer} b_O"], block.attn.b_O.detach().expand(shape))
        assert torch.equal(stream[f"L{layer} b_out"], block.mlp.b_out.detach().expand(shape))


def test_an_ablated_head_writes_nothing():
    model = random_model()
    tokens = random_tokens(model)
    with model.hooks(fwd_hooks=[("blocks.1.attn.hook_result", lambda x, *, hook: x.index_fill(2, torch.tensor(2), 0))]):
        stream = residual_stream(model, tokens)
    assert stream["L1H2"].abs().max() == 0
    assert stream["L1H1"].abs().max() > 0
    assert relative_error(stream.components.sum(0), stream.total) < 1e-12


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16], ids=str)
class TestHooksOfTheUsers:
    """What is written past the components is refused; what is written to one is part of it; reading is free."""

    @staticmethod
    def nudge(x, *, hook):
        return x * 1.1

    @pytest.mark.parametrize("point", ["hook_resid_pre", "hook_resid_mid", "hook_resid_post"])
    @pytest.mark.parametrize("layer", [0, 1])
    def test_the_stream_itself(self, dtype, point, layer):
        self.refused(dtype, f"blocks.{layer}.{point}")

    @pytest.mark.parametrize("point", ["hook_attn_out", "hook_mlp_out"])
    @pytest.mark.parametrize("layer", [0, 1])
    def test_what_a_layer_writes(self, dtype, point, layer):
        self.refused(dtype, f"blocks.{layer}.{point}")

    @pytest.mark.parametrize("point", ["hook_embed", "blocks.0.attn.hook_z", "blocks.1.attn.hook_result"])
    @pytest.mark.parametrize("change", [True, False])
    def test_a_component(self, dtype, point, change):
        model = random_model(dtype=dtype, n_layers=4)
        with model.hooks(fwd_hooks=[(point, self.nudge if change else lambda x, *, hook: None)]):
            stream = residual_stream(model, random_tokens(model))
        assert relative_error(stream.components.sum(0), stream.total) < {2: 0.02, 4: 1e-5, 8: 1e-12}[dtype.itemsize]

    def refused(self, dtype, point):
        model = random_model(dtype=dtype)
        model.add_hook(point, lambda x, *, hook: None)
        residual_stream(model, random_tokens(model))
        model.add_hook(point, self.nudge)
        with pytest.raises(InputError, match="expected components that sum to the stream, but a hook writes to"):
            residual_stream(model, random_tokens(model))


def test_no_logits_are_computed(monkeypatch):
    model = random_model()
    monkeypatch.setattr(type(model.unembed), "forward", lambda *_: pytest.fail("the unembedding ran"))
    residual_stream(model, random_tokens(model))


def test_texts_are_padded_and_masked():
    model = random_model(tokenizer=word_tokenizer())
    stream = residual_stream(model, ["The keys to the cabinet are", "Mary"])
    assert stream.mask.sum(-1).tolist() == [7, 2]
    alone = residual_stream(model, "Mary")
    assert relative_error(stream.components[:, 1:, :2], alone.components) < 1e-12


def test_the_stream_is_not_the_models_business_afterwards():
    model = random_model()
    stream = residual_stream(model, random_tokens(model))
    assert not stream.components.requires_grad
    assert not any(point.fwd_hooks for point in model.hook_dict.values())


def test_folding_leaves_what_heads_write_in_place():
    model = random_model()
    tokens = random_tokens(model)
    before, after = residual_stream(model, tokens), residual_stream(fold_layer_norm(model), tokens)
    assert relative_error(after.components, before.components) < 1e-12


def test_unknown_components_raise():
    stream = residual_stream(random_model(), random_tokens(random_model()))
    with pytest.raises(InputError, match="no component is called 'L2H0'; they are embedding, position, L0H0"):
        stream["L2H0"]


@pytest.mark.parametrize(
    ("rows", "length", "message"),
    [(1, 17, "the longest prompt has 17 tokens, but the model's context is 16"), (1, 0, "was given no tokens")],
)
def test_prompts_that_do_not_fit_raise(rows, length, message):
    with pytest.raises(InputError, match=message):
        residual_stream(random_model(), torch.zeros(rows, length, dtype=torch.long))
