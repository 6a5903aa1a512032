"""What the model or the sweep does not have is refused by its name, and what the message advises works."""

import re

import pytest
from random_tasks import random_task
from tiny_models import random_model

import interp
from interp.errors import InputError
from interp.interventions.intervention import Cell, Intervention
from interp.interventions.reference_set import make_replacement
from interp.interventions.replacement import Erase, Eraser, Patch, Zero
from interp.interventions.sweep import Sweep
from interp.methods.ablation import as_measured
from interp.methods.attribution import attribute
from interp.methods.erasure.erase import erase
from interp.model.sites import Site
from interp.options import MetricName

OF_MLPS = ("resid_mid", "mlp_in", "mlp_pre", "mlp_post", "mlp_out")


@pytest.fixture(scope="module")
def attention_alone():
    return random_model(d_mlp=0)


@pytest.fixture(scope="module")
def model():
    return random_model()


@pytest.fixture(scope="module")
def task():
    return random_task()


def swept(model, task, site, replacement, **options):
    cell = Cell({"layer": site.layer}, (Intervention(site, replacement),))
    return Sweep([cell]).run(model, task, **options)


WAYS_IN = {
    "sweep": lambda model, task, site: swept(model, task, Site(site, 1), Zero()),
    "plain sweep": lambda model, task, site: swept(model, task, Site(site, 1), Zero(), plainly=True),
    "patch": lambda model, task, site: interp.patch(model, task, site=site, by=("layer",)),
    "screen": lambda model, task, site: interp.patch(model, task, site=site, by=("layer",), screen=True),
    "attribute": lambda model, task, site: attribute(model, task, site=site, by=("layer",)),
    "zero": lambda model, task, site: interp.ablate(model, task, site=site, by=("layer",), replacement="zero"),
    "mean": lambda model, task, site: interp.ablate(model, task, site=site, by=("layer",), replacement="mean"),
    "resample": lambda model, task, site: interp.ablate(model, task, site=site, by=("layer",), replacement="resample"),
}


@pytest.mark.parametrize("site", OF_MLPS)
@pytest.mark.parametrize("way", WAYS_IN)
def test_sites_of_an_mlp_are_refused_where_there_is_none(attention_alone, task, way, site):
    message = rf"site '{site}': expected one that the model has, got blocks\.\d\.\S+, which it does not have; choose"
    with pytest.raises(InputError, match=message):
        WAYS_IN[way](attention_alone, task, site)


def test_the_sites_that_are_named_can_be_changed(attention_alone, task):
    with pytest.raises(InputError) as caught:
        interp.ablate(attention_alone, task, site="mlp_out", replacement="zero")
    named = str(caught.value).partition("choose among ")[2].split(", ")
    assert {"resid_pre", "resid_post", "attn_out", "z"} <= set(named)
    assert not set(OF_MLPS) & set(named)
    for site in named:
        for plainly in (False, True):
            swept(attention_alone, task, Site(site, 1), Zero(), plainly=plainly)


@pytest.mark.parametrize("site", ["mlp_pre", "mlp_post"])
def test_neurons_of_a_model_of_attention_alone(attention_alone, task, site):
    with pytest.raises(InputError, match=f"site '{site}': expected one that the model has"):
        interp.patch(attention_alone, task, site=site, by=("layer", "neuron"))


@pytest.mark.parametrize("components", ["mlps", "neurons"])
def test_components_of_a_model_of_attention_alone(attention_alone, task, components):
    with pytest.raises(
        InputError, match=f"expected 'heads', since the model is of attention alone, got '{components}'"
    ):
        interp.ablate(attention_alone, task, components=components)


@pytest.fixture(scope="module")
def reading():
    """A model of attention alone that reads English, and a task with a feature to probe and erase."""
    default = interp.load_model()
    fields = {"n_layers": 1, "n_heads": 1, "d_model": 8, "d_head": 8, "d_mlp": 0, "n_ctx": default.cfg.n_ctx}
    model = random_model(tokenizer=default.tokenizer, **fields)
    return model, interp.load_task("agreement", n=24, tokenizer=model.tokenizer, n_ctx=model.cfg.n_ctx)


@pytest.mark.parametrize("site", ["resid_mid", "mlp_post", "mlp_out"])
def test_what_a_model_of_attention_alone_lacks_is_not_probed(reading, site):
    with pytest.raises(InputError, match=rf"site '{site}': expected one that the model has.*among embed, pos_embed"):
        interp.probe(*reading, "number", site=site)


@pytest.mark.parametrize("site", ["resid_mid", "mlp_out"])
def test_what_a_model_of_attention_alone_lacks_is_not_erased_at(reading, site):
    with pytest.raises(InputError, match=rf"site '{site}': .* choose among z, resid_pre, resid_post, attn_out$"):
        erase(*reading, "number", site=site)


METRICS: list[MetricName] = ["logit_difference", "sentence_log_probability", "probability", "kl_divergence"]


@pytest.mark.parametrize("own", ["logit_difference", "sentence_log_probability"])
@pytest.mark.parametrize("metric", [*METRICS, "accuracy"])
@pytest.mark.parametrize("kind", ["zero", "mean", "positional_mean", "resample"])
@pytest.mark.parametrize("plainly", [False, True])
def test_a_replacement_that_was_made_for_another_metrics_rows(model, own, metric, kind, plainly):
    """It is refused, or fits; and what the message advises gives what ``ablate`` gives."""
    task, site = random_task(metric=own), Site("z", 0)
    other_rows = (own == "sentence_log_probability") != (metric == "sentence_log_probability") and metric != "accuracy"
    if other_rows and kind in ("positional_mean", "resample"):
        advice = re.escape(f"runs it: interp.methods.ablation.as_measured(task, {metric!r})")
        message = (
            rf"{kind}: nothing was made for blocks\.0\.attn\.hook_z of rows such as .* tokens are run\); .*{advice}"
        )
        with pytest.raises(InputError, match=message):
            swept(model, task, site, make_replacement(kind, model, task, sites=[site]), metric=metric, plainly=plainly)
    made = make_replacement(kind, model, as_measured(task, metric), sites=[site])
    found = swept(model, task, site, made, metric=metric, plainly=plainly)
    expected = interp.ablate(model, task, site="z", by=("layer",), layers=[0], replacement=kind, metric=metric)
    assert found.examples["value"].tolist() == pytest.approx(expected.examples["value"].tolist(), rel=1e-9)


@pytest.mark.parametrize("kind", ["mean", "positional_mean", "resample", "patch", "erase"])
def test_a_replacement_that_was_made_for_another_site(model, task, kind):
    site, other = Site("resid_pre", 0), Site("resid_post", 1)
    if kind == "patch":
        made, how = Patch(model, (site,)), {"direction": "denoise"}
    elif kind == "erase":
        made, how = Erase.of(model, {(0, site): [[Eraser.nothing(model.cfg.d_model)]]}), {}
    else:
        made, how = make_replacement(kind, model, task, sites=[site]), {}
    with pytest.raises(InputError, match=rf"{kind}: nothing was made for blocks\.1\.hook_resid_post of rows such as"):
        swept(model, task, other, made, **how)


def test_a_replacement_that_was_made_for_other_examples(model, task):
    made = make_replacement("resample", model, random_task(lengths=(6,)), sites=[Site("z", 0)])
    with pytest.raises(InputError, match="resample: nothing was made for"):
        swept(model, task, Site("z", 0), made)
