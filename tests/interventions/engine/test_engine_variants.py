"""The engine gives the plain way's numbers for every architecture: every site, several changes, all metrics."""

import pytest
import torch
from random_tasks import TOLERANCE, change, differences, every_replacement, random_task
from tiny_models import random_model
from variants import VARIANTS, sites_of

from interp.errors import InputError
from interp.interventions.preparing import make_replacement
from interp.interventions.replacement import Zero
from interp.interventions.sweep import Cell, Sweep
from interp.methods.ablation import ablate
from interp.methods.patching import patch
from interp.model.sites import SITES, Site

pytestmark = pytest.mark.unchecked

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
METRICS = ("logit_difference", "probability", "kl_divergence")
every_variant = pytest.mark.parametrize("fields", VARIANTS.values(), ids=VARIANTS.keys())


def numbered(fields):
    return list(VARIANTS.values()).index(fields)


def cells_at_every_site(model, fields, task):
    """A third of all kinds of replacement at each site, other ones in the next variant, at places that change."""
    cells = []
    for number, name in enumerate(sites_of(fields)):
        replacements = every_replacement(model, task, [Site(name, layer) for layer in range(2)], patched=True)
        for turn, replacement in enumerate(replacements.values()):
            if (number + turn + numbered(fields)) % 3:
                continue
            where = {"positions": [None, (2,), (3, 1)][(number + turn) % 3]}
            if "head" in SITES[name][1] and turn % 2:
                where["heads"] = (0,)
            cells.append((change(name, (number + turn) % 2, replacement, **where),))
    return cells


@every_variant
@pytest.mark.parametrize("device", DEVICES)
def test_the_engine_equals_the_reference_at_every_site(fields, device):
    model = random_model(**fields).to(device)
    task = random_task(numbered(fields), lengths=(6, 4, 6))
    cells = cells_at_every_site(model, fields, task)
    direction = ("denoise", "noise")[numbered(fields) % 2]
    found = differences(model, task, cells, direction=direction, metric=METRICS[numbered(fields) % 3])
    assert {name: value for name, value in found.items() if value > TOLERANCE["float64"]} == {}


@every_variant
def test_several_changes_in_one_cell(fields):
    model = random_model(**fields)
    task = random_task(numbered(fields) + 100, lengths=(5, 5, 7))
    sites = sites_of(fields)
    mean = {
        name: make_replacement("positional_mean", model, task, sites=[Site(name, 0), Site(name, 1)]) for name in sites
    }
    cells = [
        (change(one, 0, mean[one], positions=(2,)), change(other, 1, Zero(), positions=(3,)), change("z", 1, mean["z"]))
        for one, other in zip(sites, sites[1:] + sites[:1], strict=True)
        if other != "z"
    ]
    found = differences(model, task, cells)
    assert {name: value for name, value in found.items() if value > TOLERANCE["float64"]} == {}


@every_variant
def test_sweeps_over_heads_and_positions(fields):
    """The public calls, which audit themselves, with every key head as a cell of its own."""
    model, task = random_model(**fields), random_task(1, lengths=(6, 6, 6, 6))
    for site, n_heads in (("z", 4), ("k", fields.get("n_kv_heads") or 4)):
        found = patch(model, task, site=site, by=("layer", "head", "pos"), direction="noise")
        assert len(found.frame.groupby(["layer", "head"])) == 2 * n_heads
        assert (found.frame["status"] == "changed").any()
    assert len(ablate(model, task, components="heads", kind="mean").summary()) == 8


class TestBidirectional:
    """Where attention looks forward, too, a change is felt everywhere."""

    def test_a_change_behind_the_answer_reaches_it(self):
        model = random_model(causal=False)
        task = random_task(3, lengths=(6, 6), metric="sentence_log_probability", answers=(2, 2))
        cells = [Cell({"pos": pos}, (change("resid_pre", 0, Zero(), positions=(pos,)),)) for pos in range(6)]
        frame = Sweep(cells).run(model, task).frame
        assert set(frame["status"]) == {"changed"}
        assert (frame["effect"].abs() > 1e-9).all()

    def test_what_the_source_reads_later_is_patched_in_earlier(self):
        """Behind the first layer, a position before the first token that differs is not the same in both runs."""
        task = random_task(3, lengths=(6, 6))
        for causal, expected in ((False, {"changed"}), (True, {"identical input"})):
            model = random_model(n_layers=2, causal=causal)
            result = patch(model, task, site="resid_pre", by=("layer", "pos"), layers=[1])
            assert set(result.frame[result.frame["pos"] == 0]["status"]) == expected


def test_a_key_head_that_is_not_there_raises():
    model, task = random_model(n_heads=4, n_kv_heads=2), random_task(0)
    with pytest.raises(InputError, match=r"heads: the model has 2 \(0 to 1\), got \(2,\)"):
        Sweep([Cell({"head": 2}, (change("k", 0, Zero(), heads=(2,)),))]).run(model, task)


def test_half_precision_agrees_within_its_own():
    llama = {"positions": "rotary", "d_head": 6, "n_heads": 4, "n_kv_heads": 2, "normalization": "RMS", "gated": True}
    model = random_model(dtype=torch.bfloat16, **llama)
    cells = [(change("z", layer, Zero(), heads=(1,)),) for layer in range(2)]
    assert differences(model, random_task(0), cells)["value"] < 0.05
