"""How many bits do labels take, sent to someone who has the activations? Minimum description length by the online code.

1. The examples are put into a random order and cut into blocks: 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.25, 12.5, 25, 50 and
   100 % of them.
2. The first block is sent with a uniform code: ``log2 K`` bits a label. Each further one is sent with a probe that was
   trained on all before: ``-log2 p`` bits a label. Whoever receives it can train the same probe.
3. The strength of the penalty is sent first, which takes ``log2`` of their number, and then the best may be chosen.

So the sum is the length of a code that can be decoded, and on random labels nobody gets below ``n log2 K`` on average.
Compression is the length of another code over it: of the uniform one, and of one that learns how frequent the classes
are (Laplace's rule).

Voita & Titov (2020), "Information-theoretic probing with minimum description length", section 3.2.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from scipy.special import gammaln

from interp.methods.probes.cross_fitting import BYTES_AT_ONCE, STRENGTHS
from interp.methods.probes.fitting import Kind, fit, losses, problems_of
from interp.methods.probes.problems import Examples
from interp.methods.probes.targets import Target

FRACTIONS = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.0625, 0.125, 0.25, 0.5, 1.0)


@dataclass(frozen=True)
class DescriptionLength:
    """Lengths in bits.

    Attributes:
        bits: With the probes of each cell.
        uniform: ``n log2 K``.
        prior: With the classes' frequencies alone.
    """

    bits: Float[np.ndarray, " cell"]
    uniform: float
    prior: float


def description_length(
    x: Examples,
    target: Target,
    kind: Kind = "logistic",
    strengths: Sequence[float] = STRENGTHS,
    *,
    seed: int = 0,
) -> DescriptionLength:
    """The length of the labels' code, with the probes of every cell.

    Args:
        x: Activations.
        target: Classes.
        kind: Of probe; ``ridge`` gives no probabilities.
        strengths: Of the penalty.
        seed: Of the order.
    """
    n, log_k = x.shape[1], np.log2(target.n_classes)
    order = np.random.default_rng(seed).permutation(n)
    atom = torch.from_numpy(_blocks(n)[np.argsort(order)]).to(x.device)
    n_blocks = int(atom.max()) + 1
    before = torch.ones(n_blocks, n_blocks, device=x.device).tril(-1).bool()[1:]
    bits = x.new_full((len(x), len(strengths)), float((atom == 0).sum()) * log_k)
    width = max(1, BYTES_AT_ONCE // (6 * x.shape[0] * n * target.n_columns * len(strengths) * 8))
    for start in range(0, n_blocks - 1, width):
        part = before[start : start + width]
        problems = problems_of(atom, part, strengths)
        scores = fit(kind, x, target, problems).scores(x)
        found = losses(kind, target, scores, problems.mask().sum(dim=0)).unflatten(2, (-1, len(strengths)))
        for at in range(len(part)):
            bits += found[:, atom == start + at + 1, at].sum(dim=1) / np.log(2)
    best = bits.min(dim=1).values.cpu().numpy() + np.log2(len(strengths))
    counts = np.bincount(target.y.cpu().numpy(), minlength=target.n_classes)
    return DescriptionLength(best, n * log_k, prior_length(counts))


def prior_length(counts: Int[np.ndarray, " class"]) -> float:
    """Bits of labels that are sent by how often each class has come so far, with one vote for each to begin with."""
    k, n = len(counts), counts.sum()
    # The product of (count so far + 1) / (labels so far + K) is a ratio of factorials, whatever the order.
    log_p = gammaln(counts + 1).sum() + gammaln(k) - gammaln(n + k)
    return float(-log_p / np.log(2))


def _blocks(n: int) -> Int[np.ndarray, " place"]:
    """The block of each place in the order; blocks that would be empty are none."""
    ends = np.unique(np.ceil(np.array(FRACTIONS) * n).astype(int))
    return np.searchsorted(ends, np.arange(n), side="right")
