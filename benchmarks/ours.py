"""The same sweep in interp: every cell in one call."""

from collections.abc import Sequence

from cases import Cell, Inputs
from jaxtyping import Float
from torch import Tensor

from interp import HookedTransformer


def run_sweep(model: HookedTransformer, inputs: Inputs, cells: Sequence[Cell]) -> Float[Tensor, "cell prompt"]:
    """The logit difference of each prompt under each cell's intervention, in the order of `cells`.

    Timed as a whole: the base run and the clean run are part of it.

    Args:
        model: Has the same weights as the peers' models.
        inputs: The prompts, and the two answers of each.
        cells: A whole sweep, or a sample of one; all of the same case.
    """
    raise NotImplementedError("filled by the engine's author")


def sweep_flops(model: HookedTransformer, inputs: Inputs, cells: Sequence[Cell]) -> float | None:
    """Floating-point operations (a multiplication and its addition are two) of that sweep; None: not counted."""
    return None
