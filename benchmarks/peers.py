"""The same cell in three other libraries, each in its best form and under ``no_grad``.

Every peer works on its own copy of one module, so all of them have the same weights, and changes the activation in
place. The activations of the clean run are computed once for all of them; a cell costs a peer one forward pass.
"""

import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import torch
from jaxtyping import Float, Int
from tokenizers import Tokenizer, models
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerFast
from workloads import Cell, Inputs


@dataclass(frozen=True)
class CleanRun:
    """What ``head_pos`` and ``resid_pos`` take their values from."""

    z: Float[Tensor, "layer prompt pos head d_head"]
    resid_pre: Float[Tensor, "layer prompt pos d_model"]


class Peer(ABC):
    """One library with the model loaded into it.

    Attributes:
        name: The library.
        form: How it is used.
        cells_at_once: How many cells share a forward pass.
    """

    name: str
    form: str
    cells_at_once: int = 1

    @abstractmethod
    def run_cells(self, inputs: Inputs, clean: CleanRun, cells: Sequence[Cell]) -> Float[Tensor, "cell prompt"]:
        """The logit difference of each prompt under each cell's intervention."""


class TransformerLens(Peer):
    """A ``TransformerBridge``: unprocessed weights, default settings, one hooked forward a cell.

    TransformerLens 4 has no ``HookedTransformer``; its compatibility mode is no faster.
    """

    name = "transformer_lens"
    form = "TransformerBridge.run_with_hooks, one cell a forward, no_grad"

    def __init__(self, module: PreTrainedModel) -> None:
        from transformer_lens.model_bridge import TransformerBridge

        self.model: Any = TransformerBridge.boot_transformers(
            "any model", hf_model=copy.deepcopy(module), tokenizer=placeholder_tokenizer(), device=module.device
        )

    @torch.no_grad()
    def run_cells(self, inputs: Inputs, clean: CleanRun, cells: Sequence[Cell]) -> Float[Tensor, "cell prompt"]:
        return torch.stack([self._run(inputs, clean, cell) for cell in cells])

    def _run(self, inputs: Inputs, clean: CleanRun, cell: Cell) -> Float[Tensor, " prompt"]:
        def change(activation: Tensor, hook: Any) -> Tensor:
            activation[cell.index] = value(cell, clean)
            return activation

        point = f"blocks.{cell.layer}." + ("hook_resid_pre" if cell.head is None else "attn.hook_z")
        logits = self.model.run_with_hooks(inputs.tokens, return_type="logits", fwd_hooks=[(point, change)])
        return inputs.logit_difference(logits)


class Transformers(Peer):
    """Forward pre-hooks on the modules of plain ``transformers``, one hooked forward a cell."""

    name = "transformers"
    form = "forward hooks, logits_to_keep=1, one cell a forward, no_grad"

    def __init__(self, module: PreTrainedModel) -> None:
        self.model = copy.deepcopy(module)

    @torch.no_grad()
    def run_cells(self, inputs: Inputs, clean: CleanRun, cells: Sequence[Cell]) -> Float[Tensor, "cell prompt"]:
        return torch.stack([self._run(inputs, clean, cell) for cell in cells])

    def _run(self, inputs: Inputs, clean: CleanRun, cell: Cell) -> Float[Tensor, " prompt"]:
        def change(module: Any, arguments: tuple[Tensor, ...]) -> None:
            write(arguments[0], cell, clean)

        handle = site(self.model, cell).register_forward_pre_hook(change)
        try:
            logits = self.model(inputs.tokens, logits_to_keep=1).logits
        finally:
            handle.remove()
        return inputs.logit_difference(logits)


class NNsight(Peer):
    """Many invokes in one trace: each cell has its own rows of one forward pass, and only the last logits are kept."""

    name = "nnsight"
    form = "batched invokes in one trace, logits_to_keep=1, no_grad"

    def __init__(self, module: PreTrainedModel) -> None:
        from nnsight import TransformersModel

        self.model: Any = TransformersModel(
            copy.deepcopy(module), tokenizer=placeholder_tokenizer(), task="text-generation"
        )

    def run_cells(self, inputs: Inputs, clean: CleanRun, cells: Sequence[Cell]) -> Float[Tensor, "cell prompt"]:
        traces = (cells[i : i + self.cells_at_once] for i in range(0, len(cells), self.cells_at_once))
        return torch.cat([self._trace(inputs, clean, cells) for cells in traces])

    def _trace(self, inputs: Inputs, clean: CleanRun, cells: Sequence[Cell]) -> Float[Tensor, "cell prompt"]:
        with torch.no_grad(), self.model.trace(logits_to_keep=1) as tracer:
            differences = list().save()  # noqa: C408  # nnsight gives every object a method to keep it after the trace
            for cell in cells:
                with tracer.invoke(inputs.tokens):
                    write(site(self.model, cell).input, cell, clean)
                    differences.append(inputs.logit_difference(self.model.lm_head.output))
        return torch.stack(list(differences))


def installed_peers(module: PreTrainedModel) -> list[Peer]:
    """TransformerLens, which is the reference, first; nnsight only where it is installed."""
    peers: list[Peer] = [TransformerLens(module), Transformers(module)]
    return [*peers, NNsight(module)] if find_spec("nnsight") else peers


@torch.no_grad()
def clean_run(module: PreTrainedModel, tokens: Int[Tensor, "prompt pos"]) -> CleanRun:
    """The activations of `tokens`, unchanged."""
    z: list[Tensor] = []
    resid_pre: list[Tensor] = []
    handles = []
    for layer in range(module.config.num_hidden_layers):
        for cell, kept in ((Cell(layer, 0), z), (Cell(layer), resid_pre)):
            site_module = site(module, cell)
            handles.append(site_module.register_forward_pre_hook(partial(_keep, kept)))
    module(tokens, logits_to_keep=1)
    for handle in handles:
        handle.remove()
    return CleanRun(torch.stack(z).unflatten(-1, (module.config.num_attention_heads, -1)), torch.stack(resid_pre))


def _keep(kept: list[Tensor], module: Any, arguments: tuple[Tensor, ...]) -> None:
    kept.append(arguments[0].clone())


def site(model: Any, cell: Cell) -> Any:
    """The module of ``transformers`` whose input the cell changes."""
    if hasattr(model, "transformer"):
        block = model.transformer.h[cell.layer]
        return block if cell.head is None else block.attn.c_proj
    block = model.model.layers[cell.layer]
    return block if cell.head is None else block.self_attn.o_proj


def write(activation: Float[Tensor, "prompt pos d_model"], cell: Cell, clean: CleanRun) -> None:
    """Put the cell's value into the input of its `site`, in place."""
    split = activation if cell.head is None else activation.unflatten(-1, (clean.z.shape[-2], -1))
    split[cell.index] = value(cell, clean)


def value(cell: Cell, clean: CleanRun) -> Tensor | float:
    """What a cell puts in place."""
    if cell.pos is None:
        return 0.0
    return (clean.resid_pre if cell.head is None else clean.z)[cell.layer][cell.index]


def placeholder_tokenizer() -> PreTrainedTokenizerFast:
    """Two of the wrappers want a tokenizer, and change it, so each gets its own; it never tokenizes anything."""
    words = Tokenizer(models.WordLevel({"<end>": 0}, unk_token="<end>"))
    return PreTrainedTokenizerFast(tokenizer_object=words, eos_token="<end>")
