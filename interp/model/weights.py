"""Which weights are these? One hash for every kind of model."""

import hashlib

from torch import nn


def weights_hash(model: nn.Module) -> str:
    """SHA-256 of the weights' names, shapes and values; the dtype they are held in does not matter."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(f"{name}{tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().double().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()
