"""The recurrences against the equations, by hand, and an Elman network whose weights are set by hand."""

import itertools
import math

import pytest
import torch
from language_models import neural_model, random_tokens

from forerunners.recurrent import PeepholeLSTM, Recurrent, RecurrentConfig


def memory(model, layer=0):
    return {name.removesuffix("_l0"): each for name, each in model.layers[layer].memory.named_parameters()}


def states(model, tokens, layer=0):
    return model.run_with_cache(tokens, names_filter=f"layers.{layer}.hook_state")[1][f"layers.{layer}.hook_state"]


@torch.no_grad()
def test_elmans_equation():
    model, tokens = neural_model("elman"), random_tokens()
    w = memory(model)
    state = torch.zeros(4, 16, dtype=torch.float64)
    for position, got in enumerate(states(model, tokens).unbind(1)):
        x = model.embed.W_E[tokens[:, position]]
        state = torch.tanh(x @ w["weight_ih"].T + state @ w["weight_hh"].T + w["bias_ih"] + w["bias_hh"])
        assert torch.allclose(got, state, atol=1e-12)
        logits = state @ model.embed.W_E.T + model.unembed.b_U
        assert torch.allclose(model(tokens)[:, position], logits, atol=1e-12)


@torch.no_grad()
def test_the_lstms_equations_layer_upon_layer():
    model, tokens = neural_model("deep lstm"), random_tokens()
    below = model.embed.W_E[tokens]
    for layer in range(2):
        w = memory(model, layer)
        h = c = torch.zeros(4, 16, dtype=torch.float64)
        read = []
        for x in below.unbind(1):
            gates = x @ w["weight_ih"].T + h @ w["weight_hh"].T + w["bias_ih"] + w["bias_hh"]
            take_up, keep, new, show = gates.chunk(4, dim=-1)
            c = keep.sigmoid() * c + take_up.sigmoid() * new.tanh()
            h = show.sigmoid() * c.tanh()
            read.append(h)
        below = torch.stack(read, dim=1)
        assert torch.allclose(states(model, tokens, layer), below, atol=1e-12)
    assert torch.allclose(model(tokens), below @ model.unembed.W_U + model.unembed.b_U, atol=1e-12)


def test_the_forget_gate_begins_open():
    w = memory(neural_model("lstm"))
    gates = (w["bias_ih"] + w["bias_hh"]).detach().reshape(4, 16)
    assert torch.equal(gates[1], torch.ones(16, dtype=torch.float64))
    assert gates[[0, 2, 3]].abs().max() <= 2 / 16**0.5  # torch's own draw


def test_a_hook_on_a_state_changes_the_layer_above_and_not_the_memory():
    model, tokens = neural_model("deep lstm"), random_tokens()

    def at_position_2(x, hook):
        return torch.cat([x[:, :2], x[:, 2:3] + 1, x[:, 3:]], dim=1)

    def changed(layer):
        hooked = model.run_with_hooks(tokens, fwd_hooks=[(f"layers.{layer}.hook_state", at_position_2)])
        return ((hooked - model(tokens)).abs().amax((0, 2)) > 1e-9).tolist()

    assert changed(0) == [False] * 2 + [True] * 7
    assert changed(1) == [False] * 2 + [True] + [False] * 6


class TestHasEachBitBeenOne:
    """CMU 10-423's exercise: at each step, has each input bit been 1 before or now?

    A token is a vector of bits, ``W_E`` writes it out. A state of ``h[i] = 1`` means yes, -1 no; it begins at 0. With
    ``h' = tanh(80 x + 40 h - 20)`` a bit of 1 gives at least 80 - 40 - 20 = 20, hence 1; else 1 stays, since
    40 - 20 = 20, and 0 and -1 give at most -20, hence -1. The logit of an answer is how many bits it has right, less
    the others.
    """

    BITS = 3

    def network(self):
        vectors = torch.tensor(list(itertools.product((0.0, 1.0), repeat=self.BITS)), dtype=torch.float64)
        config = RecurrentConfig(n_layers=1, d_model=self.BITS, d_vocab=2**self.BITS, cell="elman", tied=False)
        model = Recurrent(config).double()
        w = memory(model)
        one = torch.eye(self.BITS, dtype=torch.float64)
        with torch.no_grad():
            model.embed.W_E.copy_(vectors)
            w["weight_ih"].copy_(80 * one)
            w["weight_hh"].copy_(40 * one)
            w["bias_ih"].fill_(-20)
            w["bias_hh"].zero_()
            model.unembed.W_U.copy_(2 * vectors.T - 1)
        return model, vectors

    @pytest.mark.parametrize("length", [1, 4])
    def test_after_every_sequence(self, length):
        model, vectors = self.network()
        tokens = torch.tensor(list(itertools.product(range(2**self.BITS), repeat=length)))
        been_one = vectors[tokens].cummax(dim=1).values
        assert torch.equal(states(model, tokens) == 1, been_one == 1)
        assert torch.equal(states(model, tokens) == -1, been_one == 0)
        answers = vectors[model(tokens).argmax(-1)]
        assert torch.equal(answers, been_one)

    def test_it_does_not_forget(self):
        model, vectors = self.network()
        tokens = torch.zeros(1, 2_000, dtype=torch.long)
        tokens[0, 0] = 5
        assert vectors[model(tokens)[0].argmax(-1)].eq(vectors[5]).all()


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


class TestPeepholes:
    """The gates read the cell: input and forget gate the one before, the output gate the new one."""

    def one_cell(self, *, w=(0.5, -1.0, 2.0)):
        """A single cell, every weight set by hand."""
        memory = PeepholeLSTM(1).double()
        with torch.no_grad():
            memory.W_x.copy_(torch.tensor([[1.0], [0.5], [2.0], [-1.0]], dtype=torch.float64))
            memory.W_h.copy_(torch.tensor([[0.25], [-0.5], [1.0], [0.75]], dtype=torch.float64))
            memory.b.copy_(torch.tensor([0.1, 1.0, -0.2, 0.3], dtype=torch.float64))
            memory.w.copy_(torch.tensor(w)[:, None])
        return memory

    @torch.no_grad()
    def test_two_steps_by_hand(self):
        """Inputs 1 and -1. Step 1 begins at ``h = c = 0``, so only the output gate sees a cell."""
        c1 = sigmoid(1.0 + 0.1) * math.tanh(2.0 - 0.2)
        h1 = sigmoid(-1.0 + 0.3 + 2.0 * c1) * math.tanh(c1)
        i2 = sigmoid(-1.0 + 0.25 * h1 + 0.5 * c1 + 0.1)
        f2 = sigmoid(-0.5 - 0.5 * h1 - 1.0 * c1 + 1.0)
        c2 = f2 * c1 + i2 * math.tanh(-2.0 + h1 - 0.2)
        h2 = sigmoid(1.0 + 0.75 * h1 + 2.0 * c2 + 0.3) * math.tanh(c2)
        assert (round(c1, 4), round(h1, 4), round(c2, 4), round(h2, 4)) == (0.7104, 0.411, -0.0876, -0.0706)
        states, (state, cell) = self.one_cell()(torch.tensor([[[1.0], [-1.0]]], dtype=torch.float64))
        assert states[0, :, 0].tolist() == pytest.approx([h1, h2], abs=1e-12)
        assert (state.item(), cell.item()) == pytest.approx((h2, c2), abs=1e-12)

    @pytest.mark.parametrize("gate", [0, 1, 2])
    @torch.no_grad()
    def test_each_peephole_is_read(self, gate):
        """The output gate's already in the first step, whose cell is new; the others' from the second on."""
        x = torch.tensor([[[1.0], [-1.0], [0.5]]], dtype=torch.float64)
        without = [0.0, 0.0, 0.0]
        only = [float(each == gate) for each in range(3)]
        changed = (self.one_cell(w=only)(x)[0] - self.one_cell(w=without)(x)[0]).abs()[0, :, 0] > 1e-6
        assert changed.tolist() == [gate == 2, True, True]

    @torch.no_grad()
    def test_without_peepholes_it_is_torchs_lstm(self):
        ours, theirs = PeepholeLSTM(16).double(), torch.nn.LSTM(16, 16, batch_first=True).double()
        ours.w.zero_()
        theirs.weight_ih_l0.copy_(ours.W_x)
        theirs.weight_hh_l0.copy_(ours.W_h)
        theirs.bias_ih_l0.copy_(ours.b)
        theirs.bias_hh_l0.zero_()
        x = torch.randn(4, 9, 16, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        states, (state, cell) = ours(x)
        expected, (their_state, their_cell) = theirs(x)
        assert torch.allclose(states, expected, atol=1e-12)
        assert torch.allclose(state, their_state[0], atol=1e-12)
        assert torch.allclose(cell, their_cell[0], atol=1e-12)

    def test_the_forget_gate_begins_open(self):
        b = neural_model("peephole lstm").layers[0].memory.b.detach().reshape(4, 16)
        assert torch.equal(b[1], torch.ones(16, dtype=torch.float64))
        assert b[[0, 2, 3]].abs().max() <= 1 / 16**0.5

    def test_the_state_is_the_gate_times_the_cell_and_both_can_be_written_to(self):
        model, tokens = neural_model("peephole lstm"), random_tokens()
        _, cache = model.run_with_cache(tokens)
        cell, gate = cache["layers.0.memory.hook_cell"], cache["layers.0.memory.hook_output_gate"]
        assert torch.equal(cache["layers.0.hook_state"], gate * cell.tanh())
        closed = lambda x, hook: torch.zeros_like(x)  # noqa: E731
        _, hooked = model.run_with_cache(tokens), {}
        model.run_with_hooks(
            tokens,
            fwd_hooks=[
                ("layers.0.memory.hook_output_gate", closed),
                ("layers.0.hook_state", lambda x, hook: hooked.update(state=x)),
            ],
        )
        assert hooked["state"].abs().max() == 0
