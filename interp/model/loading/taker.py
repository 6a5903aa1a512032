"""Does a checkpoint hold exactly the tensors of its architecture? Takes them out by name, and finds what is left."""

import re
from collections.abc import Mapping

from torch import Tensor

from interp.errors import LoadError, suggest
from interp.model.devices import DTYPES

UNQUANTISED = "take the model as it was before it was quantised"


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
        """Start with every tensor of `state`.

        Args:
            state: The checkpoint.
            source: Where it came from, for the messages.
            family: Whose tensors these should be, for the messages.
            left_out: What is no weight, such as masks: names in which this is found.
        """
        self._left = {name: each for name, each in state.items() if left_out is None or not left_out.search(name)}
        self._taken: list[str] = []
        self.source, self.family = source, family

    def __contains__(self, name: str) -> bool:
        return name in self._left

    def __call__(self, name: str, *shape: int) -> Tensor:
        """The tensor `name`, which then is taken.

        Raises:
            LoadError: It is not there, has another shape, is quantised, or holds NaN or infinity; it is named.
        """
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

    def prefix(self, prefix: str, embed: str) -> str:
        """`prefix` where names begin with it; nothing where the checkpoint is of the body alone.

        Where the whole model was a part of another module, as of Lightning's, which may call it ``model``, all names
        begin with that, too; it is taken off.

        Args:
            prefix: Before the names of the body's tensors.
            embed: The token embedding's name in the body.
        """
        before = [name.removesuffix(embed) for name in self._left if name == embed or name.endswith(f".{embed}")]
        outer = before[0].removesuffix(prefix) if len(before) == 1 else ""
        if outer and all(name.startswith(outer) for name in self._left):
            self._left = {name.removeprefix(outer): tensor for name, tensor in self._left.items()}
        return prefix if any(name.startswith(prefix) for name in self._left) else ""

    def take_copy(self, name: str, original: Tensor, original_name: str) -> None:
        """Take `name` where it is there: a tied weight that was written a second time.

        Raises:
            LoadError: It differs from the `original`.
        """
        if name not in self._left:
            return
        copy = self(name, *original.shape)
        if not copy.is_meta and bool((copy != original).any()):
            raise LoadError(
                f"{self.source}: the config ties the embeddings, but {name!r} and {original_name!r} differ; "
                "set tie_word_embeddings to false in the config"
            )

    def finish(self) -> None:
        """Make sure that everything was taken.

        Raises:
            LoadError: A tensor was not; it is named.
        """
        if self._left:
            name = next(iter(self._left))
            raise LoadError(
                f"{self.source}: tensor {name!r} is not part of {self.family}; {suggest(name, self._taken)}"
            )


def require_numbers(tensor: Tensor, name: str, source: str) -> None:
    """Refuse what is not finite floating-point numbers; on the ``meta`` device there are no values to look at.

    Raises:
        LoadError: `tensor` holds whole numbers (a quantised checkpoint), NaN or infinity; it is named.
    """
    if tensor.dtype not in DTYPES.values():
        raise LoadError(
            f"{source}: tensor {name!r}: expected one of {', '.join(DTYPES)}, got {tensor.dtype}; if it is quantised, "
            f"{UNQUANTISED}"
        )
    if not tensor.is_meta and not tensor.isfinite().all():
        bad = int((~tensor.isfinite()).sum())
        raise LoadError(f"{source}: tensor {name!r}: {bad} of its {tensor.numel()} values are NaN or infinite")
