"""Loading holds the weights once: in the dtype that was asked for, and one tensor more."""

import json
import os
import subprocess
import sys

import pytest
import torch
from safetensors.torch import save_file

MEGABYTE = 2**20
SCRIPT = """if True:
    import json, re, sys, threading
    import torch
    from interp.model.loading import load_model
    torch.set_num_threads(1)

    def held():
        with open("/proc/self/status") as file:
            return int(re.search(r"RssAnon:\\s+(\\d+) kB", file.read())[1]) * 1024

    load_model()  # what the first model of all needs
    before, peak, done = held(), 0, threading.Event()

    def watch():
        global peak
        while not done.wait(0.0005):
            peak = max(peak, held())

    watcher = threading.Thread(target=watch)
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
