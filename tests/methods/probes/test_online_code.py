"""The code can be decoded: on labels of chance nobody is below the entropy, and what can be read is sent in less."""

import numpy as np
import pytest
import torch
from clouds import cloud

from interp.methods.probes.data import Target
from interp.methods.probes.scores import description_length, prior_length

pytestmark = pytest.mark.unchecked


@pytest.mark.parametrize(
    ("kind", "k"), [("logistic", 2), ("lda", 2), ("lda", 4), pytest.param("logistic", 4, marks=pytest.mark.slow)]
)
def test_random_balanced_labels_take_at_least_n_log_k_bits(kind, k):
    rng = np.random.default_rng(0)
    points = torch.from_numpy(rng.normal(size=(8, 320, 6)))
    lengths = []
    for seed in range(8):
        classes = torch.from_numpy(rng.permutation(np.arange(320) % k))
        lengths.append(description_length(points, Target(classes, k), kind, seed=seed))
    assert np.mean(lengths) >= 320 * np.log2(k)


def test_labels_that_can_be_read_are_sent_in_less():
    points, classes = cloud(n=800, noise=0.2)
    (found,) = description_length(points[None], Target(classes, 2))
    assert found < 0.6 * min(800, prior_length(np.bincount(classes)))


def test_frequencies_alone_are_as_good_as_they_are_uneven():
    classes = torch.from_numpy((np.random.default_rng(0).random(1000) < 0.05).astype(int))
    points = torch.zeros(1, 1000, 3, dtype=torch.float64)
    (found,) = description_length(points, Target(classes, 2))
    prior = prior_length(np.bincount(classes))
    p = classes.double().mean().item()
    entropy = -1000 * (p * np.log2(p) + (1 - p) * np.log2(1 - p))
    assert entropy < prior < entropy + 10
    assert prior <= found < 1.3 * prior


def test_the_code_of_frequencies_by_hand():
    """Labels 0 0 1: (1/2) (2/3) (1/4), in whatever order."""
    assert prior_length(np.array([2, 1])) == pytest.approx(-np.log2(1 / 2 * 2 / 3 * 1 / 4))
    assert prior_length(np.array([1, 1, 1])) == pytest.approx(-np.log2(1 / 3 * 1 / 4 * 1 / 5))


def test_the_choice_among_penalties_is_paid_for():
    points, classes = cloud(n=400)
    one, same = (
        description_length(points[None], Target(classes, 2), "logistic", each) for each in ((0.1,), (0.1, 0.1))
    )
    assert same == pytest.approx(one + 1)


def test_classes_that_come_late_cost_much_not_everything():
    points, _ = cloud(n=300)
    classes = torch.zeros(300, dtype=torch.long)
    classes[7], classes[200] = 1, 2
    assert np.isfinite(description_length(points[None], Target(classes, 3))).all()
