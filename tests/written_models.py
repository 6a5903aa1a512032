"""nanoGPT, both minGPTs and llama2.c's model, written anew from their formulas, with the names that theirs have."""

import math

import torch
import torch.nn.functional as F  # noqa: N812
from tiny_models import draw
from torch import nn

SIZES = {"n_layer": 2, "n_head": 3, "n_embd": 12, "vocab_size": 43, "block_size": 10}
LLAMA = {"dim": 24, "n_layers": 2, "n_heads": 4, "n_kv_heads": 2, "vocab_size": 43, "max_seq_len": 10}


def tanh_gelu(x):
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def attended(q, k, v):
    """Causal attention of [batch head pos d_head]."""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    return (scores.masked_fill(later, -torch.inf).softmax(-1) @ v).transpose(1, 2).flatten(2)


def by_head(x, n_head):
    return x.unflatten(-1, (n_head, -1)).transpose(1, 2)


class GPTBlock(nn.Module):
    def __init__(self, d, n_head, block_size, bias, gelu, mask):
        super().__init__()
        self.n_head, self.gelu = n_head, gelu
        self.ln_1, self.ln_2 = nn.LayerNorm(d, bias=bias), nn.LayerNorm(d, bias=bias)
        self.attn = nn.ModuleDict({"c_attn": nn.Linear(d, 3 * d, bias=bias), "c_proj": nn.Linear(d, d, bias=bias)})
        self.mlp = nn.ModuleDict({"c_fc": nn.Linear(d, 4 * d, bias=bias), "c_proj": nn.Linear(4 * d, d, bias=bias)})
        if mask:
            self.attn.register_buffer("bias", torch.ones(block_size, block_size).tril()[None, None])

    def forward(self, x):
        q, k, v = (by_head(each, self.n_head) for each in self.attn["c_attn"](self.ln_1(x)).chunk(3, dim=-1))
        x = x + self.attn["c_proj"](attended(q, k, v))
        return x + self.mlp["c_proj"](self.gelu(self.mlp["c_fc"](self.ln_2(x))))


class GPT(nn.Module):
    """nanoGPT, and minGPT since 2022."""

    def __init__(self, *, tied, n_layer, n_head, n_embd, vocab_size, block_size, bias=True, gelu=F.gelu, mask=False):
        super().__init__()
        blocks = [GPTBlock(n_embd, n_head, block_size, bias, gelu, mask) for _ in range(n_layer)]
        self.transformer = nn.ModuleDict(
            {
                "wte": nn.Embedding(vocab_size, n_embd),
                "wpe": nn.Embedding(block_size, n_embd),
                "h": nn.ModuleList(blocks),
                "ln_f": nn.LayerNorm(n_embd, bias=bias),
            }
        )
        self.lm_head = nn.Linear(n_embd, vocab_size, bias=False)
        if tied:
            self.transformer["wte"].weight = self.lm_head.weight

    def forward(self, tokens):
        x = self.transformer["wte"](tokens) + self.transformer["wpe"](torch.arange(tokens.shape[1]))
        for block in self.transformer["h"]:
            x = block(x)
        return self.lm_head(self.transformer["ln_f"](x))


class FirstBlock(nn.Module):
    def __init__(self, d, n_head, block_size, joined=None):
        super().__init__()
        self.n_head, self.out = n_head, joined or "proj"
        self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
        apart = {name: nn.Linear(d, d) for name in ("key", "query", "value")}
        together = {"c_attn": nn.Linear(d, 3 * d)}
        self.attn = nn.ModuleDict({**(together if joined else apart), self.out: nn.Linear(d, d)})
        self.attn.register_buffer("mask", torch.ones(block_size, block_size).tril()[None, None])
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d), nn.Dropout(0.1))

    def forward(self, x):
        read = self.ln1(x)
        if "c_attn" in self.attn:
            all_three = self.attn["c_attn"](read).chunk(3, dim=-1)
        else:
            all_three = [self.attn[name](read) for name in ("query", "key", "value")]
        x = x + self.attn[self.out](attended(*(by_head(each, self.n_head) for each in all_three)))
        return x + self.mlp(self.ln2(x))


class FirstMinGPT(nn.Module):
    """minGPT of 2020; where `joined`, as its copies have it, with one matrix, and so called what the heads write by."""

    def __init__(self, *, n_layer, n_head, n_embd, vocab_size, block_size, joined=None):
        super().__init__()
        self.tok_emb = nn.Embedding(vocab_size, n_embd)
        self.pos_emb = nn.Parameter(torch.zeros(1, block_size, n_embd))
        self.blocks = nn.Sequential(*[FirstBlock(n_embd, n_head, block_size, joined) for _ in range(n_layer)])
        self.ln_f, self.head = nn.LayerNorm(n_embd), nn.Linear(n_embd, vocab_size, bias=False)

    def forward(self, tokens):
        return self.head(self.ln_f(self.blocks(self.tok_emb(tokens) + self.pos_emb[:, : tokens.shape[1]])))


class RMS(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d))

    def forward(self, x):
        return self.weight * x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt()


def turned(x):
    """Neighbouring components as one complex number each, turned by the position (Su et al. 2021, equation 34)."""
    angles = torch.outer(
        torch.arange(x.shape[2], dtype=x.dtype),
        10_000 ** -(torch.arange(0, x.shape[-1], 2, dtype=x.dtype) / x.shape[-1]),
    )
    numbers = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(numbers * torch.polar(torch.ones_like(angles), angles)).flatten(-2)


class LlamaBlock(nn.Module):
    def __init__(self, d, n_heads, n_kv_heads, hidden):
        super().__init__()
        self.n_heads, self.n_kv_heads = n_heads, n_kv_heads
        widths = {
            "wq": (d, d),
            "wk": (d, d * n_kv_heads // n_heads),
            "wv": (d, d * n_kv_heads // n_heads),
            "wo": (d, d),
        }
        self.attention_norm, self.ffn_norm = RMS(d), RMS(d)
        self.attention = nn.ModuleDict({name: nn.Linear(*shape, bias=False) for name, shape in widths.items()})
        sides = {"w1": (d, hidden), "w2": (hidden, d), "w3": (d, hidden)}
        self.feed_forward = nn.ModuleDict({name: nn.Linear(*shape, bias=False) for name, shape in sides.items()})

    def forward(self, x):
        read, mlp = self.attention_norm(x), self.feed_forward
        q = by_head(self.attention["wq"](read), self.n_heads)
        k, v = (by_head(self.attention[name](read), self.n_kv_heads) for name in ("wk", "wv"))
        k, v = (each.repeat_interleave(self.n_heads // self.n_kv_heads, dim=1) for each in (turned(k), v))
        x = x + self.attention["wo"](attended(turned(q), k, v))
        read = self.ffn_norm(x)
        return x + mlp["w2"](F.silu(mlp["w1"](read)) * mlp["w3"](read))


class Llama2c(nn.Module):
    """llama2.c's model."""

    def __init__(self, *, dim, n_layers, n_heads, n_kv_heads, vocab_size, max_seq_len, hidden_dim=20, tied=True):
        super().__init__()
        self.sizes = (dim, hidden_dim, n_layers, n_heads, n_kv_heads, vocab_size, max_seq_len)
        self.tok_embeddings = nn.Embedding(vocab_size, dim)
        self.layers = nn.ModuleList(LlamaBlock(dim, n_heads, n_kv_heads, hidden_dim) for _ in range(n_layers))
        self.norm, self.output = RMS(dim), nn.Linear(dim, vocab_size, bias=False)
        if tied:
            self.output.weight = self.tok_embeddings.weight

    def forward(self, tokens):
        x = self.tok_embeddings(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.output(self.norm(x))


def drawn(module, *, dtype=torch.float64, seed=0):
    """`module` with random values that all count, and norms that scale around 1."""
    module = draw(module.double(), seed).eval()
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if parameter.ndim == 1 and name.endswith("weight") and "ln_" not in name:
                parameter += 1
    return module.to(dtype)
