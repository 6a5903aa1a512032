"""From a checkpoint's files to a model: tensors are read safely, checked, and never held twice.

1. Files are safetensors, or PyTorch's that hold nothing but tensors: a pickle can run code when it is opened, and
   ``torch.load(weights_only=True)`` refuses one that would. They are mapped and not read.
2. All names, shapes and dtypes are checked, on PyTorch's ``meta`` device: a wrong size makes room for nothing.
3. The model is made with weights that have no memory, and are not drawn.
4. Parameter by parameter, the values are copied from the file into memory of the dtype and on the device that were
   asked for, with the layout of the weight whose place they take.

So at most the model, in its dtype, and one tensor are in memory; of a file that has to be dequantised, in that dtype,
also what was not copied yet.
"""

import json
import pickle
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import einops
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from transformers import PreTrainedTokenizerBase

from interp.errors import LoadError, shown, suggest
from interp.model.config import TransformerConfig
from interp.model.devices import DTYPES
from interp.model.loading.bridge import unwrapped
from interp.model.transformer import HookedTransformer

Parameters = Iterator[tuple[str, Tensor]]
State = dict[str, Tensor]
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
BIN = "pytorch_model.bin"
BIN_INDEX = "pytorch_model.bin.index.json"
GGUF = ".gguf"
UNQUANTISED = "take the model as it was before it was quantised"


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in `path`."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:  # also a number of thousands of digits, or endless nesting
        raise LoadError(f"{path}: expected a JSON object, got {type(error).__name__}: {error}") from error
    if not isinstance(content, dict):
        raise LoadError(f"{path}: expected a JSON object, got {type(content).__name__}")
    return content


def holds_weights(folder: Path) -> bool:
    """Whether a checkpoint folder has what ``read_weights`` reads."""
    return any((folder / name).is_file() for name in (WEIGHTS, INDEX, BIN, BIN_INDEX))


def read_weights(folder: Path) -> State:
    """All tensors of a checkpoint folder: safetensors, else PyTorch files; one file or shards."""
    readers: Any = {
        (WEIGHTS, INDEX): lambda path: unwrapped(read_safetensors(path), path),
        (BIN, BIN_INDEX): lambda path: file_state(read_torch(path), path),
    }
    for (whole, index), read in readers.items():
        if (folder / whole).is_file():
            return read(folder / whole)
        if (folder / index).is_file():
            return _shards(folder, index, read)
    raise no_weights(folder, f"no weights here; expected {WEIGHTS}, or {INDEX} with its shards, or {BIN}")


def no_weights(folder: Path, what: str) -> LoadError:
    """The error that says `what` is expected in `folder`, and what lies there instead."""
    names = sorted(path.name for path in folder.iterdir())
    held = (
        f"got {', '.join(map(shown, names[:8]))}{', ...' if len(names) > 8 else ''}" if names else "the folder is empty"
    )
    return LoadError(f"{folder}: {what}; {held}")


def _shards(folder: Path, index: str, read: Callable[[Path], State]) -> State:
    """The tensors of all files that an index names."""
    weight_map = read_json(folder / index).get("weight_map")
    named = isinstance(weight_map, dict) and all(isinstance(shard, str) for shard in weight_map.values())
    if not named or not weight_map:
        raise LoadError(f"{folder / index}: expected a 'weight_map' from tensors to the names of files")
    state: State = {}
    for shard in sorted(set(weight_map.values())):
        tensors = read(folder / shard)
        if twice := state.keys() & tensors.keys():
            raise LoadError(
                f"{folder / shard}: tensor {min(twice)!r} is in an earlier shard too; expected each tensor once; "
                "fetch or save the shards again"
            )
        state.update(tensors)
    return state


def read_safetensors(path: Path) -> State:
    """The tensors of one safetensors file."""
    try:
        return load_file(path)
    except (OSError, ValueError, SafetensorError) as error:
        raise LoadError(f"{path}: not a readable safetensors file ({error}); fetch or save it again") from error


def read_torch(path: Path) -> Any:
    """What a PyTorch file holds, its tensors mapped and not read where the file's format allows that."""
    try:
        zipped = zipfile.is_zipfile(path)
        parts = zipfile.ZipFile(path).infolist() if zipped else []
        packed = next((part.filename for part in parts if part.compress_type != zipfile.ZIP_STORED), None)
        if packed is not None:  # mapped, it would be other numbers, and unpacked it may fill the memory
            raise LoadError(
                f"{path}: expected a PyTorch file, which is not compressed, got {packed!r} packed; save it again"
            )
        return torch.load(path, map_location="cpu", weights_only=True, mmap=zipped)
    except LoadError:
        raise
    except pickle.UnpicklingError as error:
        found = re.search(r"GLOBAL (\S+)", str(error))
        held = found[1] if found else "unknown content"
        raise LoadError(
            f"{path}: this pickle holds more than tensors ({held}) and could run code when "
            "opened, so it is refused; save the weights as safetensors"
        ) from error
    except Exception as error:  # on a damaged file, the unpickler raises whatever its bytes lead to
        raise LoadError(f"{path}: not a readable PyTorch file ({error!r}); fetch or save it again") from error


def as_state(content: object, source: str | Path) -> State:
    """`content`, which must be a dictionary from names to dense tensors with values; its names are unwrapped."""
    if not isinstance(content, dict):
        raise LoadError(f"{source}: expected a dictionary of tensors, got {type(content).__name__}")
    for name, value in content.items():
        if fault := _fault(name, value):
            raise LoadError(f"{source}: {fault}")
    return unwrapped(content, source)


def _fault(name: object, value: Any) -> str:
    """Why an entry is no name of a dense tensor with values; empty where it is one."""
    if not isinstance(name, str):
        return f"expected a dictionary from names to tensors, but {shown(name)} is not a name"
    if "_packed_params" in name:
        return f"{name!r} is quantised; {UNQUANTISED}"
    if not isinstance(value, Tensor):
        advice = "; if it holds the weights, save it alone" if isinstance(value, dict) else ""
        return f"expected a dictionary of tensors, but {name!r} is {type(value).__name__}{advice}"
    if value.is_meta:
        return f"tensor {name!r} has no values (device 'meta'); save or load the real weights"
    if value.is_quantized:
        return f"tensor {name!r} is quantised ({value.dtype}); {UNQUANTISED}"
    if value.layout != torch.strided or value.is_nested:
        kind = "nested" if value.is_nested else value.layout
        return f"tensor {name!r} is stored as {kind}; save it dense, with .to_dense()"
    return ""


def file_state(content: object, path: Path) -> State:
    """The same of a file's content, whose tensors must also be as large as they say.

    In a pickle, a few stored numbers can stand for any number of tensors of any size, which would all be made room for.
    """
    state = as_state(content, path)
    stored = {each.untyped_storage().data_ptr(): each.untyped_storage().nbytes() for each in state.values()}
    said = sum(each.numel() * each.element_size() for each in state.values())
    if said > 2 * sum(stored.values()):  # a tied weight is there twice
        raise LoadError(
            f"{path}: expected tensors with numbers of their own, got {sum(stored.values()):,} bytes that are repeated "
            f"to {said:,}; save each with .contiguous()"
        )
    return state


class Taker:
    """Gives each tensor of a checkpoint once, checked: its name, its shape, its dtype, and that it holds numbers.

    The values are left unread where the tensors are on PyTorch's ``meta`` device, which has shapes alone.
    """

    def __init__(
        self,
        state: Mapping[str, Tensor],
        source: str,
        *,
        family: str = "this architecture",
        left_out: re.Pattern[str] | None = None,
    ):
        """Start with every tensor of `state`."""
        self._left = {name: each for name, each in state.items() if left_out is None or not left_out.search(name)}
        self._taken: list[str] = []
        self.source, self.family = source, family

    def __contains__(self, name: str) -> bool:
        return name in self._left

    def __call__(self, name: str, *shape: int) -> Tensor:
        """The tensor `name`, which then is taken."""
        if name not in self._left:
            raise LoadError(f"{self.source}: tensor {name!r} is missing; {suggest(name, self._left)}")
        tensor = self._left.pop(name)
        self._taken.append(name)
        if tensor.shape != shape:
            raise LoadError(
                f"{self.source}: tensor {name!r}: expected shape {shape}, got {tuple(tensor.shape)}; "
                "does the config describe these weights?"
            )
        require_numbers(tensor, name, self.source)
        return tensor

    def arranged(self, name: str, kept: str, ours: str, sizes: Mapping[str, int]) -> Tensor:
        """The tensor `name`, whose axes are those of `kept`, rearranged to `ours`; both as einops has them."""
        used = {axis: sizes[axis] for axis in re.findall(r"\w+", kept)}
        shape = [prod(used[axis] for axis in re.findall(r"\w+", each)) for each in re.findall(r"\(.*?\)|\w+", kept)]
        return einops.rearrange(self(name, *shape), f"{kept} -> {ours}", **used)

    def prefix(self, prefix: str, embed: str) -> str:
        """`prefix` where names begin with it; nothing where the checkpoint is of the body alone.

        Where the whole model was a part of another module, as of Lightning's, which may call it ``model``, all names
        begin with that, too; it is taken off.
        """
        before = [name.removesuffix(embed) for name in self._left if name == embed or name.endswith(f".{embed}")]
        outer = before[0].removesuffix(prefix) if len(before) == 1 else ""
        if outer and all(name.startswith(outer) for name in self._left):
            self._left = {name.removeprefix(outer): tensor for name, tensor in self._left.items()}
        return prefix if any(name.startswith(prefix) for name in self._left) else ""

    def take_copy(self, name: str, original: Tensor, original_name: str) -> None:
        """Take `name` where it is there: a tied weight that was written a second time."""
        if name not in self._left:
            return
        copy = self(name, *original.shape)
        if not copy.is_meta and bool((copy != original).any()):
            raise LoadError(
                f"{self.source}: the config ties the embeddings, but {name!r} and {original_name!r} differ; "
                "set tie_word_embeddings to false in the config"
            )

    def finish(self) -> None:
        """Make sure that everything was taken."""
        if self._left:
            name = next(iter(self._left))
            raise LoadError(
                f"{self.source}: tensor {name!r} is not part of {self.family}; {suggest(name, self._taken)}"
            )


def require_numbers(tensor: Tensor, name: str, source: str) -> None:
    """Refuse what is not finite floating-point numbers; on the ``meta`` device there are no values to look at."""
    if tensor.dtype not in DTYPES.values():
        raise LoadError(
            f"{source}: tensor {name!r}: expected one of {', '.join(DTYPES)}, got {tensor.dtype}; if it is quantised, "
            f"{UNQUANTISED}"
        )
    if not tensor.is_meta and not tensor.isfinite().all():
        bad = int((~tensor.isfinite()).sum())
        raise LoadError(f"{source}: tensor {name!r}: {bad} of its {tensor.numel()} values are NaN or infinite")


def check_weights(
    state: Mapping[str, Tensor],
    shapes: Iterable[tuple[str, tuple[int, ...]]],
    source: str,
    family: str = "this architecture",
) -> None:
    """Refuse weights that are not exactly those of the architecture, or no finite floating-point numbers."""
    take = Taker({name: tensor.to("meta") for name, tensor in state.items()}, source, family=family)
    for name, shape in shapes:
        take(name, *shape)
    take.finish()
    for name, tensor in state.items():
        require_numbers(tensor, name, source)


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that was found and described, and is not yet a model."""

    source: str  # where it came from
    family: str  # whose tensors these are, for the messages
    config: TransformerConfig  # what the model is made of
    read: Callable[[], Mapping[str, Tensor]]  # gives the tensors, under their own names
    weights: Callable[[Taker, TransformerConfig], Parameters]  # makes our parameters of them
    tokenizer: PreTrainedTokenizerBase | None = None  # which goes with it
    left_out: re.Pattern[str] | None = None  # names of tensors that are no weights
    name: str | None = None  # what the model is called; None for `source`

    def parameters(self, state: Mapping[str, Tensor]) -> Parameters:
        """Our parameters from `state`, one by one."""
        take = Taker(state, self.source, family=self.family, left_out=self.left_out)
        del state  # so that each tensor is freed when it was taken, where nobody else has it
        yield from self.weights(take, self.config)
        take.finish()


def build(checkpoint: Checkpoint, device: torch.device, dtype: torch.dtype) -> HookedTransformer:
    """The model of `checkpoint`, in evaluation mode."""
    state = checkpoint.read()
    for _ in checkpoint.parameters({name: tensor.to("meta") for name, tensor in state.items()}):
        pass
    name = checkpoint.name or checkpoint.source
    with _EmptyWithoutMemory():
        model = HookedTransformer(checkpoint.config, checkpoint.tokenizer, name=name)
    left = dict(model.named_parameters())
    parameters = checkpoint.parameters(state)
    del state
    for each, tensor in parameters:
        module, _, leaf = each.rpartition(".")
        values = _copied(tensor, left.pop(each), f"{name}: tensor {each!r}", device, dtype)
        setattr(model.get_submodule(module), leaf, nn.Parameter(values))
    assert not left, f"nothing was read for {', '.join(left)}"
    return model.to(device=device, dtype=dtype)


class _EmptyWithoutMemory(TorchFunctionMode):
    """Makes ``torch.empty`` give tensors on the ``meta`` device; constants, which are small, keep their values."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        place = {"device": "meta"} if func is torch.empty else {}
        return func(*args, **{**(kwargs or {}), **place})


@torch.no_grad()
def _copied(tensor: Tensor, place: nn.Parameter, what: str, device: torch.device, dtype: torch.dtype) -> Tensor:
    """The values of `tensor`, laid out in memory as those of `place` would be."""
    assert tensor.shape == place.shape, f"{what}: {tuple(tensor.shape)} for {tuple(place.shape)}"
    values = torch.empty_strided(place.shape, place.stride(), dtype=dtype, device=device).copy_(tensor)
    narrower = torch.finfo(dtype).max < torch.finfo(tensor.dtype).max
    if narrower and not values.isfinite().all():
        raise LoadError(
            f"{what} holds values beyond {torch.finfo(dtype).max:g}, the largest number of {dtype}; "
            "take bfloat16 or a wider dtype"
        )
    return values
