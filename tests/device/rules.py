"""What CUDA's operations take, refuse and wait for, as far as it differs from the CPU's."""

from pathlib import Path

import torch

aten = torch.ops.aten

ANY_DEVICES = {aten._to_copy.default, aten.copy_.default, aten.copy.default, aten._copy_from.default}
"""Operations between devices."""
INDICES_FROM_HOST = {
    aten.index.Tensor,
    aten.index_put.default,
    aten.index_put_.default,
    aten._index_put_impl_.default,
    aten._unsafe_index.Tensor,
    aten._unsafe_index_put.default,
}
"""Their second argument's indices may be the host's; they are copied at every call."""
SCALAR_FROM_HOST = {
    aten.index_put.default,
    aten.index_put_.default,
    aten._index_put_impl_.default,
    aten.masked_fill.Tensor,
    aten.masked_fill_.Tensor,
    aten.fill.Tensor,
    aten.fill_.Tensor,
    aten.where.self,
    aten.lerp.Tensor,
    aten.clamp.Tensor,
}
"""Beside all that are tagged pointwise: where a number may be a tensor of the host without axes."""
HOST_ARGUMENT = {
    aten._pack_padded_sequence.default: (1,),
    aten._pad_packed_sequence.default: (1,),
    aten._pack_padded_sequence_backward.default: (2,),
    aten.tensor_split.tensor_indices_or_sections: (1,),
}
"""Arguments, by place, that have to be the host's."""
HOST_RESULT = {aten._pack_padded_sequence.default: 1, aten._pad_packed_sequence.default: 1}
"""Results, by place, that are the host's."""
WAITS = {
    aten._local_scalar_dense.default: "item, bool, int or float of a tensor",
    aten.nonzero.default: "nonzero",
    aten.masked_select.default: "masked_select",
    aten._unique2.default: "unique",
    aten.unique_dim.default: "unique",
    aten.unique_consecutive.default: "unique",
    aten.repeat_interleave.Tensor: "repeat_interleave without output_size",
    aten.equal.default: "equal",
    aten.bincount.default: "bincount",
    aten.linalg_eigh.default: "eigh (its error is read)",
    aten._linalg_eigh.default: "eigh (its error is read)",
    aten._linalg_svd.default: "svd (its error is read)",
    aten._linalg_check_errors.default: "linalg error read",
    aten.is_nonzero.default: "is_nonzero",
    aten.multinomial.default: "multinomial's checks",
}
"""After these, the host waits for the device: the size or value of the result is needed."""
NO_INTEGERS = {
    aten.mm.default,
    aten.bmm.default,
    aten.addmm.default,
    aten.baddbmm.default,
    aten.addbmm.default,
    aten.mv.default,
    aten.addmv.default,
    aten.dot.default,
    aten.vdot.default,
}
"""CUDA has no products of whole numbers; the CPU has."""
SAME_TYPES = {getattr(aten, name).default for name in ("native_layer_norm", "_fused_rms_norm") if hasattr(aten, name)}
"""CUDA takes arguments of one type here; the CPU takes weights of another."""
WITHOUT_KERNEL = {
    aten.empty.memory_format,
    aten.empty_strided.default,
    aten.empty_like.default,
    aten.new_empty.default,
    aten.new_empty_strided.default,
    aten.lift_fresh.default,
    aten.is_same_size.default,
    aten.detach_.default,
}


class Rules:
    """What is true of an operation, looked up once."""

    def __init__(self):
        self._known = {}
        self._cuda = _operations_of_cuda()

    def __call__(self, func):
        """Whether it gives views, is pointwise, is there on CUDA, and is made of other operations."""
        found = self._known.get(func)
        if found is None:
            returned = func._schema.returns
            # Of views no kernel is launched.
            views = bool(returned) and all(each.alias_info and not each.alias_info.is_write for each in returned)
            pointwise = torch.Tag.pointwise in func.tags
            there = func.namespace in ("aten", "prims", "prim") and self._cuda.get(func.name()[6:], True)
            found = self._known[func] = (views, pointwise, there, func._can_decompose())
        return found


def _operations_of_cuda():
    """By name, whether PyTorch's own list of operations has a kernel for CUDA; empty where the list is not there."""
    try:
        import torchgen
        import yaml

        path = Path(torchgen.__file__).parent / "packaged" / "ATen" / "native" / "native_functions.yaml"
        entries = yaml.load(path.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (ImportError, OSError):
        return {}
    by_name = {entry["func"].split("(")[0]: entry for entry in entries}

    def there(entry):
        if "structured_delegate" in entry:
            return there(by_name[entry["structured_delegate"]])
        keys = {key.strip() for each in entry.get("dispatch", {"Composite": ""}) for key in each.split(",")}
        return "CUDA" in keys or "ufunc_inner_loop" in entry or any(key.startswith("Composite") for key in keys)

    return {name: there(entry) for name, entry in by_name.items()}


def flops(func, args):
    """Operations of a product; of all else none."""
    if func in (aten.mm.default, aten.bmm.default):
        one, other = args[0], args[1]
    elif func in (aten.addmm.default, aten.baddbmm.default):
        one, other = args[1], args[2]
    else:
        return 0
    return 2 * one.numel() * other.shape[-1]


def _lstm_cell(inputs, hidden, cell, input_bias=None, hidden_bias=None):
    """A step of an LSTM, for which PyTorch has a kernel of its own on GPUs alone."""
    gates = inputs + hidden + (0 if input_bias is None else input_bias) + (0 if hidden_bias is None else hidden_bias)
    i, f, g, o = gates.chunk(4, 1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    new = f * cell + i * g
    return o * new.tanh(), new, torch.cat([i, f, g, o], 1)


def _lstm_cell_backward(grad_hidden, grad_cell, cell, new, workspace, has_bias):
    i, f, g, o = workspace.chunk(4, 1)
    out = new.tanh()
    to_new = (0 if grad_cell is None else grad_cell) + (0 if grad_hidden is None else grad_hidden * o * (1 - out**2))
    to_o = torch.zeros_like(o) if grad_hidden is None else grad_hidden * out * o * (1 - o)
    parts = [to_new * g * i * (1 - i), to_new * cell * f * (1 - f), to_new * i * (1 - g**2), to_o]
    gates = torch.cat(parts, 1)
    return gates, to_new * f, gates.sum(0) if has_bias else None


FUSED = {
    aten._thnn_fused_lstm_cell.default: _lstm_cell,
    aten._thnn_fused_lstm_cell_backward_impl.default: _lstm_cell_backward,
}
"""Operations that only CUDA has a kernel for, in others."""
