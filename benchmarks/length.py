"""How does the cost of reading grow with the text? Attention with its square, a recurrent network with its length.

python benchmarks/length.py [--repeats 5] [--write]

Attention alone (scores, softmax and weighted values of one head of width d) makes ``4 T^2 d`` operations, an Elman
network of width d ``4 T d^2``. Both are timed on one thread over T and over d; the exponents are the slopes of straight
lines through the logarithms, with their standard errors. Prints two tables; with ``--write``
they replace their section of RESULTS.md.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from scipy.stats import linregress
from table import show, write_section
from timing import median_seconds
from torch import nn

from interp.model.attention import Attention
from interp.model.config import TransformerConfig
from interp.model.positions import places_of

RESULTS = Path(__file__).with_name("RESULTS.md")
SIZES = {
    "attention": {"T": (1024, 1448, 2048, 2896, 4096), "d": (256, 362, 512, 724, 1024)},
    "Elman network": {"T": (128, 181, 256, 362, 512), "d": (256, 362, 512, 724, 1024)},
}
FIXED = {"attention": {"T": 64, "d": 1024}, "Elman network": {"T": 512, "d": 32}}
"""The width while the length grows, and the length while the width grows."""
EXPECTED = {"attention": {"T": 2, "d": 1}, "Elman network": {"T": 1, "d": 2}}
ROWS = 32
"""Texts that the network reads at once: of a single one, a step is bound by the memory that the weights come from."""


def attention(length: int, width: int) -> Callable[[], object]:
    """One head's attention over queries, keys and values that are there."""
    layer = Attention(TransformerConfig(1, 1, width, width, 0, 2, length))
    q, k, v = torch.randn(3, 1, length, 1, width).unbind()
    places = places_of(torch.ones(1, length, dtype=torch.bool), length, causal=False)
    return lambda: layer.mixed(q, k, v, places)


def elman(length: int, width: int) -> Callable[[], object]:
    """An Elman network over vectors that are there, several rows of them."""
    layer, x = nn.RNN(width, width, batch_first=True), torch.randn(ROWS, length, width)
    return lambda: layer(x)


MAKERS = {"attention": attention, "Elman network": elman}


def main() -> None:
    """Measure, fit, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5, metavar="N")
    parser.add_argument("--write", action="store_true", help="replace the section of RESULTS.md")
    options = parser.parse_args()
    repeats = options.repeats
    torch.set_num_threads(1)
    torch.manual_seed(0)
    times = [["", "over", "ms", *[""] * 4]]
    fits = [["", "over", "expected", "fitted", "standard error"]]
    for name, make in MAKERS.items():
        for axis, sizes in SIZES[name].items():
            other = FIXED[name][axis]
            ms = [
                1000 * median_seconds(make(size, other) if axis == "T" else make(other, size), repeats)
                for size in sizes
            ]
            fit = linregress(np.log(sizes), np.log(ms))
            shown = f"{axis} = {', '.join(map(str, sizes))}, {'d' if axis == 'T' else 'T'} = {other}"
            times.append([name, shown, *(f"{each:.1f}" for each in ms)])
            fits.append([name, axis, str(EXPECTED[name][axis]), f"{fit.slope:.2f}", f"{fit.stderr:.2f}"])
    show("Cost over length and width", [fits, times])
    if options.write:
        write_section(RESULTS, "Cost over length and width", [fits, times])


if __name__ == "__main__":
    main()
