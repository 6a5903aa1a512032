"""Every example is scored by a probe that has not seen it, with a penalty chosen without it."""

import numpy as np
import pytest
import torch
from clouds import cloud
from sklearn.linear_model import LogisticRegression

from interp.methods.probes import cross_fitting
from interp.methods.probes.cross_fitting import cross_fit, make_folds
from interp.methods.probes.data import Target


def documents(n, n_documents=30, seed=0):
    return [f"d{each}" for each in np.random.default_rng(seed).integers(n_documents, size=n)]


def plainly(points, classes, folds, penalties):
    """The same, one probe after the other, by scikit-learn."""
    hits, points, classes = np.full(len(points), np.nan), points.numpy(), classes.numpy()

    def fitted(mask, strength):
        train = folds.trains_on[mask][folds.atom]
        x = points[train]
        penalty = strength * len(x) * x.var(axis=0).mean()
        return LogisticRegression(C=1 / penalty, solver="newton-cholesky", tol=1e-10).fit(x, classes[train]), len(x)

    def loss(mask, strength, tests):
        model, n = fitted(mask, strength)
        test, k = np.isin(folds.atom, tests), len(model.classes_)
        p = model.predict_proba(points[test])[np.arange(test.sum()), classes[test]]
        return -np.log(p * n / (n + k) + 1 / (n + k)).sum()

    chosen = []
    for each in folds.rounds:
        strength = min(penalties, key=lambda s: sum(loss(inner.mask, s, inner.test) for inner in each.inner))
        test = np.isin(folds.atom, each.test)
        hits[test] = fitted(each.mask, strength)[0].predict(points[test]) == classes[test]
        chosen.append(strength)
    return hits, chosen


@pytest.mark.parametrize("k", [2, 3])
def test_it_is_what_loops_over_scikit_learn_give(k):
    points, classes = cloud(n=300, k=k, noise=2.0)
    folds, penalties = make_folds(documents(300), None, 4), (1.0, 1e-2, 1e-4)
    found = cross_fit(points[None], Target(classes, k), folds, "logistic", penalties)
    hits, chosen = plainly(points, classes, folds, penalties)
    assert found.strength[0].tolist() == chosen
    assert len(set(chosen)) > 1 or k == 3
    assert (found.hits[0] == hits).mean() >= 0.995
    assert found.n_converged == found.n_probes == 3 * len(folds.trains_on)


@pytest.mark.parametrize("kind", ["logistic", "ridge", "lda", "mlp"])
def test_what_is_there_is_read_and_what_is_not_is_not(kind):
    points, classes = cloud(n=600, noise=0.3)
    chance = torch.from_numpy(np.random.default_rng(0).permutation(classes.numpy()))
    folds = make_folds(documents(600), None, 5)
    penalties = (1e-3,) if kind == "mlp" else (1e-1, 1e-3)
    assert cross_fit(points[None], Target(classes, 2), folds, kind, penalties).hits.mean() > 0.8
    assert abs(cross_fit(points[None], Target(chance, 2), folds, kind, penalties).hits.mean() - 0.5) < 0.1


def test_few_at_once_are_as_all_at_once(monkeypatch):
    points, classes = cloud(n=200, k=3)
    folds = make_folds(documents(200), documents(200, seed=1), 3)
    whole = cross_fit(points[None], Target(classes, 3), folds)
    monkeypatch.setattr(cross_fitting, "BYTES_AT_ONCE", 1)
    parts = cross_fit(points[None], Target(classes, 3), folds)
    np.testing.assert_array_equal(parts.strength, whole.strength)
    np.testing.assert_allclose(parts.loss, whole.loss, atol=1e-4)


def test_numbers_have_errors_and_no_hits():
    points, _ = cloud(n=200)
    numbers = points[:, 0] * 2 + 1
    found = cross_fit(points[None], Target(numbers, 0), make_folds(documents(200), None, 4), "ridge")
    assert np.isnan(found.hits).all()
    assert found.loss.mean() < 1e-3 * float(numbers.var())


def test_the_scale_of_activations_does_not_matter():
    points, classes = cloud(n=300)
    folds = make_folds(documents(300), None, 4)
    one, other = (cross_fit(scale * points[None], Target(classes, 2), folds) for scale in (1.0, 1e-5))
    np.testing.assert_array_equal(one.strength, other.strength)
    np.testing.assert_allclose(one.loss, other.loss, atol=1e-6)


def test_activations_that_are_all_the_same_say_nothing():
    _, classes = cloud(n=200)
    for nothing in (torch.zeros(1, 200, 5), 0.1 + torch.zeros(1, 200, 5)):
        found = cross_fit(nothing.double(), Target(classes, 2), make_folds(documents(200), None, 4))
        assert found.hits.mean() <= max(classes.double().mean(), 1 - classes.double().mean()) + 1e-9
