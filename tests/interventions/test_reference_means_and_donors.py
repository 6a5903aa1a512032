"""Means of a template, and the units that nothing can be resampled for."""

from dataclasses import replace

import pytest
import torch
from hand_model import BOS, BY, KEY, NEAR, THERE, HandModel, encode, pair, prompts, task_of, varied_task

from interp.errors import InputError
from interp.interventions.preparing import make_replacement, mean_of_positions, with_donors
from interp.interventions.rows import Batch, task_rows
from interp.model.sites import Site
from interp.tasks.task import Unit

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
    assert (made.kind, made.draws) == ("template_mean", 1)
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
