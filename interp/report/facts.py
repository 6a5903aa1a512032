"""What was asked, as the few facts that a reader looks for; the rest stands under `How it was made`."""

from collections.abc import Mapping
from typing import Any

from interp.report.html import flatten, model_with_hash


def facts(provenance: Mapping[str, Any], *pairs: str | tuple[str, str]) -> list[tuple[str, str]]:
    """Names of facts and what they are, as far as they are known; of a name alone, what the provenance has."""
    known = dict(flatten(provenance))
    known |= model_with_hash(known)
    named = [(each.capitalize(), known.get(each, "")) if isinstance(each, str) else each for each in pairs]
    return [(name, text) for name, text in named if text]
