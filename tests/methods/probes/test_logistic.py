"""All probes of a batch are at the optimum that scikit-learn finds for each by itself."""

import numpy as np
import pytest
import torch
from clouds import cloud, five_folds, only
from sklearn.linear_model import LogisticRegression

from interp.methods.probes import linear
from interp.methods.probes.data import Target
from interp.methods.probes.linear import Problems, fit_logistic

PENALTIES = [1e3, 1e1, 1e-1]


@pytest.mark.parametrize("k", [2, 4])
def test_every_probe_is_where_newton_s_method_ends(k):
    points, classes = cloud(k=k)
    problems = five_folds(len(points), PENALTIES)
    found = fit_logistic(points[None], Target(classes, k), problems)
    assert found.converged.all()
    for number in range(problems.n):
        train = problems.trains_on[number][problems.atom].numpy()
        alone = LogisticRegression(C=1 / float(problems.penalty[0, number]), solver="newton-cholesky", tol=1e-12)
        alone.fit(points.numpy()[train], classes.numpy()[train])
        np.testing.assert_allclose(found.weight[0, number].T.numpy(), alone.coef_, atol=1e-3)
        np.testing.assert_allclose(found.bias[0, number].numpy(), alone.intercept_, atol=1e-3)
        scores = found.scores(points[None])[0, :, :, number].numpy()
        guesses = (scores[:, 0] > 0).astype(int) if k == 2 else scores.argmax(1)
        assert abs((guesses == alone.predict(points.numpy())).mean() - 1) <= 0.005


def test_cells_and_probes_do_not_disturb_each_other():
    points, classes = cloud(k=3)
    other, _ = cloud(k=3, seed=1, decay=1.0)
    problems = five_folds(len(points), PENALTIES)
    together = fit_logistic(torch.stack([points, other]), Target(classes, 3), problems)
    for cell, each in enumerate((points, other)):
        for number in (0, 7, 14):
            alone = fit_logistic(each[None], Target(classes, 3), only(problems, number))
            np.testing.assert_allclose(together.weight[cell, number], alone.weight[0, 0], atol=1e-4)


def test_what_can_be_told_apart_exactly_still_has_an_end():
    points = torch.randn(200, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    classes = (points[:, 0] > 0).long()
    problems = five_folds(200, [1e-4])
    found = fit_logistic(points[None], Target(classes, 2), problems)
    assert found.converged.all()
    assert Target(classes, 2).hits(found.scores(points[None]))[0][problems.mask() > 0].all()


@pytest.mark.parametrize("k", [2, 3])
def test_a_class_that_is_not_trained_on_is_never_said(k):
    points, classes = cloud(k=k)
    atom = (classes == k - 1).long()
    problems = Problems(atom, torch.tensor([[True, False]]), torch.ones(1, 1, dtype=torch.float64))
    found = fit_logistic(points[None], Target(classes, k), problems)
    assert found.converged.all()
    hits = Target(classes, k).hits(found.scores(points[None]))[0, :, 0]
    assert not hits[atom == 1].any()
    assert hits[atom == 0].any()


def test_a_probe_that_has_no_time_says_so():
    points, classes = cloud()
    found = fit_logistic(points[None], Target(classes, 2), five_folds(len(points), [1e-3]), most_steps=2)
    assert not found.converged.any()
    assert torch.isfinite(found.weight).all()
    assert found.weight.abs().sum() > 0


@pytest.mark.gpu
def test_a_gpu_finds_the_same():
    points, classes = cloud(k=3)
    problems = five_folds(len(points), PENALTIES)
    here = fit_logistic(points[None], Target(classes, 3), problems)
    there = fit_logistic(
        points[None].cuda(),
        Target(classes.cuda(), 3),
        Problems(problems.atom.cuda(), problems.trains_on.cuda(), problems.penalty.cuda()),
    )
    np.testing.assert_allclose(there.weight.cpu(), here.weight, atol=1e-4)


def test_steps_that_nobody_looks_at_come_to_the_same_end(monkeypatch):
    """As a GPU makes them: of penalties as small as these, some steps are too long."""
    points, classes = cloud(80, 60, decay=0.05)
    problems, target = five_folds(80, [1e-4, 1e-6, 1e-8]), Target(classes, 2)
    expected = fit_logistic(points[None], target, problems).scores(points[None])
    monkeypatch.setattr(linear, "steps_unseen", lambda device: 10)
    found = fit_logistic(points[None], target, problems)
    assert found.converged.all()
    torch.testing.assert_close(found.scores(points[None]), expected, rtol=1e-4, atol=1e-4)
