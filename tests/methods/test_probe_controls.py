"""The controls know what they may know and nothing else."""

from collections import Counter

import numpy as np
import pytest
import torch

import interp
from interp.methods.probes.cross_fitting import cross_fit, make_folds
from interp.methods.probes.data import Target
from interp.methods.probes.scores import control_labels, majority, permuted_labels, position_features, untrained

pytestmark = pytest.mark.unchecked


def carriers(n=2000, n_types=400, seed=0):
    rng = np.random.default_rng(seed)
    types = rng.integers(n_types, size=n)
    return [f"w{each}" for each in types], types


def test_a_type_has_one_label_and_labels_their_frequencies():
    names, _ = carriers(8000, 4000)
    values = ["rare"] * 1600 + ["common"] * 6400
    drawn = control_labels(names, values)
    assert all(
        len({label for label, each in zip(drawn, names, strict=True) if each == name}) == 1 for name in names[:50]
    )
    assert Counter(drawn)["rare"] / 8000 == pytest.approx(0.2, abs=0.03)
    assert control_labels(names, values) == drawn
    assert control_labels(names, values, seed=1) != drawn


def test_what_no_word_carries_is_a_type_of_its_own():
    """One type for all would have one label, which every probe gets right."""
    names, values = ["", "bank"] * 200, ["money", "river"] * 200
    drawn = control_labels(names, values)
    assert len(set(drawn[1::2])) == 1
    assert Counter(drawn[::2])["money"] == pytest.approx(100, abs=25)


@pytest.mark.slow
def test_control_tasks_are_learnt_by_heart_on_known_types_and_at_chance_on_fresh_ones():
    names, types = carriers()
    own = np.random.default_rng(1).normal(size=(400, 400))
    x = torch.from_numpy(own[types])[None]
    labels = control_labels(names, ["a", "b"] * 1000)
    target = Target(torch.tensor([each == "a" for each in labels]).long(), 2)
    documents = [str(each) for each in np.random.default_rng(2).integers(50, size=2000)]
    known = cross_fit(x, target, make_folds(documents, None, 5), penalties=(1e-2, 1e-4)).hits.mean()
    fresh = cross_fit(x, target, make_folds(documents, names, 5), penalties=(1e-2, 1e-4)).hits.mean()
    assert known > 0.9
    assert abs(fresh - 0.5) < 0.06


def test_permuted_labels_are_the_same_ones_elsewhere():
    values = [str(each % 7) for each in range(700)]
    moved = permuted_labels(values)
    assert Counter(moved) == Counter(values)
    assert np.mean([one == other for one, other in zip(moved, values, strict=True)]) < 0.25


def test_the_majority_is_the_most_frequent_class_or_the_mean():
    np.testing.assert_array_equal(majority(Target(torch.tensor([2, 0, 2, 1, 2]), 3)), [[1, 0, 1, 0, 1]])
    np.testing.assert_allclose(majority(Target(torch.tensor([1.0, 2.0, 6.0]), 0)), [[4, 1, 9]])


def test_positions_have_an_axis_each_up_to_a_number():
    few = position_features(np.array([3, 3, 7, 9]))[0]
    np.testing.assert_array_equal(few, [[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    many = position_features(np.arange(500))[0]
    assert many.shape[1] <= 64
    assert many.sum(0).min() >= 4
    assert (many.sum(1) == 1).all()


def test_the_untrained_model_has_the_shape_and_other_weights():
    model = interp.load_model()
    twin = untrained(model)
    assert twin.config == model.config
    assert not torch.equal(twin.W_Q, model.W_Q)
    assert untrained(object()) is None
