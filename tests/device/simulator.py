"""CUDA devices where there are none: CPU values in tensors that say ``cuda:0`` and refuse what a GPU's would refuse.

They show the mistakes that only a GPU shows - tensors of two devices in one operation, ``numpy()`` of what is on the
device, a generator of the wrong device, an operation without a CUDA kernel - and the two numbers that decide its
speed: kernels launched and times the host waited for the device. They cannot show CUDA's own rounding, its speed, its
allocator's fragmentation, bugs of its kernels, or several streams.

1. ``DeviceTensor`` is a wrapper subclass: its Python side says ``cuda:0`` and holds the values in an ordinary CPU
   tensor; its C++ side is on PyTorch's ``PrivateUse1`` device, because a CPU build's backward pass refuses CUDA's.
2. ``SimulatedCuda`` is a ``TorchDispatchMode``: every operation below autograd passes through it. It unwraps, runs the
   CPU kernel, wraps; factories with ``device="cuda"`` give device tensors; copies between devices are copies.
3. ``install`` gives PyTorch's registry of device guards an entry for either device: without one for CUDA, a CPU build
   refuses ``torch.tensor(..., device="cuda")``; without one for ``PrivateUse1``, the backward pass.
4. Functions of ``torch.cuda`` answer as if GPUs were there.

What it does not do:

- ``torch.autocast("cuda")`` has no effect: to C++ the tensors are ``PrivateUse1``'s. Values are then those of float32.
- A dispatched operation counts as one launch; sorts, ``unique`` and ``index_put_`` with sums are several on a GPU.
- Fused attention counts one launch, and one more for a mask; PyTorch's alignment copies do not count.
- Optimisers step tensor by tensor, because PyTorch's fused steps take no subclasses.
- Threads of one's own see no factories (the mode is a thread's), only device tensors.
- The guards stay installed, and ``PrivateUse1`` named, until the process ends.
"""

import contextlib
import ctypes
import types
from pathlib import Path
from unittest import mock

import torch
from device.counting import LOG, MEMORY
from device.rules import (
    ANY_DEVICES,
    FUSED,
    HOST_ARGUMENT,
    HOST_RESULT,
    INDICES_FROM_HOST,
    NO_INTEGERS,
    SAME_TYPES,
    SCALAR_FROM_HOST,
    WAITS,
    WITHOUT_KERNEL,
    Rules,
    aten,
    flops,
)
from torch.utils._python_dispatch import TorchDispatchMode

NAME, CPU = "simulated", torch.device("cpu")


class _Backend(types.ModuleType):
    """What ``torch.<name>`` has to be for PyTorch to take a device as there."""

    def _lazy_init(self):
        return None

    def _is_in_bad_fork(self):
        return False

    def is_available(self):  # or torch's DataParallel takes it for a device of another test
        return torch.cuda.is_available()

    is_initialized = is_available

    def current_device(self):
        return 0

    def device_count(self):
        return 1

    def manual_seed_all(self, seed):
        return None


_INSTALLED = []


def install():
    """Register guards for both devices; before the first backward pass of the process, which counts devices once.

    PyTorch offers this for ``PrivateUse1`` alone, so CUDA's is copied from there: the registry is an exported array of
    pointers, by device type. A CUDA build has its own.
    """
    if _INSTALLED:
        return
    setup = torch.utils.backend_registration._setup_privateuseone_for_python_backend
    setup(NAME, backend_module=_Backend(f"torch.{NAME}"))
    if not torch.backends.cuda.is_built():
        library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libc10.so"))
        mine, cuda = (int(getattr(torch._C._autograd.DeviceType, each)) for each in ("PrivateUse1", "CUDA"))
        registry = (ctypes.c_void_p * (mine + 1)).in_dll(library, "_ZN3c104impl26device_guard_impl_registryE")
        registry[cuda] = registry[mine]
    _INSTALLED.append(Rules())


class DeviceTensor(torch.Tensor):
    """CPU values that say they are on a CUDA device."""

    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, values, device):
        if values.is_inference() != torch.is_inference_mode_enabled():  # a view is what its base is
            with torch.inference_mode(values.is_inference()):
                return cls._made(values, device)
        return cls._made(values, device)

    @classmethod
    def _made(cls, values, device):
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            values.shape,
            strides=values.stride(),
            storage_offset=values.storage_offset(),
            dtype=values.dtype,
            layout=values.layout,
            device=torch.device(NAME, 0),
        )
        made._on, made._values, made._held = device, values, MEMORY[device.index].hold(values)
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return dispatch(func, args, kwargs or {})

    # What PyTorch does to tensors without asking the dispatcher.

    @property
    def device(self):
        return self._on

    @property
    def is_cuda(self):
        return True

    def get_device(self):
        return self._on.index

    def to(self, *args, **kwargs):
        """Where it is already on the device, itself: C++ does not know that this device is meant."""
        if args and isinstance(args[0], torch.Tensor):
            args = (args[0].device, args[0].dtype, *args[1:])
        copy = kwargs.pop("copy", False)
        device, dtype, non_blocking, layout = torch._C._nn._parse_to(*args, **kwargs)
        if device is not None and _is_cuda(device) and _with_index(device) != self.device:
            there = _Across.apply(self, _with_index(device))
            return there if dtype is None else there.to(dtype)
        if device is not None and not _is_cuda(device):
            return super().to(device, dtype or self.dtype, non_blocking, copy)
        if not copy and dtype in (None, self.dtype) and layout is None:
            return self
        return super().to(dtype or self.dtype, copy=True, **({} if layout is None else {"memory_format": layout}))

    def cuda(self, device=None, **kwargs):
        return self.to("cuda" if device is None else device, **kwargs)

    def numpy(self, *, force=False):
        if not force:
            raise TypeError(
                f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host "
                "memory first."
            )
        LOG.wait("numpy(force=True)")
        return self._values.detach().numpy()

    def __array__(self, dtype=None, copy=None):
        return self.numpy()

    def tolist(self):
        LOG.wait("tolist")
        return self._values.tolist()

    def data_ptr(self):
        return self._values.data_ptr()

    def untyped_storage(self):
        return self._values.untyped_storage()

    def share_memory_(self):
        return self

    def is_shared(self):
        return True

    def __deepcopy__(self, memo):
        if id(self) in memo:
            return memo[id(self)]
        if not self.is_leaf:
            raise RuntimeError("Only Tensors created explicitly by the user support the deepcopy protocol")
        copy = DeviceTensor(self._values.detach().clone(), self.device)
        copy.requires_grad_(self.requires_grad)
        if getattr(self, "_is_param", False):
            copy._is_param = True
        if self.grad is not None:
            copy.grad = self.grad.__deepcopy__(memo)
        memo[id(self)] = copy
        return copy

    def __reduce_ex__(self, protocol):
        is_parameter = getattr(self, "_is_param", False)
        return _received, (self._values.detach(), str(self.device), self.requires_grad, is_parameter)

    def __repr__(self, *, tensor_contents=None):
        return f"{self._values.detach()!r} on {self.device}"


class _Across(torch.autograd.Function):
    """From one simulated device to another: to C++ all are one."""

    @staticmethod
    def forward(ctx, x, device):
        ctx.back = x.device
        LOG.launch("copy across")
        return DeviceTensor(x._values.detach().clone(), device)

    @staticmethod
    def backward(ctx, gradient):
        return gradient.to(ctx.back), None


def _received(values, device, requires_grad, is_parameter):
    """A device tensor from another process, or from a file."""
    if not torch.cuda.is_available():
        raise RuntimeError(
            "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you are "
            "running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu')"
        )
    made = DeviceTensor(values, torch.device(device))
    return torch.nn.Parameter(made, requires_grad) if is_parameter else made.requires_grad_(requires_grad)


def _flat(values):
    """Arguments, one by one, with those in lists."""
    found = []
    for each in values:
        if isinstance(each, (list, tuple)):
            found.extend(_flat(each))
        else:
            found.append(each)
    return found


def _bare(value):
    if isinstance(value, DeviceTensor):
        return value._values
    if isinstance(value, torch.device) and _is_cuda(value):
        return CPU
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        return type(value)(map(_bare, value))
    return value


def _is_cuda(device):
    return device is not None and torch.device(device).type in ("cuda", NAME)


def _with_index(device):
    """A device of the host as it is; of the simulated one, as Python is told."""
    device = torch.device(device)
    if device.type == NAME:
        return _LAST[0]
    if device.type != "cuda":
        return device
    return torch.device("cuda", torch.cuda.current_device() if device.index is None else device.index)


_LAST = [torch.device("cuda", 0)]
"""Of the operation before: what PyTorch's C++ makes beside a tensor, to which all devices are one, is meant for it."""


def _pin(values):
    """A tensor of the host that a device copies without waiting."""
    values.is_pinned_here = True
    return values


def _pinned(values):
    return getattr(values, "is_pinned_here", False)


def dispatch(func, args, kwargs):
    """An operation, as a machine with a GPU would do it."""
    asked = kwargs.get("device")
    flat = _flat(args) + _flat(kwargs.values())
    mine = [each for each in flat if isinstance(each, DeviceTensor)]
    if func is aten.is_pinned.default and not mine:
        return _pinned(args[0])
    if func in (aten.pin_memory.default, aten._pin_memory.default) and not mine:
        return _pin(args[0].clone())
    if not mine and not any(isinstance(each, torch.device) and _is_cuda(each) for each in flat):
        return func(*args, **kwargs)
    _LAST[:] = [each.device for each in mine[:1]] or _LAST
    views, pointwise, there, composite = _INSTALLED[0](func)
    if composite:  # in inference mode they come here whole
        with _Mode():
            return func.decompose(*args, **kwargs)
    if not there:
        raise NotImplementedError(
            f"Could not run '{func.name()}' with arguments from the 'CUDA' backend: it has no such kernel"
        )
    if func is aten._to_copy.default or func is aten.copy_.default:
        return _copy(func, args, kwargs)
    if torch.Tag.inplace_view in func.tags:  # a new shape in place, of the values and of what C++ sees
        func(*_bare(args), **kwargs)
        with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(torch._C.DispatchKey.Python)):
            func(*args, **kwargs)
        return args[0]
    device = mine[0].device if mine else _with_index(asked)
    if mine:
        _require_one_device(func, args, flat, device, pointwise=pointwise)
        _require_types(func, mine)
    if any(isinstance(each, torch.Generator) and each.device.type == "cpu" for each in flat) and (
        mine or _is_cuda(asked)
    ):
        raise RuntimeError("Expected a 'cuda' device type for generator but found 'cpu'")
    options = {name: _bare(each) for name, each in kwargs.items() if name != "pin_memory"}
    if not views:
        _count(func, args)
    out = FUSED[func](*_bare(args)) if func in FUSED else func(*_bare(args), **options)
    known = {id(each._values): each for each in mine}
    on = _with_index(asked) if asked is not None else device
    if func in HOST_RESULT:
        return tuple(each if n == HOST_RESULT[func] else _wrapped(each, on, known) for n, each in enumerate(out))
    return _wrapped(out, on, known)


def _wrapped(out, device, known):
    if isinstance(out, (list, tuple)):
        return type(out)(_wrapped(each, device, known) for each in out)
    if isinstance(out, DeviceTensor) or not isinstance(out, torch.Tensor) or device.type != "cuda":
        return out
    same = known.get(id(out))
    if same is not None and (same.shape, same.stride()) != (out.shape, out.stride()):
        raise NotImplementedError("the simulated device cannot change a tensor's shape in place")
    return DeviceTensor(out, device) if same is None else same


def _copy(func, args, kwargs):
    """To another device or type, or into another tensor."""
    if func is aten.copy_.default:
        into, source = args[0], args[1]
        _count_copy(source, into, non_blocking=len(args) > 2 and args[2])
        func(_bare(into), _bare(source), *args[2:], **kwargs)
        return into
    (source, *rest), options = args, dict(kwargs)
    asked, non_blocking = options.pop("device", None), options.pop("non_blocking", False)
    options.pop("pin_memory", None)
    device = source.device if asked is None else _with_index(asked)
    values = func(_bare(source), *rest, **options, **({} if device.type == "cuda" else {"device": device}))
    if device.type == "cuda":
        values = DeviceTensor(values, device)
    elif non_blocking:
        _pin(values)
    _count_copy(source, values, non_blocking=non_blocking)
    return values


def _count_copy(source, into, *, non_blocking):
    here, there = isinstance(source, DeviceTensor), isinstance(into, DeviceTensor)
    LOG.launch("copy within" if here and there else "copy between")
    if here != there and not LOG.paused:
        direction = "to host" if here else "to device"
        LOG.copies[direction] += source.numel() * source.element_size()
        if not (non_blocking and _pinned(into if here else source)):
            LOG.wait(f"copy {direction}")


def _count(func, args):
    if func in WITHOUT_KERNEL:
        return
    LOG.launch(func.name())
    if not LOG.paused:
        LOG.flops += flops(func, args)
    if func in WAITS:
        LOG.wait(WAITS[func])
    for each in args[1] if func in INDICES_FROM_HOST else ():
        if each is not None and each.dtype in (torch.bool, torch.uint8):
            LOG.launch("nonzero of a mask")
            LOG.wait("an index that is a mask")
        if each is not None and not isinstance(each, DeviceTensor):
            LOG.launch("copy between")
            LOG.wait("an index that is the host's")


def _require_one_device(func, args, flat, device, *, pointwise):
    tensors = [each for each in flat if isinstance(each, torch.Tensor)]
    strangers = [each for each in tensors if not isinstance(each, DeviceTensor) or each.device != device]
    if not strangers or func in ANY_DEVICES:
        return
    exempt = {id(args[place]) for place in HOST_ARGUMENT.get(func, ())}
    if func in INDICES_FROM_HOST:
        if not isinstance(args[0], DeviceTensor):
            raise RuntimeError("indices should be either on cpu or on the same device as the indexed tensor (cpu)")
        exempt |= {id(each) for each in args[1] if each is not None and not isinstance(each, DeviceTensor)}
    numbers = pointwise or func in SCALAR_FROM_HOST or func.name().startswith("aten::_foreach")
    for each in strangers:
        if id(each) in exempt or (numbers and each.dim() == 0 and each.device.type == "cpu"):
            continue
        raise RuntimeError(
            f"Expected all tensors to be on the same device, but found at least two devices, {device} and "
            f"{each.device}! (when checking arguments of {func.name()})"
        )


def _require_types(func, mine):
    if func in NO_INTEGERS and not (mine[0].dtype.is_floating_point or mine[0].dtype.is_complex):
        raise RuntimeError(f"\"{func.name()}_cuda\" not implemented for '{mine[0].dtype}'")
    if func in SAME_TYPES and len({each.dtype for each in mine}) > 1:
        raise RuntimeError(f"{func.name()} on CUDA: expected one type, got {[each.dtype for each in mine]}")


_AS_IS, _NORM_AS_IS = torch.nn.functional.scaled_dot_product_attention, torch.nn.functional.rms_norm


def _rms_norm(x, shape, weight=None, eps=None):
    """PyTorch's kernel for one type, which a build without CUDA lacks: the same numbers, and one launch."""
    if not isinstance(x, DeviceTensor) or (weight is not None and weight.dtype != x.dtype):
        return _NORM_AS_IS(x, shape, weight, eps)
    LOG.launch("fused RMS norm")
    LOG.paused += 1
    try:
        return _NORM_AS_IS(x, shape, weight, eps)
    finally:
        LOG.paused -= 1


def _attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    """Fused attention: PyTorch would choose a CUDA kernel, which is not there; the same sums, and one launch."""
    given = [each for each in (query, key, value, attn_mask) if each is not None]
    if not any(isinstance(each, DeviceTensor) for each in given):
        return _AS_IS(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
    if not all(isinstance(each, DeviceTensor) and each.device == query.device for each in given):
        raise RuntimeError("Expected query, key, value and attn_mask to be on the same device")
    if len({each.dtype for each in given[:3]}) > 1:
        raise RuntimeError(f"Expected query, key, and value to have the same dtype, got {given}")
    if attn_mask is not None and attn_mask.dtype not in (torch.bool, query.dtype):
        raise RuntimeError("Expected attn_mask dtype to be bool or to match query dtype")
    LOG.launch("fused attention")
    if attn_mask is not None:
        LOG.launch("fused attention: its mask as numbers")
    if not LOG.paused:
        LOG.flops += 4 * query.numel() * key.shape[-2]
    options = {"scale": scale, "enable_gqa": enable_gqa}
    learned = torch.is_grad_enabled() and any(each.requires_grad for each in given)
    if query.dtype != torch.float64 and not learned:  # kernels whose scores take no memory
        z = _AS_IS(*_bare((query, key, value, attn_mask)), dropout_p, is_causal, **options)
        return DeviceTensor(z, query.device)
    LOG.paused += 1
    try:
        if attn_mask is not None and attn_mask.dtype == torch.bool:
            attn_mask = torch.zeros_like(attn_mask, dtype=query.dtype).masked_fill(~attn_mask, -torch.inf)
        math = torch._scaled_dot_product_attention_math
        return math(query, key, value, attn_mask, dropout_p, is_causal, **options)[0]
    finally:
        LOG.paused -= 1


class _Mode(TorchDispatchMode):
    """Sees every operation, those of the host's tensors and those that make tensors among them."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return dispatch(func, args, kwargs or {})


class Event:
    """Of a stream; to wait for it is to wait for the device."""

    def synchronize(self):
        LOG.wait("an event")


class Stream:
    """The only one of a device."""

    def record_event(self):
        return Event()

    def synchronize(self):
        LOG.wait("a stream")


class SimulatedCuda:
    """While it is entered, GPUs are there."""

    def __init__(self, *, devices=1, total_memory=80 * 2**30):
        install()
        self._devices, self._total, self._current = devices, total_memory, 0

    log = LOG

    def __enter__(self):
        stack = self._stack = contextlib.ExitStack()
        stack.callback(torch._C._set_only_lift_cpu_tensors, torch._C._only_lift_cpu_tensors())
        torch._C._set_only_lift_cpu_tensors(True)
        future = torch.__future__
        swaps = future.get_swap_module_params_on_conversion()
        stack.callback(future.set_swap_module_params_on_conversion, swaps)
        future.set_swap_module_params_on_conversion(True)  # so that a moved parameter stays the same object
        for name, value in self._functions().items():
            stack.enter_context(mock.patch.object(torch.cuda, name, value))
        for name, own in (("scaled_dot_product_attention", _attention), ("rms_norm", _rms_norm)):
            stack.enter_context(mock.patch.object(torch.nn.functional, name, own))
        torch.serialization.add_safe_globals([_received])
        stack.enter_context(_Mode())
        LOG.clear()
        _LAST[:] = [torch.device("cuda", 0)]
        return self

    def __exit__(self, *error):
        self._stack.close()

    def memory(self, device=None):
        index = device if isinstance(device, int) else _with_index("cuda" if device is None else device).index
        return MEMORY[index]

    def _functions(self):
        name = "Simulated CUDA"
        about = types.SimpleNamespace(name=name, total_memory=self._total, major=9, minor=0, multi_processor_count=132)

        def reset(device=None):
            self.memory(device).peak = self.memory(device).now

        def set_device(device):
            self._current = device if isinstance(device, int) else torch.device(device).index or 0

        return {
            "current_stream": lambda device=None: Stream(),
            "is_available": lambda: True,
            "device_count": lambda: self._devices,
            "current_device": lambda: self._current,
            "set_device": set_device,
            "_lazy_init": lambda: None,
            "is_initialized": lambda: True,
            "synchronize": lambda device=None: LOG.wait("synchronize"),
            "empty_cache": lambda: None,
            "get_device_name": lambda device=None: name,
            "get_device_properties": lambda device=None: about,
            "get_device_capability": lambda device=None: (9, 0),
            "is_bf16_supported": lambda including_emulation=True: True,
            "memory_allocated": lambda device=None: self.memory(device).now,
            "memory_reserved": lambda device=None: self.memory(device).now,
            "max_memory_allocated": lambda device=None: self.memory(device).peak,
            "reset_peak_memory_stats": reset,
            "mem_get_info": lambda device=None: (self._total - self.memory(device).now, self._total),
            "manual_seed": lambda seed: None,
            "manual_seed_all": lambda seed: None,
        }
