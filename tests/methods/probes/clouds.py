"""Points with labels that can be read, more or less, with axes of very different spread."""

import numpy as np
import torch

from interp.methods.probes.linear import Problems


def cloud(n=600, d=12, k=2, *, noise=1.0, decay=0.3, seed=0):
    """Points ``[example feature]`` in 64 bits and their classes."""
    rng = np.random.default_rng(seed)
    turn, _ = np.linalg.qr(rng.normal(size=(d, d)))
    spread = np.exp(-decay * np.arange(d))
    points = rng.normal(size=(n, d)) * spread @ turn.T + rng.normal(size=d)
    scores = (points - points.mean(0)) @ turn / spread @ rng.normal(size=(d, k))
    classes = (scores + noise * scores.std() * rng.gumbel(size=(n, k))).argmax(1)
    return torch.from_numpy(points), torch.from_numpy(classes)


def five_folds(n, penalties):
    """Each fifth left out once, with every penalty."""
    apart = ~torch.eye(5, dtype=torch.bool)
    penalty = torch.tensor(penalties, dtype=torch.float64).repeat(5)
    return Problems(torch.arange(n) % 5, apart.repeat_interleave(len(penalties), dim=0), penalty[None])


def only(problems, number):
    """One of the probes."""
    return Problems(problems.atom, problems.trains_on[[number]], problems.penalty[:, [number]])
