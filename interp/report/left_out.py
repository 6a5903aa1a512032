"""What was asked and could not be measured, and why? What a page, a notebook and a terminal say of it."""

from collections.abc import Mapping
from typing import Any


def left_out(provenance: Mapping[str, Any]) -> list[str]:
    """A sentence for each task, or kind of evidence on one, that is not in a report.

    Args:
        provenance: Of a dossier or a card.
    """
    return [f"Left out: {what}: {reason}." for what, reason in provenance.get("left_out", {}).items()]
