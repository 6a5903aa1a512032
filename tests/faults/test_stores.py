"""What runs leave behind, in a stranger's hands: stores of activations, saved baselines, checkpoints of a training."""

import hashlib
import json

import pytest
import torch
from cases import Reader, try_all
from damage import BYTES, changed, deep, inserted, json_changed, safetensors_header
from random_passages import random_passages
from tiny_models import random_model, word_tokenizer

from forerunners.convolution import Convolution, ConvolutionConfig
from forerunners.ngram import NGramConfig, fit_ngram
from forerunners.recurrent import Bidirectional, Recurrent, RecurrentConfig
from forerunners.saved import load_forerunner, save_forerunner
from interp.errors import LoadError
from interp.model.checkpoints import Training, restore_checkpoint, save_checkpoint
from interp.model.sites import Site
from interp.model.training import TrainingConfig, _make_optimizers
from interp.model.weights import weights_hash
from interp.runs.collecting import collect
from interp.runs.store import ActivationStore

JSON = (*BYTES, inserted, deep, *[json_changed] * 14)
SAFETENSORS = (*BYTES, *[safetensors_header] * 10)
SITES = (Site("embed"), Site("z", 0), Site("resid_post", 1))


def signed_anew(content, rng):
    """Another value in a manifest, and the hash that it then has."""
    fields = json.loads(content)
    del fields["sha256"]
    fields = changed(fields, rng)
    try:
        text = _written(fields)
        return _written({**fields, "sha256": hashlib.sha256(text.encode()).hexdigest()}).encode()
    except (TypeError, UnicodeEncodeError):  # no object any more, or no text
        return json.dumps(fields).encode()


def _written(fields):
    return json.dumps(fields, indent=1, ensure_ascii=False) + "\n"


def store(folder):
    collect(random_model(dtype=torch.float32), random_passages(6), SITES, folder, data_hash="abc", shard_bytes=3_000)


def opened(verify):
    return lambda folder: ActivationStore.open(folder, verify=verify)


def read_all(found):
    assert len(found.index) == found.rows
    for site in found.sites:
        assert len(found.read(site)) == found.rows
        if "head" in site.axes:
            found.read(site, slice(0, 2), heads=[0])


STORE = {
    "manifest.json": (*JSON, *[signed_anew] * 25),
    "index.parquet": BYTES,
    "shard-00000.safetensors": SAFETENSORS,
    "shard-00001.safetensors": SAFETENSORS,
}


def saved(kind, config):
    return lambda folder: save_forerunner(kind(config, word_tokenizer(), name="a"), folder)


def ngram(folder):
    rows = [[0, *(1 + (first + step) % 10 for step in range(7))] for first in range(10)]
    save_forerunner(fit_ngram(rows, NGramConfig(3, 11)), folder)


def predict(model):
    with torch.no_grad():
        assert model(torch.zeros(1, 4, dtype=torch.int64)).shape[-1] == model.config.d_vocab


SIZES = {"n_layers": 2, "d_model": 8, "d_vocab": len(word_tokenizer())}
FORERUNNER = {"config.json": JSON, "model.safetensors": SAFETENSORS}
TRAINING = Training({"steps": 3, "batch_size": 2}, {"seed": 0, "text": None})


def in_training(seed=0):
    model = random_model(dtype=torch.float32, seed=seed)
    return model, _make_optimizers(model, TrainingConfig(1, muon_lr=0.02, adamw_lr=0.001, weight_decay=0.1))


def checkpoint(folder):
    model, optimizers = in_training()
    model(torch.arange(8)[None], "loss").backward()
    for each in optimizers:
        each.step()
    save_checkpoint(folder, model, optimizers, TRAINING, {"train": [1.5, 1.25, 1.0], "held_out": {"2": 1.5}})


def restored(folder):
    """Nothing of the model is changed where the checkpoint is refused."""
    model, optimizers = in_training(seed=1)
    before = weights_hash(model)
    try:
        kept = restore_checkpoint(folder / "step-00000003", model, optimizers, TRAINING)
    except LoadError:
        assert weights_hash(model) == before
        assert not any(each.state for each in optimizers)
        raise
    return model, optimizers, kept


def go_on(found):
    model, optimizers, kept = found
    assert [int(step) for step in kept["held_out"]] == [*map(int, kept["held_out"])]
    for each in optimizers:
        each.zero_grad()
    model(torch.arange(8)[None], "loss").backward()
    for each in optimizers:
        each.step()


STEP = "step-00000003/"
CHECKPOINT = {
    STEP + "training.json": JSON,
    STEP + "config.json": JSON,
    STEP + "model.safetensors": SAFETENSORS,
    STEP + "optimizers.safetensors": SAFETENSORS,
}
READERS = (
    Reader("store", store, opened(True), STORE, LoadError, read_all),
    Reader("store unverified", store, opened(False), STORE, LoadError, read_all),
    Reader("recurrent", saved(Recurrent, RecurrentConfig(**SIZES)), load_forerunner, FORERUNNER, LoadError, predict),
    Reader(
        "bidirectional", saved(Bidirectional, RecurrentConfig(**SIZES)), load_forerunner, FORERUNNER, LoadError, predict
    ),
    Reader(
        "convolution", saved(Convolution, ConvolutionConfig(**SIZES)), load_forerunner, FORERUNNER, LoadError, predict
    ),
    Reader("n-gram", ngram, load_forerunner, FORERUNNER, LoadError, predict),
    Reader("training", checkpoint, restored, CHECKPOINT, LoadError, go_on),
)


@pytest.mark.parametrize("n", [15, pytest.param(120, marks=pytest.mark.slow)])
@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_a_damaged_result_is_refused_or_read_whole(reader, n, tmp_path, record_property):
    record_property("malformed", try_all(reader, n, tmp_path))
