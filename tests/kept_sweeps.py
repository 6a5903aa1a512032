"""A small sweep of many parts, to be kept, killed and gone on with."""

import json
from collections import Counter

from random_tasks import random_task
from tiny_models import random_model

from interp.interventions import sweep_parts as work
from interp.interventions.engine import plan as budget
from interp.interventions.intervention import Intervention
from interp.interventions.replacement import Zero
from interp.interventions.sweep import Cell, Sweep
from interp.model.sites import Site


def cells(model):
    """Every head at every position, by itself."""
    zero = Zero()
    return [
        Cell(
            {"layer": layer, "head": head, "pos": pos},
            (Intervention(Site("z", layer), zero, heads=(head,), positions=(pos,)),),
        )
        for layer in range(model.cfg.n_layers)
        for head in range(model.cfg.n_heads)
        for pos in range(4)
    ]


def sweep(run=None, *, model=None, n=8, **options):
    """The sweep's result."""
    model = model or random_model(n_layers=3)
    return Sweep(cells(model)).run(model, random_task(lengths=(6,) * n), run=run, **options)


def in_small_parts(monkeypatch):
    """So that a small sweep has many parts."""
    monkeypatch.setitem(budget.TOKENS_AT_ONCE, "cpu", 64)
    monkeypatch.setattr(work, "PART_CHUNKS", 1)


def events(folder):
    """What the logs of all runs in a folder say, by event and part: how often."""
    counts = Counter()
    for log in folder.glob("*/log.jsonl"):
        for line in log.read_text().splitlines():
            if not line.endswith("}"):
                continue  # cut off by a full disk
            said = json.loads(line)
            counts[said["event"], said["part"]] += 1
    return counts


def total(counts, event):
    """How often, over all parts."""
    return sum(n for (each, _), n in counts.items() if each == event)


def whole_files(folder):
    """The bytes of all that a run's numbers are in."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*.parquet")}


def the_run(folder):
    """The one run in a folder."""
    (found,) = folder.iterdir()
    return found


def stop_after(n):
    """Who measures so many parts, and is interrupted."""
    left = iter(range(n))

    def stream(_executor, work, jobs, *, threads, begun):
        for job in jobs:
            if next(left, None) is None:
                raise KeyboardInterrupt
            begun(job)
            yield job, work.run(job)

    return stream
