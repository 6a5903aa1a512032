"""How is a planted model's residual stream divided? Orthogonal subspaces with names.

A direction for each class of words, for each inflected class's feature and for its copy, for each task's answer and for
noise on it;
some for places, for which word it is (``word``) and which one came before (``before``); the rest is ``idle``: nothing
reads it. All are orthogonal to the mean that LayerNorm takes away, and turned at random, so that nothing stands in one
coordinate. Logits read the answer's and the noise's direction as one; were they one, an answer's sign would change the
stream's length, and every later head would feel it through LayerNorm.
"""

from collections.abc import Mapping

import torch
from jaxtyping import Float
from torch import Tensor

from interp.calibration.language import INFLECTED, LEMMAS, LONGEST, PHENOMENA, TASKS, TaskName, Word, vocabulary

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
    """The subspaces of a stream, and what is embedded in them.

    Args:
        d_model: Width, at least ``FEWEST``.
        generator: Of the directions.
    """

    def __init__(self, d_model: int, generator: torch.Generator):
        matrix = torch.randn(d_model, d_model, generator=generator)
        matrix[:, 0] = 1.0  # the mean
        rest = torch.linalg.qr(matrix).Q[:, 1:].T
        self._parts = dict(
            zip(_SIZES, rest.split([*_SIZES.values(), d_model - 1 - sum(_SIZES.values())])[:-1], strict=True)
        )
        self._parts["idle"] = rest[sum(_SIZES.values()) :]
        codes = torch.randn(len(_WITH_CODES), LEMMAS, WORDS, generator=generator)
        self._codes = codes / codes.norm(dim=-1, keepdim=True)
        self.d_model = d_model

    def of(self, name: str) -> Float[Tensor, "size d_model"]:
        """A subspace's orthonormal directions."""
        return self._parts[name]

    def embedding(self, word: Word) -> Float[Tensor, " d_model"]:
        """Its class, which one it is, and its feature's value."""
        found = torch.zeros(self.d_model)
        if word.kind in KINDS:
            found = found + self.of(f"kind {word.kind}")[0]
        if word.kind in _WITH_CODES:
            found = found + self._codes[_WITH_CODES.index(word.kind), word.lemma] @ self.of("word")
        if word.value:
            found = found + word.value * self.of(f"value {word.kind}")[0]
        return found

    def places(self) -> Float[Tensor, "pos d_model"]:
        """What is embedded of each place: sines and cosines of it."""
        angles = torch.arange(LONGEST)[:, None] * _frequencies()
        return torch.cat([angles.cos(), angles.sin()], dim=1) / len(_frequencies()) ** 0.5 @ self.of("places")

    def answer(self, word: Word) -> Float[Tensor, " d_model"]:
        """What raises a word's logit."""
        for task, each in PHENOMENA.items():
            if word.text in each.answers:
                return (2 * each.answers.index(word.text) - 1) * self._read(task)
        return word.value * self._read("induction") if word.kind == "item" else torch.zeros(self.d_model)

    def _read(self, task: TaskName) -> Float[Tensor, " d_model"]:
        """What logits read of a task."""
        return self.of(f"answer {task}")[0] + self.of(f"noise {task}")[0]


def turned(steps: int) -> Float[Tensor, "place place"]:
    """The matrix that turns what is embedded of a place into that of the place so many steps before."""
    angles = steps * _frequencies()
    cosines, sines = angles.cos().diag(), angles.sin().diag()
    return torch.cat([torch.cat([cosines, -sines], dim=1), torch.cat([sines, cosines], dim=1)])


def _frequencies() -> Float[Tensor, " frequency"]:
    """In radians a position."""
    return 2 * torch.pi * torch.arange(1, PLACES // 2 + 1) / LONGEST
