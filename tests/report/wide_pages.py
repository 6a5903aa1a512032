"""Every page with as much as makes it wide: many heads, long names and commands, and the strongest colours."""

from dataclasses import replace
from functools import cache, partial

import numpy as np
from made_up_card import made_up_card
from synthetic_heads import synthetic_report
from synthetic_probes import probing, with_cell
from synthetic_relations import HOSTILE, TO_HEAD, maps_of, scoring
from synthetic_sweeps import sweep

from interp.report.html import as_page
from interp.report.sections import page_of


def _source(result, command):
    return as_page(page_of(result), f"interp {command} --out {'x' * 200}")


def _heads():
    """Wider than any telephone: 12 heads a layer, and a task named by a path."""
    return as_page(page_of(synthetic_report(n_layers=4, n_heads=12)))


def _sweep():
    axes = {"layer": range(4), "pos": range(14)}
    tokens = [(pos, f"a rather long token number {pos}", 1.0) for pos in range(14)]
    states = {3: "unreachable", 4: "no-op"}
    return _source(sweep(axes, direction="denoise", tokens=tokens, complete=False, state=states), "patch")


def _relations():
    verdicts = ("attends", "undecided", "none", "not testable")
    names = ("nsubj", "a_relation_with_a_very_long_name_of_its_own", HOSTILE, "det", "obl", "obj", "iobj", "cc", "aux")
    names += tuple(f"r{number}" for number in range(12))
    directions = {(name, TO_HEAD): verdicts[number % 4] for number, name in enumerate(names)}
    result = scoring(directions, shape=(5, 12), causal=True)
    return _source(replace(result, maps=maps_of(result)), "attend")


def _probes(heads):
    """Every box, a gap, and the strongest colours."""
    verdicts = {(layer, 3): "encodes" for layer in range(4)} | {(layer, 5): "undecided" for layer in range(4)}
    result = probing(verdicts if heads else None, shape=(6, 14), heads=heads, feature=f"feats:{'x' * 60}")
    result = with_cell(with_cell(result, None, embedding=0.96, selectivity_low=-0.1), None, permuted=np.nan)
    return _source(with_cell(result, 3, score=1.0, selectivity=0.5), "probe")


PAGES = {
    "heads": _heads,
    "head": lambda: _source(made_up_card(), "head 2.1"),
    "sweep": _sweep,
    "attend": _relations,
    "probe": partial(_probes, heads=True),
    "probe of layers": partial(_probes, heads=False),
}
PAGES = {name: cache(page) for name, page in PAGES.items()}
