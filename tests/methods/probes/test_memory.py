"""Probes are fitted within a budget, and of more features than examples in the space that the examples span."""

import subprocess
import sys

import pytest
import torch

from interp.methods.probes import linear
from interp.methods.probes.cross_fitting import PENALTIES, fit, fitted, problems_of
from interp.methods.probes.data import Target

N = 40


def problem(width, n_classes=2):
    generator = torch.Generator().manual_seed(width)
    x = torch.randn(2, N, width, generator=generator, dtype=torch.float64)
    y = (x[0, :, 0] + torch.randn(N, generator=generator)).argsort().argsort() * n_classes // N
    atom = torch.arange(N) % 5
    return x, Target(y, n_classes), atom, ~torch.eye(5, dtype=torch.bool)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kind", ["logistic", "ridge", "lda"])
@pytest.mark.parametrize("width", [6, 60])
def test_scores_are_those_of_the_features_as_they_are(monkeypatch, kind, width, n_classes):
    monkeypatch.setattr(linear, "TOLERANCE", 1e-9)  # how far a weak penalty lets scores be from the optimum, at 1e-6
    x, target, atom, masks = problem(width, n_classes)
    ((numbers, _, scores, _),) = fitted(kind, x, target, atom, masks, PENALTIES)
    assert list(numbers) == list(range(5))
    whole = fit(kind, x, target, problems_of(atom, masks, PENALTIES)).scores(x)
    torch.testing.assert_close(scores, whole, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("kind", ["logistic", "ridge", "lda", "mlp"])
def test_a_small_budget_fits_one_training_set_after_the_other_to_the_same_scores(kind):
    x, target, atom, masks = problem(20)
    parts = list(fitted(kind, x, target, atom, masks, PENALTIES, memory_budget=1))
    assert [list(numbers) for numbers, *_ in parts] == [[each] for each in range(5)]
    ((_, _, whole, _),) = fitted(kind, x, target, atom, masks, PENALTIES)
    torch.testing.assert_close(torch.cat([scores for _, _, scores, _ in parts], dim=3), whole, rtol=1e-5, atol=1e-4)


ON_TWO_THREADS = """
import torch
from interp.methods.probes import linear
from interp.methods.probes.cross_fitting import PENALTIES, fit, problems_of
from interp.methods.probes.data import Target

torch.set_num_threads(2)
x, y = torch.randn(2, 400, 200, generator=torch.Generator().manual_seed(0)).double(), torch.arange(400) % 2
folds = problems_of(torch.arange(400) % 5, ~torch.eye(5, dtype=torch.bool), PENALTIES)
assert fit("logistic", x, Target(y, 2), folds).scores(x).isfinite().all()
"""


def test_wide_features_are_fitted_on_several_threads():
    """Inverses by LU never returned there, from one matrix of a batch on: see the functions that ruff bans."""
    subprocess.run([sys.executable, "-c", ON_TWO_THREADS], timeout=300, check=True)


def test_wide_features_are_fitted_a_few_training_sets_at_a_time():
    """Five strengths of a training set hold 30 tables of features by features, at each of two cells."""
    x, target, atom, masks = problem(30)
    tables = 2 * 5 * 6 * 31**2 * 8 + 2 * 5 * 7 * N * 8
    sizes = [len(numbers) for numbers, *_ in fitted("logistic", x, target, atom, masks, PENALTIES, 2 * tables)]
    assert sizes == [2, 2, 1]
