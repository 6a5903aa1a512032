"""What can have happened to a PyTorch file: what it holds is another thing, and saved again."""

import io

import torch
from damage import changed

ODD_TENSORS = (
    lambda: torch.zeros(0),
    lambda: torch.tensor(1.0),
    lambda: torch.ones(2, 3),
    lambda: torch.ones(1).expand(10**9, 10**6),
    lambda: torch.ones(12, dtype=torch.int64),
    lambda: torch.ones(12, dtype=torch.complex64),
    lambda: torch.ones(12, dtype=torch.bool),
    lambda: torch.ones(12).to(torch.float8_e4m3fn),
    lambda: torch.full((12,), torch.nan),
    lambda: torch.full((12,), torch.inf),
    lambda: torch.ones(3, 4).to_sparse(),
    lambda: torch.empty(12, device="meta"),
    lambda: torch.quantize_per_tensor(torch.ones(12), 0.1, 0, torch.qint8),
)


def content_changed(content, rng):
    """One of its values another one, or one of its tensors; in the format of today or of before 2020."""
    held = torch.load(io.BytesIO(content), weights_only=True)
    if rng.random() < 0.6:
        held = changed(held, rng)
    else:
        state = held.get("model", held) if isinstance(held, dict) else {}
        state[rng.choice(list(state))] = rng.choice(ODD_TENSORS)()
    return saved(held, rng.random() < 0.8, content)


def saved_otherwise(content, rng):
    """The same content in PyTorch's old format, damaged or not."""
    old = saved(torch.load(io.BytesIO(content), weights_only=True), False, content)
    return rng.choice((lambda: old, lambda: old[: rng.randrange(len(old))], lambda: _flipped(old, rng)))()


def saved(held, new_format, otherwise):
    file = io.BytesIO()
    try:
        torch.save(held, file, _use_new_zipfile_serialization=new_format)
    except (RecursionError, RuntimeError, UnicodeEncodeError, NotImplementedError):  # what no pickle can hold
        return otherwise[:100]
    return file.getvalue()


def _flipped(content, rng):
    at = rng.randrange(min(len(content), 2_000))
    return content[:at] + bytes([content[at] ^ 1 << rng.randrange(8)]) + content[at + 1 :]
