"""Reading tensors from files, safely: safetensors, or PyTorch files that hold nothing but tensors.

A pickle can run code when it is opened; ``torch.load(weights_only=True)`` refuses one that would.
"""

import json
import pickle
import re
import zipfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from interp.errors import LoadError, shown
from interp.model.loading.bridge import unwrapped
from interp.model.loading.tensors import UNQUANTISED, Taker, require_numbers

State = dict[str, Tensor]
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
BIN = "pytorch_model.bin"
BIN_INDEX = "pytorch_model.bin.index.json"
GGUF = ".gguf"


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in `path`."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:  # also a number of thousands of digits, or endless nesting
        raise LoadError(f"{path}: expected a JSON object, got {type(error).__name__}: {error}") from error
    if not isinstance(content, dict):
        raise LoadError(f"{path}: expected a JSON object, got {type(content).__name__}")
    return content


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
    if gguf := next((name for name in names if name.endswith(GGUF)), None):
        return gguf_refusal(folder / gguf)
    held = (
        f"got {', '.join(map(shown, names[:8]))}{', ...' if len(names) > 8 else ''}" if names else "the folder is empty"
    )
    return LoadError(f"{folder}: {what}; {held}")


def gguf_refusal(path: Path) -> LoadError:
    """The error that says who reads a GGUF file."""
    return LoadError(
        f"{path}: a GGUF file, which transformers reads; give load_model what "
        f"AutoModelForCausalLM.from_pretrained({str(path.parent)!r}, gguf_file={path.name!r}) returns"
    )


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
        if zipped:
            _require_uncompressed(path)
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


def _require_uncompressed(path: Path) -> None:
    """Refuse what PyTorch never writes: mapped, it would be other numbers, and unpacked it may fill the memory."""
    with zipfile.ZipFile(path) as parts:
        packed = next((part.filename for part in parts.infolist() if part.compress_type != zipfile.ZIP_STORED), None)
    if packed is not None:
        raise LoadError(
            f"{path}: expected a PyTorch file, which is not compressed, got {packed!r} packed; save it anew"
        )


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
        return f"expected a dictionary from names to tensors, but {shown(name)} is no name"
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


def check_shapes(state: Mapping[str, Tensor], shapes: Iterable[tuple[str, tuple[int, ...]]], source: str) -> None:
    """Refuse weights that are not exactly those of the architecture, before anything is made room for."""
    take = Taker({name: tensor.to("meta") for name, tensor in state.items()}, source)
    for name, shape in shapes:
        take(name, *shape)
    take.finish()


def check_numbers(state: Mapping[str, Tensor], source: str) -> None:
    """Refuse weights that are not finite floating-point numbers."""
    for name, tensor in state.items():
        require_numbers(tensor, name, source)
