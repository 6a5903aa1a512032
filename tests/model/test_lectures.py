"""What lectures prove of attention and positions, as they write it: by hand, by loops, in exact numbers."""

import math

import pytest
import torch
from tiny_models import random_model, random_tokens, relative_error

from interp.model.attention import Additive, Bilinear, Dot, make_scores
from interp.model.config import TransformerConfig
from interp.model.layers import RMSNorm, sinusoids
from interp.model.positions import Alibi, Relative, Rotary, places_of


@pytest.fixture(autouse=True)
def _no_gradients():
    with torch.no_grad():
        yield


def drawn(*shape, seed=0):
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def everywhere(n):
    return places_of(torch.ones(1, n, dtype=torch.bool), n, causal=False)


class TestOrder:
    PERMUTATION = (4, 0, 3, 1, 2)

    def test_without_positions_a_permutation_of_the_words_permutes_the_answers(self):
        model = random_model(positions="none", causal=False)
        tokens, order = random_tokens(model, length=5), list(self.PERMUTATION)
        assert relative_error(model(tokens[:, order]), model(tokens)[:, order]) < 1e-12

    @pytest.mark.parametrize("positions", ["learned", "sinusoidal", "relative", "rotary", "alibi"])
    def test_with_positions_it_does_not(self, positions):
        model = random_model(positions=positions, causal=False, d_head=4)
        tokens, order = random_tokens(model, length=5), list(self.PERMUTATION)
        assert relative_error(model(tokens[:, order]), model(tokens)[:, order]) > 1e-3

    def test_a_causal_mask_knows_order_too(self):
        model = random_model(positions="none")
        tokens, order = random_tokens(model, length=5), list(self.PERMUTATION)
        assert relative_error(model(tokens[:, order]), model(tokens)[:, order]) > 1e-3


class TestSinusoids:
    def test_their_formula(self):
        table = sinusoids(50, 12)
        for position in (0, 1, 7, 49):
            for i in range(6):
                angle = position / 10_000 ** (2 * i / 12)
                assert table[position, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-14)
                assert table[position, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-14)

    @pytest.mark.parametrize("shift", [1, 3, 20])
    def test_a_shift_is_one_linear_map(self, shift):
        """Rotations by ``shift`` times each frequency, the same for every position."""
        table = sinusoids(60, 12)
        turn = torch.zeros(12, 12, dtype=torch.float64)
        for i in range(6):
            angle = torch.tensor(shift / 10_000 ** (2 * i / 12), dtype=torch.float64)
            turn[2 * i, 2 * i], turn[2 * i, 2 * i + 1] = angle.cos(), angle.sin()
            turn[2 * i + 1, 2 * i], turn[2 * i + 1, 2 * i + 1] = -angle.sin(), angle.cos()
        assert relative_error(table[:40] @ turn.T, table[shift : 40 + shift]) < 1e-13

    def test_an_odd_width_ends_with_a_sine(self):
        assert sinusoids(4, 5).shape == (4, 5)
        assert sinusoids(4, 5)[3, 4].item() == pytest.approx(math.sin(3 / 10_000 ** (4 / 5)))

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    def test_the_models_table_is_as_exact_as_its_dtype(self, dtype):
        model = random_model(positions="sinusoidal").float().to(dtype)
        assert torch.equal(model.W_pos, sinusoids(16, 12).to(dtype))


class TestRotary:
    def test_products_depend_on_the_distance_alone(self):
        turn, q, k = Rotary(8, 10_000.0), drawn(1, 1, 1, 8), drawn(1, 1, 1, 8, seed=1)
        at = lambda x, position: turn(x, torch.tensor([[position]])).flatten()  # noqa: E731
        for distance in (0, 1, 5):
            products = torch.stack([at(q, start + distance) @ at(k, start) for start in (0, 1, 17, 400)])
            assert (products - products[0]).abs().max() < 1e-12
        assert (at(q, 5) @ at(k, 0) - at(q, 0) @ at(k, 0)).abs() > 1e-3

    def test_lengths_stay(self):
        x = drawn(2, 6, 3, 8)
        assert relative_error(Rotary(8, 100.0)(x, torch.arange(6)[None]).norm(dim=-1), x.norm(dim=-1)) < 1e-14

    def test_each_pair_turns_by_its_angle(self):
        x = torch.zeros(1, 4, 1, 6, dtype=torch.float64)
        x[..., 1] = 1.0
        out = Rotary(4, 100.0)(x, torch.arange(4)[None])[0, :, 0]
        for position in range(4):
            angle = position / 100 ** (2 / 4)
            expected = torch.tensor([0, math.cos(angle), 0, math.sin(angle), 0, 0], dtype=torch.float64)
            assert (out[position] - expected).abs().max() < 1e-15

    def test_what_does_not_turn_stays(self):
        x = drawn(1, 4, 2, 6)
        assert torch.equal(Rotary(4, 100.0)(x, torch.arange(4)[None])[..., 4:], x[..., 4:])


class TestAlibi:
    def test_slopes_of_eight_heads(self):
        assert Alibi(8).slopes().tolist() == [2.0**-power for power in range(1, 9)]

    def test_slopes_of_twelve_heads_fill_in(self):
        assert Alibi(12).slopes().tolist() == pytest.approx(
            [2.0**-power for power in range(1, 9)] + [2.0**-power for power in (0.5, 1.5, 2.5, 3.5)]
        )

    def test_scores_fall_with_the_distance(self):
        scores = Alibi(2).to_scores(torch.zeros(1, 2, 4, 4), torch.zeros(1, 2, 4, 3), everywhere(4))
        assert scores[0, 0, 3].tolist() == [-3 / 16, -2 / 16, -1 / 16, 0]
        assert scores[0, 1, 3].tolist() == [-3 / 256, -2 / 256, -1 / 256, 0]


class TestRelative:
    def test_shaws_equations_by_loops(self):
        """``e_ij = q_i (k_j + a^K_ij) / sqrt(d)`` and ``z_i = sum_j alpha_ij (v_j + a^V_ij)``, clipped at 2."""
        config = TransformerConfig(1, 2, 8, 3, 4, 10, 8, positions="relative", relative_distance=2)
        offsets = Relative(config, 3**-0.5).double()
        offsets.rel_K.copy_(drawn(5, 3))
        offsets.rel_V.copy_(drawn(5, 3, seed=1))
        q, k, v = (drawn(1, 2, 6, 3, seed=seed) for seed in (2, 3, 4))
        scores = offsets.to_scores(q @ k.transpose(-1, -2) * 3**-0.5, q, everywhere(6))
        pattern = scores.softmax(-1)
        z = offsets.to_z(pattern @ v, pattern, everywhere(6))
        for head in range(2):
            for i in range(6):
                distance = [max(-2, min(2, i - j)) + 2 for j in range(6)]
                e = torch.stack([q[0, head, i] @ (k[0, head, j] + offsets.rel_K[distance[j]]) for j in range(6)])
                alpha = (e / 3**0.5).softmax(0)
                assert relative_error(pattern[0, head, i], alpha) < 1e-13
                expected = sum(alpha[j] * (v[0, head, j] + offsets.rel_V[distance[j]]) for j in range(6))
                assert relative_error(z[0, head, i], expected) < 1e-13


class TestScores:
    """Query (1, 2), keys (3, 4) and (0, -1), worked out on paper."""

    Q = torch.tensor([[[[1.0, 2.0]]]], dtype=torch.float64)
    K = torch.tensor([[[[3.0, 4.0], [0.0, -1.0]]]], dtype=torch.float64)

    def test_dot(self):
        assert Dot(1.0)(self.Q, self.K).flatten().tolist() == [11, -2]

    def test_scaled_dot(self):
        config = TransformerConfig(1, 1, 2, 2, 4, 10, 8)
        expected = [11 / math.sqrt(2), -2 / math.sqrt(2)]
        assert make_scores(config)(self.Q, self.K).flatten().tolist() == pytest.approx(expected, rel=1e-15)

    def test_bilinear(self):
        score = Bilinear(1, 2).double()
        assert score(self.Q, self.K).flatten().tolist() == [11, -2]
        score.w_score.copy_(torch.tensor([[[0.0, 1.0], [2.0, 0.0]]]))
        assert score(self.Q, self.K).flatten().tolist() == [16, -1]  # (1, 2) W = (4, 1)

    def test_additive(self):
        score = Additive(1, 2).double()
        score.w_score.copy_(torch.tensor([[1.0, -2.0]]))
        expected = [math.tanh(4) - 2 * math.tanh(6), math.tanh(1) - 2 * math.tanh(1)]
        assert score(self.Q, self.K).flatten().tolist() == pytest.approx(expected, rel=1e-14)


class TestSharedKeys:
    def test_each_query_head_reads_its_groups(self):
        """Four query heads on two key heads: the model in which every head has a copy of its own says the same."""
        shared = random_model(n_heads=4, n_kv_heads=2, d_head=3)
        own = random_model(n_heads=4, d_head=3)
        state = shared.state_dict()
        for name, value in state.items():
            if name.rpartition(".")[2] in ("W_K", "W_V", "b_K", "b_V"):
                state[name] = value[[0, 0, 1, 1]]
        own.load_state_dict(state)
        tokens = random_tokens(shared)
        assert relative_error(shared(tokens), own(tokens)) < 1e-12
        assert relative_error(shared.W_K, own.W_K) == 0


def test_rms_norm_leaves_the_mean():
    norm = RMSNorm(3, 0.5).double()
    norm.w.copy_(torch.tensor([1.0, 2.0, 3.0]))
    x = torch.tensor([[1.0, 2.0, 2.0]], dtype=torch.float64)
    assert norm(x).flatten().tolist() == pytest.approx([1 / 3.5**0.5, 4 / 3.5**0.5, 6 / 3.5**0.5])


def test_a_gate_multiplies():
    """SwiGLU: ``(silu(x W_gate) * x W_in) W_out`` (Shazeer 2020, equation 6)."""
    mlp = random_model(gated=True, act_fn="silu", biases=()).blocks[0].mlp
    x = drawn(2, 12)
    gate = x @ mlp.W_gate
    assert relative_error(mlp(x), (gate / (1 + (-gate).exp()) * (x @ mlp.W_in)) @ mlp.W_out) < 1e-14


def test_the_stream_is_never_overwritten():
    """Post-norm sends on a normalised copy; what attention and the MLP have read and written stays in the cache."""
    model = random_model(norm_position="post")
    tokens = random_tokens(model)
    _, cache = model.run_with_cache(tokens)
    for layer, block in enumerate(model.blocks):
        name = lambda point, layer=layer: cache[f"blocks.{layer}.{point}"]  # noqa: E731
        assert relative_error(name("hook_resid_mid"), name("hook_resid_pre") + name("hook_attn_out")) < 1e-14
        after = block.ln1(name("hook_resid_mid"))
        assert relative_error(name("hook_resid_post"), after + name("hook_mlp_out")) < 1e-14
    assert relative_error(model.unembed(block.ln2(name("hook_resid_post"))), model(tokens)) < 1e-14


WEIGHTS = torch.tensor([0.1, 0.2, 0.6, 0.1], dtype=torch.float64)
VALUES = torch.tensor([[1, 0, 0], [0, 1, 0], [0, 0, 2], [0, 0, 1]], dtype=torch.float64)


def attention(n_heads=1):
    return random_model(n_layers=1, n_heads=n_heads, d_model=3, d_head=3).blocks[0].attn


def causal(n):
    return places_of(torch.ones(1, n, dtype=torch.bool), n, causal=True)


def weighted_sum(order, fused):
    """The last position's z when it attends to the values in `order` with their weights."""
    attn = attention()
    q = torch.zeros(1, 4, 1, 3, dtype=torch.float64)
    k = torch.zeros_like(q)
    q[0, -1, 0, 0] = 3**0.5  # times 1/sqrt(d_head): the scores of the last position are k's first column
    k[0, :, 0, 0] = WEIGHTS[order].log()
    attend = attn.mixed if fused else attn._explicit
    with torch.no_grad():
        return attend(q, k, VALUES[order][None, :, None], causal(4))[0, -1, 0]


@pytest.mark.parametrize("fused", [True, False])
def test_values_are_summed_under_their_weights(fused):
    expected = torch.tensor([0.1, 0.2, 1.3], dtype=torch.float64)
    assert relative_error(weighted_sum([0, 1, 2, 3], fused), expected) < 1e-15


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("order", [[1, 0, 2, 3], [2, 1, 0, 3], [3, 2, 1, 0]])
def test_swapping_tokens_with_their_weights_changes_nothing(order, fused):
    assert relative_error(weighted_sum(order, fused), weighted_sum([0, 1, 2, 3], fused)) < 1e-15


@pytest.mark.parametrize("fused", [True, False])
def test_the_first_position_can_only_look_at_itself(fused):
    attn = attention()
    q, k = torch.randn(2, 1, 4, 1, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        z = (attn.mixed if fused else attn._explicit)(q, k, VALUES[None, :, None], causal(4))
    assert relative_error(z[0, 0, 0], VALUES[0]) < 1e-15


def test_scores_that_float16_can_hold_are_computed_in_it():
    """A query and a key whose product, before it is scaled, lies beyond float16's 65,504."""
    attn = random_model(n_layers=1, n_heads=1, d_model=64, d_head=64).blocks[0].attn.half()
    q = k = torch.full((1, 2, 1, 64), 40.0, dtype=torch.float16)
    scores = []
    attn.hook_attn_scores.add_hook(lambda x, *, hook: scores.append(x))
    with torch.no_grad():
        attn._explicit(q, k, k, causal(2))
    assert scores[0][0, 0, 1].tolist() == [12_800, 12_800]


def test_a_zeroed_head_leaves_the_biases():
    """Zero ablation of every head is b_O, and of the attention layer's output is nothing at all."""
    model = random_model()
    tokens = torch.arange(6)[None]
    zero = lambda x, *, hook: torch.zeros_like(x)  # noqa: E731
    kept = []
    keep = lambda x, *, hook: kept.append(x)  # noqa: E731
    with torch.no_grad():
        for point in ("attn.hook_z", "attn.hook_result", "hook_attn_out"):
            hooks = [(f"blocks.0.{point}", zero), ("blocks.0.hook_attn_out", keep)]
            model.run_with_hooks(tokens, fwd_hooks=hooks)
    b_O = model.blocks[0].attn.b_O
    assert torch.equal(kept[0], b_O.expand(kept[0].shape))
    assert torch.equal(kept[1], b_O.expand(kept[1].shape))
    assert kept[2].abs().max() == 0
    assert b_O.abs().min() > 0
