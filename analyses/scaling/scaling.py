"""How would a head sweep scale over workers, and where does it saturate? From the engine's own plan.

1. The sweep comes apart into parts (``interventions/sweep_parts.py``) of what the engine packs at once, on batches of
   as many prompts as that holds.
2. A worker loads the weights, runs every batch that it meets once without interventions, and does its share of parts.
   No part is divided, so workers that have one part more make the others wait.
3. One writer takes every part's scores, one after the other.

``seconds = begin + max(most parts of a worker + batches that it meets, all parts written)``. What stands below as an
assumption is one; what workers and writers really take, a run's log says.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Literal

import torch

from interp.errors import InputError
from interp.interventions.engine.plan import flops_of_token, tokens_at_once
from interp.interventions.sweep_parts import PART_FLOPS
from interp.methods.plan import Hardware, head_sweep_flops
from interp.model.config import TransformerConfig
from interp.model.devices import resolve_dtype
from interp.model.presets import forward_flops, weight_bytes

BEGIN_SECONDS, LOAD_BYTES = 10.0, 2 * 10**9
"""Assumptions: that a worker's process takes to begin; bytes of weights that it loads in a second."""
WRITE_SECONDS = 0.02
"""An assumption: that the writer takes for a part; see benchmarks/RESULTS.md for what it took on a local disk."""

Limit = Literal["computing", "too few parts", "beginning", "the writer"]


@dataclass(frozen=True)
class Scaled:
    """A sweep on some devices.

    Attributes:
        devices: How many.
        workers: That they make up: each of as many devices as hold the model.
        seconds: Of the sweep.
        speedup: Against one worker.
        efficiency: That, as a share of the number of workers.
        limit: What most of the time that is lost goes to.
    """

    devices: int
    workers: int
    seconds: float
    speedup: float
    efficiency: float
    limit: Limit


@dataclass(frozen=True)
class Parts:
    """What a sweep comes apart into.

    Attributes:
        n: How many parts.
        seconds: Of each.
        batches: Of prompts.
        base_seconds: Of a batch's unchanged run.
        begin_seconds: Until a worker has the weights.
    """

    n: int
    seconds: float
    batches: int
    base_seconds: float
    begin_seconds: float

    @classmethod
    def of(cls, config: TransformerConfig, hardware: Hardware, *, dtype: str, n_prompts: int, n_tokens: int) -> "Parts":
        """Those of ablating each head once, on one worker of this hardware.

        Raises:
            InputError: The hardware does not do this dtype, or the prompts are longer than the context.
        """
        if dtype not in hardware.flops:
            raise InputError(f"dtype: {hardware.name} is known for {', '.join(hardware.flops)}, got {dtype!r}")
        if n_tokens > config.n_ctx:
            raise InputError(f"tokens: the model's context is {config.n_ctx}, got prompts of {n_tokens}")
        rate = hardware.flops[dtype] * hardware.reached
        at_once = tokens_at_once(config, torch.device("cuda"))
        rows = min(n_prompts, max(1, at_once // n_tokens))
        batches = ceil(n_prompts / rows)
        base = forward_flops(config, rows, n_tokens) / rate
        cells = head_sweep_flops(config, n_prompts, n_tokens) / rate - batches * base
        at_once = max(at_once, PART_FLOPS["cuda"] // flops_of_token(config))
        strands = max(1, at_once // (rows * n_tokens))
        n = batches * ceil(config.n_layers * config.n_heads / strands)
        begin = BEGIN_SECONDS + weight_bytes(config, resolve_dtype(dtype)) / LOAD_BYTES
        return cls(n, max(cells, 0.0) / n, batches, base, begin)

    def on(self, devices: int, per_worker: int = 1) -> Scaled:
        """The sweep on so many devices, of which a worker takes so many.

        Raises:
            InputError: They make up no worker.
        """
        workers = devices // per_worker
        if workers < 1:
            raise InputError(f"gpus: expected {per_worker} for a worker at least, which hold the model, got {devices}")
        seconds, alone = self._seconds(workers), self._seconds(1)
        speedup = alone / seconds
        return Scaled(devices, workers, seconds, speedup, speedup / workers, self._limit(workers))

    def _seconds(self, workers: int) -> float:
        return self.begin_seconds + max(self._computing(workers), self.n * WRITE_SECONDS)

    def _computing(self, workers: int) -> float:
        return ceil(self.n / workers) * self.seconds + ceil(self.batches / workers) * self.base_seconds

    def _limit(self, workers: int) -> Limit:
        if self.n * WRITE_SECONDS > self._computing(workers):
            return "the writer"
        even = (self.n * self.seconds + self.batches * self.base_seconds) / workers
        lost = {"beginning": self.begin_seconds, "too few parts": self._computing(workers) - even}
        worst = max(lost, key=lost.__getitem__)
        if lost[worst] < even:
            return "computing"
        return "beginning" if worst == "beginning" else "too few parts"

    @property
    def saturates(self) -> int:
        """Workers beyond which more bring less than a tenth for every doubling."""
        workers = 1
        while self._seconds(workers) > 1.1 * self._seconds(2 * workers):
            workers *= 2
        return workers


def scaled(parts: Parts, devices: Sequence[int], per_worker: int = 1) -> list[Scaled]:
    """The sweep on each of several numbers of devices."""
    return [parts.on(each, per_worker) for each in devices]
