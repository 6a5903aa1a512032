"""Ridge and LDA, all folds and penalties at once, are scikit-learn's, one by one."""

import numpy as np
import pytest
import torch
from clouds import cloud, five_folds
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import Ridge, RidgeClassifier

from interp.methods.probes.data import Target
from interp.methods.probes.linear import Problems, fit_lda, fit_ridge


def compared(found, problems, points, labels, alone):
    """The largest difference of weights and biases to what `alone` makes of each problem."""
    worst = 0.0
    for number in range(problems.n):
        train = problems.trains_on[number][problems.atom].numpy()
        fitted = alone(float(problems.penalty[0, number])).fit(points.numpy()[train], labels.numpy()[train])
        weight, bias = np.atleast_2d(fitted.coef_), np.atleast_1d(fitted.intercept_)
        worst = max(worst, np.abs(found.weight[0, number].T.numpy() - weight).max())
        worst = max(worst, np.abs(found.bias[0, number].numpy() - bias).max())
    return worst


@pytest.mark.parametrize("k", [2, 4])
def test_lda(k):
    points, classes = cloud(k=k)
    problems = five_folds(len(points), [0.0, 0.1, 1.0])
    found = fit_lda(points[None], Target(classes, k), problems)

    def alone(share):
        return LinearDiscriminantAnalysis(solver="lsqr", shrinkage=share)

    assert compared(found, problems, points, classes, alone) < 1e-8


@pytest.mark.parametrize("k", [2, 4])
def test_ridge_on_classes(k):
    points, classes = cloud(k=k)
    problems = five_folds(len(points), [1e-2, 1.0, 1e3])
    found = fit_ridge(points[None], Target(classes, k), problems)
    assert compared(found, problems, points, classes, lambda alpha: RidgeClassifier(alpha=alpha)) < 1e-8


def test_ridge_on_numbers():
    points, classes = cloud()
    numbers = points[:, 0] + 3.0 * classes + 5
    problems = five_folds(len(points), [1e-2, 1.0, 1e3])
    found = fit_ridge(points[None], Target(numbers, 0), problems)
    assert compared(found, problems, points, numbers, lambda alpha: Ridge(alpha=alpha)) < 1e-8


def test_features_that_say_the_same_have_the_solution_of_least_norm():
    points, classes = cloud()
    twice = torch.cat([points, points], dim=1)
    found = fit_lda(twice[None], Target(classes, 2), five_folds(len(points), [0.0]))
    once = fit_lda(points[None], Target(classes, 2), five_folds(len(points), [0.0]))
    np.testing.assert_allclose(found.scores(twice[None]), once.scores(points[None]), atol=1e-6)


def test_lda_never_says_a_class_that_it_has_not_seen():
    points, classes = cloud(k=3)
    atom = (classes == 2).long()
    problems = Problems(atom, torch.tensor([[True, False]]), torch.full((1, 1), 0.1, dtype=torch.float64))
    hits = Target(classes, 3).hits(fit_lda(points[None], Target(classes, 3), problems).scores(points[None]))
    assert not hits[0, atom == 1].any()
    assert hits[0, atom == 0].double().mean() > 0.5
