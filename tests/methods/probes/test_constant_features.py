"""A probe that trains on one template sees one position: features that do not vary there have no say, whatever else."""

import pytest
import torch

from interp.methods.probes.cross_fitting import fit, problems_of
from interp.methods.probes.data import Target

PENALTIES = (1e-4, 1e-2, 1.0)
ATOM = torch.arange(96) % 3
"""The template of each example."""
CLASSES = torch.arange(96) // 3 % 2


def positions(apart, rounding):
    """One of three embeddings of 128 features, by template; the same but for rounding."""
    generator = torch.Generator().manual_seed(0)
    drawn = 1 + apart * torch.randn(3, 128, generator=generator, dtype=torch.float64)
    return drawn[ATOM] * (1 + rounding * torch.randn(96, 128, generator=generator, dtype=torch.float64))


@pytest.mark.parametrize(("apart", "rounding"), [(1.0, 0.0), (1.0, 6e-8), (0.03, 6e-8)])
@pytest.mark.parametrize("kind", ["logistic", "ridge", "lda", "mlp"])
def test_nothing_is_read_where_nothing_varies(kind, apart, rounding):
    x = positions(apart, rounding)[None]
    one, two = torch.eye(3, dtype=torch.bool), ~torch.eye(3, dtype=torch.bool)
    found = fit(kind, x, Target(CLASSES, 2), problems_of(ATOM, torch.cat([one, two]), PENALTIES))
    assert found.converged.all()
    scores = found.scores(x)[0, :, 0, : 3 * len(PENALTIES)]
    assert (scores - scores[:1]).abs().max() <= 1e-6  # the same of each example, trained on or not


@pytest.mark.parametrize("kind", ["logistic", "ridge"])
def test_features_that_do_not_vary_change_nothing(kind):
    generator = torch.Generator().manual_seed(1)
    telling = torch.randn(96, 5, generator=generator, dtype=torch.float64) + CLASSES[:, None]
    constant = torch.tensor([[3.1, -0.7]], dtype=torch.float64).expand(96, -1).clone()
    constant[ATOM == 2] += 1.0  # it varies elsewhere
    trains_on = torch.tensor([[True, True, False]])
    target, strength = Target(CLASSES, 2), (1e-2,)
    fewer = fit(kind, telling[None], target, problems_of(ATOM, trains_on, strength))
    share = telling.shape[1] / (telling.shape[1] + constant.shape[1])  # of the features' mean variance
    both = torch.cat([telling, constant], dim=1)
    more = fit(kind, both[None], target, problems_of(ATOM, trains_on, (strength[0] / share,)))
    torch.testing.assert_close(more.weight[..., :5, :], fewer.weight, atol=1e-5, rtol=1e-5)
    assert more.weight[..., 5:, :].abs().max() == 0
