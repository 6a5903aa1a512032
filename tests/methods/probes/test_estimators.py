"""The probes are estimators as scikit-learn wants them, and give what its own do."""

import numpy as np
import pytest
from clouds import cloud
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from interp.methods.probes.estimators import LDAProbe, LogisticProbe, MLPProbe, RidgeClassifierProbe, RidgeProbe


@parametrize_with_checks([LogisticProbe(), RidgeClassifierProbe(), LDAProbe(), RidgeProbe(), MLPProbe(hidden=16)])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_s_own_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (LogisticProbe(C=0.5), LogisticRegression(C=0.5, tol=1e-10, max_iter=10_000)),
        (RidgeClassifierProbe(alpha=3.0), RidgeClassifier(alpha=3.0)),
        (LDAProbe(shrinkage=0.2), LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.2)),
    ],
    ids=["logistic", "ridge", "lda"],
)
def test_classes_weights_and_accuracy_are_scikit_learn_s(k, ours, theirs):
    points, classes = cloud(k=k)
    names = np.array(["noun", "verb", "adverb", "none"])[classes.numpy()]
    mine, other = clone(ours).fit(points.numpy(), names), clone(theirs).fit(points.numpy(), names)
    np.testing.assert_allclose(mine.coef_, np.atleast_2d(other.coef_), atol=1e-3)
    np.testing.assert_allclose(mine.intercept_, other.intercept_, atol=1e-3)
    fresh, _ = cloud(k=k, seed=5)
    assert (mine.predict(fresh.numpy()) == other.predict(fresh.numpy())).mean() >= 0.995
    if hasattr(mine, "predict_proba"):
        np.testing.assert_allclose(mine.predict_proba(fresh.numpy()), other.predict_proba(fresh.numpy()), atol=1e-3)


def test_numbers_are_scikit_learn_s():
    points, _ = cloud()
    numbers = points[:, 0].numpy() ** 2
    mine, other = RidgeProbe(alpha=2.0).fit(points.numpy(), numbers), Ridge(alpha=2.0).fit(points.numpy(), numbers)
    np.testing.assert_allclose(mine.predict(points.numpy()), other.predict(points.numpy()), atol=1e-8)


@pytest.mark.parametrize("probe", [LogisticProbe(), RidgeProbe(), LDAProbe(), MLPProbe()])
def test_who_is_not_fitted_says_so(probe):
    with pytest.raises(NotFittedError):
        probe.predict(np.zeros((2, 3)))


@pytest.mark.parametrize(
    ("probe", "name"),
    [(LogisticProbe(C=0.0), "C"), (RidgeProbe(alpha=-1.0), "alpha"), (LDAProbe(shrinkage=2.0), "shrinkage")],
)
def test_penalties_out_of_range_are_refused_when_it_is_fitted(probe, name):
    points, classes = cloud(n=40)
    with pytest.raises(ValueError, match=f"{name}.*: expected"):
        probe.fit(points.numpy(), classes.numpy())


def test_one_class_is_none_to_fit():
    with pytest.raises(ValueError, match="one class: 'a'"):
        LogisticProbe().fit(np.random.default_rng(0).normal(size=(4, 2)), ["a"] * 4)


def test_too_few_steps_warn():
    points, classes = cloud()
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        LogisticProbe(C=1e3, max_iter=2).fit(points.numpy(), classes.numpy())
