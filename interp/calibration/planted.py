"""Transformers written by hand, in which chosen heads do a chosen thing and nothing else.

1. The residual stream is divided into orthogonal subspaces with names (``Stream``): one direction for each class of
   words, for each inflected class's feature and for its copy, for each task's answer and for noise on it; some for
   places, for which word it is (``word``) and which one came before (``before``); the rest is ``idle``: nothing reads
   it. All are orthogonal to the mean that LayerNorm takes away, and turned at random. Logits read the sum of the
   answer's and the noise's direction. If the two were one, an answer's sign would change the stream's length, and every
   later head would feel it through LayerNorm.
2. A head's queries look for classes of words, words or places, and otherwise rest on the first token; its values read
   what it is to move (``HeadWeights``).
3. Layers are written one after the other: LayerNorm divides by the stream's norm, which is measured before each, so
   that a head reads and writes in units of the embedding.

Elhage et al. (2021), "A mathematical framework for transformer circuits", on heads as moving information between
subspaces; Lindner et al. (2023), "Tracr", on compiled transformers as ground truth.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from interp.calibration import language
from interp.calibration.language import INFLECTED, LEMMAS, LONGEST, PHENOMENA, TASKS, TaskName, Word, vocabulary
from interp.calibration.roles import LOUD_ROLES, Planted, noun_of, queries_of
from interp.model.config import TransformerConfig
from interp.model.devices import documented
from interp.model.transformer import HookedTransformer

KINDS = tuple(dict.fromkeys(word.kind for word in vocabulary() if word.kind != "answer"))
PLACES, WORDS = 12, 16
_WITH_CODES = ("filler", "key", *INFLECTED)
_SIZES: Mapping[str, int] = {
    **dict.fromkeys((f"kind {each}" for each in KINDS), 1),
    **dict.fromkeys((f"value {each}" for each in INFLECTED), 1),
    **dict.fromkeys((f"answer {each}" for each in TASKS), 1),
    **dict.fromkeys((f"noise {each}" for each in TASKS), 1),
    **dict.fromkeys((f"copied {each}" for each in PHENOMENA), 1),
    "places": PLACES,
    "word": WORDS,
    "before": WORDS,
}
FEWEST = 1 + sum(_SIZES.values()) + WORDS
"""The narrowest stream: with room for what nothing reads."""


class Stream:
    """The subspaces of a stream of width `d_model` (at least ``FEWEST``), and what is embedded in them."""

    def __init__(self, d_model: int, generator: torch.Generator):
        matrix = torch.randn(d_model, d_model, generator=generator)
        matrix[:, 0] = 1.0  # the mean
        rest = torch.linalg.qr(matrix).Q[:, 1:].T
        sizes = [*_SIZES.values(), d_model - 1 - sum(_SIZES.values())]
        self._parts = dict(zip([*_SIZES, "idle"], rest.split(sizes), strict=True))
        codes = torch.randn(len(_WITH_CODES), LEMMAS, WORDS, generator=generator)
        self._codes = codes / codes.norm(dim=-1, keepdim=True)
        self.d_model = d_model

    def of(self, name: str) -> Float[Tensor, "size d_model"]:
        """A subspace's orthonormal directions."""
        return self._parts[name]

    def one(self, name: str) -> Float[Tensor, " d_model"]:
        """The first of them."""
        return self._parts[name][0]

    def embedding(self, word: Word) -> Float[Tensor, " d_model"]:
        """The sum of its class, its lemma and its feature's value."""
        found = torch.zeros(self.d_model)
        if word.kind in KINDS:
            found = found + self.one(f"kind {word.kind}")
        if word.kind in _WITH_CODES:
            found = found + self._codes[_WITH_CODES.index(word.kind), word.lemma] @ self.of("word")
        if word.value:
            found = found + word.value * self.one(f"value {word.kind}")
        return found

    def places(self) -> Float[Tensor, "pos d_model"]:
        """The embedding of each place: sines and cosines of it."""
        angles = torch.arange(LONGEST)[:, None] * _frequencies()
        return torch.cat([angles.cos(), angles.sin()], dim=1) / len(_frequencies()) ** 0.5 @ self.of("places")

    def answer(self, word: Word) -> Float[Tensor, " d_model"]:
        """The direction that raises a word's logit."""
        for task, each in PHENOMENA.items():
            if word.text in each.answers:
                return (2 * each.answers.index(word.text) - 1) * self._read(task)
        return word.value * self._read("induction") if word.kind == "item" else torch.zeros(self.d_model)

    def _read(self, task: TaskName) -> Float[Tensor, " d_model"]:
        """The direction that a task's logits read."""
        return self.one(f"answer {task}") + self.one(f"noise {task}")


def turned(steps: int) -> Float[Tensor, "place place"]:
    """The matrix that turns the embedding of a place into that of the place so many steps before."""
    angles = steps * _frequencies()
    cosines, sines = angles.cos().diag(), angles.sin().diag()
    return torch.cat([torch.cat([cosines, -sines], dim=1), torch.cat([sines, cosines], dim=1)])


def _frequencies() -> Float[Tensor, " frequency"]:
    """In radians a position."""
    return 2 * torch.pi * torch.arange(1, PLACES // 2 + 1) / LONGEST


MARGIN = 8.0
"""By how many nats a planted head's score for what it looks at is above the others', at full sharpness."""
STAND_IN = 3.0
"""How much more a stand-in writes than there is else in the stream."""
LOUD = 10.0
"""How much more a loud head would write than there is else in the stream, were all words that it looks at the same."""
ROUTE = 1.0
"""What the other route writes, where a tracker writes 1."""
REST = 0.6
"""The score for the query itself, of a head that looks by value, as a share of that for the value that it looks for."""
GLANCE = 1.0
"""Of nats, by which a glancer's score for the related word is above that for an attractor."""
IDLE = 0.35
"""What is written of words where nothing reads them: little, for LayerNorm takes from the others what it adds."""
BEFORE = 0.5
"""What is written of the word before: little, so that tasks which do not read it hardly miss it."""


@dataclass(frozen=True)
class HeadWeights:
    """Writes the weights of a layer's heads."""

    stream: Stream  # of the model
    generator: torch.Generator  # of what is drawn
    d_head: int  # width of a head
    norm: float  # of the layer's input, past the first token
    sharpness: float  # of what heads look at: a share of ``MARGIN``
    noise: float  # what an idle head writes to the answers

    def of(self, planted: Planted | None, n_queries: int = 1) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """``W_Q``, ``W_K``, ``W_V`` and ``W_O`` of a head with a purpose, or of an idle one (None).

        `n_queries` heads share its keys and values, itself included; the others look everywhere. ``W_Q`` and ``W_O``
        have one matrix for each of them.
        """
        read, write = self._looks(planted), self._moves(planted)
        one, other = (self._orthogonal(self.d_head) for _ in range(2))
        queries, outputs = [read[0] @ one], [other.T @ write[1]]
        for _ in range(n_queries - 1):
            queries.append(self._blank())
            outputs.append(other.T @ self._moves(None)[1])
        return torch.stack(queries), read[1] @ one, write[0] @ other, torch.stack(outputs)

    def _looks(self, planted: Planted | None) -> tuple[Tensor, Tensor]:
        """Queries and keys."""
        stream, q, k, unit = self.stream, self._blank(), self._blank(), self._unit
        margin = MARGIN * self.sharpness * self.d_head**0.5
        if planted is None:
            mixed = torch.cat([stream.of("places"), stream.of("word")])
            for weight in (q, k):
                weight += mixed.T @ self._random(len(mixed), self.d_head) * unit
        elif planted.role == "previous word":
            places = stream.of("places")
            q[:, : len(places)] = places.T @ turned(1) * unit
            k[:, : len(places)] = places.T * unit * margin
        elif planted.role != "carrier" and planted.task is not None:
            noun, query = noun_of(planted.task), queries_of(planted.task)
            asks = f"of-{noun}" if planted.role == "copier" else query
            if planted.task == "induction":
                q[:, :WORDS] = stream.of("word").T * unit
                k[:, :WORDS] = stream.of("before").T * unit * margin / BEFORE
            else:
                sought = query if planted.role == "amplifier" else planted.source
                q[:, 0] = stream.one(f"kind {asks}") * unit
                k[:, 0] = stream.one(f"kind {sought}") * unit * margin
                if planted.role == "by value":
                    k[:, 0] = (stream.one(f"value {sought}") + REST * stream.one(f"kind {query}")) * unit * margin
                elif planted.role == "glancer":
                    k[:, 0] += stream.one(f"kind {noun}") * unit * (margin + GLANCE * self.d_head**0.5)
            if planted.role not in LOUD_ROLES:  # of what these do not ask for, they look everywhere
                # Queries of other classes rest on the first token.
                q[:, -1] = sum(stream.one(f"kind {kind}") for kind in KINDS if kind != asks) * unit
                k[:, -1] = stream.one("kind bos") * unit * margin
        return q, k

    def _moves(self, planted: Planted | None) -> tuple[Tensor, Tensor]:
        """Values and outputs."""
        stream, v, o = self.stream, self._blank(), self._blank().T
        v[:, :WORDS] = stream.of("word").T * self._unit
        idle = stream.of("idle")
        o[:WORDS] = self._orthogonal(max(WORDS, len(idle)))[:WORDS, : len(idle)] @ idle * IDLE
        if planted is None:
            noises = torch.cat([stream.of(f"noise {task}") for task in TASKS])
            o[:WORDS] += self.noise * self._random(WORDS, len(noises)) @ noises
            return v, o
        role, task = planted.role, planted.task
        if role == "previous word":
            o[:WORDS] = BEFORE * stream.of("before")
        elif role in LOUD_ROLES:
            o[:WORDS] = planted.share * LOUD * self.norm * idle[:WORDS]
        if role in ("previous word", "loud") or task is None:
            return v, o
        if role in ("amplifier", "copy reader"):
            read = stream.one(f"{'answer' if role == 'amplifier' else 'copied'} {task}")
        else:
            read = stream.one(f"value {planted.source}")
        if role == "by value":
            read = read - stream.one(f"kind {queries_of(task)}")
        elif role == "glancer":
            read = read + planted.glance * stream.one(f"value {noun_of(task)}")
        strengths = {
            "tracker": planted.share,
            "stand-in": STAND_IN * self.norm,
            "other route": ROUTE,
            "glancer": 3 * ROUTE,
            "looker": IDLE,
        }
        written = stream.one(f"{'copied' if role == 'copier' else 'answer'} {task}")
        v[:, WORDS] = read * self._unit
        o[WORDS] = strengths.get(role, 1.0) * (idle[0] if role in ("looker", "carrier") else written)
        return v, o

    @property
    def _unit(self) -> float:
        """Undoes LayerNorm."""
        return self.norm / self.stream.d_model**0.5

    def _blank(self) -> Tensor:
        return torch.zeros(self.stream.d_model, self.d_head)

    def _random(self, *shape: int) -> Tensor:
        return torch.randn(*shape, generator=self.generator)

    def _orthogonal(self, size: int) -> Tensor:
        return torch.linalg.qr(self._random(size, size)).Q


LOGITS = 5.0
"""An answer's logit difference, about."""


@dataclass(frozen=True)
class Shape:
    """Of a planted model.

    Attributes:
        n_layers: Blocks.
        n_heads: Attention heads of a block.
        d_model: Width of the residual stream.
        d_head: Width of one head.
        n_kv_heads: Heads of keys and values; None for as many as ``n_heads``.
    """

    n_layers: int
    n_heads: int
    d_model: int = 96
    d_head: int = 18
    n_kv_heads: int | None = None

    @property
    def n_queries(self) -> int:
        """Heads that share keys and values; of these the first may have a purpose."""
        return self.n_heads // (self.n_kv_heads or self.n_heads)


def model_of(shape: Shape, *, seed: int = 0, **others: Any) -> HookedTransformer:
    """A model of the language, with random weights and without MLPs; `others` are fields of ``TransformerConfig``."""
    known = {"d_mlp": 0, "d_vocab": len(vocabulary()), "n_ctx": LONGEST, "tied": False}
    return HookedTransformer(TransformerConfig(**asdict(shape) | known | others), language.tokenizer(), seed=seed)


@documented
def plant(
    shape: Shape, heads: Sequence[Planted], *, sharpness: float = 1.0, noise: float = 0.1, seed: int = 0
) -> HookedTransformer:
    """Write a model in which these heads, each at a place of its own, do what they are there for; all others are idle.

    At a `sharpness` of 1 they look at hardly anything else; `noise` is what an idle head writes to the answers, where a
    tracker writes 1. All random directions follow from the `seed`.
    """
    generator = torch.Generator().manual_seed(seed)
    model, stream = model_of(shape), Stream(shape.d_model, generator)
    placed = {(each.layer, each.head): each for each in heads}
    tokens = np.random.default_rng(seed).integers(1, len(vocabulary()), (64, LONGEST))
    tokens[:, 0] = 0

    def norm_at(name: str) -> float:
        """The stream's mean norm on these prompts, past the first token."""
        _, cache = model.run_with_cache(torch.as_tensor(tokens), names_filter=name)
        return float(cache[name][:, 1:].norm(dim=-1).mean())

    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.fill_(1.0 if name.endswith(".w") else 0.0)  # those of the norms
        model.embed.W_E.copy_(torch.stack([stream.embedding(word) for word in vocabulary()]))
        model.pos_embed.W_pos.copy_(stream.places())
        for layer, block in enumerate(model.blocks):
            attention: Any = block.attn
            norm = norm_at(f"blocks.{layer}.hook_resid_pre")
            weights = HeadWeights(stream, generator, shape.d_head, norm, sharpness, noise)
            for shared, first in enumerate(range(0, shape.n_heads, shape.n_queries)):
                own = slice(first, first + shape.n_queries)
                queries, keys, values, outputs = weights.of(placed.get((layer, first)), shape.n_queries)
                attention.W_K[shared], attention.W_V[shared] = keys, values
                attention.W_Q[own], attention.W_O[own] = queries, outputs
        gain = LOGITS / 2 * norm_at(f"blocks.{shape.n_layers - 1}.hook_resid_post") / shape.d_model**0.5
        model.unembed.W_U.copy_(gain * torch.stack([stream.answer(word) for word in vocabulary()], dim=1))
    return model.eval()
