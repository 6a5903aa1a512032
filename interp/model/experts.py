"""Mixtures of experts: MLPs of which a router chooses some for each token."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from interp.model.config import TransformerConfig
from interp.model.hooks import HookPoint
from interp.model.layers import ACTIVATIONS, Rows, add_bias, linear, multiplied


class Experts(nn.Module):
    """The weighted sum of the gated MLPs that a router chooses for each token (Shazeer et al. 2017; Jiang et al. 2024).

    The router's softmax over ``x W_router + b_router`` gives the weights; the `n_active` largest count. They are what
    ``hook_expert_weights`` ``[batch pos expert]`` holds, 0 for the others, and what an edit there changes. An expert's
    weights are those of a gated ``MLP``, with a leading ``expert`` axis.
    """

    W_gate: Tensor
    W_in: Tensor
    W_out: Tensor
    b_router: Tensor
    b_gate: Tensor
    b_in: Tensor
    b_out: Tensor

    def __init__(self, config: TransformerConfig):
        super().__init__()
        n, width, neurons, biased = config.n_experts, config.d_model, config.d_mlp, "mlp" in config.biases
        self.n_active, self.sum_to_1, self.act_fn = (
            config.n_active_experts,
            config.expert_weights_sum_to_1,
            config.act_fn,
        )
        self.act = ACTIVATIONS[config.act_fn]
        self.W_router = nn.Parameter(torch.empty(width, n))
        add_bias(self, "b_router", (n,), present=biased)
        for name, shape in {"gate": (width, neurons), "in": (width, neurons), "out": (neurons, width)}.items():
            self.register_parameter(f"W_{name}", nn.Parameter(torch.empty(n, *shape)))
            add_bias(self, f"b_{name}", (n, shape[1]), present=biased)
        self.hook_expert_weights = HookPoint()

    def forward(self, x: Rows) -> Rows:
        weights = self.hook_expert_weights(self.weights(x)).flatten(0, -2)
        rows, written = x.flatten(0, -2), torch.zeros_like(x).flatten(0, -2)
        # How many tokens an expert has is waited for together. Their places differ, so that adding has one order.
        n_tokens = (weights != 0).sum(0).tolist()
        for expert, chosen in enumerate(weights.T.nonzero()[:, 1].split(n_tokens)):
            if len(chosen):
                out = self.written_by(expert, rows[chosen]) * weights[chosen, expert, None]
                written.index_add_(0, chosen, out)
        return written.view_as(x)

    def weights(self, x: Rows) -> Float[Tensor, "*rows expert"]:
        """How much of each expert a token gets: 0 of those that are not chosen."""
        wide = torch.promote_types(x.dtype, torch.float32)
        shares = (x @ self.W_router + self.b_router).to(wide).softmax(-1)
        largest, chosen = shares.topk(self.n_active, dim=-1)
        if self.sum_to_1:
            largest = largest / largest.sum(-1, keepdim=True)
        return torch.zeros_like(shares).scatter(-1, chosen, largest).to(x.dtype)

    def written_by(self, expert: int, x: Rows) -> Rows:
        """What one expert makes of tokens."""
        gate = self.act(linear(x, self.W_gate[expert], self.b_gate[expert]))
        neurons = multiplied(self.act_fn, gate, linear(x, self.W_in[expert], self.b_in[expert]))
        return linear(neurons, self.W_out[expert], self.b_out[expert])
