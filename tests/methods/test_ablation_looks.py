"""What gradients predict of ablations."""

import copy
import dataclasses

import numpy as np
import pytest
from hand_model import HandModel, varied_task
from random_tasks import random_task, relative
from tiny_models import random_model

from interp.interventions.reference_set import make_replacement
from interp.interventions.replacement import Add, Zero
from interp.interventions.sweep import Sweep
from interp.methods.ablation import ablate, choose_components
from interp.methods.ablation_looks import predicted_effects
from interp.model.sites import Site


@pytest.mark.parametrize("name", ["zero", "mean", "template_mean", "positional_mean", "resample"])
def test_ablations_are_estimated_exactly_where_the_metric_is_linear(name):
    task, sites = varied_task(), [Site("z", layer) for layer in range(HandModel().cfg.n_layers)]
    made = make_replacement(name, HandModel(), task, sites=sites, draws=3, seed=1)
    found, zeroed = predicted_effects(HandModel(), task, [made, Zero()])
    exact = ablate(HandModel(), task, replacement=name, draws=3, seed=1).examples
    assert exact["effect"].abs().max() > 0.5
    np.testing.assert_allclose(found[exact["example"], exact["layer"], exact["head"]], exact["effect"], atol=1e-6)
    assert np.allclose(found, zeroed) == (name != "resample")  # the mean of balanced examples is 0


def test_ablations_of_sentences_are_estimated_by_both_continuations():
    model, task = random_model(n_heads=2, d_model=6, d_head=3, d_mlp=4), random_task(lengths=(5, 4, 6), answers=(2, 1))
    task = dataclasses.replace(task, metric="sentence_log_probability")
    (found,) = predicted_effects(model, task, [Zero()])
    unhooked = copy.deepcopy(model)
    nudged = Add(lambda site, batch: -1e-5 * unhooked.run_with_cache(batch.tokens)[1][site.hook_name])
    cells = [each.cell(nudged) for each in choose_components(model)]
    exact = Sweep(cells).run(model, task, plainly=True).examples
    slope = exact["effect"].to_numpy() / 1e-5
    assert np.abs(slope).max() > 1e-3
    assert relative([(found[exact["example"], exact["layer"], exact["head"]], slope)]) < 1e-4
