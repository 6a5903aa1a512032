"""How fast is this machine at the matrix products that a layer consists of? The ceiling for a sweep.

As the engine makes them (``engine/layers.py``), and as PyTorch does by itself.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import PretrainedConfig

from interp.model.layers import linear

PACKED_ROWS = (20, 320, 2048)
"""Positions in one product: a single prompt's, a batch's, and those of many cells together."""


Make = Callable[[Tensor, Tensor, Tensor], Tensor]


def by_pytorch(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """PyTorch's own choice."""
    return torch.addmm(bias, x, weight)


MAKERS: dict[str, Make] = {"engine": linear, "PyTorch": by_pytorch}


@dataclass(frozen=True)
class Product:
    """One product of the layer, ``[rows, inner] @ [inner, columns]``, and how fast it went."""

    name: str
    rows: int
    inner: int
    columns: int
    gflops: float


def measure_products(config: PretrainedConfig, make: Make, repeats: int = 3) -> list[Product]:
    """Every product of a layer at every packed size."""
    d_model = config.hidden_size
    d_mlp = getattr(config, "intermediate_size", 4 * d_model)
    shared = d_model // config.num_attention_heads * getattr(config, "num_key_value_heads", config.num_attention_heads)
    shapes = {
        "W_QKV": (d_model, d_model + 2 * shared),
        "W_O": (d_model, d_model),
        "W_in": (d_model, d_mlp),
        "W_out": (d_mlp, d_model),
    }
    if config.model_type == "llama":
        shapes["W_gate"] = shapes["W_in"]
    return [
        Product(name, rows, inner, columns, _gflops(make, rows, inner, columns, repeats))
        for name, (inner, columns) in shapes.items()
        for rows in PACKED_ROWS
    ]


def layer_gflops(products: Sequence[Product]) -> dict[int, float]:
    """For each number of rows, all products of a layer together: their operations over their time."""
    speeds = {}
    for rows in PACKED_ROWS:
        sizes = [(p.inner * p.columns, p.gflops) for p in products if p.rows == rows]
        speeds[rows] = sum(size for size, _ in sizes) / sum(size / gflops for size, gflops in sizes)
    return speeds


@torch.inference_mode()
def _gflops(make: Make, rows: int, inner: int, columns: int, repeats: int) -> float:
    x, weight, bias = torch.randn(rows, inner), torch.randn(inner, columns), torch.randn(columns)
    make(x, weight, bias)
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        make(x, weight, bias)
        seconds.append(time.perf_counter() - start)
    return 2e-9 * rows * inner * columns / statistics.median(seconds)
