"""Replacements that are made from reference sets."""

import dataclasses
from dataclasses import replace

import numpy as np
import pytest
import torch
from hand_model import BOS, BY, KEY, NEAR, THERE, HandModel, encode, pair, prompts, task_of, varied_task

from interp.errors import InputError
from interp.interventions.reference_set import make_replacement, mean_of_positions, reference_hash, with_donors
from interp.interventions.rows import Batch, batches, task_rows
from interp.model.sites import Site
from interp.runs.pickling import pack
from interp.tasks.task import Unit


def values(kind, task, *, model=None, **options):
    """The replacement of the first row, and of head 0: [pos, d_head]."""
    model = model or HandModel()
    replacement = make_replacement(kind, model, task, sites=[Site("z", 0)], **options)
    (batch,) = batches(model, task_rows(task.metric, task.units))
    shape = (len(batch.rows), batch.tokens.shape[1], 2, 8)
    return [replacement.values(Site("z", 0), batch, draw).expand(shape)[:, :, 0] for draw in range(replacement.draws)]


# Head 0 in [BOS, noun, by, there], on the noun: it sees 0, 1/2, 1/3 and 9/12 of it.
SEEN = torch.tensor([0, 1 / 2, 1 / 3, 9 / 12])


def test_zero_is_zero():
    (z,) = values("zero", task_of([pair(prompts(0, 1))], []))
    assert z.count_nonzero() == 0


def test_mean_is_over_all_positions_of_prompts_and_counterfactuals():
    task = task_of([pair([BOS, KEY, NEAR, THERE])], [pair([BOS, KEY, BY, THERE])])
    (z,) = values("mean", task)
    by_noun = z[0, :, [1, 2]]
    # Half of the reference rows have either noun: the mean does not tell which is right.
    torch.testing.assert_close(by_noun, (SEEN.mean() / 2).expand(4, 2))


def test_mean_without_counterfactuals_is_of_what_there_is():
    reference = Unit(encode([BOS, KEY, BY, THERE]), None, "r")
    (z,) = values("mean", task_of([pair([BOS, KEY, NEAR, THERE])], [reference]))
    torch.testing.assert_close(z[0, :, 1], SEEN.mean().expand(4))


def test_mean_is_over_positions_not_over_rows():
    short, long = Unit(encode([BOS, KEY, THERE]), None, "r"), Unit(encode([BOS, KEY, BY, THERE]), None, "r")
    (z,) = values("mean", task_of([pair([BOS, KEY, NEAR, THERE])], [short, long]))
    total = SEEN.sum() + 1 / 2 + 9 / 11
    torch.testing.assert_close(z[0, 0, 1], total / 7)


def test_each_fold_has_its_own_reference_set():
    singular, plural = encode([BOS, KEY, BY, THERE]), pair([BOS, KEY, BY, THERE]).counterfactual
    units = [Unit(encode([BOS, KEY, NEAR, THERE]), None, "c", fold) for fold in (0, 1)]
    task = task_of(units, [])
    sets = ((Unit(singular, None, "a"),), (Unit(plural, None, "b"),))
    task = dataclasses.replace(task, references=sets)
    (z,) = values("mean", task)
    assert z[0, 0, 1] > 0
    assert z[0, 0, 2] == 0
    assert z[1, 0, 1] == 0
    assert z[1, 0, 2] > 0


def test_positional_mean_keeps_positions_apart():
    task = task_of([pair([BOS, KEY, NEAR, THERE])], [pair([BOS, KEY, BY, THERE]), pair(prompts(2, 1))])
    (z,) = values("positional_mean", task)
    torch.testing.assert_close(z[0, :, 1], SEEN / 2)
    torch.testing.assert_close(z[0, :, 2], SEEN / 2)


def test_positional_mean_refuses_a_layout_without_reference():
    task = task_of([pair(prompts(0, 1))], [pair(prompts(1, 1))])
    with pytest.raises(InputError, match=r"no reference example has the layout 'noun at 1 of 4'.*replacement='mean'"):
        values("positional_mean", task)


def test_positional_mean_refuses_lengths_that_differ_within_a_layout():
    reference = encode([BOS, KEY, BY, BY, THERE])
    reference = dataclasses.replace(reference, example=encode([BOS, KEY, BY, THERE]).example)
    task = task_of([pair(prompts(0, 1))], [pair(prompts(0, 1)), Unit(reference, None, "r")])
    with pytest.raises(InputError, match=r"different lengths \(4, 5 tokens\)"):
        values("positional_mean", task)


def test_positional_mean_refuses_examples_without_layout():
    encoded = encode([BOS, KEY, BY, THERE])
    unlaid = dataclasses.replace(encoded, example=dataclasses.replace(encoded.example, layout=""))
    unit = Unit(unlaid, None, "c")
    with pytest.raises(InputError, match="has no layout"):
        values("positional_mean", task_of([unit], [unit]))


def test_resample_takes_another_example_of_the_same_length():
    task = task_of(
        [Unit(encode([BOS, KEY, NEAR, THERE]), None, "c")],
        [pair([BOS, KEY, BY, THERE]), pair([BOS, BY, BY, KEY, THERE])],
    )
    seen = {tuple(z[0, -1, [1, 2]].round(decimals=6).tolist()) for z in values("resample", task, draws=20)}
    assert seen == {(0.75, 0.0), (0.0, 0.75)}


def test_resample_never_takes_the_example_itself():
    unit = Unit(encode([BOS, KEY, BY, THERE]), None, "c")
    task = task_of([unit], [pair([BOS, KEY, BY, THERE])])
    for z in values("resample", task, draws=20):
        assert z[0, -1, [1, 2]].tolist() == pytest.approx([0.0, 0.75])
    with pytest.raises(InputError, match="no other reference example"):
        values("resample", task_of([unit], [unit]))


def test_resample_is_seeded():
    task = task_of([pair([BOS, KEY, NEAR, THERE])], [pair([BOS, KEY, BY, THERE]), pair(prompts(0, 1))])

    def draw(seed):
        return np.array([z[:, -1, 1].tolist() for z in values("resample", task, draws=12, seed=seed)])

    np.testing.assert_array_equal(draw(0), draw(0))
    assert not np.array_equal(draw(0), draw(1))


def test_resample_asks_for_the_same_template():
    task = task_of([pair(prompts(0, 1), template="x")], [pair([BOS, KEY, BY, THERE], template="y")])
    with pytest.raises(InputError, match="template 'x' and the 4 tokens"):
        values("resample", task)


def test_no_reference_set_is_an_error_for_means():
    with pytest.raises(InputError, match="has a single unit, so no other to take values from; use zero ablation"):
        values("mean", task_of([pair(prompts(0, 1))], []))


def test_reference_hash_tells_reference_sets_apart():
    units = [pair(prompts(0, 1))]
    one, other = task_of(units, [pair(prompts(0, 2))]), task_of(units, [pair(prompts(1, 1))])
    assert reference_hash(one) == reference_hash(one)
    assert reference_hash(one) != reference_hash(other)


def test_references_of_several_lengths_are_not_padded():
    references = [pair(prompts(before, 1)) for before in range(3)]
    task = task_of([pair([BOS, KEY, NEAR, THERE])], references)
    (z,) = values("mean", task)
    torch.testing.assert_close(z[0, 0], by_hand(HandModel(), references)[0])


@pytest.mark.parametrize("kind", ["mean", "positional_mean"])
def test_means_that_were_made_before_are_taken_as_they_are(kind):
    model, task = HandModel(), task_of([pair([BOS, KEY, NEAR, THERE])], [pair([BOS, KEY, BY, THERE])])
    made = make_replacement(kind, model, task, sites=[Site("z", 0), Site("v", 0)])
    assert make_replacement(made, model, task, sites=[Site("z", 0)]) is made
    assert made.reference_hash == reference_hash(task)
    with pytest.raises(InputError, match=r"nothing was made for blocks.0.mlp.hook_post of rows such as"):
        make_replacement(made, model, task, sites=[Site("z", 0), Site("mlp_post", 0)])
    second = dataclasses.replace(task.units[0], fold=1)
    with pytest.raises(InputError, match=r"nothing was made for blocks.0.attn.hook_z of rows such as"):
        make_replacement(made, model, dataclasses.replace(task, units=(second,)), sites=[Site("z", 0)])


@pytest.mark.parametrize("kind", ["mean", "positional_mean", "resample"])
def test_what_is_sent_to_another_process_was_computed_here(kind, monkeypatch):
    task = task_of([pair([BOS, KEY, NEAR, THERE])], [pair([BOS, KEY, BY, THERE])])
    model = HandModel()
    made = make_replacement(kind, model, task, sites=[Site("z", 0)])
    packed = pack(made)
    monkeypatch.setattr(model, "run_with_hooks", lambda *_: pytest.fail("the model was run"))
    again = packed.unpacked()
    assert (type(again), again.identity) == (type(made), made.identity)
    name = "activations" if kind == "resample" else "means"
    here, there = getattr(made, name), getattr(again, name)
    assert dict(there).keys() == dict(here).keys()
    assert all(torch.equal(there[key], here[key]) for key in here)


Z = Site("z", 0)


def shorts_and_longs():
    """References of two templates, of several lengths each."""
    shorts = [pair(prompts(*shape), template="short") for shape in ((0, 0), (1, 0), (0, 2))]
    return shorts, [pair(prompts(*shape), template="long") for shape in ((3, 3), (2, 3))]


def by_hand(model, units):
    """The mean of ``z`` over all positions of all examples, one run each."""
    values = []
    for unit in units:
        for each in unit.examples:
            _, cache = model.run_with_cache(torch.tensor([each.prompt]), names_filter=Z.hook_name)
            values.append(cache[Z.hook_name][0])
    return torch.cat(values).mean(dim=0)


def test_a_template_s_mean_is_over_all_positions_of_its_reference_examples():
    shorts, longs = shorts_and_longs()
    units = [pair(prompts(1, 1), template="short"), pair(prompts(3, 2), template="long")]
    task, model = task_of(units, [*shorts, *longs]), HandModel()
    made = make_replacement("template_mean", model, task, sites=[Z])
    assert (made.name, made.draws) == ("template_mean", 1)
    for row in task_rows(task.metric, task.units):
        values = made.values(Z, Batch((row,), torch.tensor([row.tokens])), 0)
        expected = by_hand(model, shorts if row.template == "short" else longs)
        torch.testing.assert_close(values[0, 0], expected)
    assert not torch.allclose(by_hand(model, shorts), by_hand(model, longs))


def test_a_template_without_a_reference_is_refused():
    task = task_of([pair(prompts(1, 1), template="other")], [pair(prompts(0, 0), template="short")])
    with pytest.raises(InputError, match="other"):
        make_replacement("template_mean", HandModel(), task, sites=[Z])


def test_positions_are_averaged_where_they_mean_the_same_and_templates_elsewhere():
    aligned = varied_task()
    assert mean_of_positions(aligned) == "positional_mean"
    elsewhere = replace(aligned, references=((pair(prompts(5, 0)),),))
    assert mean_of_positions(elsewhere) == "template_mean"


class TestDonors:
    def test_a_task_in_which_every_unit_has_one_stays_as_it_is(self):
        task = varied_task()
        assert with_donors(task) is task

    def test_units_without_another_example_of_their_template_and_length_are_left_out_and_counted(self):
        reference = pair(prompts(1, 1))
        same_length = pair(prompts(2, 0))
        longer, other_template = pair(prompts(4, 1)), pair(prompts(2, 0), template="rare")
        task = replace(task_of([same_length, longer, other_template], [reference]), dropped={"before": 2})
        found = with_donors(task)
        assert found.units == (same_length,)
        assert found.dropped == {"before": 2, "no reference example of its template and length": 2}
        assert found.references == task.references

    def test_the_examples_of_a_unit_share_it_where_it_is_none_of_them(self):
        units = [pair(prompts(before, 4 - before)) for before in range(4)]
        task, seen = task_of(units, units), set()
        for seed in range(8):
            made = make_replacement("resample", HandModel(), task, sites=[Z], draws=2, seed=seed)
            for number in range(0, 8, 2):
                item, counterfactual = (made.donors[each, 7] for each in (number, number + 1))
                assert number not in item
                assert number + 1 not in counterfactual
                alone = number + 1 in item  # which its counterfactual must not have
                assert alone or item == counterfactual
                seen.add(alone)
        assert seen == {False, True}

    def test_an_example_is_no_donor_of_itself(self):
        """Of a pair that is its own reference each has the other; a sentence alone has none."""
        both, alone = pair(prompts(1, 1)), replace(pair(prompts(1, 1)), counterfactual=None)
        other = pair(prompts(2, 0))
        assert with_donors(task_of([both], [both])).units == (both,)
        assert with_donors(task_of([other, alone], [alone])).units == (other,)

    def test_a_unit_goes_as_a_whole(self):
        """Of its two examples one has a donor; the other is longer."""
        reference = pair(prompts(1, 1))
        half = Unit(encode([BOS, BY, BY, KEY, THERE]), encode([BOS, BY, BY, KEY, NEAR, NEAR, THERE]), "c")
        whole = pair(prompts(2, 0))
        assert with_donors(task_of([half, whole], [reference])).units == (whole,)

    def test_where_none_is_left_that_is_an_error(self):
        task = task_of([pair(prompts(4, 1))], [pair(prompts(1, 1))])
        with pytest.raises(InputError, match="expected reference examples of the template and length of some unit"):
            with_donors(task)
