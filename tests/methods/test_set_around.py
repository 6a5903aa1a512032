"""What torch is told around a call changes nothing that is measured, trained or loaded."""

from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
import torch
from tiny_models import random_model

import interp
from analyses.structural_probe.estimators import DepthProbe
from forerunners.convolution import Convolution, ConvolutionConfig
from forerunners.recurrent import Recurrent, RecurrentConfig
from interp.calibration.random_models import draw
from interp.methods.attribution import attribute
from interp.methods.erasure.erase import erase
from interp.methods.function_heads import function_heads
from interp.model.config import TransformerConfig
from interp.model.training import TrainingConfig, train
from interp.model.transformer import HookedTransformer
from interp.residual.circuits import composition_scores, copying_scores, looks_for, ov_circuit
from interp.residual.logit_lens import logit_lens
from interp.residual.tuned_lens import compare_lenses, train_tuned_lens
from interp.tasks import agreement
from interp.tasks.generated_corpus import linked_documents

pytestmark = pytest.mark.unchecked

ROWS = [[0, *range(first, first + 7)] for first in (3, 20, 40, 60)]
TEXTS = ["The keys to the cabinet", "The key"]


@contextmanager
def everything_set():
    torch.set_default_device("meta")
    try:
        with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16):
            yield
    finally:
        torch.set_default_device(None)


@cache
def task_of(n=8):
    model = interp.load_model()
    task = interp.load_task("agreement", n=n, tokenizer=model.tokenizer, n_ctx=model.cfg.n_ctx)
    return replace(task, references=tuple(each[:32] for each in task.references))


def corpus():
    return list(linked_documents(agreement.pairs(12, seed=0)))


def trained(precision):
    def run(model):
        model = interp.fold_layer_norm(model)
        config = TrainingConfig(steps=3, batch_size=1, warmup_steps=0, precision=precision)
        return train(model, ROWS, config, held_out=ROWS[3:]), model.hash

    return run


def attributed(model):
    stream = interp.residual_stream(model, TEXTS[0])
    return stream.components, interp.direct_logit_attribution(model, stream, " are", " is")


def probed(kind):
    options = {"heads": [(2, 2)], "penalties": [0.1], "cv": 2, "kind": kind, "description_lengths": False}
    return lambda model: interp.probe(model, task_of(n=40), "number", **options)


def structural(_model):
    generator = np.random.default_rng(0)
    x = [generator.normal(size=(n, 4)) for n in (3, 4, 5, 4)]
    probe = DepthProbe(2, max_epochs=2).fit(x, [np.arange(len(each)) for each in x])
    return probe.projection_, probe.predict(x)


def tuned(model):
    lens = train_tuned_lens(model, torch.tensor(ROWS, device="cpu"), steps=2, batch_size=2)
    return lens.W, compare_lenses(model, TEXTS[0], lens)


MEASURED = {
    "load_task": lambda model: interp.load_task("agreement", n=4, tokenizer=model.tokenizer).units,
    "ablate": lambda model: interp.ablate(model, task_of(), heads=[(2, 2), (0, 0)]),
    "probe": lambda model: interp.probe(model, task_of(n=40), "number", heads=[(2, 2)], penalties=[0.1], cv=2),
    "LDA": probed("lda"),
    "ridge": probed("ridge"),
    "MLP": probed("mlp"),
    "attend": lambda model: interp.attend(model, corpus(), ["subject"]),
    "attribute": lambda model: attribute(model, task_of(), by=("layer",)),
    "erase": lambda model: erase(model, task_of(n=4), "number", heads=[(2, 2)], methods=["leace"]),
    "function_heads": lambda model: function_heads(model, n_rows=4),
    "generate": lambda model: model.generate(TEXTS, 5),
    "generate of ids": lambda model: model.generate(torch.tensor(ROWS, device="cpu"), 5, temperature=1.0),
    "generate_stream": lambda model: list(model.generate_stream(TEXTS, 5, max_tokens_per_yield=2)),
    "direct attribution": attributed,
    "logit_lens": lambda model: logit_lens(model, TEXTS[0]),
    "tuned lens": tuned,
    "circuits": lambda model: (ov_circuit(model, 2, 2), copying_scores(model), composition_scores(model)),
    "looks_for": lambda model: looks_for(model, 2, 2, " key"),
    "fold_layer_norm": lambda model: interp.fold_layer_norm(model).hash,
    "text": lambda model: (model.to_string(model.to_tokens(TEXTS)), model.to_string([5, 6]), model.to_str_tokens("a")),
    "train": trained("float32"),
    "train in 16 bits": trained("bfloat16"),
    "draw": lambda _model: draw(3).model().hash,
    "structural": structural,
}


def transformer():
    return HookedTransformer(
        TransformerConfig(n_layers=1, n_heads=2, d_model=8, d_head=4, d_mlp=8, d_vocab=10, n_ctx=8)
    )


def recurrent():
    return Recurrent(RecurrentConfig(n_layers=1, d_model=4, d_vocab=10))


def convolution():
    return Convolution(ConvolutionConfig(n_layers=1, d_model=4, d_vocab=10))


def told(value):
    """What was found, as parts that can be compared to the bit."""
    if isinstance(value, torch.Tensor):
        assert not value.is_inference()
        return [str(value.dtype), value.device.type, value.tolist()]
    if isinstance(value, np.ndarray):
        return [value.tobytes()]
    if isinstance(value, pd.DataFrame):
        return [value.to_csv(), *map(str, value.dtypes)]
    if is_dataclass(value):
        return [told(getattr(value, each.name)) for each in fields(value)]
    if isinstance(value, dict):
        return [(name, told(each)) for name, each in value.items() if name not in ("seconds", "run", "time")]
    if isinstance(value, list | tuple):
        return [told(each) for each in value]
    return [repr(value)]


@pytest.mark.parametrize("what", MEASURED)
def test_measured_alike(what):
    outside = interp.load_model()
    expected = told(MEASURED[what](outside))
    with everything_set():
        within = interp.load_model()
        assert told(MEASURED[what](outside)) == expected
    assert told(MEASURED[what](within)) == expected


@pytest.mark.parametrize("positions", ["learned", "sinusoidal", "rotary", "alibi", "relative", "none"])
def test_a_forward_makes_its_tensors_where_the_model_is(positions):
    model, tokens = random_model(positions=positions, d_head=4), torch.tensor([[1, 2, 3], [4, 5, 6]])
    mask = torch.tensor([[1, 1, 1], [0, 1, 1]])
    expected = model(tokens, attention_mask=mask)
    torch.set_default_device("meta")
    try:
        assert model(tokens, attention_mask=mask).equal(expected)
    finally:
        torch.set_default_device(None)


def test_a_forward_of_the_callers_is_in_the_callers_modes():
    model = interp.load_model()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert model(TEXTS[0]).dtype == torch.bfloat16
    with torch.inference_mode():
        assert model(TEXTS[0]).is_inference()


@pytest.mark.parametrize("make", [transformer, recurrent, convolution])
def test_a_model_made_in_inference_mode_can_be_trained(make):
    with torch.inference_mode():
        model = make()
    model(torch.tensor([[1, 2, 3]]), return_type="loss").backward()
    with torch.device("meta"):
        assert next(make().parameters()).is_meta


def test_the_callers_modes_are_there_afterwards():
    model = interp.load_model()
    with everything_set():
        model.generate(TEXTS, 1)
        assert torch.is_inference_mode_enabled()
        assert torch.is_autocast_enabled("cpu")
        assert torch.zeros(1).is_meta


def test_a_callers_autocast_sees_what_was_trained_meanwhile():
    model = interp.fold_layer_norm(interp.load_model())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        with torch.no_grad():
            model(TEXTS[0])
        train(model, ROWS, TrainingConfig(steps=1, batch_size=1, warmup_steps=0, precision="bfloat16"))
        found = model(TEXTS[0])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert model(TEXTS[0]).equal(found)
