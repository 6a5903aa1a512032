"""How does a head sweep scale from 1 to 512 GPUs, what holds it up, and what would help? Simulated.

python benchmarks/scale.py [gpt2-xl] [--prompts 1000] [--gpus 1,8,64,512] [--json] [--write]

No cluster was at hand. What there is to do is the engine's own plan: its chunks and parts, with their operations and
with the kernels that a simulated GPU has counted. What Ray and whoever keeps the parts take is measured here, now, in
the same code. Between them, the sweep goes by event by event: workers begin, the driver hands out parts as it does,
takes what they come to, and keeps it. What stands below as an assumption is one.
"""

import argparse
import json
import math
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from functools import cache, cached_property
from heapq import heappop, heappush
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from table import Cells, show, write_section

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from random_tasks import random_task
from tiny_models import random_model

import interp
from interp.cluster.ray import Ray
from interp.errors import InterpError
from interp.interventions.sweep_parts import parts_of, tokens_of_part
from interp.methods.plan import forward_launches, hardware_called, head_sweep_chunks, plan
from interp.model.devices import resolve_dtype
from interp.model.presets import PRESETS, block_flops, preset, weight_bytes
from interp.runs.executors import Local
from interp.runs.run import Run
from interp.runs.workers import Calls, JobQueue

RESULTS = Path(__file__).with_name("RESULTS.md")
GPUS_OF_A_NODE = 8
NETWORK = 50 * 2**30 / 16.9
"""Bytes a second that other nodes get together: 1 GiB on 50 nodes took Ray's own release tests 16.9 s (2.x,
release/perf_metrics/scalability/object_store.json)."""
GPU_BEGINS, LOADED = 3.0, 6e9
"""Assumptions: seconds that a process takes to begin on a GPU, beside what it takes on a CPU; bytes that it is sent in
a second."""
BYTES = 44
"""Of an entry that a worker sends: what ``sweep_parts.COLUMNS`` are."""
LOST = ("beginning", "unchanged runs", "waiting for a part", "no part left", "the table")
"""To what a GPU loses the time in which it computes no cells."""


@dataclass(frozen=True)
class Costs:
    """What is measured, in seconds.

    Attributes:
        connect: Until Ray is there.
        begin: Until a worker is there, with this package.
        put: Of a byte that workers are given.
        latency: Of a job between the driver and a worker, there and back, with what it comes to.
        send: Of the driver, for handing out a job and taking what it comes to.
        keep: Of the driver, for keeping a part.
        entry: The same, for each entry in it.
        around: Of what comes before all parts and after them: the audit among it.
        table: Of the table that all entries become, for each.
    """

    connect: float
    begin: float
    put: float
    latency: float
    send: float
    keep: float
    entry: float
    around: float
    table: float


@dataclass(frozen=True)
class Part:
    """A part of the sweep: its batches with the seconds of their unchanged runs, and the seconds of its cells."""

    place: int
    batches: tuple[tuple[int, float], ...]
    seconds: float
    entries: int


@dataclass(frozen=True)
class Scaled:
    """A sweep on some GPUs.

    Attributes:
        gpus: How many.
        seconds: Of the sweep.
        computing: Share of these that a GPU computes cells, on the average.
        lost: Of what it does not, to what: shares of the same.
    """

    gpus: int
    seconds: float
    computing: float
    lost: dict[str, float]


@dataclass(frozen=True)
class Setting:
    """What is simulated; each field after the weights is something that could be changed."""

    parts: tuple[Part, ...]
    costs: Costs
    weights: int
    network: float = NETWORK  # infinite where every node has the weights
    loaded: float = LOADED  # infinite where every GPU has them
    keeper: bool = False  # whether somebody else than the driver keeps the parts
    ahead: bool = False  # whether a worker has its next part before it is through with one

    def on(self, gpus: int) -> Scaled:
        """Simulate."""
        queue, costs = JobQueue(self.parts), self.costs
        put = costs.connect + self.weights * costs.put
        events, there, free = list[tuple[float, int, Part | None]](), dict[int, float](), dict[int, float]()
        for worker in range(gpus):
            node = worker // GPUS_OF_A_NODE
            ready = put + max(costs.begin, node * self.weights / self.network)
            heappush(events, (ready, worker, None))
            there[worker] = free[worker] = ready + self.weights / self.loaded
        driver = keeper = put
        held, lost = dict[int, int](), dict.fromkeys(LOST, 0.0)
        while events:
            now, worker, done = heappop(events)
            if done is None and not queue:
                continue
            driver = max(driver, now) + costs.send
            if done is not None:
                keeper = max(keeper, driver) + costs.keep + costs.entry * done.entries
                driver = driver if self.keeper else keeper
            if not queue:
                continue
            part = queue.next(done)
            sent = driver + costs.latency
            if self.ahead and done is not None:  # on its way while the last part was computed
                sent -= min(sent - now, done.seconds)
            start = max(free[worker], sent)
            lost["waiting for a part"] += start - free[worker]
            for batch, seconds in part.batches:
                if held.get(worker) != batch:
                    lost["unchanged runs"] += seconds
                    start += seconds
                held[worker] = batch
            free[worker] = start + part.seconds
            heappush(events, (free[worker], worker, part))
        measured = max(driver, keeper)
        end = measured + costs.around + costs.table * sum(each.entries for each in self.parts)
        lost["beginning"] = sum(min(each, measured) for each in there.values())
        lost["no part left"] = sum(measured - min(each, measured) for each in free.values())
        lost["the table"], whole = gpus * (end - measured), gpus * end
        return Scaled(gpus, end, self.computing / whole, {name: value / whole for name, value in lost.items()})

    @cached_property
    def computing(self) -> float:
        """Seconds of all cells."""
        return sum(each.seconds for each in self.parts)

    @property
    def saturates(self) -> int:
        """GPUs beyond which twice as many save less than a tenth."""
        gpus = 1
        while self.on(gpus).seconds > 1.1 * self.on(2 * gpus).seconds:
            gpus *= 2
        return gpus


def parts_planned(config, hardware, *, dtype, n_prompts, n_tokens, size=1.0):
    """The parts of ablating each head once; `size` times as large as they are."""
    chunks = head_sweep_chunks(config, hardware, dtype=dtype, n_prompts=n_prompts, n_tokens=n_tokens)
    known = {(each.batch, each.heads): each for each in chunks}
    tokens = ((each.batch, each.heads, each.prompts * len(each.heads) * n_tokens) for each in chunks)
    found, of_prompt = [], config.n_layers * block_flops(config, n_tokens, n_tokens)
    for part in parts_of(tokens, int(size * tokens_of_part(config, hardware.device))):
        own = [known[batch, heads] for batch, chunks in part.pieces for heads in chunks]
        prompts = {each.batch: each.prompts for each in own}
        unchanged = {
            batch: hardware.seconds(dtype, n * of_prompt, forward_launches(config)) for batch, n in prompts.items()
        }
        seconds = sum(hardware.seconds(dtype, each.flops, each.launches) for each in own)
        entries = sum(each.prompts * len(each.heads) for each in own)
        found.append(Part(part.place, tuple(unchanged.items()), seconds, entries))
    return tuple(found)


class Timed:
    """An executor that notes the entries of each part, how long whoever asks takes with it, and how long all took."""

    def __init__(self):
        self.parts, self.seconds = [], 0.0

    def stream(self, work, jobs, **options):
        began = time.perf_counter()
        for job, found in Local().stream(work, jobs, **options):
            started = time.perf_counter()
            yield job, found
            self.parts.append((len(found.columns["row"]), time.perf_counter() - started))
        self.seconds = time.perf_counter() - began


def measured(entries, n_jobs=300):
    """Costs on this machine, where parts have so many entries: for each number of these."""
    import ray

    connect = _timed(lambda: ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False))
    array = np.ones(2**30, np.uint8)
    put = _timed(lambda: ray.put(array)) / array.nbytes  # the first: a sweep puts its weights once
    rounds = [_rounds(n_jobs, int(BYTES * each)) for each in entries]
    ray.shutdown()
    begin = float(np.median([each for each, _, _ in rounds])) + GPU_BEGINS
    return [Costs(connect, begin, put, latency, send, *_keeping()) for _, latency, send in rounds]


def _timed(call):
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def _rounds(n_jobs, n_bytes):
    """Until a worker is there; from job to job of one that only answers; and what of it this process computes."""
    ends, begun = [], []
    started, own = time.perf_counter(), None
    work = Calls(bytes, [(n_bytes,)] * n_jobs)
    for _ in Ray(1).stream(work, range(n_jobs), threads=1, begun=lambda _: begun.append(time.perf_counter())):
        ends.append(time.perf_counter())
        own = time.process_time() if own is None else own
    rounds = np.median([later - earlier for earlier, later in pairwise(ends)])
    send = (time.process_time() - own) / (n_jobs - 1)
    return begun[0] - started, max(float(rounds) - send, 0.0), send


@cache
def _keeping():
    """Of a part, of an entry in it, of what is around all parts, and of an entry in their table: from two sweeps."""
    (few, small, all_few, short), (many, large, all_many, long) = (_kept(units) for units in (4, 512))
    entry, table = (large - small) / (many - few), (long - short) / (all_many - all_few)
    return small - few * entry, entry, short - all_few * table, table


def _kept(units):
    """The entries of a part and the seconds that it takes to keep, medians; all entries, and the seconds around."""
    model = random_model(n_heads=16, n_layers=8, d_model=64, d_head=1, d_mlp=8, dtype=torch.float32)
    task, parts, around = random_task(0, lengths=(6,) * units), [], []
    for _ in range(5 if units < 100 else 2):
        timed, started = Timed(), time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            found = interp.ablate(model, task, replacement="zero", run=Run(folder, timed))
            around.append(time.perf_counter() - started - timed.seconds)
        parts += timed.parts
    sizes, seconds = (np.array(each) for each in zip(*parts, strict=True))
    return np.median(sizes), np.median(seconds), len(found.examples), np.median(around)


def changes(setting, larger, smaller):
    """What could be done about it, by name."""
    there = replace(setting.costs, begin=0.0, connect=0.0, put=0.0)
    return {
        "as it is": setting,
        "weights on every node's disk": replace(setting, network=math.inf),
        "workers of an earlier sweep": replace(setting, costs=there, network=math.inf, loaded=math.inf),
        "a thread that keeps parts": replace(setting, keeper=True),
        "the next part sent ahead": replace(setting, ahead=True),
        "parts four times as large": larger,
        "parts a quarter as large": smaller,
        "no table": replace(setting, costs=replace(setting.costs, table=0.0)),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("preset", nargs="?", default="gpt2-xl", choices=PRESETS)
    parser.add_argument("--device", default="h100", help="a100, h100 or h200")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--prompts", type=int, default=1000, metavar="N")
    parser.add_argument("--tokens", type=int, default=20, metavar="N")
    parser.add_argument("--gpus", default="1,2,4,8,16,32,64,128,256,512", help="how many, such as 8,64,512")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write", action="store_true", help="replace the section of RESULTS.md")
    given = parser.parse_args()
    asked = [int(each) for each in map(str.strip, given.gpus.split(",")) if each.isdecimal() and int(each) > 0]
    if len(asked) <= given.gpus.count(","):
        parser.error(f"--gpus: expected numbers from 1, separated by commas, such as 8,64,512, got {given.gpus!r}")
    try:
        config, hardware = preset(given.preset).config, hardware_called(given.device)
        how = {"dtype": given.dtype, "n_prompts": given.prompts, "n_tokens": given.tokens}
        plan(config, hardware, **how)  # refuses what does not fit
        planned = [parts_planned(config, hardware, **how, size=size) for size in (1.0, 4.0, 0.25)]
    except InterpError as error:
        parser.error(str(error))
    torch.set_num_threads(1)
    try:
        costs = measured([np.mean([each.entries for each in parts]) for parts in planned])
    except ImportError:
        parser.error("Ray is not installed, whose costs are measured; pip install 'interp[ray]'")
    weights = weight_bytes(config, resolve_dtype(given.dtype))
    setting, larger, smaller = (Setting(parts, *each, weights) for parts, *each in zip(planned, costs, strict=True))
    found, most = [setting.on(gpus) for gpus in asked], max(asked)
    changed = {name: each.on(most).seconds for name, each in changes(setting, larger, smaller).items()}
    title = f"Past one machine, simulated: {given.preset}, {given.prompts:,} prompts of {given.tokens} tokens"
    title += f", {hardware.name}"
    tables = tables_of(setting, found, most, changed)
    if given.write:
        write_section(RESULTS, title, tables, dtype=given.dtype)
    if given.json:
        told = {"parts": len(setting.parts), "costs": vars(setting.costs), "scaled": [vars(each) for each in found]}
        print(json.dumps(told | {"saturates": setting.saturates, f"on {most}": changed}))
        return
    show(title, tables)
    best = min(changed, key=changed.__getitem__)
    print(f"Twice the GPUs save less than a tenth from {setting.saturates} on. On {most}, what helps most: {best}.")


def tables_of(setting, found, most, changed) -> list[Cells]:
    alone, costs = setting.on(1).seconds, setting.costs
    scaled = [["GPUs", "s", "speed-up", "efficiency", "computing", *found[0].lost]]
    for each in found:
        speed = alone / each.seconds
        shares = [f"{share:.0%}" for share in (speed / each.gpus, each.computing, *each.lost.values())]
        scaled.append([str(each.gpus), f"{each.seconds:.1f}", f"{speed:.1f}", *shares])
    helped = [[f"changed, on {most} GPUs", "s"], *([name, f"{seconds:.1f}"] for name, seconds in changed.items())]
    a_part = f"{setting.computing / len(setting.parts):.2f}"
    entries = f"{np.mean([each.entries for each in setting.parts]):,.0f}"
    taken = [
        ["planned", ""],
        ["parts", f"{len(setting.parts):,}"],
        ["seconds of a part", a_part],
        ["entries of a part", entries],
        ["weights, GB", f"{setting.weights / 1e9:.2f}"],
        ["assumed", ""],
        ["a process begins on a GPU, s more", f"{GPU_BEGINS:.1f}"],
        ["weights sent to a GPU, GB/s", f"{LOADED / 1e9:.1f}"],
        ["weights sent to other nodes, GB/s, by Ray's release tests", f"{NETWORK / 1e9:.1f}"],
        ["measured here, one worker on one machine", ""],
        ["Ray begins, s", f"{costs.connect:.1f}"],
        ["a worker begins, s", f"{costs.begin - GPU_BEGINS:.1f}"],
        ["put into Ray's store, GB/s", f"{1e-9 / costs.put:.2f}"],
        ["from job to job, ms", f"{1e3 * (costs.latency + costs.send):.2f}"],
        ["of which the driver's, ms", f"{1e3 * costs.send:.2f}"],
        ["to keep a part, ms", f"{1e3 * costs.keep:.1f}"],
        ["to keep 1,000 entries, ms", f"{1e6 * costs.entry:.2f}"],
        ["around all parts, s", f"{costs.around:.2f}"],
        ["the table of a million entries, s", f"{1e6 * costs.table:.2f}"],
    ]
    return [scaled, helped, taken]


if __name__ == "__main__":
    main()
