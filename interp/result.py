"""What every method returns: rows by cell and example, one row a cell, and how they were made."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """Base of every result.

    A result is shown by the module of the room ``report`` that its class names as `shown_by` (of a class elsewhere, any
    module by its full name): the same sections become the page that ``save`` writes, and what a notebook shows.

    Attributes:
        examples: One row per cell and example.
        provenance: How the numbers were made: model, data, options, versions, audit.

    Examples:
        >>> result = interp.ablate(interp.load_model(), "agreement", heads=[(2, 2)], n=24)
        >>> len(result.examples), len(result.summary())
        (48, 1)
    """

    examples: pd.DataFrame
    provenance: Mapping[str, Any]

    shown_by: ClassVar[str]

    def summary(self) -> pd.DataFrame:
        """One row per cell: estimates, intervals and p."""
        raise NotImplementedError

    def save(self, folder: str | Path, *, command: str | None = None) -> Path:
        """Write the tables, the figures, a page (``report.html``) and a manifest into a folder.

        Args:
            folder: Made, with its parents, or replaced where it holds an older report and nothing else.
            command: The command line that asked for the result, for the page and the manifest.

        Returns:
            The folder, as an absolute path.

        Raises:
            OutputError: The folder cannot be used.
        """
        from interp.report.folder import save

        return save(self, folder, command=command)

    def with_provenance(self, **how: Any) -> Self:
        """The result, with more of how it was made.

        Args:
            **how: Added to the provenance.

        Returns:
            A copy.
        """
        return replace(self, provenance={**self.provenance, **how})

    def _repr_html_(self) -> str:
        """What a notebook shows: findings in words, the strongest cells with their intervals, and a small figure."""
        from interp.report.notebook import as_html

        return as_html(self)

    def __repr__(self) -> str:
        """The name of the task and the lengths of the tables, in one line."""
        about = [str(self.provenance[name]) for name in ("task", "metric") if self.provenance.get(name)]
        tables = {each.name: getattr(self, each.name) for each in fields(self)}
        sizes = [f".{name}: {len(each):,} rows" for name, each in tables.items() if isinstance(each, pd.DataFrame)]
        return f"{type(self).__name__}({'; '.join([*about, *sizes, 'one row a cell: .summary()'])})"

    def __eq__(self, other: object) -> bool:
        """Whether both hold the same numbers, made in the same way; a missing number equals a missing number."""
        if type(self) is not type(other):
            return NotImplemented
        return all(_same(getattr(self, each.name), getattr(other, each.name)) for each in fields(self))

    __hash__ = None  # type: ignore[assignment]  # tables have none


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, pd.DataFrame | pd.Series):
        return type(one) is type(other) and one.equals(other)
    if isinstance(one, Mapping):
        return isinstance(other, Mapping) and one.keys() == other.keys() and all(_same(one[k], other[k]) for k in one)
    if isinstance(one, list | tuple):
        return type(one) is type(other) and len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return bool(np.array_equal(one, other, equal_nan=True))
    if hasattr(one, "detach") and hasattr(other, "detach"):  # tensors, of which this module need not know more
        if (one.shape, one.dtype) != (other.shape, other.dtype):
            return False
        here = other.to(one.device)
        return bool(((one == here) | ((one != one) & (here != here))).all())
    return bool(one == other or (one != one and other != other))  # NaN
