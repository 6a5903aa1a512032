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
    when = "Declared before measuring these items, as far as is known here"
    if declared["measured"] < declared["written"]:
        when = "Declared, but measuring began before the file was last written, so the claims may rest on what was seen"
    file = f"{counted(len(claims), 'claim')} of {declared['file']} (SHA-256 {declared['sha256'][:12]}"
    first = f"{when}: {file}, last written {declared['written']}; measuring began {declared['measured']})."
    return [f"{first} Only these can be shown, and are corrected for among themselves.", *map(_became, claims)]


def _became(claim: Mapping[str, str]) -> str:
    unsaid = "a part of it is undecided or was not tested" if claim["outcome"] == "open" else ""
    reason = claim["reason"] or unsaid
    declared = f"head {claim['head']} on {claim['task']} was declared “{claim['expected']}”"
    because = f" ({reason})" if reason else ""
    return f"{claim['outcome'].capitalize()}: {declared}, and is “{claim['verdict']}”{because}."
