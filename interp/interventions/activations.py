"""What does a model hold in the run that a batch is patched from?"""

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from interp.errors import InputError
from interp.interventions.rows import Batch
from interp.residual.activations import read


def read_source(model: Any, batch: Batch, hook_names: Iterable[str]) -> Mapping[str, Tensor]:
    """The activations of the batch's sources, at the positions of its runs; NaN where none corresponds.

    Raises:
        InputError: A pattern of prompts of different lengths, whose keys do not correspond.
    """
    found = read(model, batch.source_tokens, hook_names)
    if all(row.source_positions == tuple(range(batch.length)) for row in batch.rows):
        return found
    if any(name.endswith("hook_pattern") for name in found):
        raise InputError(
            "pattern: the clean and the corrupted prompt have different lengths, so a row of one pattern is none of "
            "the other's; patch q, k or v, or leave such items out"
        )
    positions = torch.tensor([row.source_positions for row in batch.rows], device=batch.tokens.device)
    rows = torch.arange(len(positions), device=positions.device)[:, None]
    aligned = {name: each[rows, positions.clamp(min=0)] for name, each in found.items()}
    for each in aligned.values():
        each[positions < 0] = torch.nan
    return aligned
