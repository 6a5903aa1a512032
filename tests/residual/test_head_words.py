"""The words that a head looks for and writes are the largest entries of its circuits' rows."""

import inspect

import pytest
import torch
from tiny_models import random_model, word_tokenizer

import interp
from interp.errors import InputError
from interp.residual.circuits import ov_circuit, qk_circuit
from interp.residual.head_words import looks_for, writes
from interp.tasks.grammar.lexicon import english

NAMES = english().names


@pytest.fixture(scope="module")
def model():
    return random_model(tokenizer=word_tokenizer())


@pytest.fixture(scope="module")
def default():
    return interp.load_model()


def test_what_is_looked_for_has_the_largest_scores(model):
    frame = looks_for(model, 1, 2, " keys", top=7)
    scores = qk_circuit(model, 1, 2).AB[model.to_single_token(" keys")]
    best = scores.topk(7)
    assert list(frame.columns) == ["place", "token", "text", "score", "excess"]
    assert frame["place"].tolist() == list(range(7))
    assert frame["token"].tolist() == best.indices.tolist()
    assert frame["score"].tolist() == pytest.approx(best.values.tolist(), rel=1e-12)
    assert frame["excess"].tolist() == pytest.approx((best.values - scores.mean()).tolist(), rel=1e-12)
    assert frame["text"].tolist() == [model.to_str_tokens(torch.tensor([each]))[0] for each in frame["token"]]


def test_the_order_is_that_of_the_attention():
    """In the first layer, where nothing else is in the stream: the pattern over the whole vocabulary."""
    model = random_model(positions="none", n_ctx=41, tied=False).requires_grad_(False)
    tokens = torch.cat([torch.arange(40), torch.tensor([7])])[None]
    _, cache = model.run_with_cache(tokens, names_filter="blocks.0.attn.hook_pattern")
    pattern = cache["blocks.0.attn.hook_pattern"][0, 1, -1, :40]
    frame = looks_for(model, 0, 1, 7, top=40)
    assert frame["token"].tolist() == pattern.argsort(descending=True).tolist()
    assert frame["text"].isna().all()


def test_what_is_written_is_raised_or_lowered_most(model):
    frame = writes(model, 0, 1, " Mary", top=4)
    logits = ov_circuit(model, 0, 1).AB[model.to_single_token(" Mary")]
    logits = logits - logits.mean()
    assert list(frame.columns) == ["change", "place", "token", "text", "logit"]
    assert frame["change"].tolist() == ["raised"] * 4 + ["lowered"] * 4
    assert frame["place"].tolist() == [0, 1, 2, 3] * 2
    order = logits.argsort(descending=True).tolist()
    assert frame["token"].tolist() == order[:4] + order[::-1][:4]
    assert frame["logit"].tolist() == pytest.approx(logits[frame["token"].tolist()].tolist(), rel=1e-12)
    assert frame["logit"].iloc[0] > 0 > frame["logit"].iloc[4]


def test_a_word_and_its_id_are_the_same(model):
    keys = model.to_single_token(" keys")
    for call in (looks_for, writes):
        assert call(model, 1, 0, " keys").equals(call(model, 1, 0, keys))
        assert not call(model, 1, 0, " keys").equals(call(model, 1, 0, " key"))


class TestTheDefaultModel:
    """Head 2.1 is, by the model card, the one of indirect objects and induction, 2.2 of coreference and reflexives."""

    def test_the_copying_head_writes_the_name_itself(self, default):
        itself = [writes(default, 2, 1, f" {name.text}", top=1)["text"][0] == f" {name.text}" for name in NAMES]
        assert sum(itself) / len(itself) > 0.95

    @pytest.mark.parametrize(("her", "his"), [(" she", " he"), (" her", " his"), (" herself", " himself")])
    def test_the_coreference_head_writes_the_names_pronouns(self, default, her, his):
        """Every name's own pronoun more than the other; the copying head does so for few."""
        names = [default.to_single_token(f" {name.text}") for name in NAMES]
        female = torch.tensor([name.gender == "female" for name in NAMES])
        right = {}
        for head in (1, 2):
            circuit = ov_circuit(default, 2, head)
            logits = circuit.A[names] @ circuit.B[:, [default.to_single_token(her), default.to_single_token(his)]]
            right[head] = ((logits[:, 0] > logits[:, 1]) == female).double().mean()
        assert right[2] > 0.99
        assert right[1] < 0.7

    def test_and_lists_them_first(self, default):
        frame = writes(default, 2, 2, " Mary", top=3).groupby("change")["text"].agg(set)
        assert frame["raised"] == {" she", " herself", " her"}
        assert frame["lowered"] == {" he", " himself", " his"}


@pytest.mark.parametrize("call", [looks_for, writes])
@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((0, 3, " keys"), {}, "head: expected 0 to 2, got 3"),
        ((0, 0, " keyss"), {}, "' keyss': expected one token"),
        ((0, 0, 273), {}, "token ids: expected 0 to 272, got 273"),
        ((0, 0, [1, 2]), {}, r"word: expected one token, got a tensor of shape \(2,\)"),
        ((0, 0, 1), {"top": 0}, r"top: expected 1 to 273 tokens \(the vocabulary\), got 0"),
        ((0, 0, 1), {"top": 274}, "got 274"),
    ],
)
def test_what_is_no_question_raises(model, call, arguments, options, message):
    with pytest.raises(InputError, match=message):
        inspect.unwrap(call)(model, *arguments, **options)
