"""What is a shard's file before it is written? Tensors, and on the way from another process the file's bytes."""

from dataclasses import dataclass
from pathlib import Path

from jaxtyping import Float
from safetensors.torch import save, save_file
from torch import Tensor

Activations = dict[str, Float[Tensor, "row ..."]]


@dataclass(frozen=True)
class ShardFileBytes:
    """A shard that another process computed.

    Attributes:
        content: Of the file.
    """

    content: bytes

    def write(self, path: Path) -> None:
        """Write the file."""
        path.write_bytes(self.content)


@dataclass(frozen=True)
class ShardContent:
    """A shard that this process computed; sent to another one, it becomes the bytes of the same file.

    Attributes:
        rows: The activations of its words, by TransformerLens' name of the site.
    """

    rows: Activations

    def write(self, path: Path) -> None:
        """Write the file, without a copy."""
        save_file(self.rows, path)

    def __reduce__(self) -> tuple[type[ShardFileBytes], tuple[bytes]]:
        return ShardFileBytes, (save(self.rows),)
