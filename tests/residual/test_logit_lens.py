"""The logit lens reads every boundary as the model reads the last one."""

import math

import pytest
import torch
from architectures import OTHERS, SUMS
from as_users_call import unchecked
from tiny_models import random_model, random_tokens, relative_error, word_tokenizer
from transformer_lens.tools.analysis.logit_lens import logit_lens as their_logit_lens

from interp.errors import InputError
from interp.residual.logit_lens import logit_lens
from interp.residual.readout import boundary_streams, read_out

KINDS = SUMS | OTHERS


@pytest.fixture(scope="module")
def model():
    return random_model(tokenizer=word_tokenizer())


@pytest.fixture(scope="module")
def tokens(model):
    return random_tokens(model)


def masked(tokens, side):
    mask = torch.ones_like(tokens)
    if side != "none":
        mask[1, slice(None, 4) if side == "left" else slice(-4, None)] = 0
    return mask


def column(reading, name, depth):
    return torch.tensor(reading.examples[reading.examples["depth"] == depth][name].to_numpy(float))


def log_probabilities(model, tokens, mask=None):
    with torch.no_grad():
        return model(tokens, attention_mask=mask).log_softmax(-1)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("side", ["none", "left", "right"])
@pytest.mark.parametrize("fields", KINDS.values(), ids=KINDS.keys())
def test_the_last_boundary_is_the_models_own_output_to_the_bit(fields, side, dtype):
    model = random_model(dtype=dtype, **fields)
    tokens = random_tokens(model)
    mask = masked(tokens, side)
    with torch.no_grad():
        streams = boundary_streams(model, tokens, mask.bool())
        assert len(streams) == 3
        assert torch.equal(read_out(model, streams[-1]), model(tokens, attention_mask=mask))


def test_the_last_boundarys_row_is_the_models_own_output_to_the_bit(model, tokens):
    reading = logit_lens(model, tokens)
    nats = log_probabilities(model, tokens)
    expected = nats[:, :-1].gather(2, tokens[:, 1:, None]).flatten()
    known = column(reading, "log_prob", 2).reshape(3, 9)[:, :-1].flatten()
    assert torch.equal(known, expected)
    assert (column(reading, "kl", 2) == 0).all()
    assert (column(reading, "kl", 1) > 1e-3).all()


def test_the_first_boundary_reads_the_embeddings(model, tokens):
    reading = logit_lens(model, tokens)
    with torch.no_grad():
        x = model.W_E[tokens] + model.W_pos[:9]
        centred = x - x.mean(-1, keepdim=True)
        scale = (centred.square().mean(-1, keepdim=True) + model.config.eps).sqrt()
        logits = (centred / scale * model.ln_final.w + model.ln_final.b) @ model.W_U + model.b_U
        p = logits.softmax(-1)
        final = model(tokens).softmax(-1)
    right = tokens[:, 1:, None]
    expected = {
        "log_prob": p[:, :-1].gather(2, right).log(),
        "rank": (logits[:, :-1] > logits[:, :-1].gather(2, right)).sum(-1).double(),
        "entropy": -(p * p.log()).sum(-1),
        "kl": (final * (final / p).log()).sum(-1),
    }
    for name, values in expected.items():
        got = column(reading, name, 0).reshape(3, 9)
        got = got[:, :-1] if name in ("log_prob", "rank") else got
        assert relative_error(got.flatten(), values.flatten()) < 1e-9


def test_a_boundary_is_what_the_block_before_left(model, tokens):
    with torch.no_grad():
        streams = boundary_streams(model, tokens, torch.ones_like(tokens, dtype=torch.bool))
        _, cache = model.run_with_cache(tokens)
    assert torch.equal(streams[0], cache["resid_pre", 0])
    for layer in range(2):
        assert relative_error(streams[layer + 1], cache["resid_post", layer]) < 1e-12


def test_our_lens_is_transformer_lens_lens(model, tokens):
    theirs = their_logit_lens(model, tokens, positions=None, return_type="log_probs").values
    ours = logit_lens(model, tokens, top=model.config.d_vocab).top.sort_values(["depth", "example", "pos", "token"])
    assert relative_error(torch.tensor(ours["log_prob"].to_numpy()), theirs.detach().flatten().double()) < 1e-6


def test_a_model_that_says_nothing_is_even_at_every_depth():
    model = random_model(tied=False)
    with torch.no_grad():
        model.unembed.W_U.zero_()
        model.unembed.b_U.zero_()
    frame = logit_lens(model, random_tokens(model)).examples
    assert frame["entropy"].to_numpy() == pytest.approx(math.log(40), rel=1e-12)
    assert frame["log_prob"].dropna().to_numpy(float) == pytest.approx(-math.log(40), rel=1e-12)
    assert (frame["kl"].abs() < 1e-12).all()
    assert (frame["rank"].dropna() == 0).all()


def test_the_top_tokens_are_the_likeliest_in_order(model, tokens):
    reading = logit_lens(model, tokens, top=4)
    nats = log_probabilities(model, tokens)
    best = nats.topk(4)
    last = reading.top[reading.top["depth"] == 2]
    assert last["token"].tolist() == best.indices.flatten().tolist()
    assert last["log_prob"].tolist() == best.values.flatten().tolist()
    assert last["place"].tolist() == [0, 1, 2, 3] * 27
    assert last["text"].tolist() == [model.to_str_tokens(torch.tensor([each]))[0] for each in last["token"]]
    assert last["pos"].tolist() == [pos for _ in range(3) for pos in range(9) for _ in range(4)]


def test_rank_counts_the_tokens_that_are_likelier(model, tokens):
    """So the token listed at a place has that rank, where it is the one that follows."""
    reading = logit_lens(model, tokens, top=model.config.d_vocab)
    found = reading.examples.merge(
        reading.top, left_on=["depth", "example", "pos", "next_token"], right_on=["depth", "example", "pos", "token"]
    )
    assert len(found) == 3 * 3 * 8
    assert (found["rank"] == found["place"]).all()
    assert found["log_prob_x"].tolist() == found["log_prob_y"].tolist()


@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_has_no_row_and_changes_none(model, tokens, side):
    padded = logit_lens(model, tokens, attention_mask=masked(tokens, side))
    rows = padded.examples[padded.examples["example"] == 1]
    real = slice(4, None) if side == "left" else slice(None, 5)
    alone = logit_lens(model, tokens[1:2, real])
    assert rows["pos"].tolist() == list(range(9))[real] * 3
    assert rows["next_token"].isna().sum() == 3
    for name in ("rank", "log_prob", "entropy", "kl"):
        got, expected = rows[name].to_numpy(float, na_value=-7), alone.examples[name].to_numpy(float, na_value=-7)
        assert got == pytest.approx(expected, rel=1e-9, abs=1e-12, nan_ok=True)
    assert padded.top.groupby(["depth", "example"]).size().loc[0].tolist() == [45, 25, 45]


@pytest.mark.parametrize("side", ["none", "left", "right"])
def test_the_answer_follows_each_prompts_last_token(model, tokens, side):
    mask = masked(tokens, side)
    answers = torch.tensor([3, 5, 7])
    frame = logit_lens(model, tokens, attention_mask=mask, answer=answers).examples
    last = frame[frame["depth"] == 2].groupby("example").tail(1)
    assert last["next_token"].tolist() == [3, 5, 7]
    assert last["pos"].tolist() == [8, 4 if side == "right" else 8, 8]
    at = log_probabilities(model, tokens, mask)[range(3), last["pos"].tolist(), answers]
    assert last["log_prob"].tolist() == pytest.approx(at.tolist(), rel=1e-12)
    assert not frame["next_token"].isna().any()
    one = logit_lens(model, tokens, attention_mask=mask, answer=" keys").examples
    assert one.groupby("example").tail(1)["next_token"].tolist() == [model.to_single_token(" keys")] * 3


def test_hooks_on_the_stream_are_seen(model, tokens):
    plain = logit_lens(model, tokens)
    with model.hooks(fwd_hooks=[("blocks.1.attn.hook_z", lambda z, *, hook: torch.zeros_like(z))]):
        ablated = logit_lens(model, tokens)
    assert torch.equal(column(plain, "entropy", 1), column(ablated, "entropy", 1))
    assert not torch.allclose(column(plain, "entropy", 2), column(ablated, "entropy", 2))


def test_all_depths_but_the_last_are_translated(model, tokens):
    seen = []

    def turned(x, depth):
        seen.append(depth)
        return -x

    plain, read = logit_lens(model, tokens), logit_lens(model, tokens, translate=turned)
    assert seen == [0, 1]
    assert torch.equal(column(plain, "entropy", 2), column(read, "entropy", 2))
    streams = boundary_streams(model, tokens, torch.ones_like(tokens, dtype=torch.bool))
    with torch.no_grad():
        p = read_out(model, -streams[1]).softmax(-1)
    assert relative_error(column(read, "entropy", 1), -(p * p.log()).sum(-1).flatten()) < 1e-9


def test_the_summary_is_the_mean_over_tokens(model, tokens):
    reading = logit_lens(model, tokens)
    summary = reading.summary()
    assert summary["depth"].tolist() == [0, 1, 2]
    assert summary["n"].tolist() == [27] * 3
    for depth in range(3):
        rows = reading.examples[reading.examples["depth"] == depth]
        for name in ("rank", "log_prob", "entropy", "kl"):
            expected = rows[name].dropna().to_numpy(float).mean()
            assert summary.loc[depth, name] == pytest.approx(expected, rel=1e-12)
    assert repr(reading) == "LensReading(.examples: 81 rows; .top: 405 rows; one row a cell: .summary())"


def test_texts_are_read_and_named(model):
    frame = logit_lens(model, ["The keys to the cabinet are", "Mary"]).examples
    assert frame.groupby(["depth", "example"]).size().loc[0].tolist() == [7, 2]
    last = frame[(frame["depth"] == 0) & (frame["example"] == 0)]
    assert last["next_token"].tolist()[:-1] == last["token"].tolist()[1:]


def test_without_a_tokenizer_tokens_have_no_text():
    model = random_model()
    assert logit_lens(model, random_tokens(model)).top["text"].isna().all()


def test_a_bidirectional_model_does_not_say_what_comes_next():
    model = random_model(causal=False)
    frame = logit_lens(model, random_tokens(model)).examples
    assert frame[["next_token", "rank", "log_prob"]].isna().all(axis=None)
    assert frame[["entropy", "kl"]].notna().all(axis=None)
    with pytest.raises(InputError, match="answer: a bidirectional model does not predict what follows a prompt"):
        logit_lens(model, random_tokens(model), answer=3)


def test_logits_that_are_no_numbers_raise(tokens):
    model = random_model(dtype=torch.float16, tokenizer=word_tokenizer())
    with torch.no_grad():
        model.blocks[1].mlp.b_out.fill_(6e4)
        model.W_E.fill_(6e4)
    with pytest.raises(InputError, match=r"expected logits that are numbers, got NaN: .* use float32"):
        logit_lens(model, tokens)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"top": 0}, r"top: expected 1 to 273 tokens \(the vocabulary\), got 0"),
        ({"top": 274}, "got 274"),
        ({"answer": 10_000}, "token ids: expected 0 to 272, got 10000"),
        ({"answer": " keyss"}, "' keyss': expected one token"),
        (
            {"answer": torch.tensor([1, 2])},
            r"answer: expected one token, or one for each of the 3 prompts, got .*\(2,\)",
        ),
    ],
)
def test_what_cannot_be_read_raises(model, tokens, options, message):
    read = unchecked(logit_lens)
    with pytest.raises(InputError, match=message):
        read(model, tokens, **options)
