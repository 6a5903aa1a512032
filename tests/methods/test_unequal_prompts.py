"""Patching between prompts of different lengths: aligned by spans, or refused."""

import dataclasses
import random

import numpy as np
import pytest
import torch
from random_tasks import encoded, random_task
from tiny_models import random_model

from interp.errors import InputError
from interp.methods.patching import patch
from interp.tasks.task import Unit


def unequal_task():
    """The related word has one token in one prompt and two in the other; the rest is the same."""
    rng = random.Random(0)
    units = []
    for number in range(4):
        before, after = ([rng.randrange(40) for _ in range(n)] for n in (2 + number % 2, 3))
        short = [0, *before, rng.randrange(40), *after]
        long = [0, *before, rng.randrange(40), rng.randrange(40), *after]
        place = 1 + len(before)
        item = encoded(short, (3,), (4,), related=(place,))
        other = encoded(long, (4,), (3,), related=(place, place + 1))
        units.append(Unit(item, other, f"c{number}"))
    return dataclasses.replace(random_task(), units=tuple(units))


@pytest.fixture(scope="module")
def model():
    return random_model(n_layers=2)


@pytest.mark.parametrize("direction", ["denoise", "noise"])
def test_the_last_position_of_the_last_layer_brings_the_other_run_back(model, direction):
    result = patch(model, unequal_task(), site="resid_post", by=("layer", "pos"), direction=direction)
    cell = result.examples.query("layer == 1 and pos == 'last'")
    np.testing.assert_allclose(cell["value"], cell["source"], rtol=1e-9)
    assert (cell["effect"].abs() > 1e-3).all()
    assert result.provenance["audit"]["largest_difference"] < 1e-9


@torch.no_grad()
def test_a_related_word_of_two_tokens_gives_its_last(model):
    task = unequal_task()
    frame = patch(model, task, site="resid_pre", by=("layer", "pos"), direction="denoise").examples
    unit = task.units[0]
    clean, corrupted = unit.counterfactual, unit.item  # example 1: the longer prompt is clean
    _, cache = model.run_with_cache(torch.tensor([clean.prompt]))

    def put(old, *, hook):
        new = old.clone()
        new[:, corrupted.related[-1]] = cache[hook.name][:, clean.related[-1]]
        return new

    logits = model.run_with_hooks(torch.tensor([corrupted.prompt]), fwd_hooks=[("blocks.1.hook_resid_pre", put)])
    expected = float(logits[0, -1, clean.right[0]] - logits[0, -1, clean.wrong[0]])
    (found,) = frame.query("layer == 1 and pos == 'related' and example == 1")["value"]
    assert found == pytest.approx(expected, rel=1e-9)


def test_what_corresponds_to_nothing_is_refused_or_left_out(model):
    task = unequal_task()
    with pytest.raises(InputError, match="some positions correspond to none there; patch by pos"):
        patch(model, task, site="z", by=("layer", "head"))
    frame = patch(model, task, site="z", by=("layer", "pos")).examples
    assert set(frame["pos"]) == {"BOS", "related", "rest", "last"}
    with pytest.raises(InputError, match="pattern: the clean and the corrupted prompt have different lengths"):
        patch(model, task, site="pattern", by=("layer", "head", "pos"))


def test_unequal_prompts_without_a_relation_are_refused(model):
    task = unequal_task()
    bare = tuple(
        Unit(*(dataclasses.replace(each, query=None, related=()) for each in unit.examples), unit.cluster)
        for unit in task.units
    )
    with pytest.raises(InputError, match="no relation is tagged in both to align them by"):
        patch(model, dataclasses.replace(task, units=bare), site="z", by=("layer", "head"))


def test_units_without_a_counterfactual_are_left_out_and_counted(model):
    task = random_task()
    alone = dataclasses.replace(task.units[0], counterfactual=None)
    with pytest.warns(RuntimeWarning, match=r"random: 1 of 4 units have no counterfactual to patch from"):
        part = patch(model, dataclasses.replace(task, units=(alone, *task.units[1:])))
    rest = patch(model, dataclasses.replace(task, units=task.units[1:]))
    np.testing.assert_array_equal(part.examples["value"], rest.examples["value"])
    with pytest.raises(InputError, match="none of the 1 units of 'random' has a counterfactual; ablate instead"):
        patch(model, dataclasses.replace(task, units=(alone,)))


def test_words_that_change_places_are_patched_where_they_stand(model):
    """The related word is the second in one prompt and the first in the other: what the prompts share moves."""
    run = encoded([0, 1, 2, 3, 1, 9], (3,), (4,), related=(2,))
    source = encoded([0, 1, 2, 3, 2, 5, 9], (4,), (3,), related=(1,))
    task = dataclasses.replace(random_task(), units=(Unit(run, source, "c"),))
    frame = patch(model, task, site="resid_pre", by=("layer", "pos"), layers=[1]).examples
    related = frame[frame["pos"] == "related"]
    assert set(related["status"]) == {"changed"}
    assert (related["effect"].abs() > 1e-3).all()


def test_an_interrupt_of_the_engine_leaves_whole_units(model):
    task, seen = random_task(lengths=(6, 6, 4, 4, 5, 5)), []

    def stop(done, total):
        seen.append(done)
        if len(seen) == 2:
            raise KeyboardInterrupt

    options = {"site": "z", "by": ("layer", "head"), "memory_budget": 60_000}
    whole = patch(model, task, **options).examples
    with pytest.warns(RuntimeWarning, match="interrupted"):
        part = patch(model, task, **options, progress=stop)
    assert part.provenance["complete"] is False
    assert part.provenance["audit"] is None
    cells = part.examples.groupby(["layer", "head"])
    assert cells.ngroups == 6
    assert cells["unit"].value_counts().eq(2).all()  # both of its examples
    both = part.examples.merge(whole, on=["layer", "head", "example"], suffixes=("", "_whole"))
    assert 0 < len(both) == len(part.examples) < len(whole)
    np.testing.assert_allclose(both["value"], both["value_whole"], rtol=1e-10)
