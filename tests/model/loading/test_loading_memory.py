"""Where a model is loaded to, and how much memory that takes."""

import json
import os
import subprocess
import sys

import pytest
import torch
from refusals import refused
from safetensors.torch import save_file

from interp.errors import ConfigError
from interp.model.loading import load_model


class TestDeviceAndDtype:
    @pytest.mark.parametrize("device", ["cuda", "cuda:9"])
    def test_no_cuda(self, gpt2, device, monkeypatch):
        monkeypatch.setattr("torch.cuda.is_available", lambda: False)
        refused(gpt2, f"device: '{device}' was asked for, but PyTorch sees no CUDA", ConfigError, device=device)

    def test_not_that_many(self, gpt2, monkeypatch):
        monkeypatch.setattr("torch.cuda.is_available", lambda: True)
        monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
        for device in ("cuda:2", "cuda:9"):
            message = f"device: '{device}' was asked for, but there are 2 CUDA devices, from 0"
            refused(gpt2, message, ConfigError, device=device)

    @pytest.mark.parametrize("device", ["tpu", "mps", "meta", "", "cpu:x", "cuda:-1"])
    def test_unknown_device(self, gpt2, device):
        refused(gpt2, f"device: expected cpu, cuda, cuda:N or auto, got '{device}'", ConfigError, device=device)

    @pytest.mark.parametrize("dtype", ["float8", "fp32", torch.int64, torch.complex64])
    def test_unknown_dtype(self, gpt2, dtype):
        message = f"dtype: expected one of float64, float32, bfloat16, float16, got {dtype!r}"
        refused(gpt2, message, ConfigError, dtype=dtype)

    def test_mistakes_are_found_before_anything_is_read(self, tmp_path):
        refused(tmp_path / "nowhere", "dtype: expected one of", ConfigError, dtype="half")

    def test_defaults(self, gpt2, monkeypatch):
        monkeypatch.setattr("torch.cuda.is_available", lambda: False)
        for device in (None, "auto", "cpu", torch.device("cpu")):
            model = load_model(gpt2, device=device)
            assert (model.W_E.device.type, model.W_E.dtype) == ("cpu", torch.float32)


MEGABYTE = 2**20
SCRIPT = """if True:
    import json, re, sys, threading
    import torch
    from transformers import AutoConfig
    from interp.model.loading import load_model
    torch.set_num_threads(1)

    def held():
        with open("/proc/self/status") as file:
            return int(re.search(r"RssAnon:\\s+(\\d+) kB", file.read())[1]) * 1024

    load_model()  # what the first model of all needs
    AutoConfig.for_model("llama")  # and the first of transformers'
    before, peak, done = held(), 0, threading.Event()

    def watch():
        global peak
        while not done.wait(0.0005):
            peak = max(peak, held())

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    model = load_model(sys.argv[1], dtype=sys.argv[2])
    done.set()
    watcher.join()
    size = sum(parameter.nbytes for parameter in model.parameters())
    print(json.dumps({"size": size, "peak": peak - before, "after": held() - before}))
"""
D, LAYERS, VOCABULARY = 1024, 6, 2048
CONFIG = {
    "model_type": "llama",
    "hidden_size": D,
    "intermediate_size": D,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 8,
    "vocab_size": VOCABULARY,
    "tie_word_embeddings": True,
}


def weights():
    """About 180 MB in matrices of 4 MB, and an embedding of 8 MB."""
    shapes = {"model.embed_tokens.weight": (VOCABULARY, D), "model.norm.weight": (D,)}
    for layer in range(LAYERS):
        body = f"model.layers.{layer}"
        shapes |= {f"{body}.self_attn.{name}_proj.weight": (D, D) for name in "qkvo"}
        shapes |= {f"{body}.mlp.{name}_proj.weight": (D, D) for name in ("gate", "up", "down")}
        shapes |= {f"{body}.{name}_layernorm.weight": (D,) for name in ("input", "post_attention")}
    return {name: torch.full(shape, 0.01) for name, shape in shapes.items()}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """The same checkpoint in one file, in two shards, and in a PyTorch file."""
    state = weights()
    halves = [dict(list(state.items())[::2]), dict(list(state.items())[1::2])]
    made = {kind: tmp_path_factory.mktemp(kind) for kind in ("one", "shards", "pytorch")}
    for folder in made.values():
        (folder / "config.json").write_text(json.dumps(CONFIG))
    save_file(state, made["one"] / "model.safetensors")
    for number, half in enumerate(halves):
        save_file(half, made["shards"] / f"{number}.safetensors")
    index = {name: f"{number}.safetensors" for number, half in enumerate(halves) for name in half}
    (made["shards"] / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
    torch.save(state, made["pytorch"] / "pytorch_model.bin")
    return made


@pytest.mark.skipif(sys.platform != "linux", reason="reads Linux' account of memory")
@pytest.mark.parametrize(
    ("kind", "dtype", "size"),
    [
        pytest.param("one", "float16", 88, marks=pytest.mark.slow),
        ("shards", "float32", 176),
        pytest.param("pytorch", "bfloat16", 88, marks=pytest.mark.slow),
    ],
)
def test_at_most_the_model_and_one_tensor(folders, kind, dtype, size):
    command = [sys.executable, "-c", SCRIPT, str(folders[kind]), dtype]
    env = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "131072"}  # what is given back is not kept for later
    got = json.loads(subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout)
    assert size * MEGABYTE <= got["size"] <= (size + 1) * MEGABYTE
    assert got["size"] <= got["after"] + 4 * MEGABYTE  # it is in memory, and not in a file
    assert got["peak"] <= got["size"] + 12 * MEGABYTE, got
