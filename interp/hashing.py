"""Values as JSON: in one way of writing, so that equal values have equal hashes."""

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from interp.errors import InputError


def canonical(value: Any) -> str:
    """JSON that is the same for equal values: sorted keys, no spaces. Raises InputError for what JSON cannot hold."""
    how: Any = {"sort_keys": True, "ensure_ascii": False, "allow_nan": False, "separators": (",", ":")}
    try:
        return json.dumps(value, default=_as_python, **how)
    except (TypeError, ValueError) as error:
        raise InputError(f"run: expected numbers and texts to be asked for, got something else ({error})") from error


def hash_of_rows(rows: Iterable[Any]) -> str:
    """SHA-256 of values that JSON can hold, one a line."""
    found = hashlib.sha256()
    for row in rows:
        found.update(canonical(row).encode() + b"\n")
    return found.hexdigest()


def plain(value: Any) -> Any:
    """A value as JSON has it: names are strings, and NaN and infinity become None."""
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _as_python(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} {value!r:.80}")
