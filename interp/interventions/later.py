"""When are the activations that a replacement is made of computed? When the first of them is asked for.

So what is known already costs nothing; and whose activations they are is known before there are any.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any

from jaxtyping import Float
from torch import Tensor

from interp.interventions.provenance import model_provenance


class Later(Mapping[Any, Float[Tensor, "..."]]):
    """Activations that are computed when the first of them is asked for: what is known already needs none.

    Attributes:
        model: Whose they are.
        memory_budget: Bytes that are held meanwhile, from which last bits follow; None for the device's default.
    """

    def __init__(
        self, compute: Callable[[], Mapping[Any, Float[Tensor, "..."]]], model: Any, memory_budget: int | None
    ):
        self._compute, self.model, self.memory_budget = compute, model, memory_budget

    @cached_property
    def _computed(self) -> Mapping[Any, Float[Tensor, "..."]]:
        return self._compute()

    def compute(self) -> None:
        """Compute them now."""
        len(self)

    def __getitem__(self, key: Any) -> Float[Tensor, "..."]:
        return self._computed[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._computed)

    def __len__(self) -> int:
        return len(self._computed)

    def __reduce__(self) -> tuple[Any, ...]:
        """Sent to another process as what was computed."""
        return Computed, (dict(self._computed), origin_of(self.model), self.memory_budget)


class Computed(dict[Any, Float[Tensor, "..."]]):
    """What became of ``Later`` in another process.

    Attributes:
        model: The ``origin_of`` whose they are.
        memory_budget: As of ``Later``.
    """

    def __init__(self, values: Mapping[Any, Float[Tensor, "..."]], model: str, memory_budget: int | None):
        super().__init__(values)
        self.model, self.memory_budget = model, memory_budget

    def __reduce__(self) -> tuple[Any, ...]:
        """As it is."""
        return Computed, (dict(self), self.model, self.memory_budget)


def origin_of(model: Any) -> str:
    """What tells a model from others, in all processes."""
    own = model_provenance(model)
    return json.dumps([own[name] for name in ("model_hash", "config_hash", "dtype")])
