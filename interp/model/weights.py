"""Which weights are these? One hash for every kind of model."""

import hashlib

from torch import nn

SLICE = 2**18


def weights_hash(model: nn.Module) -> str:
    """SHA-256 of the weights' names, shapes and values; the dtype they are held in does not matter."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(f"{name}{tuple(tensor.shape)}".encode())
        # In slices: the embedding of a large vocabulary in 64 bits can be larger than the model.
        for part in tensor.detach().reshape(-1).split(SLICE):
            digest.update(part.double().cpu().numpy())
    return digest.hexdigest()
