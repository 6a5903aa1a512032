"""Padding changes no logits: on the left, on the right, on both sides, fused or explicit."""

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from as_users_call import unchecked
from tiny_models import random_model, random_tokens, relative_error, word_tokenizer

from interp.errors import HookError, InputError
from interp.model.attention import KeyValueCache
from interp.model.positions import places_of

LENGTHS = (16, 9, 1)  # the context's whole length, a part of it, one token


@pytest.fixture(scope="module")
def model():
    return random_model()


@pytest.fixture(scope="module")
def prompts(model):
    return [random_tokens(model, 1, length, seed=length)[0] for length in LENGTHS]


@pytest.fixture(autouse=True)
def _no_gradients():
    with torch.no_grad():
        yield


def padded(prompts, side, filler, width=20):
    """All prompts in one batch, wider than the context."""
    tokens = torch.full((len(prompts), width), filler)
    mask = torch.zeros(len(prompts), width, dtype=torch.long)
    for row, prompt in enumerate(prompts):
        start = {"left": width - len(prompt), "right": 0, "both": (width - len(prompt)) // 2}[side]
        tokens[row, start : start + len(prompt)] = prompt
        mask[row, start : start + len(prompt)] = 1
    return tokens, mask


@pytest.mark.parametrize("explicit", [False, True])
@pytest.mark.parametrize("side", ["left", "right", "both"])
def test_logits_at_real_positions_are_those_without_padding(model, prompts, side, explicit):
    hooks = [("blocks.0.attn.hook_pattern", lambda x, *, hook: None)] if explicit else []
    for filler in (0, 7):
        tokens, mask = padded(prompts, side, filler)
        logits = model.run_with_hooks(tokens, attention_mask=mask, fwd_hooks=hooks)
        assert logits.isfinite().all()
        for row, prompt in enumerate(prompts):
            assert relative_error(logits[row][mask[row].bool()], model(prompt)[0]) < 1e-12


def test_without_the_mask_left_padding_would_matter(model, prompts):
    tokens, mask = padded(prompts[1:], "left", 0, width=16)
    assert relative_error(model(tokens)[0][mask[0].bool()], model(prompts[1])[0]) > 1e-3


@pytest.mark.parametrize("side", ["left", "right", "none"])
def test_the_loss_of_each_token(model, prompts, side):
    tokens, mask = padded(prompts, side, 3) if side != "none" else (prompts[0][None], torch.ones(1, 16))
    each = model(tokens, return_type="loss", loss_per_token=True, attention_mask=mask)
    assert each.shape == (len(tokens), tokens.shape[1] - 1)
    real = mask[:, 1:].bool() & mask[:, :-1].bool()
    assert torch.equal(each.isnan(), ~real)
    logp = model(tokens, attention_mask=mask)[:, :-1].log_softmax(-1)
    by_hand = -logp.gather(-1, tokens[:, 1:, None])[..., 0]
    assert relative_error(each[real], by_hand[real]) < 1e-12
    mean = model(tokens, return_type="loss", attention_mask=mask)
    assert relative_error(each.nanmean(), mean) < 1e-12


@pytest.mark.parametrize("loss_per_token", [False, True])
def test_logits_and_loss_at_once(model, loss_per_token):
    tokens = random_tokens(model)
    logits, loss = model(tokens, return_type="both", loss_per_token=loss_per_token)
    assert torch.equal(logits, model(tokens))
    assert torch.equal(loss, model(tokens, return_type="loss", loss_per_token=loss_per_token))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_the_loss_of_half_precision_logits_is_in_float32(model, dtype):
    half = random_model(dtype=dtype)
    tokens = random_tokens(half)
    expected = F.cross_entropy(half(tokens)[:, :-1].float().flatten(0, 1), tokens[:, 1:].flatten())
    assert torch.equal(half(tokens, return_type="loss"), expected)


@pytest.mark.parametrize("return_type", ["loss", "both"])
@pytest.mark.parametrize("loss_per_token", [False, True])
def test_prompts_without_a_next_token_have_no_loss(model, return_type, loss_per_token):
    mask = torch.tensor([[1, 0, 0], [0, 1, 0]])
    for tokens, given in ((torch.tensor([[3], [5]]), None), (torch.ones(2, 3, dtype=torch.long), mask)):
        with pytest.raises(InputError, match="loss: expected a prompt of at least two tokens, got none"):
            model(tokens, return_type=return_type, loss_per_token=loss_per_token, attention_mask=given)


class TestStopping:
    """`stop_at_layer` gives the stream that enters a block, and runs nothing from there on."""

    @pytest.mark.parametrize(("stop", "layer"), [(0, 0), (1, 1), (2, 2), (-1, 1), (-2, 0)])
    def test_the_stream_before_a_block(self, model, stop, layer):
        tokens = random_tokens(model)
        out, cache = model.run_with_cache(tokens, stop_at_layer=stop)
        _, whole = model.run_with_cache(tokens)
        assert torch.equal(out, whole["resid_post", 1] if layer == 2 else whole["resid_pre", layer])
        assert {name for name in whole if name.startswith("blocks.") and int(name[7]) < layer} == {
            name for name in cache if name.startswith("blocks.")
        }
        assert not any(name.startswith("ln_final") for name in cache)

    def test_keys_and_values_are_kept_of_whole_passes_only(self, model):
        tokens, cache = random_tokens(model, 1, 6), KeyValueCache.empty(2)
        model(tokens[:, :5], cache=cache)
        model(tokens[:, 5:], cache=cache, stop_at_layer=1)
        assert relative_error(model(tokens[:, 5:], cache=cache), model(tokens)[:, 5:]) < 1e-12

    def test_what_is_named_behind_the_stop_is_refused(self, model):
        tokens, said = random_tokens(model), "is not run with stop_at_layer=-?1; stop later, or leave it out"
        for name in ("blocks.1.attn.hook_z", "ln_final.hook_scale"):
            with pytest.raises(HookError, match=f"{name} {said}"):
                model.run_with_hooks(tokens, fwd_hooks=[(name, lambda z, hook: z)], stop_at_layer=1)
            with pytest.raises(HookError, match=f"{name} {said}"):
                model.run_with_cache(tokens, names_filter=["hook_embed", name], stop_at_layer=-1)
        with pytest.raises(HookError, match=said):
            model.run_with_cache(tokens, names_filter=lambda name: "blocks.1" in name, stop_at_layer=1)
        _, cache = model.run_with_cache(tokens, names_filter=lambda name: name.endswith("hook_z"), stop_at_layer=1)
        assert list(cache) == ["blocks.0.attn.hook_z"]

    @pytest.mark.parametrize("stop", [3, -3])
    def test_no_such_layer(self, model, stop):
        with pytest.raises(InputError, match=f"stop_at_layer: expected a block from 0 to 2 .*, got {stop}"):
            model(random_tokens(model), stop_at_layer=stop)
        with pytest.raises(InputError, match=f"stop_at_layer: expected a block from 0 to 2 .*, got {stop}"):
            model.run_with_cache(random_tokens(model), names_filter="ln_final.hook_scale", stop_at_layer=stop)


def test_nobody_looks_at_padding(model, prompts):
    tokens, mask = padded(prompts, "left", 0)
    _, cache = model.run_with_cache(tokens, attention_mask=mask)
    for row in range(len(prompts)):
        real = mask[row].bool()
        assert cache["pattern", 0][row][:, real][:, :, ~real].abs().max() == 0


@pytest.mark.parametrize("n_new", [1, 3, 8])
def test_the_mask_of_a_cached_step_is_the_last_rows_of_the_whole_one(n_new):
    seen = torch.ones(2, 8, dtype=torch.bool)
    seen[0, :3] = False
    expected = (torch.ones(8, 8).tril().bool() & seen[:, None]) | torch.eye(8).bool()
    assert torch.equal(places_of(seen, n_new, causal=True).allowed(), expected[:, None, -n_new:])


class TestTextAndTokens:
    def test_several_texts_give_what_each_gives_alone(self):
        speaker = random_model(tokenizer=word_tokenizer())
        texts = ["The keys to the cabinet are", "Mary gave"]
        logits = speaker(texts)
        for row, text in enumerate(texts):
            alone = speaker(text)[0]
            assert relative_error(logits[row, : len(alone)], alone) < 1e-12

    def test_text_makes_its_own_mask(self):
        with pytest.raises(InputError, match="attention_mask: text makes its own mask"):
            random_model(tokenizer=word_tokenizer())("The keys", attention_mask=torch.ones(1, 3))

    @pytest.mark.parametrize("dtype", [torch.int32, torch.int16, torch.uint8])
    def test_every_whole_number_dtype_is_a_token_id(self, model, dtype):
        tokens = random_tokens(model)
        assert torch.equal(model.as_tokens(tokens.to(dtype))[0], tokens)

    @pytest.mark.parametrize(
        ("tokens", "message"),
        [
            (torch.rand(1, 3), "expected whole numbers of shape .*, got torch.float32"),
            (torch.ones(1, 3, dtype=torch.bool), "expected whole numbers of shape .*, got torch.bool"),
            (torch.ones(1, 1, 3, dtype=torch.long), r"got torch.int64 of shape \(1, 1, 3\)"),
            (torch.tensor(3), r"got torch.int64 of shape \(\)"),
        ],
    )
    def test_what_is_no_token_id_raises(self, model, tokens, message):
        with pytest.raises(InputError, match=message):
            model.as_tokens(tokens)

    @pytest.mark.parametrize(
        ("mask", "message"),
        [
            (torch.ones(3, 8), r"expected the tokens' shape \(3, 9\), got \(3, 8\)"),
            (torch.ones(9), r"expected the tokens' shape \(3, 9\), got \(1, 9\)"),
            (torch.full((3, 9), -torch.inf), "expected 1 for tokens and 0 for padding"),
        ],
    )
    def test_a_mask_that_does_not_fit_raises(self, model, mask, message):
        with pytest.raises(InputError, match=message):
            model(random_tokens(model), attention_mask=mask)

    def test_one_row_may_come_without_its_batch_axis(self, model):
        tokens = random_tokens(model, 1)
        assert torch.equal(model(tokens[0]), model(tokens))
        mask = torch.ones(9)
        mask[:2] = 0
        assert torch.equal(model(tokens[0], attention_mask=mask), model(tokens, attention_mask=mask[None]))

    def test_more_tokens_than_the_context(self, model):
        with pytest.raises(InputError, match="the longest prompt has 17 tokens, but the model's context is 16"):
            model(random_tokens(model, 2, 17))

    def test_no_tokens(self, model):
        for shape in ((1, 0), (0, 3)):
            with pytest.raises(InputError, match="the model was given no tokens"):
                model(torch.zeros(shape, dtype=torch.long))

    @pytest.mark.parametrize("wrong", [-1, 40])
    def test_ids_outside_the_vocabulary(self, model, wrong):
        tokens = random_tokens(model)
        tokens[1, 4] = wrong
        with pytest.raises(InputError, match=r"token ids: expected 0 to 39, got .* another model's tokenizer"):
            model(tokens)

    @pytest.mark.parametrize("return_type", ["logit", "Loss"])
    def test_an_unknown_return_type(self, model, return_type):
        forward = unchecked(type(model).forward)
        with pytest.raises(
            InputError, match=f"return_type: expected 'logits', 'loss', 'both' or None, got '{return_type}'"
        ):
            forward(model, random_tokens(model), return_type=return_type)

    def test_a_run_for_its_hooks_returns_nothing(self, model):
        out, cache = model.run_with_cache(random_tokens(model), return_type=None)
        assert out is None
        assert "ln_final.hook_normalized" in cache
