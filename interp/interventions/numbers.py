"""Whole numbers and names that were given, of Python or NumPy, alone or in a list; floats and booleans are refused.

Numbers are returned as Python's own ``int``, which labels and provenance can hold.
"""

from collections.abc import Iterable, Mapping
from numbers import Integral
from typing import Any, TypeGuard

from interp.errors import InputError, shown


def is_whole(value: object) -> TypeGuard[int]:
    """Whether `value` is a whole number of any library; True and False are none."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def as_list(values: object) -> list[Any] | None:
    """The elements of a list, a tuple, a range, an array, ...; None for text, dictionaries, and what has none."""
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        return None
    try:
        return list(values)
    except TypeError:  # an array without axes
        return None


def as_names(name: str, values: object) -> list[str]:
    """Several names, in the order given; one alone is a list of one."""
    names = [values] if isinstance(values, str) else as_list(values)
    if names is None or not all(isinstance(each, str) for each in names):
        raise InputError(f"{name}: expected a name or a list of names, got {shown(values)}")
    return [str(each) for each in names]


def whole_number(name: str, value: object, *, expected: str, least: int = 1, most: int | None = None) -> int:
    """A whole number that something can be."""
    if not is_whole(value) or value < least or (most is not None and value > most):
        raise InputError(f"{name}: expected {expected}, got {value!r}")
    return int(value)


def whole_numbers(name: str, values: object) -> list[int]:
    """Several whole numbers, in the order given."""
    numbers = as_list(values)
    if numbers is None or not all(map(is_whole, numbers)):
        raise InputError(f"{name}: expected a list of whole numbers such as [0, 1], got {values!r}")
    return [int(each) for each in numbers]


def numbers_below(n: int, name: str, values: object, *, expected: str = "") -> list[int]:
    """Different whole numbers from 0 to ``n - 1``, at least one, in the order given."""
    numbers = whole_numbers(name, values)
    if not numbers or not 0 <= min(numbers) <= max(numbers) < n or len(set(numbers)) < len(numbers):
        raise InputError(
            f"{name}: {expected}the model has {n} (0 to {n - 1}), got {numbers}; choose among these, each at most once"
        )
    return numbers
