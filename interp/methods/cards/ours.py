"""Which parts of a card need a model of our own? Those that read its weights, or repeat its attention."""

from typing import Any

from interp.errors import InputError
from interp.model.transformer import HookedTransformer


def require_ours(model: Any, what: str) -> None:
    """Refuse a model whose weights nobody here knows how to read.

    Args:
        model: Any.
        what: What needs them, such as ``circuits``.

    Raises:
        InputError: It is not one of ours.
    """
    if not isinstance(model, HookedTransformer):
        raise InputError(
            f"{what}: expected one of our own models, got a {type(model).__name__}; load its weights with "
            "interp.load_model"
        )
