"""How long does it take? The median of a few runs."""

import statistics
import time
from collections.abc import Callable

import torch


def median_seconds(run: Callable[[], object], repeats: int) -> float:
    """Seconds, after one run that is not counted."""
    seconds = []
    with torch.inference_mode():
        run()
        for _ in range(repeats):
            started = time.perf_counter()
            run()
            seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)
