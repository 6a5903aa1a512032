"""A metric may be a function of the logits and the example."""

import importlib.util
import json

import numpy as np
import pytest
import torch
from random_tasks import random_task
from tiny_models import random_model

import interp
from interp.errors import InputError
from interp.interventions.metrics import MetricFunction
from interp.methods.attribution import attribute
from interp.methods.head_sets import greedy
from interp.methods.replacements_compared import compare_replacements
from interp.runs.executors import Processes


def surprise(logits, example):
    """Of the right answer, in nats."""
    return -logits.log_softmax(-1)[example.right[0]]


def right_minus_wrong(logits, example):
    return logits[example.right[0]] - logits[example.wrong[0]]


def entropy(logits, _example):
    p = logits.softmax(-1)
    return float(-(p * p.log()).sum())


MODEL = random_model()


def test_it_is_given_the_logits_that_decide_and_the_example():
    task = random_task(3)
    found = interp.ablate(MODEL, task, replacement="zero", metric=surprise)
    base = found.examples.drop_duplicates("example")["base"]
    expected = [-MODEL(torch.tensor([each.prompt]))[0, -1].log_softmax(-1)[each.right[0]] for each in task.examples]
    np.testing.assert_allclose(base, [each.item() for each in expected], rtol=1e-12)
    assert found.provenance["audit"]["largest_difference"] < 1e-10
    assert found.examples["base_correct"].isna().all()


@pytest.mark.parametrize("measure", [interp.ablate, interp.patch])
def test_one_that_is_known_gives_the_known_numbers(measure):
    task = random_task(3)
    own, named = (measure(MODEL, task, metric=each).examples for each in (right_minus_wrong, "logit_difference"))
    np.testing.assert_allclose(own["effect"], named["effect"], rtol=1e-9, atol=1e-12)


def test_answers_of_several_tokens_do_not_stand_in_its_way():
    task = random_task(3, metric="sentence_log_probability", answers=(2, 3))
    assert len(interp.ablate(MODEL, task, replacement="resample", metric=entropy).examples) == 6 * len(task.examples)


@pytest.mark.parametrize("method", [compare_replacements, greedy])
def test_other_methods_take_it(method):
    chosen = {"replacements": ("zero", "mean")} if method is compare_replacements else {"n_heads": 2}
    assert method(MODEL, random_task(3), metric=entropy, **chosen).provenance["metric"].endswith("entropy")


def test_provenance_names_it_with_the_hash_of_its_source(tmp_path):
    found = interp.ablate(MODEL, random_task(3), replacement="zero", metric=surprise).provenance
    assert found["metric"] == f"{__name__}.surprise"
    assert len(found["metric_hash"]) == 64
    other = interp.ablate(MODEL, random_task(3), replacement="zero", metric=entropy).provenance
    assert found["metric_hash"] != other["metric_hash"]
    json.dumps(found)
    interp.ablate(MODEL, random_task(3), replacement="zero", metric=surprise).save(tmp_path / "out")
    assert f"{__name__}.surprise" in (tmp_path / "out" / "report.html").read_text()


def test_what_was_measured_is_found_again_by_its_source(tmp_path):
    def measured(metric):
        interp.ablate(MODEL, random_task(3), replacement="zero", metric=metric, run=tmp_path)
        return len(list(tmp_path.iterdir()))

    assert [measured(each) for each in (surprise, surprise, entropy)] == [1, 1, 2]


METRIC = """
FACTOR = {factor}

def scaled(logit):
    return FACTOR * logit {sign} (0 if logit < 0 else 0 * scaled(-1))

def unused():
    return {unused}

def metric(logits, example):
    return (lambda each: again(each))(logits[example.right[0]])

again = scaled

CLOSED = (lambda factor: lambda logit: factor * logit)(2)

def closed(logits, example):
    return CLOSED(logits[example.right[0]])
"""


def test_the_hash_sees_what_it_uses_of_its_module(tmp_path):
    def module_of(**fields):
        path = tmp_path / f"own_{len(list(tmp_path.iterdir()))}.py"
        path.write_text(METRIC.format(**{"factor": 1, "sign": "+", "unused": 0} | fields))
        spec = importlib.util.spec_from_file_location(path.stem, path)
        spec.loader.exec_module(module := importlib.util.module_from_spec(spec))
        return module

    def hash_of(**fields):
        return MetricFunction(module_of(**fields).metric).source_hash

    with pytest.raises(InputError, match=r"own_0\.closed's CLOSED takes factor from the function around it"):
        MetricFunction(module_of().closed).asked()
    assert hash_of() == hash_of() == hash_of(unused=1)
    assert len({hash_of(), hash_of(factor=2), hash_of(sign="-")}) == 3


def test_what_no_hash_can_tell_is_refused_where_it_would_be_kept(tmp_path):
    token = 3

    def around(logits, example):
        return logits[token]

    assert len(interp.ablate(MODEL, random_task(3), replacement="zero", metric=around).examples)
    with pytest.raises(InputError, match="takes token from the function around it, which no hash"):
        interp.ablate(MODEL, random_task(3), replacement="zero", metric=around, run=tmp_path)


def test_what_the_source_does_not_say_is_refused_or_asked_too(tmp_path):
    def of(default):
        def chosen(logits, example, token=default):
            return logits[token]

        return MetricFunction(chosen)

    assert of(3).asked() == of(3).asked() != of(4).asked()
    with pytest.raises(InputError, match="has no name, and its source is the whole line"):
        interp.ablate(MODEL, random_task(3), replacement="zero", metric=lambda logits, _: logits[0], run=tmp_path)


def test_workers_need_one_that_can_be_imported(tmp_path):
    def first(logits, example):
        return logits[0]

    run = interp.Run(tmp_path, Processes(2))
    with pytest.raises(InputError, match=r"workers: expected what can be sent to another process, got .*first"):
        interp.ablate(MODEL, random_task(3), replacement="zero", metric=first, run=run)


@pytest.mark.parametrize(
    ("metric", "said"),
    [
        (lambda logits, example: "high", r"metric .*<lambda>: expected a number of '0 .*', got 'high'"),
        (lambda logits, example: logits, r"metric .*<lambda>: expected a number of '0 .*', got"),
        (float, r"metric: expected a name, or a function \(logits, example\) -> number"),
        ("surprise", "metric: 'surprise' is unknown"),
    ],
)
def test_what_is_no_metric_is_refused(metric, said):
    with pytest.raises(InputError, match=said):
        interp.ablate(MODEL, random_task(3), replacement="zero", metric=metric)


def test_gradients_and_verdicts_do_not_take_it():
    for asked in (lambda: attribute(MODEL, random_task(3), metric=entropy), lambda: screened(entropy)):
        with pytest.raises(InputError, match=r"metric .*entropy: expected a named one, whose gradients are known"):
            asked()
    with pytest.raises(InputError, match="metric: HeadsOptions has no such option"):
        interp.heads(MODEL, [random_task(3)], metric=entropy)


def screened(metric):
    return interp.patch(MODEL, random_task(3), metric=metric, screen=True)
