"""What the components write to a logit sums to the logit."""

import copy

import pytest
import torch
from as_users_call import unchecked
from tiny_models import random_model, random_tokens, word_tokenizer

from interp.errors import InputError
from interp.model.folding import center_writing_weights, fold_layer_norm
from interp.residual.stream import direct_logit_attribution, residual_stream


@pytest.fixture(scope="module")
def model():
    return random_model(tokenizer=word_tokenizer())


@pytest.fixture(scope="module")
def tokens(model):
    return random_tokens(model)


def summed(frame):
    return frame.examples.groupby("example")["attribution"].sum().to_numpy()


def masked(tokens, side):
    mask = torch.ones_like(tokens)
    if side != "none":
        gone = slice(None, 4) if side == "left" else slice(-4, None)
        mask[1, gone] = 0
    last = [8, 4 if side == "right" else 8, 8]
    return mask, last


@pytest.mark.parametrize("side", ["none", "left", "right"])
class TestSums:
    def logits(self, model, tokens, mask, last):
        with torch.no_grad():
            return model(tokens, attention_mask=mask)[torch.arange(3), last].double()

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
    def test_to_the_logit(self, side, tokens, dtype):
        model = random_model(dtype=dtype, tied=False, tokenizer=word_tokenizer())
        mask, last = masked(tokens, side)
        stream = residual_stream(model, tokens, attention_mask=mask)
        logits = self.logits(model, tokens, mask, last)
        got = summed(direct_logit_attribution(model, stream, 5))
        tolerance = (1e-5 if dtype == torch.float32 else 1e-12) * float(logits.abs().max())
        assert got == pytest.approx(logits[:, 5].numpy(), abs=tolerance)

    def test_to_the_difference_of_each_prompts_own_tokens(self, side, model, tokens):
        mask, last = masked(tokens, side)
        right, wrong = torch.tensor([3, 5, 7]), torch.tensor([4, 4, 260])
        stream = residual_stream(model, tokens, attention_mask=mask)
        logits = self.logits(model, tokens, mask, last)
        rows = torch.arange(3)
        got = summed(direct_logit_attribution(model, stream, right, wrong))
        tolerance = 1e-12 * float(logits.abs().max())
        assert got == pytest.approx((logits[rows, right] - logits[rows, wrong]).numpy(), abs=tolerance)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_precision_holds_a_large_stream(dtype):
    """The square of an entry above 256 lies beyond float16."""
    model = random_model(dtype=dtype, tied=False)
    with torch.no_grad():
        model.W_E.mul_(1000)
    wide, tokens = copy.deepcopy(model).double(), random_tokens(model)
    half, exact = (
        direct_logit_attribution(each, residual_stream(each, tokens), 5, 6).examples["attribution"].to_numpy()
        for each in (model, wide)
    )
    assert residual_stream(model, tokens).total.abs().max() > 256
    assert half == pytest.approx(exact, abs=0.01 * abs(exact).max())
    assert abs(exact).max() > 0.1


@pytest.mark.parametrize("pos", [0, 3, 8])
def test_at_a_position(model, tokens, pos):
    with torch.no_grad():
        logits = model(tokens)[:, pos]
    got = summed(direct_logit_attribution(model, residual_stream(model, tokens), 5, pos=pos))
    assert got == pytest.approx(logits[:, 5].numpy(), abs=1e-12 * float(logits.abs().max()))


def test_one_row_a_component_and_prompt(model, tokens):
    stream = residual_stream(model, tokens)
    result = direct_logit_attribution(model, stream, " keys", " key")
    frame = result.examples
    assert list(frame.columns) == ["label", "kind", "layer", "head", "example", "attribution"]
    assert list(frame["label"][:15]) == [*stream.labels["label"], "final bias"]
    assert len(frame) == 3 * (len(stream.labels) + 1)
    assert list(frame["example"].unique()) == [0, 1, 2]
    right, wrong = model.to_single_token(" keys"), model.to_single_token(" key")
    assert frame.equals(direct_logit_attribution(model, stream, right, wrong).examples)
    means = frame.groupby("label", sort=False)["attribution"].mean()
    assert result.summary()["label"].tolist() == means.index.tolist()
    assert result.summary()["attribution"].tolist() == means.tolist()
    assert result.summary()["n"].tolist() == [3] * 15


def test_a_heads_share_is_what_removing_it_from_the_stream_costs(model, tokens):
    """With the last LayerNorm's scale held, the share is exactly the logit that goes with the head."""
    stream = residual_stream(model, tokens)
    frame = direct_logit_attribution(model, stream, 5).examples
    share = frame[(frame["label"] == "L1H2")]["attribution"].to_numpy()
    with torch.no_grad():
        total = stream.total[:, -1]
        scale = total.var(-1, unbiased=False, keepdim=True).add(model.config.eps).sqrt()

        def logit(x):
            centred = x - x.mean(-1, keepdim=True)
            return ((centred / scale * model.ln_final.w + model.ln_final.b) @ model.W_U + model.b_U)[:, 5]

        lost = logit(total) - logit(total - stream["L1H2"][:, -1])
    assert share == pytest.approx(lost.numpy(), rel=1e-9)


def test_folding_moves_nothing_but_the_bias(model, tokens):
    """Attribution already accounts for LayerNorm, so a folded and centred model gives the same shares."""
    folded = center_writing_weights(fold_layer_norm(model))
    frames = [direct_logit_attribution(each, residual_stream(each, tokens), 5).examples for each in (model, folded)]
    assert frames[0]["attribution"].to_numpy() == pytest.approx(
        frames[1]["attribution"].to_numpy(), rel=1e-9, abs=1e-12
    )


def test_our_attribution_is_transformer_lens_attribution(model, tokens):
    folded = center_writing_weights(fold_layer_norm(model))
    _, cache = folded.run_with_cache(tokens)
    heads = cache.stack_head_results(pos_slice=-1)
    theirs = cache.logit_attrs(heads, tokens=torch.tensor([5, 6, 7]), pos_slice=-1, has_batch_dim=True)
    frame = direct_logit_attribution(model, residual_stream(model, tokens), torch.tensor([5, 6, 7])).examples
    ours = frame[frame["kind"] == "head"].pivot(index="label", columns="example", values="attribution").sort_index()
    assert ours.to_numpy() == pytest.approx(theirs.detach().numpy(), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pos": 9}, "pos: expected -1 .* or a position that is a token in every prompt, got 9; .* have 5 to 9 tokens"),
        ({"pos": 6}, "got 6; the prompts have 5 to 9 tokens"),
        ({"pos": -2}, "got -2"),
        ({"right": 10_000}, "token ids: expected 0 to 272, got 10000"),
        ({"wrong": -1}, "token ids: expected 0 to 272, got -1"),
        ({"right": " keyss"}, "' keyss': expected one token"),
        ({"wrong": torch.tensor([1, 2])}, r"tokens: expected one, or one for each of the 3 prompts, got shape \(2,\)"),
    ],
)
def test_what_cannot_be_attributed_raises(model, tokens, options, message):
    mask, _ = masked(tokens, "right")
    stream = residual_stream(model, tokens, attention_mask=mask)
    with pytest.raises(InputError, match=message):
        direct_logit_attribution(model, stream, **{"right": 5} | options)


@pytest.mark.parametrize(
    "given",
    [1.5, [" keys", " key", " keys"], torch.tensor([1.0, 2.0, 3.0]), True, 10**30, [[1], [2, 3]], torch.tensor([True])],
)
@pytest.mark.parametrize("which", ["right", "wrong"])
def test_what_is_no_token_raises(model, tokens, given, which):
    stream = residual_stream(model, tokens)
    attribute = unchecked(direct_logit_attribution)
    with pytest.raises(InputError, match="tokens: expected a text of one token, or token ids, got"):
        attribute(model, stream, **{"right": 5} | {which: given})


def test_a_prompt_of_padding_alone_raises(model, tokens):
    mask = torch.ones_like(tokens)
    mask[1] = 0
    stream = residual_stream(model, tokens, attention_mask=mask)
    with pytest.raises(InputError, match=r"prompts: expected a token in each, but rows \[1\] are all padding"):
        direct_logit_attribution(model, stream, 5)
