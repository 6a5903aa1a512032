"""Work, with a model in it, as bytes for other processes, with its tensors' memory beside them, uncopied.

Whoever unpacks it may share that memory: then weights lie once on a machine, whatever the number of workers. Strides
are kept, because products of other layouts have other last bits, and so is the dtype, for which NumPy may have no name.
"""

import io
import pickle
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from interp.errors import InputError

ALIGNED = 64
"""Bytes to which a tensor's memory is aligned: as torch does it, so that products are computed in the same way."""


@dataclass(frozen=True)
class Packed:
    """Pickled work: `data`, and the memory of its tensors in `buffers`, one each; `gpu` is the first that is met."""

    data: bytes
    buffers: Sequence[memoryview]
    gpu: int = 0

    def unpacked(self) -> Any:
        """The work; its tensors are views of the buffers."""
        return received(self.data, self.buffers)


def received(data: bytes, buffers: Sequence[memoryview] = ()) -> Any:
    """What another process of this program has sent: its own bytes, never a file's."""
    return pickle.loads(data, buffers=buffers)


def pack(work: Any) -> Packed:
    """Pickle some work."""
    buffers: list[pickle.PickleBuffer] = []
    stream = io.BytesIO()
    pickler = _Pickler(stream, protocol=5, buffer_callback=buffers.append)
    try:
        pickler.dump(work)
    except (TypeError, AttributeError, pickle.PicklingError) as error:
        raise InputError(
            f"workers: expected what can be sent to another process, got something that cannot ({error}); leave "
            "them out (--executor local, in Python Local()), and this process computes"
        ) from error
    return Packed(stream.getvalue(), [each.raw() for each in buffers], pickler.gpu or 0)


class _Pickler(pickle.Pickler):
    gpu: int | None = None

    def reducer_override(self, value: Any) -> Any:
        """Tensors as NumPy arrays, whose memory is not copied, and GPUs as the receiver's; all else as usual."""
        if isinstance(value, torch.device):
            return torch.device, (self._device(value),)
        if type(value) not in (Tensor, nn.Parameter) or value.layout != torch.strided:
            return NotImplemented
        tensor = value.detach()
        bits = tensor.as_strided((_span(tensor),), (1,)).view(torch.uint8).cpu().numpy()
        how = (tuple(tensor.shape), tensor.stride(), tensor.dtype, self._device(tensor.device))
        return _tensor, (bits, *how, isinstance(value, nn.Parameter), value.requires_grad)

    def _device(self, device: torch.device) -> str:
        """Where a tensor of this device is on a worker, which sees one GPU of its own, whatever its number here."""
        if device.type != "cuda":
            return str(device)
        self.gpu = device.index if self.gpu is None else self.gpu
        return "cuda"


def _span(tensor: Tensor) -> int:
    """Of how many numbers in a row of memory a tensor is made, with those that it leaves out."""
    if tensor.numel() == 0:
        return 0
    return 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))


def _tensor(
    bits: np.ndarray,
    shape: Sequence[int],
    strides: Sequence[int],
    dtype: torch.dtype,
    device: str,
    parameter: bool,
    requires_grad: bool,
) -> Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of memory that is only to be read, which nobody writes
        block = torch.from_numpy(bits).view(dtype)
    tensor = block.to(device).as_strided(shape, strides)
    return nn.Parameter(tensor, requires_grad) if parameter else tensor.requires_grad_(requires_grad)
