"""The blocks' weights, stacked over layers under TransformerLens' names, and each head's two circuits.

Elhage et al. (2021): a head's ``W_Q W_K^T`` says which positions it reads from which, its ``W_V W_O`` what it moves
between them.
"""

import torch
from jaxtyping import Float
from torch import Tensor
from transformer_lens import FactoredMatrix

from interp.errors import InputError
from interp.model.block import Blocks


class StackedWeights:
    """Weights of a model with ``blocks``, each a copy with a leading ``layer`` axis.

    Every query head has its own keys and values here, where some share them, too.
    """

    @property
    def blocks(self) -> Blocks:
        """The blocks in order."""
        raise NotImplementedError

    @property
    def W_Q(self) -> Float[Tensor, "layer head d_model d_head"]:  # noqa: N802
        """What makes queries from the stream."""
        return torch.stack([block.attn.W_Q for block in self.blocks])

    @property
    def W_K(self) -> Float[Tensor, "layer head d_model d_head"]:  # noqa: N802
        """What makes keys from the stream."""
        return torch.stack([_by_query_head(block.attn.W_K, block.n_heads) for block in self.blocks])

    @property
    def W_V(self) -> Float[Tensor, "layer head d_model d_head"]:  # noqa: N802
        """What makes values from the stream."""
        return torch.stack([_by_query_head(block.attn.W_V, block.n_heads) for block in self.blocks])

    @property
    def W_O(self) -> Float[Tensor, "layer head d_head d_model"]:  # noqa: N802
        """What writes ``z`` to the stream."""
        return torch.stack([block.attn.W_O for block in self.blocks])

    @property
    def b_Q(self) -> Float[Tensor, "layer head d_head"]:  # noqa: N802
        """The queries' bias."""
        return torch.stack([block.attn.b_Q for block in self.blocks])

    @property
    def b_K(self) -> Float[Tensor, "layer head d_head"]:  # noqa: N802
        """The keys' bias."""
        return torch.stack([_by_query_head(block.attn.b_K, block.n_heads) for block in self.blocks])

    @property
    def b_V(self) -> Float[Tensor, "layer head d_head"]:  # noqa: N802
        """The values' bias."""
        return torch.stack([_by_query_head(block.attn.b_V, block.n_heads) for block in self.blocks])

    @property
    def b_O(self) -> Float[Tensor, "layer d_model"]:  # noqa: N802
        """The bias that attention writes to the stream."""
        return torch.stack([block.attn.b_O for block in self.blocks])

    @property
    def W_in(self) -> Float[Tensor, "layer d_model d_mlp"]:  # noqa: N802
        """What makes neurons from the stream."""
        return self._of_mlps("W_in")

    @property
    def b_in(self) -> Float[Tensor, "layer d_mlp"]:
        """The neurons' bias."""
        return self._of_mlps("b_in")

    @property
    def W_gate(self) -> Float[Tensor, "layer d_model d_mlp"] | None:  # noqa: N802
        """What gates neurons, from the stream; None where nothing does."""
        gated = all(hasattr(getattr(block, "mlp", None), "W_gate") for block in self.blocks)
        return self._of_mlps("W_gate") if gated else None

    @property
    def W_out(self) -> Float[Tensor, "layer d_mlp d_model"]:  # noqa: N802
        """What writes neurons to the stream."""
        return self._of_mlps("W_out")

    @property
    def b_out(self) -> Float[Tensor, "layer d_model"]:
        """The bias that the MLP writes to the stream."""
        return self._of_mlps("b_out")

    def _of_mlps(self, name: str) -> Tensor:
        if not all(hasattr(block, "mlp") for block in self.blocks):
            raise InputError(f"{name}: this model is of attention alone (d_mlp=0) and has no MLP")
        return torch.stack([getattr(block.mlp, name) for block in self.blocks])

    @property
    def QK(self) -> FactoredMatrix:  # noqa: N802
        """Each head's ``W_Q W_K^T``, ``[layer head d_model d_model]``, as its two factors."""
        return FactoredMatrix(self.W_Q, self.W_K.transpose(-2, -1))

    @property
    def OV(self) -> FactoredMatrix:  # noqa: N802
        """Each head's ``W_V W_O``, ``[layer head d_model d_model]``, as its two factors."""
        return FactoredMatrix(self.W_V, self.W_O)

    @property
    def all_head_labels(self) -> list[str]:
        """``L0H0``, ``L0H1``, ...: the heads in the order of the stacked weights."""
        return [f"L{layer}H{head}" for layer, block in enumerate(self.blocks) for head in range(block.n_heads)]


def _by_query_head(weight: Float[Tensor, "kv_head ..."], n_heads: int) -> Float[Tensor, "head ..."]:
    """Weights of keys or values, each as often as there are query heads that read it."""
    return weight.repeat_interleave(n_heads // len(weight), dim=0)
