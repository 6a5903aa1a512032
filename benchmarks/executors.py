"""What does it cost to share a sweep? The same head ablation here, in processes, and on a Ray cluster of this machine.

python benchmarks/executors.py [--workers 2] [--units 32]

GPT-2 small's shape, random weights, one thread a worker, parts of a second or more, all of them kept. Printed are the
seconds of the whole call, and those of a part between the ends of the first and the last, which leaves out what it
takes to begin; and those of asking again what is finished, most of which goes into hashing the model.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from random_tasks import random_task

import interp
from interp.cluster.ray import Ray
from interp.model.config import TransformerConfig
from interp.model.presets import preset
from interp.model.transformer import HookedTransformer
from interp.runs.executors import Local, Processes
from interp.runs.run import Run


class Timed:
    """An executor that notes when its first and its last part ended, and how many there were."""

    def __init__(self, executor):
        self._executor, self.ends = executor, []

    def stream(self, work, jobs, **options):
        for job, value in self._executor.stream(work, jobs, **options):
            self.ends.append(time.perf_counter())
            yield job, value


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--units", type=int, default=32)
    options = parser.parse_args()
    torch.set_num_threads(1)
    shape = preset("gpt2").config.to_dict() | {"n_ctx": 64, "d_vocab": 1000}
    model = HookedTransformer(TransformerConfig(**shape))
    task = random_task(0, lengths=(20,) * options.units, d_vocab=1000)
    with tempfile.TemporaryDirectory() as kept:
        frame, tables = measured(model, task, options.workers, Path(kept))
    print(frame.round(3).to_string(index=False))
    print("the same bits:", all(each.equals(tables[0]) for each in tables))


def measured(model, task, workers, kept):
    rows, tables = [], []
    for name, executor in (
        ("local", Local()),
        ("processes", Processes(workers)),
        ("ray", Ray(workers)),
    ):
        timed, started = Timed(executor), time.perf_counter()
        tables.append(interp.ablate(model, task, replacement="zero", run=Run(kept / name, timed)).examples)
        whole, ends = time.perf_counter() - started, timed.ends
        rows.append({"executor": name, "parts": len(ends), "seconds": whole})
        rows[-1]["a part"] = (ends[-1] - ends[0]) / (len(ends) - 1)
        started = time.perf_counter()
        tables.append(interp.ablate(model, task, replacement="zero", run=kept / name).examples)
        rows[-1]["asked again"] = time.perf_counter() - started
    frame = pd.DataFrame(rows)
    frame["against processes"] = frame["a part"] / frame["a part"][1]
    return frame, tables


if __name__ == "__main__":
    main()
