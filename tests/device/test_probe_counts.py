"""Probes of a model on a GPU: few are fitted on the CPU, and more in steps that the host does not wait for."""

import sys
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch
from device.counting import LOG
from device.simulator import SimulatedCuda

import interp
from interp.methods.probes import cross_fitting, linear, mlp, scores
from interp.methods.probes.cross_fitting import PENALTIES, fitted, problems_of
from interp.methods.probes.data import Target
from interp.report.probes_sentences import summarise

pytestmark = [pytest.mark.gpu, pytest.mark.unchecked]

SOLVERS = tuple(f"interp/methods/probes/{name}.py" for name in ("cross_fitting", "linear", "mlp"))
SCORES = "interp/methods/probes/scores.py"


@pytest.fixture(scope="module")
def model():
    with SimulatedCuda():
        yield interp.load_model(device="cuda")


@pytest.fixture
def probed(model, monkeypatch):
    """What is found where fits of so many products are worth a GPU, and each fit's numbers."""

    fit = scores.cross_fit

    def probing(worth, **options):
        fits = []
        monkeypatch.setattr(scores, "WORTH_A_GPU", worth)
        monkeypatch.setattr(scores, "cross_fit", lambda *args, **how: fits.append(fit(*args, **how)) or fits[-1])
        LOG.clear()
        return interp.probe(model, "agreement", n=24, site="z", feature="number", **options), fits

    return probing


def of_solvers():
    """Launches and waits of the lines that fit probes, or give them to a device."""
    launches = sum(n for place, n in LOG.lines.items() if place.startswith((*SOLVERS, SCORES)))
    return launches, sum(n for (_, place), n in LOG.waits.items() if place.startswith((*SOLVERS, SCORES)))


def test_few_are_fitted_on_the_cpu(probed):
    found, _ = probed(scores.WORTH_A_GPU, layers=[1])
    assert not any(place.startswith(SOLVERS) for place in LOG.lines)
    assert LOG.n_launches <= 3300  # reads activations of two models, and makes one of them
    assert LOG.n_waits <= 530
    assert found.provenance["fitted_on"] == "cpu"
    assert any("were fitted on the CPU" in each for each in summarise(found).notes)


def test_products_decide(probed):
    """Of 4 heads, 43 training sets with 5 strengths, 32 features, and 48 words beside them."""
    products = 4 * 43 * 5 * 32 * (48 + 32)
    for worth, where in ((products + 1, "cpu"), (products, "cuda")):
        found, _ = probed(worth, layers=[1], kind="lda", description_lengths=False, permuted_labels=False)
        assert found.provenance["fitted_on"] == where


ALL = {"layers": [1]}
FEW = {"heads": [(2, 2)], "kind": "mlp", "cv": 2, "description_lengths": False, "permuted_labels": False}


@pytest.mark.parametrize(
    ("options", "most_launches", "most_waits"), [(ALL, 53_000, 176), (FEW, 111_000, 300)], ids=["logistic", "mlp"]
)
def test_a_gpu_finds_what_a_cpu_finds(probed, options, most_launches, most_waits):
    expected, on_cpu = probed(sys.maxsize, **options)
    found, on_gpu = probed(0, **options)
    launches, waits = of_solvers()
    assert (expected.provenance["fitted_on"], found.provenance["fitted_on"]) == ("cpu", "cuda")
    assert not any("on the CPU" in each for each in summarise(found).notes)
    pd.testing.assert_frame_equal(found.examples, expected.examples)
    pd.testing.assert_frame_equal(found.cells, expected.cells, rtol=1e-6)
    for own, other in zip(on_gpu, on_cpu, strict=True):
        np.testing.assert_array_equal(own.strength, other.strength)
    assert launches <= most_launches
    assert waits <= most_waits


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


@pytest.mark.parametrize(("width", "n_classes"), [(16, 2), (64, 3), (200, 2)])
@pytest.mark.parametrize("kind", ["logistic", "ridge", "lda", "mlp"])
def test_fits_take_what_they_are_given(monkeypatch, kind, width, n_classes):
    """And what they are expected to take is not far from it: else fewer would be fitted together than could be."""
    budget, seen = 12 << 20 if width < 100 else 100 << 20, []
    fit = cross_fitting.fit

    def watched(*asked):
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        found = fit(*asked)
        seen.append(torch.cuda.max_memory_allocated() - before)
        return found

    monkeypatch.setattr(cross_fitting, "fit", watched)
    monkeypatch.setitem(cross_fitting.SOLVERS, "mlp", partial(mlp.fit_mlp, most_epochs=2))
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 400, width, dtype=torch.float64, generator=generator)
    y = x[0, :, 0] if kind == "ridge" else torch.arange(400) % n_classes
    target, atom = Target(y, 0 if kind == "ridge" else n_classes), torch.arange(400) % 10
    masks = torch.rand(60, 10, generator=generator) < 0.8
    here = (x.to("cuda"), target.to(torch.device("cuda")), atom.to("cuda"), masks.to("cuda"))
    numbers, *_ = next(fitted(kind, *here, PENALTIES, budget))
    assert 0.2 * budget < seen[0] <= budget
    assert 1 < len(numbers) < 60


def test_a_gpu_s_budget_is_larger(separated, monkeypatch):
    monkeypatch.setattr(cross_fitting, "BYTES_AT_ONCE", 1)
    x, target, folds = separated
    apart = folds.trains_on[:: len(PENALTIES)]
    for device, n_at_once in (("cpu", 1), ("cuda", 5)):
        here = (x.to(device), target.to(torch.device(device)), folds.atom.to(device), apart.to(device))
        numbers, *_ = next(fitted("ridge", *here, PENALTIES))
        assert len(numbers) == n_at_once
