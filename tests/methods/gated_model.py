"""A model without LayerNorm whose answers pass a gate: heads add up, stand in for each other, or need each other.

In layer 0 both heads copy the noun to its answer's logit, each 9 / (n + 8) of it among ``n`` positions (.53 to .82 on
``varied_task``). In layer 1 both attend evenly and write to a filler's logit: they change no answer.
"""

import torch
from hand_model import ARE, BY, IS, NEAR, WORDS, Attention, HandModel

GATES = {
    "sum": lambda x: x,
    "either": lambda x: x.clamp(max=0.5),  # one copy is enough
    "both": lambda x: (x - 0.9).relu(),  # one copy is too little
    "nearly either": lambda x: (3 * x).tanh(),
    "all or nothing": lambda x: (200 * (x - 0.47)).sigmoid(),  # more than a mean of one copy, less than one
}


class GatedModel(HandModel):
    def __init__(self, gate):
        super().__init__(bias=0.0)
        self.cfg.n_layers, self.gate = 2, GATES[gate]
        self.blocks.append(torch.nn.Module())
        first, second = self.blocks[0].attn, Attention()
        self.blocks[1].attn = second
        with torch.no_grad():
            for weight in (first.W_Q, first.W_K, first.W_V, first.W_O):
                weight[1] = weight[0]
            for head, filler in enumerate((BY, NEAR)):
                second.W_V[head] = torch.eye(len(WORDS))
                second.W_O[head, :, filler] = 1 + head
        self.setup()

    def forward(self, tokens):
        x = torch.eye(len(WORDS))[tokens]
        for block in self.blocks:
            x = x + block.attn(x)
        answers = [IS, ARE]
        x[..., answers] = self.gate(x[..., answers])
        return x
