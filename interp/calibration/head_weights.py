"""The four matrices of one planted head, by its role; see ``planted.py``."""

import torch
from torch import Tensor

from interp.calibration.language import TASKS, TaskName
from interp.calibration.roles import BY_ATTRACTORS, LOUD_ROLES, Planted, noun_of, queries_of
from interp.calibration.stream import KINDS, WORDS, Stream, turned

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
    """What the heads of a layer are made of.

    Args:
        stream: The subspaces that they read and write.
        d_head: Width of a head.
        norm: Of what the layer finds in the stream, past the first token.
        sharpness: Of attention, as a share of ``MARGIN``.
        noise: What an idle head writes to the answers.
        generator: Of all random directions.
    """

    def __init__(
        self,
        stream: Stream,
        *,
        d_head: int,
        norm: float,
        sharpness: float,
        noise: float,
        generator: torch.Generator,
    ):
        self._stream, self._d_head, self._norm, self._noise = stream, d_head, norm, noise
        self._unit = norm / stream.d_model**0.5  # undoes LayerNorm
        self._margin = MARGIN * sharpness * d_head**0.5
        self._generator = generator

    def of(self, planted: Planted | None, n_queries: int = 1) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """``W_Q``, ``W_K``, ``W_V`` and ``W_O`` of a head with a purpose, or of an idle one.

        Args:
            planted: The head; None for an idle one.
            n_queries: Heads that share its keys and values, itself included; the others look everywhere. Of queries and
                outputs there are as many.
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
            n = len(places)
            q[:, :n] = places.T @ turned(1) * self._unit
            k[:, :n] = places.T * self._unit * self._margin
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
        return self._sink(q, k, [kind for kind in KINDS if kind != asks])

    def _sink(self, q: Tensor, k: Tensor, kinds: list[str]) -> tuple[Tensor, Tensor]:
        """Lets queries of some classes rest on the first token."""
        q[:, -1] = sum(self._stream.of(f"kind {kind}")[0] for kind in kinds) * self._unit
        k[:, -1] = self._stream.of("kind bos")[0] * self._unit * self._margin
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
            v[:, WORDS] = read * self._unit
            o[WORDS] = self._strength(planted) * self._written(planted.role, planted.task)
        return v, o

    def _source(self, planted: Planted) -> str:
        """The class of words that a head takes the answer from."""
        assert planted.task is not None, "it has a task"
        by_attractors = planted.role in (*BY_ATTRACTORS, "copy reader")
        return f"of-{noun_of(planted.task)}" if by_attractors else noun_of(planted.task)

    def _strength(self, planted: Planted) -> float:
        roles = {
            "tracker": planted.share,
            "stand-in": STAND_IN * self._norm,
            "other route": ROUTE,
            "glancer": 3 * ROUTE,
            "looker": IDLE,
        }
        return roles.get(planted.role, 1.0)

    def _written(self, role: str, task: TaskName) -> Tensor:
        if role in ("looker", "carrier"):
            return self._stream.of("idle")[0]
        return self._stream.of(f"{'copied' if role == 'copier' else 'answer'} {task}")[0]

    def _blank(self) -> Tensor:
        return torch.zeros(self._stream.d_model, self._d_head)

    def _random(self, *shape: int) -> Tensor:
        return torch.randn(*shape, generator=self._generator)

    def _orthogonal(self, size: int) -> Tensor:
        return torch.linalg.qr(self._random(size, size)).Q
