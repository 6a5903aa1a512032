"""Was a finding declared before anything was measured, or found by looking at everything? What a report says."""

from collections.abc import Mapping
from typing import Any

from interp.report.amounts import counted

EVERYTHING = "Found by looking at everything: every head is tested on every task, and corrected for."
CHOSEN = "Found among the heads that were chosen on other items: only of these is anything shown, and corrected for."


def how_found(provenance: Mapping[str, Any]) -> list[str]:
    """Sentences: what was declared and what became of it; or that nothing was.

    Args:
        provenance: Of a dossier; ``declared`` is as of ``interp.claims.declared``.
    """
    declared = provenance.get("declared")
    if not declared:
        return [CHOSEN if provenance.get("chosen_on") else EVERYTHING]
    claims = declared["claims"]
    first = (
        f"Declared before measuring: {counted(len(claims), 'claim')} of {declared['file']} (SHA-256 "
        f"{declared['sha256'][:12]}, read {declared['read']}). Only these can be shown, and are corrected for "
        "among themselves."
    )
    return [first, *map(_became, claims)]


def _became(claim: Mapping[str, str]) -> str:
    reason = f", {claim['reason']}" if claim["reason"] else ""
    return (
        f"Head {claim['head']} on {claim['task']}: “{claim['expected']}” was declared, “{claim['verdict']}” is found"
        f"{reason}: {claim['outcome']}."
    )
