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

from interp.calibration.language import (
    INFLECTED,
    LEMMAS,
    LONGEST,
    PHENOMENA,
    TASKS,
    TaskName,
    Word,
    tokenizer,
    vocabulary,
)
from interp.calibration.roles import BY_ATTRACTORS, LOUD_ROLES, Planted, noun_of, queries_of
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

    def embedding(self, word: Word) -> Float[Tensor, " d_model"]:
        """The sum of its class, its lemma and its feature's value."""
        found = torch.zeros(self.d_model)
        if word.kind in KINDS:
            found = found + self.of(f"kind {word.kind}")[0]
        if word.kind in _WITH_CODES:
            found = found + self._codes[_WITH_CODES.index(word.kind), word.lemma] @ self.of("word")
        if word.value:
            found = found + word.value * self.of(f"value {word.kind}")[0]
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
        return self.of(f"answer {task}")[0] + self.of(f"noise {task}")[0]


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


class HeadWeights:
    """Writes the weights of a layer's heads; `norm` is that of the layer's input, past the first token.

    `sharpness` (a share of ``MARGIN``) and `noise` are those of ``plant``.
    """

    def __init__(
        self, stream: Stream, generator: torch.Generator, *, d_head: int, norm: float, sharpness: float, noise: float
    ):
        self._stream, self._d_head, self._norm, self._noise = stream, d_head, norm, noise
        self._unit = norm / stream.d_model**0.5  # undoes LayerNorm
        self._margin = MARGIN * sharpness * d_head**0.5
        self._generator = generator

    def of(self, planted: Planted | None, n_queries: int = 1) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """``W_Q``, ``W_K``, ``W_V`` and ``W_O`` of a head with a purpose, or of an idle one (None).

        `n_queries` heads share its keys and values, itself included; the others look everywhere. ``W_Q`` and ``W_O``
        have one matrix for each of them.
        """
        read, write = self._looks(planted), self._moves(planted)
        one, other = (self._orthogonal(self._d_head) for _ in range(2))
        queries, outputs = [read[0] @ one], [other.T @ write[1]]
        for _ in range(n_queries - 1):
            queries.append(self._blank())
            outputs.append(other.T @ self._moves(None)[1])
        return torch.stack(queries), read[1] @ one, write[0] @ other, torch.stack(outputs)

    def _looks(self, planted: Planted | None) -> tuple[Tensor, Tensor]:
        """Queries and keys."""
        stream, q, k = self._stream, self._blank(), self._blank()
        if planted is None or planted.role == "idle":
            mixed = torch.cat([stream.of("places"), stream.of("word")])
            for weight in (q, k):
                weight += mixed.T @ self._random(len(mixed), self._d_head) * self._unit
            return q, k
        if planted.role == "carrier" or (planted.role == "loud" and planted.task is None):
            return q, k
        if planted.role == "previous word":
            places = stream.of("places")
            q[:, : len(places)] = places.T @ turned(1) * self._unit
            k[:, : len(places)] = places.T * self._unit * self._margin
            return q, k
        assert planted.task is not None, "the other roles have a task"
        asks = f"of-{noun_of(planted.task)}" if planted.role == "copier" else queries_of(planted.task)
        if planted.task == "induction":
            q[:, :WORDS] = stream.of("word").T * self._unit
            k[:, :WORDS] = stream.of("before").T * self._unit * self._margin / BEFORE
        else:
            sought = queries_of(planted.task) if planted.role == "amplifier" else self._source(planted)
            q[:, 0] = stream.of(f"kind {asks}")[0] * self._unit
            if planted.role == "by value":
                rests = REST * stream.of(f"kind {queries_of(planted.task)}")[0]
                k[:, 0] = (stream.of(f"value {sought}")[0] + rests) * self._unit * self._margin
            else:
                k[:, 0] = stream.of(f"kind {sought}")[0] * self._unit * self._margin
            if planted.role == "glancer":
                above = GLANCE * self._d_head**0.5
                k[:, 0] += stream.of(f"kind {noun_of(planted.task)}")[0] * self._unit * (self._margin + above)
        if planted.role in LOUD_ROLES:
            return q, k  # of what it does not ask for, it looks everywhere
        # Queries of other classes rest on the first token.
        q[:, -1] = sum(stream.of(f"kind {kind}")[0] for kind in KINDS if kind != asks) * self._unit
        k[:, -1] = stream.of("kind bos")[0] * self._unit * self._margin
        return q, k

    def _moves(self, planted: Planted | None) -> tuple[Tensor, Tensor]:
        """Values and outputs."""
        stream, v, o = self._stream, self._blank(), self._blank().T
        v[:, :WORDS] = stream.of("word").T * self._unit
        idle = stream.of("idle")
        o[:WORDS] = self._orthogonal(max(WORDS, len(idle)))[:WORDS, : len(idle)] @ idle * IDLE
        if planted is None or planted.role == "idle":
            noises = torch.cat([stream.of(f"noise {task}") for task in TASKS])
            o[:WORDS] += self._noise * self._random(WORDS, len(noises)) @ noises
        elif planted.role == "previous word":
            o[:WORDS] = BEFORE * stream.of("before")
        elif planted.role in LOUD_ROLES:
            o[:WORDS] = planted.share * LOUD * self._norm * idle[:WORDS]
        if planted is not None and planted.role not in ("idle", "previous word", "loud"):
            assert planted.task is not None, "the other roles have a task"
            read = stream.of(f"value {self._source(planted)}")[0]
            if planted.role in ("amplifier", "copy reader"):
                read = stream.of(f"{'answer' if planted.role == 'amplifier' else 'copied'} {planted.task}")[0]
            elif planted.role == "by value":
                read = read - stream.of(f"kind {queries_of(planted.task)}")[0]
            elif planted.role == "glancer":
                read = read + planted.glance * stream.of(f"value {noun_of(planted.task)}")[0]
            strengths = {
                "tracker": planted.share,
                "stand-in": STAND_IN * self._norm,
                "other route": ROUTE,
                "glancer": 3 * ROUTE,
                "looker": IDLE,
            }
            written = stream.of(f"{'copied' if planted.role == 'copier' else 'answer'} {planted.task}")[0]
            if planted.role in ("looker", "carrier"):
                written = idle[0]
            v[:, WORDS] = read * self._unit
            o[WORDS] = strengths.get(planted.role, 1.0) * written
        return v, o

    def _source(self, planted: Planted) -> str:
        """The class of words that a head takes the answer from."""
        assert planted.task is not None, "it has a task"
        by_attractors = planted.role in (*BY_ATTRACTORS, "copy reader")
        return f"of-{noun_of(planted.task)}" if by_attractors else noun_of(planted.task)

    def _blank(self) -> Tensor:
        return torch.zeros(self._stream.d_model, self._d_head)

    def _random(self, *shape: int) -> Tensor:
        return torch.randn(*shape, generator=self._generator)

    def _orthogonal(self, size: int) -> Tensor:
        return torch.linalg.qr(self._random(size, size)).Q


LOGITS = 5.0
"""An answer's logit difference, about."""


@dataclass(frozen=True)
class Shape:
    """Of a planted model; see ``TransformerConfig``."""

    n_layers: int
    n_heads: int
    d_model: int = 96
    d_head: int = 18
    n_kv_heads: int | None = None

    @property
    def n_queries(self) -> int:
        """Heads that share keys and values; of these the first may have a purpose."""
        return self.n_heads // (self.n_kv_heads or self.n_heads)


@documented
def plant(
    shape: Shape, heads: Sequence[Planted], *, sharpness: float = 1.0, noise: float = 0.1, seed: int = 0
) -> HookedTransformer:
    """Write a model in which these heads, each at a place of its own, do what they are there for; all others are idle.

    At a `sharpness` of 1 they look at hardly anything else; `noise` is what an idle head writes to the answers, where a
    tracker writes 1. All random directions follow from the `seed`.
    """
    generator = torch.Generator().manual_seed(seed)
    model = _empty(shape)
    stream = Stream(shape.d_model, generator)
    placed = {(each.layer, each.head): each for each in heads}
    tokens = np.random.default_rng(seed).integers(1, len(vocabulary()), (64, LONGEST))
    tokens[:, 0] = 0
    with torch.no_grad():
        model.embed.W_E.copy_(torch.stack([stream.embedding(word) for word in vocabulary()]))
        model.pos_embed.W_pos.copy_(stream.places())
        for layer, block in enumerate(model.blocks):
            norm = _norm(model, tokens, f"blocks.{layer}.hook_resid_pre")
            how = {"norm": norm, "sharpness": sharpness, "noise": noise}
            weights = HeadWeights(stream, generator, d_head=shape.d_head, **how)
            for first in range(0, shape.n_heads, shape.n_queries):
                queries, keys, values, outputs = weights.of(placed.get((layer, first)), shape.n_queries)
                attention: Any = block.attn
                attention.W_K[first // shape.n_queries] = keys
                attention.W_V[first // shape.n_queries] = values
                attention.W_Q[first : first + shape.n_queries] = queries
                attention.W_O[first : first + shape.n_queries] = outputs
        norm = _norm(model, tokens, f"blocks.{shape.n_layers - 1}.hook_resid_post")
        gain = LOGITS / 2 * norm / shape.d_model**0.5
        model.unembed.W_U.copy_(gain * torch.stack([stream.answer(word) for word in vocabulary()], dim=1))
    return model.eval()


def _empty(shape: Shape) -> HookedTransformer:
    """All weights are 0, but those of the norms."""
    config = TransformerConfig(**asdict(shape), d_mlp=0, d_vocab=len(vocabulary()), n_ctx=LONGEST, tied=False)
    model = HookedTransformer(config, tokenizer())
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.fill_(1.0 if name.endswith(".w") else 0.0)
    return model


def _norm(model: HookedTransformer, tokens: np.ndarray, name: str) -> float:
    """The stream's mean norm on these prompts, past the first token."""
    _, cache = model.run_with_cache(torch.as_tensor(tokens), names_filter=name)
    return float(cache[name][:, 1:].norm(dim=-1).mean())
