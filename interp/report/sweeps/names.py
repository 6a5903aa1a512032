"""What is a cell called, and what are the headings of a table of cells?"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from interp.report.legible import visible

_POSITIONS = ("pos", "key")
PATH = ("sender", "via", "receiver")
"""What names a path that was patched along."""
GROWING = ("step", "layer", "head")
"""What names a set of heads that grows by one at each step."""


@dataclass(frozen=True)
class Names:
    """Names of cells and of what they are made of.

    Attributes:
        tokens: See ``SweepFrames``.
    """

    tokens: pd.DataFrame

    def cell(self, labels: Mapping[str, Hashable]) -> str:
        """A cell's name, such as ``head 2.1``, ``layer 2, related``, ``neuron 0.17`` or ``0.1 → 2.3.k``."""
        if tuple(labels) == PATH:
            return " → ".join(str(node) for node in labels.values() if node)
        if tuple(labels) == GROWING:
            return "the set up to head {layer}.{head} (step {step})".format(**labels)
        rest = dict(labels)
        parts = []
        for unit in ("head", "neuron"):
            if {"layer", unit} <= rest.keys():
                parts.append(f"{unit} {rest.pop('layer')}.{rest.pop(unit)}")
        parts += [self._part(axis, value) for axis, value in rest.items()]
        return ", ".join(parts)

    def headings(self, axis: str, values: Sequence[Hashable]) -> list[str]:
        """Short headings for the values of one axis; a position is called by its token, where all have the same."""
        if axis not in _POSITIONS or self.tokens.empty:
            return [str(value) for value in values]
        return [self._token(value) for value in values]

    def _part(self, axis: str, value: Hashable) -> str:
        if axis in _POSITIONS and isinstance(value, str):
            return value
        if axis not in _POSITIONS:
            return str(value) if axis == "heads" else f"{axis} {value}"
        token, share = self._known().get(value, ("", 0.0))
        what = "position" if axis == "pos" else "attention to position"
        return f"{what} {value} ({token})" if share == 1 else f"{what} {value}"

    def _token(self, position: Hashable) -> str:
        """The token, or the position with the commonest one and an ellipsis."""
        token, share = self._known().get(position, ("", 0.0))
        if not token:
            return str(position)
        return token if share == 1 else f"{position}: {token}…"

    def _known(self) -> dict[Hashable, tuple[str, float]]:
        rows = self.tokens[["pos", "token", "share"]].itertuples(index=False, name=None)
        return {position: (visible(token), share) for position, token, share in rows}
