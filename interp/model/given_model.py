"""Is what was given a model? One of TransformerLens' protocol, or one of our own, whose weights are read."""

from torch import nn
from transformers import PreTrainedModel

from interp.errors import InputError, shown
from interp.model.loading.wrappers import module_within
from interp.model.transformer import HookedTransformer


def require_model(given: object) -> None:
    """Refuse what does not follow TransformerLens' protocol.

    Raises:
        InputError: `given` has no ``cfg``.
    """
    if not hasattr(given, "cfg"):
        raise InputError(f"model: expected a model, got {shown(given)}; {_advice(given)}")


def require_ours(given: object, what: str) -> None:
    """Refuse a model whose weights nobody here knows how to read.

    Args:
        given: Any.
        what: What needs them, such as ``circuits``.

    Raises:
        InputError: `given` is not one of ours.
    """
    if not isinstance(given, HookedTransformer):
        raise InputError(f"{what}: expected one of our own models, got {shown(given)}; {_advice(given)}")


def _advice(given: object) -> str:
    """Where a model comes from: of a ``transformers`` module, its weights can be read, whatever wraps it."""
    module = module_within(given) if isinstance(given, nn.Module) else None
    if isinstance(module, PreTrainedModel):
        return "give interp.load_model(module), which copies its weights"
    return "load its weights with interp.load_model"
