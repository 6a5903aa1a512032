"""Does the audit catch what is wrong with the engine, and nothing else? Faults are planted, in all layers or in one.

``python tests/interventions/engine/planted_faults.py [--sweeps 300] [--honest 1000] [--rounding 40]`` prints, for
random models and sweeps, how often each fault is caught of the sweeps in which it changes anything, how often a sweep
without one is refused, and how much of what is allowed as rounding is used, by dtype and site.
"""

import argparse
import random
import sys
import warnings
from collections import Counter
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
import torch

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[each]) for each in (2, 3)]

from random_tasks import change, every_replacement, random_task
from tiny_models import random_model

from interp.errors import AuditError
from interp.interventions.engine.base_run import BaseRun
from interp.interventions.engine.chunk import Block, Edits
from interp.interventions.engine.editor import Editor
from interp.interventions.engine.layers import BlockAttention, Wavefront
from interp.interventions.engine.schedule import Schedule
from interp.interventions.sweep import Cell, Sweep
from interp.model.sites import Site

SHAPES = (
    {"n_layers": 4, "n_heads": 4, "d_model": 24, "d_head": 6, "d_mlp": 48},
    {"n_layers": 12, "n_heads": 3, "d_model": 12, "d_head": 4, "d_mlp": 24},
    {"n_layers": 5, "n_heads": 4, "n_kv_heads": 2, "d_model": 24, "d_head": 6, "d_mlp": 32, "positions": "rotary"},
)
UNITS = 100
"""What commands draw, unless another number is asked for."""
SWEEPS = (("z", "zero"), ("z", "positional_mean"), ("z", "resample"), ("z", "patch"), ("resid_pre", "patch"))


def _around(owner, name, wrong):
    """`owner`'s method, which `wrong` is given with its arguments."""
    method = getattr(owner, name)
    return mock.patch.object(owner, name, lambda self, *given, **named: wrong(method, self, *given, **named))


def _numbered(method, self, base, layer, *rest):
    self.layer = layer
    method(self, base, layer, *rest)


def a_mask_that_is_added(active):
    def wrong(method, self, base, layer, *rest):
        method(self, base, layer, *rest)
        if active(layer):
            mask = self._everywhere.mask.to(base.at("q", layer).dtype)
            self._everywhere = replace(self._everywhere, mask=mask)

    return _around(BlockAttention, "__init__", wrong)


def a_suffix_that_begins_late(active):
    def wrong(method, self, layer, steps):
        late = lambda holding, block, positions: holding(block, positions[1:] if len(positions) > 1 else positions)  # noqa: E731
        with _around(Block, "holding", late) if active(layer) else ExitStack():
            method(self, layer, steps)

    return _around(Schedule, "_attend", wrong)


def another_head(active):
    def wrong(method, self):
        *where, component = method(self)
        return (*where, component[::-1].copy() if active(self.intervention.site.layer) else component)

    return _around(Edits, "entries", wrong)


def a_stale_base(active):
    def wrong(method, self, name, layer):
        found = method(self, name, layer)
        return found.roll(1, 0) if active(layer) and name != "resid_post" else found

    return _around(BaseRun, "at", wrong)


def swapped_rows(active):
    def wrong(method, self, *given):
        z = method(self, *given)
        return z.flip(0) if active(self.layer) else z

    return _around(BlockAttention, "_attend", wrong)


def a_dropped_bias(active):
    def wrong(method, self, layer, *given):
        out = method(self, layer, *given)
        return out - self._blocks[layer].attn.b_O if active(layer) else out

    return _around(Wavefront, "_write", wrong)


def another_dtype(active):
    def wrong(method, self, layer, *given):
        out = method(self, layer, *given)
        return out.bfloat16().to(out.dtype) if active(layer) else out

    return _around(Wavefront, "_mlp", wrong)


def another_key_head(active):
    def wrong(method, self, *given):
        found = method(self, *given)
        k, v = found.chunk(2, dim=2)
        return torch.cat([k.roll(1, 2), v], dim=2) if active(self.layer) else found

    return _around(BlockAttention, "_whole", wrong)


def a_missing_norm(active):
    def wrong(method, self, layer, *given):
        same = mock.patch.object(self._blocks[layer], "read_by_mlp", lambda x: x)
        with same if active(layer) else ExitStack():
            return method(self, layer, *given)

    return _around(Wavefront, "_mlp", wrong)


def values_of_another_position(active):
    def wrong(method, self, edits, like):
        found = method(self, edits, like)
        return found.roll(1, 1) if active(edits.intervention.site.layer) else found

    return _around(Editor, "_of_batch", wrong)


def queries_that_turn_too_far(active):
    def wrong(method, self, x, norm, positions):
        if positions is None or norm is not self._attention.q_norm or not active(self.layer):
            return method(self, x, norm, positions)
        return self._attention.turn(norm(x[None]), 1 + self._numbers[positions][None])[0]

    return _around(BlockAttention, "_turned", wrong)


def stale_keys(active):
    def wrong(method, self, each, read):
        if each.rows is None or not active(self.layer):
            return method(self, each, read)
        return self._base[:, : each.n_keys].index_select(0, self._numbers[each.rows])

    return _around(BlockAttention, "_whole", wrong)


def a_forgotten_owner(active):
    def wrong(method, self, each, read):
        return method(self, replace(each, owned=None) if active(self.layer) else each, read)

    return _around(BlockAttention, "_whole", wrong)


def another_draw(active):
    def wrong(method, self, edits, like):
        return method(
            self, replace(edits, draw=1 - edits.draw) if active(edits.intervention.site.layer) else edits, like
        )

    return _around(Editor, "_of_batch", wrong)


def answers_of_another_row(active):
    def wrong(method, self, stream, rows=None):
        return method(self, stream, None if rows is None else rows.roll(1))

    return _around(BaseRun, "scores", wrong)


FAULTS = [
    *(a_mask_that_is_added, a_suffix_that_begins_late, another_head, a_stale_base, swapped_rows, a_dropped_bias),
    *(another_dtype, another_key_head, a_missing_norm, values_of_another_position, queries_that_turn_too_far),
    *(stale_keys, a_forgotten_owner, another_draw, answers_of_another_row),
]


KINDS = {another_draw: [("z", "resample")], values_of_another_position: SWEEPS[1:]}
SHAPED = {queries_that_turn_too_far: SHAPES[2:]}
"""Sweeps and models beside which a fault can change nothing."""


class RandomSweep:
    """A model, a task and cells, by a seed."""

    def __init__(self, seed, dtype=torch.float32, kinds=SWEEPS, shapes=SHAPES):
        rng = random.Random(seed)
        self.site, self.replacement = rng.choice(kinds)
        self.model = random_model(seed=seed, dtype=dtype, **rng.choice(shapes))
        lengths = tuple(rng.choice((5, 6, 8)) for _ in range(UNITS))
        self.task = random_task(seed, lengths=lengths)
        sites = [Site(self.site, layer) for layer in range(self.model.config.n_layers)]
        patched = self.replacement == "patch"
        made = every_replacement(self.model, self.task, sites, patched=patched)[self.replacement]
        heads = [(each,) for each in range(self.model.config.n_heads)] if "head" in sites[0].axes else [None]
        self.cells = [
            Cell({"layer": site.layer, "head": number}, (change(site.name, site.layer, made, heads=each),))
            for site in sites
            for number, each in enumerate(heads)
        ]
        self.how = {"seed": seed, **({"direction": "denoise"} if patched else {})}

    def run(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return Sweep(self.cells).run(self.model, self.task, **self.how)

    def caught(self, fault, layer=None):
        """Whether the audit refuses the sweep with a fault, in one layer or in all; None where it changes nothing."""
        with _around(BlockAttention, "__init__", _numbered), fault(lambda each: layer in (None, each)):
            try:
                found = self.run()
            except AuditError:
                return True
        honest = self.run()
        gap = (found.examples["value"] - honest.examples["value"]).abs().max()
        rounding = honest.provenance["audit"]["tolerance"] * honest.examples["value"].abs().max()
        return False if gap > rounding else None


def rates(fault, n, *, one_layer):
    """How often a fault is caught, of `n` sweeps in which it changes anything."""
    counts, seed = Counter(), 0
    while counts[True] + counts[False] < n and seed < 20 * n:
        sweep = RandomSweep(seed, kinds=KINDS.get(fault, SWEEPS), shapes=SHAPED.get(fault, SHAPES))
        layer = random.Random(-seed).randrange(sweep.model.config.n_layers) if one_layer else None
        counts[sweep.caught(fault, layer)] += 1
        seed += 1
    return counts[True], counts[True] + counts[False]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("sweeps", 300), ("honest", 1000), ("rounding", 40)):
        parser.add_argument(f"--{name}", type=int, default=default)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    print("share of the tolerance that is used, the largest of honest sweeps")
    for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16):
        for kind in SWEEPS:
            used = [_used(RandomSweep(seed, dtype, [kind])) for seed in range(asked.rounding)]
            print(f"  {str(dtype)[6:]:9} {' '.join(kind):18} {np.max(used):.2f}", flush=True)
    print(f"\nof {asked.honest} honest sweeps, refused:")
    print(" ", sum(_refused(seed) for seed in range(asked.honest)), flush=True)
    print("\nfaults, caught of sweeps that they change: in all layers, in one")
    for fault in FAULTS:
        found = ["{} of {}".format(*rates(fault, asked.sweeps, one_layer=one)) for one in (False, True)]
        print(f"  {fault.__name__.replace('_', ' '):30} {found[0]:>12} {found[1]:>12}", flush=True)


def _used(sweep):
    audit = sweep.run().provenance["audit"]
    return audit["largest_difference"] / audit["tolerance"]


def _refused(seed):
    try:
        RandomSweep(seed).run()
    except AuditError:
        return True
    return False


if __name__ == "__main__":
    main()
