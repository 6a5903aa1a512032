"""How is some work, with a model in it, sent to others? As bytes, and its tensors' memory beside them, uncopied.

Who unpacks it may share that memory: then weights lie once on a machine, whatever the number of workers. Strides are
kept, because products of other layouts have other last bits, and so is the type, for which NumPy has no name.
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
    """Some work, taken apart.

    Attributes:
        data: All but the memory of tensors.
        buffers: That memory, tensor by tensor.
    """

    data: bytes
    buffers: Sequence[memoryview]

    def unpacked(self) -> Any:
        """The work; its tensors are views of the buffers."""
        return received(self.data, self.buffers)


def received(data: bytes, buffers: Sequence[memoryview] = ()) -> Any:
    """What another process of this program has sent: its own bytes, never a file's."""
    return pickle.loads(data, buffers=buffers)


def pack(work: Any) -> Packed:
    """Take some work apart.

    Raises:
        InputError: It holds something that cannot be sent to another process.
    """
    buffers: list[pickle.PickleBuffer] = []
    stream = io.BytesIO()
    try:
        _Pickler(stream, protocol=5, buffer_callback=buffers.append).dump(work)
    except (TypeError, AttributeError, pickle.PicklingError) as error:
        raise InputError(
            f"processes: expected what can be sent to another process, got something that cannot ({error}); give 1"
        ) from error
    return Packed(stream.getvalue(), [each.raw() for each in buffers])


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        """Tensors as NumPy arrays, whose memory is not copied; all else as usual."""
        if type(value) not in (Tensor, nn.Parameter) or not _is_dense(value):
            return NotImplemented
        tensor = value.detach()
        order = _order(tensor)
        bits = tensor.permute(order).reshape(-1).view(torch.uint8).cpu().numpy()
        shape = [tensor.shape[axis] for axis in order]
        how = (shape, order, tensor.dtype, str(tensor.device), isinstance(value, nn.Parameter), value.requires_grad)
        return _tensor, (bits, *how)


def _is_dense(tensor: Tensor) -> bool:
    """Whether a permutation of the axes brings its numbers into one block, and it has any."""
    return tensor.layout == torch.strided and tensor.numel() > 0 and tensor.permute(_order(tensor)).is_contiguous()


def _order(tensor: Tensor) -> list[int]:
    """The axes as they lie in memory, the outermost first."""
    strides: tuple[int, ...] = tensor.stride()
    return sorted(range(tensor.ndim), key=strides.__getitem__, reverse=True)


def _tensor(
    bits: np.ndarray,
    shape: Sequence[int],
    order: Sequence[int],
    dtype: torch.dtype,
    device: str,
    parameter: bool,
    requires_grad: bool,
) -> Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of memory that is only to be read, which nobody writes
        block = torch.from_numpy(bits).view(dtype).reshape(tuple(shape))
    axes = [order.index(axis) for axis in range(len(order))]
    tensor = block.to(device).permute(axes)
    return nn.Parameter(tensor, requires_grad) if parameter else tensor.requires_grad_(requires_grad)
