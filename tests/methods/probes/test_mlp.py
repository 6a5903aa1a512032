"""An MLP reads what no linear probe can, stops by itself, and does not depend on who is trained with it."""

import numpy as np
import torch
from clouds import cloud, five_folds, only

from interp.methods.probes.data import Target
from interp.methods.probes.linear import fit_logistic
from interp.methods.probes.mlp import fit_mlp


def crossed(n=800, seed=0):
    """Points whose class is whether their first two numbers have the same sign."""
    points = torch.randn(n, 4, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return points, (points[:, 0] * points[:, 1] > 0).long()


def accuracy(probes, points, target, problems):
    hits = target.hits(probes.scores(points[None]))[0].double()
    tested = 1 - problems.mask()
    return ((hits * tested).sum(0) / tested.sum(0)).numpy()


def test_it_reads_an_exclusive_or_where_a_linear_probe_is_at_chance():
    points, classes = crossed()
    target, problems = Target(classes, 2), five_folds(len(points), [1e-4])
    assert accuracy(fit_logistic(points[None], target, problems), points, target, problems).max() < 0.6
    found = fit_mlp(points[None], target, problems)
    assert accuracy(found, points, target, problems).min() > 0.9
    assert found.n_epochs > 1


def test_the_scale_of_the_points_does_not_matter():
    points, classes = crossed(400)
    target, problems = Target(classes, 2), five_folds(400, [1e-4])
    one = fit_mlp(points[None], target, problems, most_epochs=5)
    other = fit_mlp(1e4 * points[None] + 7e4, target, problems, most_epochs=5)
    np.testing.assert_allclose(one.scores(points[None]), other.scores(1e4 * points[None] + 7e4), atol=0.02)


def test_probes_stop_one_by_one_and_alone_they_are_the_same():
    points, classes = cloud(n=300, k=3)
    problems = five_folds(300, [1e-4, 10.0])
    together = fit_mlp(points[None], Target(classes, 3), problems, most_epochs=60)
    for number in (0, 5, 9):
        alone = fit_mlp(points[None], Target(classes, 3), only(problems, number), most_epochs=60)
        np.testing.assert_allclose(
            together.scores(points[None])[..., number], alone.scores(points[None])[..., 0], atol=1e-3
        )


def test_its_best_epoch_is_kept_not_its_last():
    """On labels of chance every epoch after the first ones makes the deciding examples' loss larger."""
    points = torch.randn(200, 20, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    classes = torch.arange(200) % 2
    found = fit_mlp(points[None], Target(classes, 2), five_folds(200, [0.0]))
    assert found.converged.all()
    assert Target(classes, 2).hits(found.scores(points[None])).double().mean() < 0.9
