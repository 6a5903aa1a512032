import dataclasses
import warnings

import numpy as np
import pytest
from hand_model import BOS, BY, KEY, NEAR, THERE, HandModel, encode, pair, prompts, task_of
from random_tasks import random_task
from tiny_models import random_model

import interp
from interp.arguments import numbers_below
from interp.errors import InputError
from interp.interventions.replacement import Zero
from interp.interventions.sweep import Sweep
from interp.methods.grid import Grid, label_positions
from interp.model.sites import Site


@pytest.fixture(scope="module")
def model():
    return random_model()


class TestRefused:
    def test_sites(self):
        with pytest.raises(
            InputError, match="no site that can be changed is called 'resid_prr'; did you mean 'resid_pre'"
        ):
            Grid("resid_prr", ("layer",))
        with pytest.raises(InputError, match=r"called 'blocks.0.attn.hook_z'; did you mean 'z'"):
            Grid("blocks.0.attn.hook_z", ("layer",))
        for name in ("embed", "pos_embed", "scores"):
            with pytest.raises(InputError, match=f"no site that can be changed is called '{name}'"):
                Grid(name, ("layer",))

    def test_axes(self, model):
        with pytest.raises(InputError, match="by: 'position' is unknown; did you mean 'pos'"):
            interp.patch(model, random_task(0), by=("position",))
        for site, axis in (("resid_pre", "head"), ("z", "neuron"), ("z", "key"), ("mlp_post", "key")):
            with pytest.raises(InputError, match=f"by: site '{site}' has no {axis}; leave it out, or choose another"):
                Grid(site, (axis,))
        with pytest.raises(InputError, match=r"by: expected different axes, at least one, got \('layer', 'layer'\)"):
            Grid("z", ("layer", "layer"))
        with pytest.raises(InputError, match=r"by: expected different axes, at least one, got \(\)"):
            Grid("z", ())

    @pytest.mark.parametrize("layers", [(2,), (-1,), ()], ids=str)
    def test_layers(self, model, layers):
        with pytest.raises(InputError, match=r"layers: the model has 2 \(0 to 1\), got .*; choose among these"):
            Grid("z", ("layer",), layers).sites(model)
        with pytest.raises(InputError, match=r"layers: the model has 2 \(0 to 1\), got"):
            interp.patch(model, random_task(0), site="z", by=("layer",), layers=layers)

    @pytest.mark.parametrize("layers", [1, "01", ["a"], [1.0], [True, False], np.array(1), None], ids=repr)
    def test_what_is_no_list_of_layers(self, layers):
        with pytest.raises(InputError, match=r"layers: expected a list of whole numbers such as \[0, 1\], got"):
            numbers_below(2, "layers", layers)

    @pytest.mark.parametrize("layers", [[0, 0], [np.int64(0), 0], [2], [-1], []], ids=repr)
    def test_layers_that_are_not_there_or_twice(self, layers):
        with pytest.raises(InputError, match=r"layers: the model has 2 \(0 to 1\), got .*; choose among these"):
            numbers_below(2, "layers", layers)


@pytest.mark.parametrize("layers", [[1, 0], (1, 0), range(1, -1, -1), np.array([1, 0]), np.array([1, 0], "uint8")])
def test_layers_are_pythons_numbers_in_the_order_given(layers):
    found = numbers_below(2, "layers", layers)
    assert found == [1, 0]
    assert {type(each) for each in found} == {int}


class TestCells:
    def test_one_for_every_choice_in_the_order_of_the_labels(self, model):
        positions = [(0, (0,)), (1, (1,))]
        cells = Grid("z", ("pos", "layer", "head")).cells(model, Zero(), positions)
        labels = [tuple(each.labels.items()) for each in cells]
        assert len(labels) == len(set(labels)) == 2 * 2 * 3
        assert [name for name, _ in labels[0]] == ["pos", "layer", "head"]
        (change,) = cells[-1].interventions
        assert (change.site, change.heads, change.positions) == (Site("z", 1), (2,), (1,))

    def test_what_is_left_out_is_changed_together(self, model):
        cell = Grid("z", ("head",)).cells(model, Zero(), [])[1]
        assert [each.site for each in cell.interventions] == [Site("z", 0), Site("z", 1)]
        assert {(each.heads, each.positions) for each in cell.interventions} == {((1,), None)}

    def test_chosen_layers(self, model):
        cells = Grid("q", ("layer", "head"), layers=(1,)).cells(model, Zero(), [])
        assert [tuple(each.labels.values()) for each in cells] == [(1, 0), (1, 1), (1, 2)]

    def test_heads_that_are_not_resolved(self, model):
        cells = Grid("z", ("layer",)).cells(model, Zero(), [])
        assert [each.interventions[0].heads for each in cells] == [None] * 2

    @pytest.mark.parametrize("site", ["mlp_pre", "mlp_post"])
    def test_neurons(self, model, site):
        cells = Grid(site, ("layer", "neuron"), layers=(0,)).cells(model, Zero(), [])
        assert [each.interventions[0].units for each in cells] == [(number,) for number in range(20)]
        task = random_task(0)
        frame = Sweep(cells).run(model, task).examples
        plain = Sweep(cells[3:5]).run(model, task, plainly=True).examples
        some = frame[frame["neuron"].isin([3, 4])].reset_index(drop=True)
        np.testing.assert_allclose(some["value"], plain["value"], rtol=1e-10)

    def test_neurons_add_up_where_nothing_follows(self, model):
        """Patches of all neurons of the last layer are the patch of what they write."""
        task = random_task(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            together = interp.patch(model, task, site="mlp_post", by=("layer",), layers=[1]).examples
            written = interp.patch(model, task, site="mlp_out", by=("layer",), layers=[1]).examples
            single = interp.patch(model, task, site="mlp_post", by=("layer", "neuron"), layers=[1]).examples
        np.testing.assert_allclose(together["value"], written["value"], rtol=1e-10)
        assert single["neuron"].nunique() == 20
        assert single.groupby("neuron")["effect"].mean().nunique() == 20

    def test_keys(self, model):
        cells = Grid("pattern", ("layer", "key")).cells(model, Zero(), [], n_keys=4)
        assert [each.interventions[0].keys for each in cells] == [(0,), (1,), (2,), (3,)] * 2


class TestLabelledPositions:
    def labels(self, *units):
        task = task_of(units, [])
        return label_positions(task, task.examples)

    def test_prompts_of_one_length_by_number(self):
        assert self.labels(pair(prompts(0, 1))) == [(0, (0,)), (1, (1,)), (2, (2,)), (3, (3,))]

    def test_prompts_of_several_lengths_by_span(self):
        found = dict(self.labels(pair(prompts(0, 1)), pair(prompts(2, 2))))
        assert list(found)[:2] == ["BOS", "related"]
        assert found == {
            "BOS": dict.fromkeys(range(4), (0,)),
            "related": {0: (1,), 1: (1,), 2: (3,), 3: (3,)},
            "rest": {0: (2,), 1: (2,), 2: (1, 2, 4, 5), 3: (1, 2, 4, 5)},
            "last": {0: (3,), 1: (3,), 2: (6,), 3: (6,)},
        }

    def test_every_position_has_one_label(self):
        units = [
            with_spans(pair(prompts(0, 2)), query=3, distractors={"attractor": (2,)}),
            with_spans(pair(prompts(1, 3)), query=6, distractors={"attractor": (1, 3), "other": (2,)}),
        ]
        found = dict(self.labels(*units))
        lengths = [5, 5, 7, 7]
        for number, length in enumerate(lengths):
            covered = [each for by_example in found.values() for each in by_example[number]]
            assert sorted(covered) == list(range(length))
        assert found["query"] == {0: (3,), 1: (3,), 2: (), 3: ()}  # the last position is called that
        assert "other" not in found  # it is the related word
        assert found["attractor"][2] == (1, 3)

    def test_untagged_prompts_of_several_lengths_are_refused(self):
        with pytest.raises(InputError, match=r"4 to 6 tokens, .* and 2 of 4 have no tagged relation to align them by"):
            self.labels(pair(prompts(0, 1), tagged=False), pair(prompts(1, 2)))


def with_spans(unit, **spans):
    item, other = (dataclasses.replace(each, **spans) for each in unit.examples)
    return dataclasses.replace(unit, item=item, counterfactual=other)


def test_spans_of_a_query_that_is_not_the_last_token():
    unit = with_spans(pair([BOS, KEY, BY, NEAR, THERE]), query=2)
    longer = with_spans(pair([BOS, BY, KEY, BY, NEAR, THERE]), query=3)
    frame = interp.patch(HandModel(), task_of([unit, longer], []), site="z", by=("pos",)).examples
    assert set(frame["pos"]) == {"BOS", "related", "rest", "query", "last"}
    assert encode(prompts(0, 0)).query == 2
