"""What do the probes of all cells reach, and what do their controls? Every example's score, by what it is a score of.

1. ``probe``: on folds that hold out documents (or templates) and lemmas.
2. ``seen`` and ``control``: on folds that hold out documents (or templates) alone, so that types of words may be known
   from training: on the feature, and on the control task.
3. ``embedding``, ``position``, ``majority``, ``untrained`` and ``permuted``: as ``probe``.

A score is 1 or 0 for a class that was found or not; of a number it is ``1 - e^2 / mean e0^2``, with e the error and e0
that of the mean, so that its mean is R^2.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from interp.methods.controls import control_labels, majority, permuted_labels, position_features
from interp.methods.probes.cross_fitting import CrossFit, cross_fit
from interp.methods.probes.fitting import Kind
from interp.methods.probes.folds import make_folds
from interp.methods.probes.labels import Labelled
from interp.methods.probes.online_code import description_length
from interp.methods.probes.problems import Examples
from interp.methods.probes.targets import Target

Scores = Float[np.ndarray, "#cell example"]
ON_GPU = 16
"""Cells that are fitted at once on a GPU."""
CACHE = 1 << 18
"""Bytes of activations that are fitted at once on a CPU: what stays in its cache; one cell at least."""


@dataclass
class Measured:
    """Scores of every example, and lengths of codes.

    Attributes:
        scores: By name, ``[cell example]``, or ``[1 example]`` where all cells have the same.
        bits: Description length of the labels with each cell's probes; NaN where the probes give no probabilities.
        control_bits: The same of the control task.
        uniform: Of a code that knows nothing.
        prior: Of a code that learns how frequent the classes are.
    """

    scores: dict[str, Scores]
    bits: Float[np.ndarray, " cell"]
    control_bits: Float[np.ndarray, " cell"]
    uniform: float
    prior: float


@dataclass
class Measuring:
    """Fits the probes of one feature, cell by cell.

    Attributes:
        labelled: The examples.
        kind: Of probe.
        strengths: Of the penalty.
        n_folds: Of documents, and of lemmas.
        device: Where probes are fitted.
        seed: Of folds, control labels, permutation and order.
        description_lengths: Whether they are measured, too.
        permuted: Whether permuted labels are probed for, too.
    """

    labelled: Labelled
    kind: Kind
    strengths: Sequence[float]
    n_folds: int
    device: torch.device
    seed: int
    description_lengths: bool = True
    permuted: bool = True
    _fits: list[CrossFit] = field(default_factory=list)

    def __post_init__(self) -> None:
        given, nested = self.labelled, len(self.strengths) > 1
        self._folds = make_folds(given.groups, given.lemmas, self.n_folds, nested=nested, seed=self.seed)
        self._seen = self._folds
        if given.lemmas is not None:
            # Where each group has words of its own, or there is one alone, words are held out one by one.
            groups = given.groups if self._folds.apart == ("groups", "lemmas") else tuple(map(str, given.rows))
            self._seen = make_folds(groups, None, self.n_folds, nested=nested, seed=self.seed)
        self._target = given.target
        self._control = given.target_of(control_labels(given.carriers, given.values, self.seed))
        self._permuted = given.target_of(permuted_labels(given.values, self.seed))

    def shared(self, embedding: Float[Tensor, "example d_model"] | None) -> dict[str, Scores]:
        """The controls that are the same for all cells."""
        found = {"majority": _scored(self._target, majority(self._target).numpy())}
        found["position"] = self._cross(position_features(self.labelled.tokens), "probe")
        if embedding is not None:
            found["embedding"] = self._cross(embedding[None], "probe")
        return found

    def cells(
        self, x: Float[Tensor, "cell example feature"], twin: Float[Tensor, "cell example feature"] | None
    ) -> Iterator[dict[str, Scores]]:
        """What some cells at a time reach, with the lengths of their codes as ``bits`` and ``control_bits``."""
        size = ON_GPU if self.device.type == "cuda" else max(1, CACHE // (8 * x[0].numel()))
        for start in range(0, len(x), size):
            part = x[start : start + size]
            found = {name: self._cross(part, name) for name in ("probe", "control")}
            if self.permuted:
                found["permuted"] = self._cross(part, "permuted")
            found["seen"] = found["probe"] if self._seen is self._folds else self._cross(part, "seen")
            if twin is not None:
                found["untrained"] = self._cross(twin[start : start + size], "probe")
            yield found | self._lengths(part)

    @property
    def code_lengths(self) -> tuple[float, float]:
        """Of the codes without activations: uniform, and by the classes' frequencies."""
        if not self._has_code:
            return np.nan, np.nan
        nothing = torch.zeros(1, len(self._target.y), 1, dtype=torch.float64)
        found = description_length(nothing, self._target, "lda", (1.0,), seed=self.seed)
        return found.uniform, found.prior

    @property
    def held_out(self) -> list[str]:
        """What training and test do not share."""
        groups = "templates" if self.labelled.groups == self.labelled.strata else "documents"
        return [groups if name == "groups" else name for name in self._folds.apart]

    @property
    def counts(self) -> tuple[int, int]:
        """How many probes did not converge, of how many."""
        n_probes = sum(each.n_probes for each in self._fits)
        return n_probes - sum(each.n_converged for each in self._fits), n_probes

    @property
    def _has_code(self) -> bool:
        return self.description_lengths and self._target.n_classes > 0 and self.kind != "ridge"

    def _cross(self, x: Examples | Tensor, name: str) -> Scores:
        folds = self._seen if name in ("seen", "control") else self._folds
        target = {"control": self._control, "permuted": self._permuted}.get(name, self._target)
        on_device = target.to(self.device)
        found = cross_fit(x.to(self.device, torch.float64), on_device, folds, self.kind, self.strengths)
        self._fits.append(found)
        return _scored(target, found.hits if target.n_classes else found.loss)

    def _lengths(self, x: Tensor) -> dict[str, Scores]:
        if not self._has_code:
            return {name: np.full((len(x), 1), np.nan) for name in ("bits", "control_bits")}
        given = x.to(self.device, torch.float64)
        length: Callable[..., np.ndarray] = lambda target: description_length(  # noqa: E731
            given, target.to(self.device), self.kind, self.strengths, seed=self.seed
        ).bits[:, None]
        return {"bits": length(self._target), "control_bits": length(self._control)}


def _scored(target: Target, found: Scores) -> Scores:
    """Hits as they are; squared errors beside those of the target's own mean."""
    return found if target.n_classes else 1 - found / float(majority(target).mean())
