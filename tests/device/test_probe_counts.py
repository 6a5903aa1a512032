"""Probes on a GPU: steps that the host does not wait for."""

import pytest
import torch
from device.counting import LOG

from interp.methods.probes import linear, mlp
from interp.methods.probes.cross_fitting import PENALTIES, problems_of
from interp.methods.probes.data import Target

pytestmark = [pytest.mark.gpu, pytest.mark.unchecked]


@pytest.fixture
def separated():
    """Points of two classes, told apart by a direction, and which folds are trained on; on the device."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 60, 8, generator=generator, dtype=torch.float64)
    y = (x[0, :, 0] + 0.3 * torch.randn(60, generator=generator) > 0).long()
    folds = problems_of(torch.arange(60, device="cuda") % 5, ~torch.eye(5, dtype=torch.bool).cuda(), PENALTIES)
    return x.cuda(), Target(y.cuda(), 2), folds


@pytest.mark.parametrize(("tolerance", "n_steps"), [(1e-2, 20), (1e-6, 30)])
def test_ten_steps_have_one_wait(separated, monkeypatch, tolerance, n_steps):
    steps, step = [], linear._Descent.step
    monkeypatch.setattr(linear, "TOLERANCE", tolerance)
    monkeypatch.setattr(linear._Descent, "step", lambda self: steps.append(1) or step(self))
    LOG.clear()
    assert linear.fit_logistic(*separated).converged.all().item()
    assert len(steps) == n_steps
    assert LOG.n_waits == 2 + n_steps / 10  # how many examples are of each fold, and this test's own


@pytest.mark.parametrize("most_epochs", [10, 40])
def test_ten_epochs_have_two_waits(separated, most_epochs):
    LOG.clear()
    assert mlp.fit_mlp(*separated, most_epochs=most_epochs).n_epochs == most_epochs
    assert LOG.n_waits == 4 + 2 * most_epochs / 10  # orders and who is left; beside folds, first weights, who decides
