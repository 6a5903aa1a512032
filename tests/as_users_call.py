"""Functions without the checks of types that the tests' import hook puts around them."""


def unchecked(function):
    """As a user's Python calls it."""
    return getattr(function, "__wrapped__", function)
