"""The probes as scikit-learn estimators, one at a time: for pipelines, and to compare.

They fit what the batched solvers fit, with scikit-learn's own names for the penalties. What an analysis has to refuse
(a class with one example) ``interp.probe`` refuses; these do what scikit-learn asks of an estimator: constructors store
whatever they are given, ``fit`` looks at it.
"""

import warnings
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from scipy.special import log_softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from interp.methods.probes.data import Target
from interp.methods.probes.folds import Examples, LinearProbes, Problems
from interp.methods.probes.linear import MOST_STEPS, fit_lda, fit_logistic, fit_ridge
from interp.methods.probes.mlp import HIDDEN, MOST_EPOCHS, fit_mlp
from interp.model.devices import ordinary_modes


class _ClassProbe(ClassifierMixin, BaseEstimator):
    """What classifying probes have in common."""

    def predict(self, X: Any) -> np.ndarray:
        """The class of every row with the highest score."""
        scores = self.decision_function(X)
        chosen = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[chosen]

    def decision_function(self, X: Any) -> Float[np.ndarray, "..."]:
        """One score a row for two classes (of the second), else one for each class."""
        check_is_fitted(self)
        x = validate_data(self, X, reset=False, dtype=np.float64)
        scores = self._scores(x)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def _start(self, X: Any, y: Any) -> tuple[Examples, Target]:
        """Checked data, and classes as numbers.

        Raises:
            ValueError: Not finite, not of one length, no classes, or one class only.
        """
        x, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_, numbers = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"expected two classes at least, got one class: {self.classes_.tolist()[0]!r}; give more labels"
            )
        return _rows(x), Target(torch.from_numpy(numbers), len(self.classes_))

    def _scores(self, x: Float[np.ndarray, "example feature"]) -> Float[np.ndarray, "example column"]:
        """By column; scikit-learn's ``coef_`` and ``intercept_`` where the probe is linear."""
        return x @ self.coef_.T + self.intercept_


class _LikelyProbe(_ClassProbe):
    """A classifying probe that has probabilities."""

    def predict_log_proba(self, X: Any) -> Float[np.ndarray, "example class"]:
        """``log p`` of every class."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            scores = np.stack([np.zeros_like(scores), scores], axis=1)
        return log_softmax(scores, axis=1)

    def predict_proba(self, X: Any) -> Float[np.ndarray, "example class"]:
        """The probability of every class."""
        return np.exp(self.predict_log_proba(X))


class LogisticProbe(_LikelyProbe):
    """Multinomial logistic regression with an L2 penalty; see ``logistic.py``.

    Args:
        C: Inverse of the penalty, as of scikit-learn's ``LogisticRegression``.
        max_iter: Most steps.

    Attributes:
        coef_: ``[class, feature]``, one row for two classes.
        intercept_: ``[class]``.
        classes_: In order.
        n_iter_: Steps taken.
    """

    def __init__(self, C: Any = 1.0, max_iter: Any = MOST_STEPS):
        self.C = C
        self.max_iter = max_iter

    @ordinary_modes()
    def fit(self, X: Any, y: Any) -> "LogisticProbe":
        """Fit to rows `X` and their classes `y`; warns where it does not converge.

        Raises:
            ValueError: The data are no numbers or no classes, or `C` is not above 0.
        """
        _require(self.C > 0, "C", "a number above 0", self.C)
        x, target = self._start(X, y)
        probes = fit_logistic(x, target, _one(x, 1 / self.C), most_steps=self.max_iter)
        if not probes.converged.all():
            warnings.warn(
                f"not converged after {self.max_iter} steps; give a larger max_iter", ConvergenceWarning, stacklevel=2
            )
        _keep(self, probes)
        self.n_iter_ = max(1, probes.n_steps)
        return self


class RidgeClassifierProbe(_ClassProbe):
    """Ridge regression on classes as 1 and -1; see ``closed_form.py``.

    Args:
        alpha: The penalty, as of scikit-learn's ``RidgeClassifier``.

    Attributes:
        coef_: ``[class, feature]``, one row for two classes.
        intercept_: ``[class]``.
        classes_: In order.
    """

    def __init__(self, alpha: Any = 1.0):
        self.alpha = alpha

    @ordinary_modes()
    def fit(self, X: Any, y: Any) -> "RidgeClassifierProbe":
        """Fit to rows `X` and their classes `y`.

        Raises:
            ValueError: The data are no numbers or no classes, or `alpha` is below 0.
        """
        _require(self.alpha >= 0, "alpha", "a number of at least 0", self.alpha)
        x, target = self._start(X, y)
        _keep(self, fit_ridge(x, target, _one(x, self.alpha)))
        return self


class LDAProbe(_LikelyProbe):
    """Linear discriminant analysis; see ``closed_form.py``.

    Args:
        shrinkage: Of the covariance, from 0 to 1, as of scikit-learn's ``LinearDiscriminantAnalysis``.

    Attributes:
        coef_: ``[class, feature]``, one row for two classes.
        intercept_: ``[class]``.
        classes_: In order.
    """

    def __init__(self, shrinkage: Any = 0.0):
        self.shrinkage = shrinkage

    @ordinary_modes()
    def fit(self, X: Any, y: Any) -> "LDAProbe":
        """Fit to rows `X` and their classes `y`.

        Raises:
            ValueError: The data are no numbers or no classes, or `shrinkage` is no share.
        """
        _require(0 <= self.shrinkage <= 1, "shrinkage", "a share from 0 to 1", self.shrinkage)
        x, target = self._start(X, y)
        _keep(self, fit_lda(x, target, _one(x, self.shrinkage)))
        return self


class MLPProbe(_LikelyProbe):
    """One hidden layer of ReLUs, stopped early; see ``mlp.py``.

    Args:
        hidden: Units of the hidden layer.
        alpha: Weight decay, as of scikit-learn's ``MLPClassifier``.
        max_iter: Most epochs.
        random_state: Of the first weights and the order of the examples.

    Attributes:
        classes_: In order.
        n_iter_: Epochs taken.
    """

    def __init__(self, hidden: Any = HIDDEN, alpha: Any = 1e-4, max_iter: Any = MOST_EPOCHS, random_state: Any = 0):
        self.hidden = hidden
        self.alpha = alpha
        self.max_iter = max_iter
        self.random_state = random_state

    @ordinary_modes()
    def fit(self, X: Any, y: Any) -> "MLPProbe":
        """Fit to rows `X` and their classes `y`.

        Raises:
            ValueError: The data are no numbers or no classes.
        """
        x, target = self._start(X, y)
        seed = 0 if self.random_state is None else self.random_state
        found = fit_mlp(x, target, _one(x, self.alpha), hidden=self.hidden, most_epochs=self.max_iter, seed=seed)
        # In 32 bits a row's score would depend on which rows stand beside it.
        self._probes, self.n_iter_ = found.double(), found.n_epochs
        return self

    @ordinary_modes()
    def _scores(self, x: Float[np.ndarray, "example feature"]) -> Float[np.ndarray, "example column"]:
        return self._probes.scores(_rows(x))[0, :, :, 0].numpy()


class RidgeProbe(RegressorMixin, BaseEstimator):
    """Ridge regression on numbers; see ``closed_form.py``.

    Args:
        alpha: The penalty, as of scikit-learn's ``Ridge``.

    Attributes:
        coef_: ``[feature]``.
        intercept_: A number.
    """

    def __init__(self, alpha: Any = 1.0):
        self.alpha = alpha

    @ordinary_modes()
    def fit(self, X: Any, y: Any) -> "RidgeProbe":
        """Fit to rows `X` and their numbers `y`.

        Raises:
            ValueError: The data are no numbers, or `alpha` is below 0.
        """
        _require(self.alpha >= 0, "alpha", "a number of at least 0", self.alpha)
        x, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        type_of_target(y)
        rows = _rows(x)
        target = Target(torch.tensor(y, dtype=torch.float64), 0)
        probes = fit_ridge(rows, target, _one(rows, self.alpha))
        self.coef_ = probes.weight[0, 0, :, 0].numpy()
        self.intercept_ = float(probes.bias[0, 0, 0])
        return self

    def predict(self, X: Any) -> Float[np.ndarray, " example"]:
        """The number of every row."""
        check_is_fitted(self)
        return validate_data(self, X, reset=False, dtype=np.float64) @ self.coef_ + self.intercept_


def _rows(x: Float[np.ndarray, "example feature"]) -> Examples:
    """One cell's rows; a copy, because those of others may be read-only."""
    return torch.tensor(x)[None]


def _one(x: Examples, penalty: Any) -> Problems:
    """A single probe that is trained on everything."""
    everything = torch.ones(1, 1, dtype=torch.bool)
    atom = torch.zeros(x.shape[1], dtype=torch.long)
    return Problems(atom, everything, torch.tensor([[float(penalty)]], dtype=torch.float64))


def _keep(estimator: Any, probes: LinearProbes) -> None:
    estimator.coef_ = probes.weight[0, 0].T.numpy()
    estimator.intercept_ = probes.bias[0, 0].numpy()


def _require(fulfilled: bool, name: str, expected: str, got: Any) -> None:
    if not fulfilled:
        raise ValueError(f"{name}: expected {expected}, got {got!r}")
