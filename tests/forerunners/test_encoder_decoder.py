"""The encoder-decoder is PyTorch's own, weight for weight; its cross-attention can be read and changed."""

import pytest
import torch
from tiny_models import draw, relative_error
from torch import nn

from forerunners.encoder_decoder import VASWANI, EncoderDecoder
from interp.errors import ConfigError, HookError, InputError
from interp.model.config import TransformerConfig

SIZES = {"n_layers": 2, "n_heads": 3, "d_model": 12, "d_head": 4, "d_mlp": 20, "d_vocab": 30, "n_ctx": 10}
OTHERS = {
    "pre-norm, learned": {"positions": "learned"},
    "rotary, RMS, SwiGLU, grouped": {
        "positions": "rotary", "normalization": "RMS", "act_fn": "silu", "gated": True, "n_kv_heads": 1,
    },
    "partial rotary": {"positions": "rotary", "rotary_dim": 2},
    "relative, untied": {"positions": "relative", "tied": False},
    "additive scores, no positions": {"positions": "none", "scores": "additive"},
}  # fmt: skip


def model_of(**fields):
    return draw(EncoderDecoder(TransformerConfig(**SIZES | fields)).double(), 0)


def tokens(rows=2, length=6, seed=0):
    return torch.randint(30, (rows, length), generator=torch.Generator().manual_seed(seed))


@pytest.fixture(autouse=True)
def _no_gradients():
    with torch.no_grad():
        yield


def theirs(ours):
    """PyTorch's transformer with the same weights."""
    d = ours.config.d_model
    made = nn.Transformer(d, 3, 2, 2, 20, dropout=0.0, activation="relu", batch_first=True).double().eval()
    made.encoder.norm = made.decoder.norm = None
    layers = [
        *zip(ours.encoder, made.encoder.layers, strict=True),
        *zip(ours.decoder, made.decoder.layers, strict=True),
    ]
    for mine, other in layers:
        fill(other.self_attn, mine.attn)
        norms = [mine.ln1, mine.ln2]
        if hasattr(mine, "cross_attn"):
            fill(other.multihead_attn, mine.cross_attn)
            norms.insert(1, mine.ln_cross)
        for number, norm in enumerate(norms, start=1):
            getattr(other, f"norm{number}").weight.copy_(norm.w)
            getattr(other, f"norm{number}").bias.copy_(norm.b)
        for linear, weight, bias in ((other.linear1, "W_in", "b_in"), (other.linear2, "W_out", "b_out")):
            linear.weight.copy_(getattr(mine.mlp, weight).T)
            linear.bias.copy_(getattr(mine.mlp, bias))
    return made


def fill(other, attn):
    joined = [getattr(attn, f"W_{letter}").permute(0, 2, 1).flatten(0, 1) for letter in "QKV"]
    other.in_proj_weight.copy_(torch.cat(joined))
    other.in_proj_bias.copy_(torch.cat([getattr(attn, f"b_{letter}").flatten() for letter in "QKV"]))
    other.out_proj.weight.copy_(attn.W_O.flatten(0, 1).T)
    other.out_proj.bias.copy_(attn.b_O)


@pytest.mark.parametrize("padded", [False, True])
def test_it_is_pytorchs_transformer(padded):
    model, source, target = model_of(**VASWANI), tokens(), tokens(length=5, seed=1)
    mask = torch.ones(2, 6, dtype=torch.bool)
    if padded:
        mask[0, 4:] = False
    embedded = [model.embed.W_E[each] * 12**0.5 + model.pos_embed.W_pos[: each.shape[1]] for each in (source, target)]
    causal = nn.Transformer.generate_square_subsequent_mask(5, dtype=torch.float64)
    options = {"src_key_padding_mask": ~mask, "memory_key_padding_mask": ~mask, "tgt_mask": causal}
    expected = theirs(model)(*embedded, **options) @ model.embed.W_E.T + model.unembed.b_U
    assert relative_error(model(source, target, source_mask=mask), expected) < 1e-12


@pytest.mark.parametrize("fields", [VASWANI, *OTHERS.values()], ids=["2017", *OTHERS])
class TestEveryArchitecture:
    def test_who_sees_whom(self, fields):
        model, source, target = model_of(**fields), tokens(), tokens(length=5, seed=1)
        logits = model(source, target)
        later, other = target.clone(), source.clone()
        later[:, 3] = (later[:, 3] + 1) % 30
        other[:, -1] = (other[:, -1] + 1) % 30
        moved = (model(source, later) - logits).abs().amax((0, 2))
        assert (moved[:3] == 0).all()
        assert (moved[3:] > 1e-9).all()
        assert ((model(other, target) - logits).abs().amax((0, 2)) > 1e-9).all()

    def test_padding_of_the_source_changes_nothing(self, fields):
        model, source, target = model_of(**fields), tokens(), tokens(length=5, seed=1)
        padded = torch.cat([source, torch.zeros(2, 2, dtype=torch.long)], 1)
        mask = torch.arange(8)[None].expand(2, -1) < 6
        assert relative_error(model(padded, target, source_mask=mask), model(source, target)) < 1e-12

    def test_every_point_fires_and_listening_changes_nothing(self, fields):
        model, source, target = model_of(**fields), tokens(), tokens(length=5, seed=1)
        logits, fired = model(source, target), set()
        note = lambda x, *, hook: fired.add(hook.name)  # noqa: E731
        heard = model.run_with_hooks(source, target, fwd_hooks=[(lambda name: True, note)])
        assert fired == set(model.hook_dict)
        assert relative_error(heard, logits) < 1e-12


def test_cross_attention_can_be_read_and_changed():
    model, source, target = model_of(**VASWANI), tokens(), tokens(length=5, seed=1)
    logits, cache = model.run_with_cache(source, target)
    pattern = cache["decoder.1.cross_attn.hook_pattern"]
    assert pattern.shape == (2, 3, 5, 6)
    assert relative_error(pattern.sum(-1), torch.ones_like(pattern[..., 0])) < 1e-12
    zero = lambda x, *, hook: torch.zeros_like(x)  # noqa: E731
    changed = model.run_with_hooks(source, target, fwd_hooks=[("decoder.1.cross_attn.hook_z", zero)])
    assert (changed - logits).abs().max() > 1e-3
    with pytest.raises(HookError, match=r"no hook point is called 'decoder.1.cross_attn.hook_patern'"):
        model.run_with_hooks(source, target, fwd_hooks=[("decoder.1.cross_attn.hook_patern", zero)])


def test_it_learns_to_reverse():
    """Ten letters, backwards: the cross-attention of the trained model lies on the mirror position."""
    BOS, EOS = 10, 11
    sizes = {"n_layers": 1, "n_heads": 2, "d_model": 32, "d_head": 16, "d_mlp": 64, "d_vocab": 12, "n_ctx": 8}
    model = EncoderDecoder(TransformerConfig(**sizes, **VASWANI))
    generator = torch.Generator().manual_seed(0)

    def batch(n):
        source = torch.randint(10, (n, 5), generator=generator)
        ends = torch.tensor([BOS]).expand(n, 1), torch.tensor([EOS]).expand(n, 1)
        return source, torch.cat([ends[0], source.flip(1), ends[1]], 1)

    def accuracy():
        source, target = batch(100)
        written = model.translate(source, 7, bos=BOS, eos=EOS)
        return sum(row == each[1:-1].tolist() for row, each in zip(written, target, strict=True)) / 100

    assert accuracy() < 0.05
    with torch.enable_grad():
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
        for _ in range(250):
            source, target = batch(64)
            loss = nn.functional.cross_entropy(model(source, target[:, :-1]).flatten(0, 1), target[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    assert accuracy() > 0.9
    source, target = batch(50)
    _, cache = model.run_with_cache(source, target[:, :-1])
    pattern = cache["decoder.0.cross_attn.hook_pattern"][:, :, :5].mean(0)
    mirrored = (pattern.argmax(-1) == torch.arange(4, -1, -1)).float().mean(-1)
    assert mirrored.max() > 0.9


@pytest.mark.parametrize("fields", [{"parallel": True}, {"d_mlp": 0}, {"causal": False}])
def test_what_has_no_decoder_is_refused(fields):
    with pytest.raises(ConfigError, match="expected a causal config of sequential blocks with an MLP"):
        EncoderDecoder(TransformerConfig(**SIZES | fields))


@pytest.mark.parametrize("fields", [{"embed_norm": True}, {"n_token_types": 2}, {**VASWANI, "prediction_head": True}])
def test_parts_of_bert_are_refused(fields):
    with pytest.raises(ConfigError, match=f"encoder-decoder: has no {list(fields)[-1]}, got"):
        EncoderDecoder(TransformerConfig(**SIZES | fields))


def test_a_translation_ends_with_the_context():
    model = model_of(**VASWANI)
    (written, *_) = model.translate(tokens(), 100, bos=1, eos=model.config.d_vocab)
    assert len(written) == model.config.n_ctx


def test_bad_input():
    model = model_of(**VASWANI)
    with pytest.raises(InputError, match="the longest prompt has 11 tokens, but the model's context is 10"):
        model(tokens(length=11), tokens())
    with pytest.raises(InputError, match="the model was given no tokens"):
        model(tokens()[:0], tokens()[:0])
    with pytest.raises(InputError, match="source_mask: expected a token in every row"):
        model(tokens(), tokens(), source_mask=torch.tensor([[True] * 6, [False] * 6]))
    with pytest.raises(InputError, match="token ids: expected 0 to 29, got 0 to 30"):
        model(torch.tensor([[0, 30]]), torch.tensor([[0]]))
    with pytest.raises(InputError, match="expected a row for each of the 2 sources, got 1"):
        model.decode(tokens(rows=1), *model.encode(tokens()))
    with pytest.raises(InputError, match=r"source_mask: expected the tokens' shape \(2, 6\), got \(2, 5\)"):
        model(tokens(), tokens(), source_mask=torch.ones(2, 5, dtype=torch.bool))
