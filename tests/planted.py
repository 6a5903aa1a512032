"""A model whose attention is whatever a test says, and corpora with known relations."""

from types import SimpleNamespace

import torch
from torch import nn
from transformer_lens import HookedRootModule
from transformer_lens.hook_points import HookPoint


class Planted(HookedRootModule):
    """Its attention is ``pattern(ids)``: ``[layer head query_pos key_pos]`` of one row of token ids."""

    def __init__(self, tokenizer, pattern, *, n_layers=1, n_heads=2, causal=False, n_ctx=64):
        super().__init__()
        self.tokenizer, self.pattern = tokenizer, pattern
        self.cfg = SimpleNamespace(
            n_layers=n_layers,
            n_heads=n_heads,
            n_ctx=n_ctx,
            d_vocab=len(tokenizer),
            attention_dir="causal" if causal else "bidirectional",
        )
        self.anchor = nn.Parameter(torch.zeros(1))
        self.blocks = nn.ModuleList([nn.Module() for _ in range(n_layers)])
        for block in self.blocks:
            block.attn = nn.Module()
            block.attn.hook_pattern = HookPoint()
        self.setup()

    def forward(self, tokens):
        weights = torch.stack([self.pattern(row.tolist()) for row in tokens], dim=1).float()
        for layer, block in enumerate(self.blocks):
            block.attn.hook_pattern(weights[layer])
        return tokens


def even(length):
    """Every token attends to every token alike."""
    return torch.full((length, length), 1 / length)


def onto(length, targets):
    """Each query attends to its target alone; others evenly."""
    found = even(length)
    for query, key in targets.items():
        found[query] = 0
        found[query, key] = 1
    return found
