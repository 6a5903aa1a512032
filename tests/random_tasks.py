"""Random tasks in token ids, and how far the engine is from the plain way on them."""

import random
from collections.abc import Sequence

import numpy as np

from interp.interventions.engine.plan import Sizes
from interp.interventions.engine.run import Engine
from interp.interventions.hooked_runs import PlainRun
from interp.interventions.intervention import Intervention, heads_at
from interp.interventions.reference_set import make_replacement
from interp.interventions.replacement import Add, Patch
from interp.interventions.rows import batches, task_rows
from interp.model.devices import place_of
from interp.model.sites import SITES, Site
from interp.tasks.example import Example
from interp.tasks.task import EncodedExample, Task, Unit

WRITTEN = tuple(name for name in SITES if name not in ("embed", "pos_embed", "scores"))
ALPHABET = 3
"""Prompts are made of so few tokens that many begin alike."""
TOLERANCE = {"float64": 1e-10, "float32": 1e-5}


def encoded(prompt, right, wrong, *, related=None):
    """An example of token ids; where a related position is given, the query is the last token."""
    text = " ".join(map(str, prompt))
    example = Example(text, f" {right}", f" {wrong}", None, "t", f"{len(prompt)} tokens")
    tagged = {"query": None, "related": ()} if related is None else {"query": len(prompt) - 1, "related": related}
    return EncodedExample(example, tuple(prompt), tuple(right), tuple(wrong), distractors={}, **tagged)


def random_unit(rng, length, *, d_vocab=40, answers=(1, 1), cluster="c", fold=0):
    """Two prompts that begin alike and then differ, with answers of so many tokens."""
    item = [0, *(rng.randrange(ALPHABET) for _ in range(length - 1))]
    other = list(item)
    begin = rng.randrange(1, length)
    for position in range(begin, length):
        other[position] = rng.randrange(d_vocab)
    other[begin] = (item[begin] + 1) % d_vocab
    right, wrong = (tuple(rng.randrange(d_vocab) for _ in range(n)) for n in answers)
    return Unit(encoded(item, right, wrong), encoded(other, wrong, right), cluster, fold)


def random_task(seed=0, *, lengths=(6, 6, 6, 4), metric="logit_difference", n_references=3, folds=1, **options):
    """Units of these lengths, and reference sets of units of the same lengths."""
    rng = random.Random(seed)
    units = [
        random_unit(rng, length, cluster=f"c{number}", fold=number % folds, **options)
        for number, length in enumerate(lengths)
    ]
    references = [
        tuple(random_unit(rng, length, **options) for length in sorted(set(lengths)) for _ in range(n_references))
        for _ in range(folds)
    ]
    return Task(
        name="random",
        description="Random tokens.",
        metric=metric,
        query="predicting position",
        units=tuple(units),
        references=tuple(references),
        dropped={},
        coverage={},
        hash=f"random {seed}",
    )


def widths(model, site, n_tokens):
    """How large each axis of a site is."""
    config = model.config
    names = ("d_model", "d_head", "d_mlp")
    sizes = {"batch": 1, "head": heads_at(site.name, model), "pos": 1, "query_pos": 1, "key_pos": n_tokens}
    return sizes | {name: getattr(config, name) for name in names}


def something_to_add(model, seed=0):
    """Adds the same random vector at every position of every row."""

    def added(site, batch):
        generator = np.random.default_rng([seed, WRITTEN.index(site.name), site.layer])
        sizes = widths(model, site, batch.length)
        values = 0.5 * generator.normal(size=[sizes[axis] for axis in site.axes])
        return batch.tokens.new_tensor(values, dtype=next(model.parameters()).dtype)

    return Add(added)


def every_replacement(model, task, sites, *, patched=False):
    """One of each kind that these sites can have, by name."""
    made = {"add": something_to_add(model)} | ({"patch": Patch(model, tuple(sites))} if patched else {})
    for kind in ("zero", "mean", "positional_mean", "resample"):
        fit = [site for site in sites if kind != "mean" or site.name != "pattern"]
        if fit and (kind != "positional_mean" or _aligned(task)):
            made[kind] = make_replacement(kind, model, task, sites=fit, draws=3, seed=1)
    return made


def _aligned(task):
    """Whether all rows of a layout are equally long."""
    lengths = {len(each.right) - len(each.wrong) for each in task.examples}
    return task.metric != "sentence_log_probability" or lengths == {0}


def differences(model, task, cells, *, metric=None, direction=None, budget=None, atol=0.0):
    """The engine's largest differences from the plain way: of value, margin and change norm.

    Relative to the largest magnitude among the compared ones (of a KL divergence: at least 1). How often the
    interventions have acted is compared at once.
    """
    metric = metric or task.metric
    found = {"base": [], "value": [], "margin": [], "norm": []}
    interventions = [each for cell in cells for each in cell]
    engine = Engine(model, metric, cells, Sizes(model.config, place_of(model), metric, interventions, budget))
    n_strands = sum(max(each.replacement.draws for each in cell) for cell in cells)
    for batch in batches(model, task_rows(metric, task.units, direction)):
        plain = PlainRun(model, batch, metric, patched=direction is not None)
        base = engine.base(batch)
        found["base"].append((base.row_scores().value, plain.row_scores().value))
        if direction is not None:
            found["base"].append((base.source_scores().value, plain.source_scores().value))
        n = 0
        for out in engine.measure(base):
            expected = plain.scores(cells[out.cell], out.draw)
            assert out.scores.fired.tolist() == expected.fired.tolist(), cells[out.cell]
            found["value"].append((out.scores.value, expected.value))
            found["margin"].append((out.scores.margin, expected.margin))
            found["norm"].append((np.sqrt(out.scores.squares), np.sqrt(expected.squares)))
            n += 1
        assert n == n_strands
    at_least = 1.0 if metric == "kl_divergence" else 0.0
    return {name: relative(pairs, at_least if name in ("base", "value") else 0.0) for name, pairs in found.items()}


def assert_equal(found, dtype="float64"):
    """The ``differences`` are within the tolerance."""
    assert {name: value for name, value in found.items() if value > TOLERANCE[dtype]} == {}


def relative(pairs: Sequence[tuple[np.ndarray, np.ndarray]], at_least=0.0):
    """The largest difference among pairs of arrays, relative to the largest magnitude."""
    got, expected = (np.concatenate(each) for each in zip(*pairs, strict=True))
    assert (np.isnan(got) == np.isnan(expected)).all()
    largest = max(np.nanmax(np.abs(expected), initial=0.0), at_least)
    gap = np.nanmax(np.abs(got - expected), initial=0.0)
    return float(gap / largest) if largest else float(gap)


def change(name, layer, replacement, **where):
    """An intervention at a site."""
    return Intervention(Site(name, layer), replacement, **where)
