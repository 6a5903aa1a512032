"""Where does a head look? Patterns on one sentence, as maps and as arcs; given a cache, or plain numbers.

1. Attention comes as an ``ActivationCache`` (heads are then called ``2.1``), or as an array: ``[query key]``,
   ``[head query key]`` or ``[batch head query key]``.
2. A weight below 0 or above 1 is no attention: scores before the softmax are told apart by ``scores=True``, and what
   the mask hides of them (minus infinity) is hatched.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from interp.errors import InputError, shown
from interp.report.drawing import short

Head = str | int | tuple[int, int]
MOST_HEADS = 144
_LONGEST_TOKEN = 16
_ROUNDING = 1e-3
_POINT = "blocks.{layer}.attn.hook_{what}"


@dataclass(frozen=True, eq=False)
class Patterns:
    """The patterns of some heads on one sentence.

    Attributes:
        names: Of the heads, such as ``2.1``; empty for a single one that has none.
        weights: ``[head query key]``; NaN where the mask hides scores.
        queries: The texts of the rows.
        keys: The texts of the columns.
    """

    names: tuple[str, ...]
    weights: np.ndarray
    queries: tuple[str, ...]
    keys: tuple[str, ...]


def patterns_of(
    attention: Any,
    tokens: Sequence[str],
    heads: Sequence[Head] | Head | None,
    *,
    key_tokens: Sequence[str] | None = None,
    example: int = 0,
    scores: bool = False,
) -> Patterns:
    """Read patterns from whatever holds them.

    Raises:
        InputError: There are no such heads, no such example, more or fewer tokens than positions, or weights that are
            none.
    """
    names, stacked = _from_cache(attention, heads, example, scores) if _is_cache(attention) else (None, None)
    if names is None or stacked is None:
        names, stacked = _from_array(attention, heads, example)
    if len(names) > MOST_HEADS:
        raise InputError(f"heads: expected {MOST_HEADS} at most in one figure, got {len(names)}; say which")
    queries, keys = _texts(tokens), _texts(tokens if key_tokens is None else key_tokens)
    if stacked.shape[1:] != (len(queries), len(keys)):
        raise InputError(
            f"tokens: expected a text for each of {stacked.shape[1]} query and {stacked.shape[2]} key positions, got "
            f"{len(queries)} and {len(keys)}; take model.to_str_tokens of the same prompt, special tokens included"
        )
    return Patterns(tuple(names), _checked(stacked, scores), queries, keys)


def token_text(token: object) -> str:
    """A token as a figure shows it: without the space before it, legible, and short."""
    text = str(token)
    return short(text.strip(" ").replace("\n", "\\n").replace("\t", "\\t") or "␣", _LONGEST_TOKEN)


def as_array(values: Any) -> np.ndarray:
    """Numbers of any kind, a tensor's too, as doubles."""
    for step in ("detach", "cpu", "float"):  # NumPy has no bfloat16
        values = getattr(values, step)() if hasattr(values, step) and not isinstance(values, np.ndarray) else values
    try:
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"attention: expected an ActivationCache or an array of numbers, got {shown(values)}"
        ) from error


def _is_cache(attention: Any) -> bool:
    return isinstance(attention, Mapping) or hasattr(attention, "cache_dict")


def _from_cache(
    cache: Any, heads: Sequence[Head] | Head | None, example: int, scores: bool
) -> tuple[list[str], np.ndarray]:
    known = getattr(cache, "cache_dict", cache)
    layers, what = {}, "attn_scores" if scores else "pattern"
    for name in known:
        parts = str(name).split(".")
        if len(parts) == 4 and name == _POINT.format(layer=parts[1], what=what):
            layers[int(parts[1])] = known[name]
    if not layers:
        raise InputError(
            f"attention: expected a cache with blocks.0.attn.hook_{what} or that of another layer, got one without; "
            "keep it, as by model.run_with_cache(prompt)"
        )
    patterns = {layer: _one_example(as_array(values), example) for layer, values in sorted(layers.items())}
    every = [(layer, head) for layer, values in patterns.items() for head in range(len(values))]
    listed = every if heads is None else [_pair(each) for each in _several(heads)]
    for layer, head in listed:
        if (layer, head) not in every:
            there = f"layers {', '.join(map(str, patterns))} of {len(next(iter(patterns.values())))} heads"
            raise InputError(f"heads: no head {layer}.{head} in the cache, which holds {there}")
    return [f"{layer}.{head}" for layer, head in listed], np.stack([patterns[layer][head] for layer, head in listed])


def _from_array(attention: Any, heads: Sequence[Head] | Head | None, example: int) -> tuple[list[str], np.ndarray]:
    values = as_array(attention)
    if values.ndim == 2 and heads is None:
        return [""], values[None]
    values = values[None] if values.ndim == 2 else values
    if values.ndim not in (3, 4):
        raise InputError(
            f"attention: expected [query key], [head query key] or [batch head query key], got {values.ndim} axes"
        )
    values = _one_example(values, example)
    listed = list(range(len(values))) if heads is None else _several(heads)
    for each in listed:
        if not isinstance(each, int | np.integer) or isinstance(each, bool) or not 0 <= each < len(values):
            raise InputError(
                f"heads: expected numbers from 0 to {len(values) - 1}, as an array has no layers, got {each!r}"
            )
    return [f"head {each}" for each in listed], values[[int(each) for each in listed]]


def _one_example(values: np.ndarray, example: int) -> np.ndarray:
    if values.ndim == 3:
        return values
    if not 0 <= example < len(values):
        raise InputError(f"example: expected a prompt from 0 to {len(values) - 1}, got {example!r}")
    return values[example]


def _several(heads: Sequence[Head] | Head) -> list[Any]:
    if isinstance(heads, str | int | np.integer):
        return [heads]
    pair = isinstance(heads, tuple) and len(heads) == 2 and all(isinstance(each, int) for each in heads)
    listed = [heads] if pair else list(heads)
    if not listed:
        raise InputError("heads: expected one at least, got none; leave it out for all")
    return listed


def _pair(head: Any) -> tuple[int, int]:
    parts = head.split(".") if isinstance(head, str) else head
    try:
        layer, number = (int(each) for each in parts)
    except (TypeError, ValueError) as error:
        raise InputError(f"heads: expected heads such as '2.1' or (2, 1), got {head!r}") from error
    return layer, number


def _texts(tokens: Any) -> tuple[str, ...]:
    if isinstance(tokens, str):
        raise InputError(f"tokens: expected a list of texts, one a position, got the text {shown(tokens)}")
    return tuple(token_text(each) for each in tokens)


def _checked(weights: np.ndarray, scores: bool) -> np.ndarray:
    if scores:
        return np.where(np.isfinite(weights), weights, np.nan)
    low, high = np.nanmin(weights, initial=0.0), np.nanmax(weights, initial=0.0)
    if low < -_ROUNDING or high > 1 + _ROUNDING:
        raise InputError(
            f"attention: expected weights from 0 to 1, got {low:.3g} to {high:.3g}; for scores before the softmax give "
            "scores=True"
        )
    return weights
