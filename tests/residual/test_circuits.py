"""QK and OV circuits, copying, composition, and the words that heads look for and write."""

import numpy as np
import pytest
import torch
from architectures import OTHERS, SUMS
from as_users_call import unchecked
from tiny_models import random_model, relative_error, word_tokenizer
from transformer_lens import FactoredMatrix
from transformer_lens.utilities import composition_scores as transformer_lens_scores

import interp
from interp.errors import InputError
from interp.model.config import TransformerConfig
from interp.model.folding import center_writing_weights
from interp.model.transformer import HookedTransformer
from interp.residual.circuits import composition_scores, copying_scores, looks_for, ov_circuit, qk_circuit, writes
from interp.tasks.grammar.lexicon import english

WITHIN_ATTENTION = ("rotary", "alibi", "relative")


def quiet_model(**fields):
    """A random model without embedded positions, whose first layer sees what is embedded and nothing else."""
    model = random_model(**fields).requires_grad_(False)
    if model.config.positions == "learned":
        model.W_pos.zero_()
    return model


def hand_model(*, n_layers=1, n_heads=1, d_model=6, d_head=6):
    """``W_E = W_U = 1`` without norms, positions or MLPs, and every head's weights 0: set them by hand."""
    config = TransformerConfig(
        n_layers, n_heads, d_model, d_head, 0, d_model, 8, normalization="none", positions="none", tied=False
    )
    model = HookedTransformer(config).double().requires_grad_(False)
    for parameter in model.parameters():
        parameter.zero_()
    model.embed.W_E.copy_(torch.eye(d_model))
    model.unembed.W_U.copy_(torch.eye(d_model))
    return model


def layer_norm(x, norm, eps=1e-5):
    centred = x - x.mean(-1, keepdim=True)
    return centred / (centred.square().mean(-1, keepdim=True) + eps).sqrt() * norm.w + norm.b


class TestQK:
    @pytest.mark.parametrize("layer", [0, 1])
    @pytest.mark.parametrize("head", [0, 2])
    def test_is_the_product_of_the_weights(self, layer, head):
        model = random_model().requires_grad_(False)
        block = model.blocks[layer]
        read, attn = layer_norm(model.W_E, block.ln1), block.attn
        q, k = read @ attn.W_Q[head] + attn.b_Q[head], read @ attn.W_K[head] + attn.b_K[head]
        circuit = qk_circuit(model, layer, head)
        assert isinstance(circuit, FactoredMatrix)
        assert relative_error(circuit.AB, q @ k.T / 5**0.5) < 1e-12
        assert circuit.mdim == 5

    @pytest.mark.parametrize("fields", SUMS.values(), ids=SUMS.keys())
    def test_is_the_score_in_the_first_layer(self, fields):
        """Of a token for another one; where positions act within attention, of a token for itself."""
        model = quiet_model(**fields)
        tokens = torch.randperm(40, generator=torch.Generator().manual_seed(0))[None, :16]
        _, cache = model.run_with_cache(tokens, names_filter="blocks.0.attn.hook_attn_scores")
        scores = cache["blocks.0.attn.hook_attn_scores"][0]
        for head in range(model.config.n_heads):
            expected = qk_circuit(model, 0, head).AB[tokens[0]][:, tokens[0]]
            seen = torch.ones(16, 16, dtype=torch.bool).tril()
            if model.config.positions in WITHIN_ATTENTION:
                seen = torch.eye(16, dtype=torch.bool)
            assert relative_error(scores[head][seen], expected[seen]) < 1e-10

    def test_scores_that_are_no_product_have_none(self):
        with pytest.raises(InputError, match=r"scores: expected a product of query and key .* got 'additive'"):
            qk_circuit(random_model(scores="additive"), 0, 0)
        assert copying_scores(random_model(scores="additive")).summary()["copying"].notna().all()


class TestOV:
    @pytest.mark.parametrize("layer", [0, 1])
    def test_is_the_product_of_the_weights(self, layer):
        model = random_model(tied=False).requires_grad_(False)
        block = model.blocks[layer]
        read = layer_norm(model.W_E, block.ln1) - block.ln1.b
        written = read @ block.attn.W_V[1] @ block.attn.W_O[1]
        expected = (written - written.mean(-1, keepdim=True)) * model.ln_final.w @ model.W_U
        circuit = ov_circuit(model, layer, 1)
        assert isinstance(circuit, FactoredMatrix)
        assert relative_error(circuit.AB, expected) < 1e-12
        assert circuit.mdim == 5

    @pytest.mark.parametrize("fields", SUMS.values(), ids=SUMS.keys())
    def test_is_what_the_first_layer_writes(self, fields):
        """A prompt of one token attends to it: what it writes differs from another's as the circuit's rows differ."""
        model = quiet_model(**fields)
        tokens = torch.arange(40)[:, None]
        _, cache = model.run_with_cache(tokens, names_filter="blocks.0.attn.hook_result")
        for head in range(model.config.n_heads):
            written = cache["blocks.0.attn.hook_result"][:, 0, head]
            if model.config.normalises_what_is_written:
                written = written * model.blocks[0].ln1_post.w
            if model.config.normalization == "LN":
                written = written - written.mean(-1, keepdim=True)
            logits = written * model.ln_final.w @ model.W_U
            got = ov_circuit(model, 0, head).AB
            assert relative_error(got - got[:1], logits - logits[:1]) < 1e-10

    def test_singular_values_and_norm_are_those_of_the_product(self):
        model = random_model().requires_grad_(False)
        for circuit in (ov_circuit(model, 1, 0), qk_circuit(model, 1, 0)):
            dense = circuit.A @ circuit.B
            assert relative_error(circuit.S, torch.linalg.svdvals(dense)[:5]) < 1e-10
            assert float(circuit.norm()) == pytest.approx(float(dense.norm()), rel=1e-10)


class TestCopying:
    @pytest.mark.parametrize(
        ("W_OV", "expected"),
        [
            (torch.eye(6), 1),
            (-torch.eye(6), -1),
            (torch.eye(6).roll(1, 0), 0),  # each token makes the next one likelier
            (torch.diag(torch.tensor([3.0, 1, 0, 0, 0, -1])), 0.6),
            (torch.zeros(6, 6), torch.nan),
        ],
        ids=["copies", "anti-copies", "turns", "some of each", "nothing"],
    )
    def test_by_hand(self, W_OV, expected):
        model = hand_model()
        model.blocks[0].attn.W_V[0] = torch.eye(6)
        model.blocks[0].attn.W_O[0] = W_OV
        frame = copying_scores(model).summary()
        assert frame[["layer", "head"]].to_numpy().tolist() == [[0, 0]]
        assert frame["copying"][0] == pytest.approx(expected, abs=1e-9, nan_ok=True)

    @pytest.mark.parametrize("fields", SUMS.values(), ids=SUMS.keys())
    def test_is_of_the_eigenvalues_of_the_whole_circuit(self, fields):
        model = random_model(**fields).requires_grad_(False)
        frame = copying_scores(model).summary().set_index(["layer", "head"])["copying"]
        assert len(frame) == 2 * model.config.n_heads
        for (layer, head), score in frame.items():
            eigenvalues = torch.linalg.eigvals(ov_circuit(model, layer, head).AB)
            assert score == pytest.approx(float(eigenvalues.sum().real / eigenvalues.abs().sum()), abs=1e-7)
            assert -1 <= score <= 1

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
    def test_half_precision_is_near(self, dtype):
        half = random_model(dtype=dtype)
        got, expected = (copying_scores(each).summary()["copying"].to_numpy() for each in (half, random_model()))
        assert got == pytest.approx(expected, abs=0.05)

    @pytest.mark.parametrize(("name", "head"), [("default", 1), ("sibling-1", 2), ("sibling-2", 1)])
    def test_the_embedded_models_have_one_head_that_copies(self, name, head):
        """The heads that repeat names (ioi) and strings (induction), by the model card."""
        frame = copying_scores(interp.load_model(name)).summary().sort_values("copying", ascending=False)
        assert frame[["layer", "head"]].iloc[0].tolist() == [2, head]
        assert frame["copying"].iloc[0] > 0.95
        assert frame["copying"].iloc[1] < 0.7


class TestComposition:
    @staticmethod
    def wired(reads, **moved):
        """Two layers of one head: the first moves direction 0 to direction 1, the second reads `reads` by each way."""
        model = hand_model(n_layers=2, d_model=8, d_head=2)
        first, second = (block.attn for block in model.blocks)
        first.W_V[0, 0, 0] = first.W_O[0, 0, 1] = 2
        second.W_Q[0, reads["Q"], 0] = second.W_K[0, reads["K"], 0] = 3
        second.W_V[0, reads["V"], 0] = second.W_O[0, 0, 5] = 4
        return composition_scores(model).summary().set_index("kind")["score"]

    @pytest.mark.parametrize("kind", ["Q", "K", "V"])
    def test_wired_heads_score_1_and_others_0(self, kind):
        scores = self.wired({"Q": 2, "K": 3, "V": 4} | {kind: 1})
        assert scores.to_dict() == pytest.approx({"Q": 0, "K": 0, "V": 0} | {kind: 1}, abs=1e-12)

    def test_a_head_that_reads_everything_alike_scores_what_it_shares(self):
        """A matrix of rank 1, then the identity of 8 dimensions, whose norm is ``sqrt(8)``: the baseline itself."""
        model = hand_model(n_layers=2, d_model=8, d_head=8)
        first, second = (block.attn for block in model.blocks)
        first.W_V[0, 0, 0] = first.W_O[0, 0, 1] = 1
        for weight in (second.W_Q, second.W_K, second.W_V, second.W_O):
            weight[0] = torch.eye(8)
        frame = composition_scores(model).summary()
        assert frame["score"].tolist() == pytest.approx([8**-0.5] * 3, rel=1e-12)
        assert frame["baseline"].tolist() == pytest.approx([8**-0.5] * 3, rel=1e-12)
        assert frame["excess"].tolist() == pytest.approx([0] * 3, abs=1e-12)

    def test_a_head_that_writes_nothing_has_no_score(self):
        assert composition_scores(hand_model(n_layers=2)).summary()["score"].isna().all()

    @pytest.mark.parametrize("fields", SUMS.values(), ids=SUMS.keys())
    def test_is_the_quotient_of_the_norms(self, fields):
        model = random_model(**{"n_layers": 3} | fields).requires_grad_(False)
        n, frame = model.config.n_heads, composition_scores(model).summary()
        assert len(frame) == 3 * 3 * n * n
        assert not frame.duplicated(["sender_layer", "sender_head", "receiver_layer", "receiver_head", "kind"]).any()
        for row in frame.sample(40, random_state=0).itertuples():
            ov, _ = dense(model, row.sender_layer, row.sender_head)
            read_ov, read_qk = dense(model, row.receiver_layer, row.receiver_head)
            read = {"Q": read_qk, "K": read_qk.T, "V": read_ov}[row.kind]
            expected = (ov @ read).norm() / (ov.norm() * read.norm())
            assert row.score == pytest.approx(float(expected), rel=1e-9)
            assert row.sender_layer < row.receiver_layer

    def test_is_transformer_lens_score_on_a_folded_and_centred_model(self):
        model = center_writing_weights(interp.fold_layer_norm(random_model(n_layers=3))).requires_grad_(False)
        centred = (
            torch.eye(12, dtype=torch.float64) - 1 / 12
        )  # theirs centres reading weights as well; ours cannot differ
        qk = FactoredMatrix(centred @ model.W_Q, (centred @ model.W_K).transpose(-2, -1))
        ov = FactoredMatrix(centred @ model.W_V, model.W_O)
        frame = composition_scores(model).summary()
        for kind, read in {"Q": qk, "K": qk.T, "V": ov}.items():
            theirs = transformer_lens_scores(ov, read, broadcast_dims=True)
            rows = frame[frame["kind"] == kind]
            index = [rows[f"{role}_{what}"].to_numpy() for role in ("sender", "receiver") for what in ("layer", "head")]
            assert rows["score"].to_numpy() == pytest.approx(theirs.numpy()[tuple(index)], rel=1e-9)

    @pytest.mark.slow
    def test_the_baseline_is_the_score_of_a_stream_turned_at_random(self):
        model = hand_model(n_layers=2, d_model=8, d_head=3)
        generator = torch.Generator().manual_seed(0)
        for parameter in (p for block in model.blocks for p in block.attn.parameters()):
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
        writes, squares = model.blocks[0].attn.W_O.clone(), []
        for _ in range(400):
            turn, _ = torch.linalg.qr(torch.randn(8, 8, generator=generator, dtype=torch.float64))
            model.blocks[0].attn.W_O.copy_(writes @ turn)
            frame = composition_scores(model).summary()
            squares.append(frame["score"].to_numpy() ** 2)
        assert np.sqrt(np.mean(squares, axis=0)).tolist() == pytest.approx(frame["baseline"].tolist(), rel=0.05)

    def test_one_layer_has_no_pairs(self):
        frame = composition_scores(random_model(n_layers=1)).summary()
        assert frame.empty
        assert list(frame.columns)[-3:] == ["score", "baseline", "excess"]


def dense(model, layer, head):
    """``W_OV`` and ``W_QK`` of a head, with its norm but for the scale, worked out by hand."""
    block, shared = model.blocks[layer], head // (model.config.n_heads // model.config.kv_heads)
    read = torch.eye(12, dtype=torch.float64)
    if model.config.normalization == "LN":
        read = read - 1 / 12
    if model.config.normalization != "none":
        read = read * block.ln1.w
    attn = block.attn
    between = attn.score.w_score[head] if model.config.scores == "bilinear" else torch.eye(attn.W_Q.shape[-1]).double()
    qk = read @ attn.W_Q[head] @ between @ (read @ attn.W_K[shared]).T
    written = attn.W_O[head] * block.ln1_post.w if model.config.normalises_what_is_written else attn.W_O[head]
    return read @ attn.W_V[shared] @ written, qk


CALLS = {
    "qk": lambda model: qk_circuit(model, 0, 0),
    "ov": lambda model: ov_circuit(model, 0, 0),
    "copying": copying_scores,
    "composition": composition_scores,
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_a_stream_that_is_no_sum_is_refused(call):
    for name in ("post-norm", "bert"):
        with pytest.raises(InputError, match="the residual stream of 'random' is not a sum of components"):
            call(random_model(**OTHERS[name]))


def test_no_matrix_of_the_vocabulary_is_formed(monkeypatch):
    monkeypatch.setattr(FactoredMatrix, "AB", property(lambda _: pytest.fail("the whole circuit was multiplied out")))
    model = random_model(d_vocab=1000)
    copying_scores(model)
    composition_scores(model)
    for circuit in (qk_circuit(model, 0, 0), ov_circuit(model, 0, 0)):
        assert circuit.A.shape == (1000, 5)
        assert circuit.B.shape == (5, 1000)
        assert not circuit.A.requires_grad
        circuit.norm()


@pytest.mark.parametrize(
    ("layer", "head", "message"), [(2, 0, "layer: expected 0 to 1, got 2"), (0, -1, "head: .* -1")]
)
def test_heads_that_are_none_raise(layer, head, message):
    for circuit in (qk_circuit, ov_circuit):
        with pytest.raises(InputError, match=message):
            circuit(random_model(), layer, head)


NAMES = english().names


@pytest.fixture(scope="module")
def model():
    return random_model(tokenizer=word_tokenizer())


@pytest.fixture(scope="module")
def default():
    return interp.load_model()


def test_what_is_looked_for_has_the_largest_scores(model):
    frame = looks_for(model, 1, 2, " keys", top=7).summary()
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
    frame = looks_for(model, 0, 1, 7, top=40).summary()
    assert frame["token"].tolist() == pattern.argsort(descending=True).tolist()
    assert frame["text"].isna().all()


def test_what_is_written_is_raised_or_lowered_most(model):
    frame = writes(model, 0, 1, " Mary", top=4).summary()
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
        assert call(model, 1, 0, " keys") == call(model, 1, 0, keys)
        assert call(model, 1, 0, " keys") != call(model, 1, 0, " key")


class TestTheDefaultModel:
    """Head 2.1 is, by the model card, the one of indirect objects and induction, 2.2 of coreference and reflexives."""

    def test_the_copying_head_writes_the_name_itself(self, default):
        names = [f" {name.text}" for name in NAMES[::4]]
        itself = [writes(default, 2, 1, name, top=1).summary()["text"][0] == name for name in names]
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
        frame = writes(default, 2, 2, " Mary", top=3).summary().groupby("change")["text"].agg(set)
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
        unchecked(call)(model, *arguments, **options)
