import numpy as np
import pytest
import torch
from banks import word_level
from planted import Planted, even, onto
from tiny_models import random_model

import interp
from interp.errors import InputError
from interp.methods.function_heads import FUNCTIONS, function_heads, function_masks, repeated

ROW = (0, 5, 6, 7, 5, 6, 8)


def planted(*targets, causal=True):
    """One head for each mapping from query to key."""
    tokenizer = word_level([f"w{number}" for number in range(20)])
    return Planted(
        tokenizer,
        lambda ids: torch.stack([onto(len(ids), each) for each in targets])[None],
        n_heads=len(targets),
        causal=causal,
    )


def score(frame, function, head=0):
    (found,) = frame.query("function == @function and head == @head")["score"]
    return found


def test_where_each_function_looks():
    previous, same, after, first = function_masks(torch.tensor([ROW]))[:, 0]
    assert previous.nonzero().tolist() == [[at, at - 1] for at in range(1, 7)]
    assert same.nonzero().tolist() == [[4, 1], [5, 2]]
    assert after.nonzero().tolist() == [[4, 2], [5, 3]]
    assert first.nonzero().tolist() == [[at, 0] for at in range(1, 7)]


def test_the_token_after_itself():
    """``a a``: what came after the first is the token that looks. A causal model sees it; it is no earlier token."""
    after = function_masks(torch.tensor([[0, 5, 5]]))[2, 0]
    assert not after.any()


def test_planted_functions():
    model = planted({at: at - 1 for at in range(1, 7)}, {4: 1, 5: 2}, {4: 2, 5: 3}, dict.fromkeys(range(1, 7), 0))
    frame = function_heads(model, [ROW]).summary()
    for head, function in enumerate(FUNCTIONS):
        assert score(frame, function, head) == 1.0
    assert score(frame, "induction", 1) == 0.0
    assert score(frame, "duplicate token", 0) == 0.0
    assert frame["low"].isna().all(), "one row has no interval"


def test_chance_is_what_even_attention_gives():
    tokenizer = word_level([f"w{number}" for number in range(20)])

    def lower(ids):
        spread = torch.tril(torch.ones(len(ids), len(ids)))
        return (spread / spread.sum(-1, keepdim=True))[None, None]

    back = function_heads(Planted(tokenizer, lower, n_heads=1, causal=True), [ROW, ROW]).summary()
    both = function_heads(Planted(tokenizer, lambda ids: even(len(ids))[None, None], n_heads=1), [ROW, ROW]).summary()
    for frame in (back, both):
        assert np.allclose(frame["score"], frame["chance"])
        assert (frame["low"] <= frame["score"] + 1e-9).all()
    assert back.query("function == 'duplicate token'")["chance"].item() == pytest.approx((1 / 5 + 1 / 6) / 2)


def test_random_tokens_are_said_twice():
    model = random_model(tokenizer=word_level([f"w{number}" for number in range(20)]), n_ctx=12)
    rows = repeated(model, 3, seed=0)
    assert rows == repeated(model, 3, seed=0)
    assert rows != repeated(model, 3, seed=1)
    for row in rows:
        assert len(row) == 11
        assert row[1:6] == row[6:]
        assert not set(row[1:]) & set(model.tokenizer.all_special_ids)


def test_the_embedded_model_has_an_induction_head():
    """As its induction task says (``interp heads``), and its previous-token head is in an earlier layer."""
    frame = function_heads(interp.load_model(), n_rows=10).summary()
    best = frame.loc[frame.groupby("function")["score"].idxmax()].set_index("function")
    assert best.loc["induction", "score"] > 5 * best.loc["induction", "chance"]
    assert best.loc["previous token", "layer"] < best.loc["induction", "layer"]


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([], "got 0 rows"),
        ([(0,)], "expected rows of 2 to 16 token ids"),
        ([tuple(range(17))], "got 1 rows of up to 17 tokens"),
        ([(0, 99)], "with id 99"),
    ],
)
def test_rows_that_cannot_be_carried(rows, says):
    with pytest.raises(InputError, match=says):
        function_heads(random_model(), rows)


def test_a_context_without_room():
    with pytest.raises(InputError, match="expected a context of 5 tokens at least"):
        function_heads(random_model(n_ctx=4))


def test_examples_are_what_the_summary_averages():
    result = function_heads(interp.load_model(), n_rows=4)
    rows = result.examples.assign(sums=result.examples["attention"] * result.examples["n_queries"])
    sums = rows.groupby(["function", "layer", "head"], as_index=False)[["sums", "n_queries"]].sum()
    both = result.summary().merge(sums, on=["function", "layer", "head"], validate="one_to_one")
    assert both["score"].to_numpy() == pytest.approx((both["sums"] / both["n_queries"]).to_numpy())
    assert len(both) == 4 * 12
