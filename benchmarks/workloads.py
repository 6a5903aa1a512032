"""What is swept: the cases, their cells, and random prompts of a given size."""

import random
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    PretrainedConfig,
    PreTrainedModel,
)

Case = Literal["heads", "head_pos", "resid_pos", "llama"]
"""``heads``: z of one head becomes 0 at all positions. ``head_pos``: z of one head at one position is taken from the
clean run. ``resid_pos``: resid_pre of one layer at one position is taken from the clean run. ``llama``: as ``heads``,
of SmolLM2-135M's shape; the others are of GPT-2 small's."""
CASES: tuple[Case, ...] = get_args(Case)


@dataclass(frozen=True)
class Workload:
    """A case at a size; `shared` is the share of leading tokens on which the clean and the changed run agree."""

    case: Case
    prompts: int
    tokens: int
    shared: float = 0.0

    def __str__(self) -> str:
        return f"{self.case} {self.prompts}x{self.tokens}" + (f" shared {self.shared:g}" if self.shared else "")


FULL = (
    Workload("heads", 16, 20),
    Workload("heads", 4, 64),
    Workload("heads", 1, 20),
    Workload("head_pos", 16, 20),
    Workload("head_pos", 1, 20),
    Workload("resid_pos", 16, 20),
    Workload("resid_pos", 1, 20),
    Workload("resid_pos", 16, 20, shared=0.5),
    Workload("llama", 16, 20),
    Workload("llama", 4, 64),
)
QUICK = (
    Workload("heads", 1, 20),
    Workload("head_pos", 1, 6),
    Workload("resid_pos", 1, 20),
    Workload("llama", 1, 20),
)


@dataclass(frozen=True)
class Cell:
    """One intervention. Without a head: the residual stream. Without a position: all of them, and zero."""

    layer: int
    head: int | None = None
    pos: int | None = None

    @property
    def index(self) -> tuple[slice | int, ...]:
        """Where it writes, in z ``[prompt pos head d_head]`` or resid_pre ``[prompt pos d_model]``."""
        pos = slice(None) if self.pos is None else self.pos
        return (slice(None), pos) if self.head is None else (slice(None), pos, self.head)


@dataclass(frozen=True)
class Inputs:
    """The prompts of a workload, and the two answers that each is scored by.

    Attributes:
        tokens: Of the run that is changed.
        clean_tokens: Of the run that activations are taken from; not used by ``heads``.
        right: The answers whose logits count.
        wrong: The answers whose logits are subtracted.
    """

    tokens: Int[Tensor, "prompt pos"]
    clean_tokens: Int[Tensor, "prompt pos"]
    right: Int[Tensor, " prompt"]
    wrong: Int[Tensor, " prompt"]

    def to(self, device: torch.device) -> "Inputs":
        """The same on another device."""
        return Inputs(*(each.to(device) for each in vars(self).values()))

    def logit_difference(self, logits: Float[Tensor, "prompt pos d_vocab"]) -> Float[Tensor, " prompt"]:
        """At the last position."""
        last, rows = logits[:, -1], torch.arange(len(logits))
        return last[rows, self.right] - last[rows, self.wrong]


def random_gpt2(seed: int = 0) -> GPT2LMHeadModel:
    """GPT-2 small's shape with random weights, in evaluation mode."""
    torch.manual_seed(seed)
    return GPT2LMHeadModel(GPT2Config()).eval()


def random_llama(seed: int = 0) -> LlamaForCausalLM:
    """SmolLM2-135M's shape with random weights, in evaluation mode."""
    torch.manual_seed(seed)
    wide = {"hidden_size": 576, "intermediate_size": 1536, "vocab_size": 49_152, "max_position_embeddings": 8192}
    deep = {"num_hidden_layers": 30, "num_attention_heads": 9, "num_key_value_heads": 3, "tie_word_embeddings": True}
    return LlamaForCausalLM(LlamaConfig(**wide, **deep, rope_theta=100_000.0)).eval()


def module_of(case: Case) -> PreTrainedModel:
    """The module of a case."""
    return random_llama() if case == "llama" else random_gpt2()


def cells_of(workload: Workload, config: PretrainedConfig) -> list[Cell]:
    """Every cell of the sweep, layer by layer."""
    heads = range(config.num_attention_heads) if workload.case != "resid_pos" else [None]
    positions = range(workload.tokens) if workload.case in ("head_pos", "resid_pos") else [None]
    return [Cell(layer, head, pos) for layer in range(config.num_hidden_layers) for head in heads for pos in positions]


def spread(cells: list[Cell], n: int, seed: int = 0) -> list[Cell]:
    """One cell from each of `n` equal stretches of the sweep, hence over all layers."""
    draw, n = random.Random(seed), min(n, len(cells))
    return [draw.choice(cells[i * len(cells) // n : (i + 1) * len(cells) // n]) for i in range(n)]


def random_inputs(workload: Workload, vocabulary: int, seed: int = 0) -> Inputs:
    """Random prompts; after what they share, the two runs differ in every token."""
    generator = torch.Generator().manual_seed(seed)

    def draw(low: int, *shape: int) -> Int[Tensor, "*shape"]:
        return torch.randint(low, vocabulary, shape, generator=generator)

    tokens, right = draw(0, workload.prompts, workload.tokens), draw(0, workload.prompts)
    clean_tokens = (tokens + draw(1, *tokens.shape)) % vocabulary
    n_shared = int(workload.shared * workload.tokens)
    clean_tokens[:, :n_shared] = tokens[:, :n_shared]
    return Inputs(tokens, clean_tokens, right, (right + draw(1, workload.prompts)) % vocabulary)
