from collections import Counter

import pytest
from generated_items import TASKS
from trained_tokenizers import KINDS, tokenizer_like

from interp import load_model
from interp.claims.bootstrap import FEWEST_CLUSTERS
from interp.interventions.reference_set import with_donors
from interp.tasks import agreement, catalogue, induction, ioi, reflexive
from interp.tasks.catalogue import load_task
from interp.tasks.drawing import AGAIN, ALONE, draw_units, drawn_plainly
from interp.tasks.example import Example, MinimalPair
from interp.tasks.grammar.items import GIVEN_UP, Frame, GeneratedTask

SEED = {"seed": 0, "split": "test"}


def short(pair):
    """Whether the right answer is a short word."""
    return len(pair.item.right) <= 6


def one_unit_each(fits):
    """As a tokenizer's: a unit for each pair that fits, and why the others do not."""

    def encode(pairs):
        kept = [pair for pair in pairs if fits(pair)]
        return kept, Counter({"does not fit": len(pairs) - len(kept)} if len(kept) < len(pairs) else {})

    return encode


@pytest.mark.parametrize("task", [agreement, induction], ids=lambda each: each.__name__)
def test_what_does_not_fit_is_replaced_within_its_structure_and_all_else_stays(task):
    plain = list(task.pairs(60, seed=0))
    fitting = list(task.pairs(60, seed=0, fits=short))
    assert 10 < sum(map(short, plain)) < 50
    assert all(map(short, fitting))
    for before, after in zip(plain, fitting, strict=True):
        assert after == before if short(before) else after.item.template == before.item.template


@pytest.mark.parametrize("task", [ioi, reflexive], ids=lambda each: each.__name__)
def test_nobody_is_in_two_clusters_of_what_fits(task):
    found = list(task.pairs(60, seed=0, fits=lambda pair: len(pair.cluster) % 2 == 0))
    people = Counter(name for cluster in {pair.cluster for pair in found} for name in cluster.split(" + "))
    assert set(people.values()) == {1}
    assert len(found) == 60


def test_people_who_never_fit_together_stay_free_for_others():
    """Of the couples that were turned down someone stands in another one that is not."""
    refused = set()

    def fits(pair):
        if len(pair.cluster) % 2:
            refused.update(pair.cluster.split(" + "))
        return not len(pair.cluster) % 2

    kept = {name for pair in ioi.pairs(60, seed=0, fits=fits) for name in pair.cluster.split(" + ")}
    assert kept & refused


def test_where_all_are_carried_the_draw_is_the_plain_one():
    units, replaced = draw_units(ioi.pairs, 130, one_unit_each(lambda _: True), **SEED)
    assert units == list(ioi.pairs(130, seed=0))
    assert replaced == {}


def test_pairs_are_drawn_once_and_a_draw_that_was_broken_off_begins_anew():
    drawn = []

    def pairs(n, *, seed, split):
        for number in range(n):
            drawn.append(number)
            if len(drawn) == 4:
                raise KeyboardInterrupt
            yield number

    assert drawn_plainly(pairs, 2, **SEED) == (0, 1)
    with pytest.raises(KeyboardInterrupt):
        drawn_plainly(pairs, 6, **SEED)
    assert drawn_plainly(pairs, 6, **SEED) == tuple(range(6))
    assert drawn_plainly(pairs, 3, **SEED) == (0, 1, 2)
    assert drawn == [0, 1, 2, 3, *range(6)]


def test_drawing_goes_on_until_there_are_as_many_and_counts_what_it_replaced():
    tried = []
    encode = one_unit_each(short)
    units, replaced = draw_units(ioi.pairs, 130, lambda pairs: tried.append(len(pairs)) or encode(pairs), **SEED)
    assert len(units) == len({unit.item.prompt for unit in units}) == 130
    assert tried[0] == GIVEN_UP
    assert replaced.total() == tried.count(1) - 130
    assert replaced["does not fit"] > 0


def test_drawing_ends_with_all_that_can_be_had_and_none_is_counted_twice():
    pool = list(ioi.pairs(12, seed=0))
    few = GeneratedTask("few", "One of a few.", {"all": [Frame(None)]}, lambda plan: plan.dice.pick(pool))
    units, replaced = draw_units(few.pairs, 12, one_unit_each(short), **SEED)
    assert sorted(unit.cluster for unit in units) == sorted(pair.cluster for pair in pool if short(pair))
    assert set(replaced) == {AGAIN, "does not fit"}
    assert replaced.total() >= GIVEN_UP


def test_where_none_is_carried_nothing_is_drawn_again():
    asked = []
    encode = one_unit_each(lambda _: False)
    units, replaced = draw_units(ioi.pairs, 300, lambda pairs: asked.append(len(pairs)) or encode(pairs), **SEED)
    assert (units, asked, dict(replaced)) == ([], [GIVEN_UP], {"does not fit": GIVEN_UP})


def test_fewer_than_asked_for_are_warned_of(caplog, monkeypatch):
    def pairs(n, *, seed, split, fits=None):
        begin = "The" if split == "test" else "Some"
        texts = [f"{begin} {each}" for each in ("key", "picture", "cabinets with all of them")]
        three = [MinimalPair(Example(each, " is", " are", None, "t", ""), None, each) for each in texts]
        return iter([pair for pair in three[:n] if fits is None or fits(pair)])

    monkeypatch.setitem(catalogue._GENERATED, "three", (pairs, catalogue.TaskInfo("three", "Three.")))
    task = load_task("three", tokenizer=load_model().tokenizer, n=5, n_ctx=5)
    assert len(task.units) == 2
    assert caplog.messages == [
        "three: 2 of the 5 units asked for can be had: of other draws, longer than the context: 1"
    ]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", TASKS)
def test_real_vocabularies_carry_every_generated_task(kind, name, data_dir):
    task = load_task(name, tokenizer=tokenizer_like(kind, data_dir))
    assert len(task.units) == 200
    assert len({unit.cluster for unit in task.units}) >= 2 * FEWEST_CLUSTERS
    assert all(len({len(each.prompt) for each in unit.examples}) == 1 for unit in task.units)
    assert with_donors(task) is task


def test_a_unit_that_nothing_could_stand_in_for_is_replaced(data_dir, monkeypatch):
    monkeypatch.setattr(catalogue, "REFERENCES", 40)
    task = load_task("retrieval", tokenizer=tokenizer_like("smollm2", data_dir), n=30)
    assert task.dropped[ALONE] > 0
    assert len(task.units) == 30
    assert with_donors(task) is task


def test_a_real_vocabulary_carries_as_many_units_as_are_asked_for(data_dir, monkeypatch):
    monkeypatch.setattr(catalogue, "REFERENCES", 30)
    task = load_task("reflexive", tokenizer=tokenizer_like("smollm2", data_dir), n=60)
    assert (len(task.units), len(task.references[0])) == (60, 30)
    assert task.dropped["counterfactual of another length"] > 0
    lengths = {len({len(each.prompt) for each in unit.examples}) for unit in (*task.units, *task.references[0])}
    assert lengths == {1}
