"""The checkpoints of nanoGPT, both minGPTs and llama2.c, as their own programs write them."""

import json
import struct

import torch
from written_models import GPT, LLAMA, SIZES, Llama2c, drawn

CHARGPT = {"system": {"work_dir": "out"}, "trainer": {"batch_size": 64}}


def nano(**fields):
    return drawn(GPT(**{"tied": True} | SIZES | fields))


def save_nano(folder, module, *, prefix="", **args):
    """What nanoGPT's training writes, optimiser and all."""
    optimizer = torch.optim.AdamW(module.parameters())
    content = {
        "model": {prefix + name: tensor for name, tensor in module.state_dict().items()},
        "optimizer": optimizer.state_dict(),
        "model_args": SIZES | {"dropout": 0.0} | args,
        "iter_num": 2000,
        "best_val_loss": torch.tensor(1.5),
        "config": {"out_dir": "out", "learning_rate": 1e-3},
    }
    torch.save(content, folder / "ckpt.pt")
    return folder / "ckpt.pt"


def save_min(folder, module, **model):
    (folder / "config.json").write_text(json.dumps(CHARGPT | {"model": model}))
    torch.save(module.state_dict(), folder / "model.pt")
    return folder


MAGIC = 0x616B3432


def llama(dtype=torch.float32, **fields):
    return drawn(Llama2c(**LLAMA | fields), dtype=dtype)


def numbers(tensors):
    return b"".join(tensor.detach().float().contiguous().numpy().tobytes() for tensor in tensors)


def of_layers(module, *names):
    """Of each of the `names`, the weights of all layers."""
    state = module.state_dict()
    return [state[f"layers.{layer}.{name}.weight"] for name in names for layer in range(len(module.layers))]


ATTENTION = [f"attention.{name}" for name in ("wq", "wk", "wv", "wo")]
MLP = [f"feed_forward.{name}" for name in ("w1", "w2", "w3")]


def export(module, path, version=0):
    """As llama2.c's format is described in its export.py."""
    tied = module.output.weight is module.tok_embeddings.weight
    sizes = list(module.sizes)
    unembedding = [] if tied else [module.output.weight]
    if version:
        header = struct.pack("<Ii7iB", MAGIC, version, *sizes, tied).ljust(256, b"\0")
        body = [*of_layers(module, "attention_norm", "ffn_norm"), module.norm.weight, module.tok_embeddings.weight]
        path.write_bytes(header + numbers([*body, *of_layers(module, *ATTENTION, *MLP), *unembedding]))
        return path
    sizes[5] *= 1 if tied else -1
    body = [module.tok_embeddings.weight, *of_layers(module, "attention_norm", *ATTENTION, "ffn_norm", *MLP)]
    turns = torch.full((2, sizes[6], sizes[0] // sizes[3] // 2), torch.nan)  # left out, so nobody looks at them
    path.write_bytes(struct.pack("<7i", *sizes) + numbers([*body, module.norm.weight, turns, *unembedding]))
    return path
