"""JSON that is nested without end is refused, where ``datasets`` reads a stranger's.

Arrow's reader of JSON (measured: 26.0) calls itself for every level, in threads of its own: some ten thousand levels
overrun their stack, which ends the process by a signal, and nothing can be said of it any more.
"""

from io import BytesIO
from typing import Any

import numpy as np
import pyarrow.json

DEEPEST = 1_000
"""Levels of a line; brackets within its texts count as well."""


class ShallowJson:
    """``pyarrow.json``, but for what is nested too deep."""

    def __getattr__(self, name: str) -> Any:
        """All else is the same."""
        return getattr(pyarrow.json, name)

    def read_json(self, file: BytesIO, **options: Any) -> Any:
        """A table of lines of JSON.

        Raises:
            ValueError: One is nested too deep.
        """
        for number, line in enumerate(file.getvalue().splitlines(), start=1):
            # Most lines have fewer brackets than that.
            if line.count(b"[") + line.count(b"{") > DEEPEST and (levels := _depth(line)) > DEEPEST:
                raise ValueError(f"line {number}: expected at most {DEEPEST:,} levels of brackets, got {levels:,}")
        return pyarrow.json.read_json(file, **options)


def _depth(line: bytes) -> int:
    """How many brackets are open at once, at most."""
    letters = np.frombuffer(line, dtype=np.uint8)
    steps = np.isin(letters, np.frombuffer(b"[{", np.uint8)).astype(np.int32)
    steps -= np.isin(letters, np.frombuffer(b"]}", np.uint8))
    return int(steps.cumsum().max(initial=0))
