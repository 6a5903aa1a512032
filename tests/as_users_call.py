"""Functions with the checks of types that the tests' import hook puts around them, and without."""

from inspect import unwrap

from beartype import beartype

_MADE = {}


def checked(function):
    """With beartype's checks, which are made once of a function within another, however often that is defined."""
    if "<locals>" not in function.__qualname__:
        return beartype(function)
    key = (function.__module__, function.__qualname__, function.__code__.co_varnames, str(function.__annotations__))
    if key not in _MADE:
        _MADE[key] = beartype(function)
    return _MADE[key]


def unchecked(function):
    """The function itself, as its own refusals are met where no types are checked."""
    return unwrap(function)
