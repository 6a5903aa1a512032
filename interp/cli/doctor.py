"""``interp doctor``: a placeholder."""

from interp.cli.options import JsonOption


def doctor(as_json: JsonOption = False) -> None:
    """Is this installation sound?"""
