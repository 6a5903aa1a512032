"""What pages say, as texts that anybody can edit: ``page_texts.toml`` has the verdicts, sentences, and what terms mean.

What they say of the statistics is what ``interp.claims.claim`` and ``interp.methods.dossier`` do.
"""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def texts() -> dict[str, Any]:
    """All of ``page_texts.toml``, each text in one line."""
    found: dict[str, Any] = tomllib.loads((files("interp.report") / "page_texts.toml").read_text(encoding="utf-8"))
    return {name: each if isinstance(each, list) else _joined(each) for name, each in found.items()}


def _joined(table: dict[str, str]) -> dict[str, str]:
    return {name: text.strip("\n").replace("\n", " ") for name, text in table.items()}


def explained(page: str, **known: Any) -> dict[str, str]:
    """By its term, what one page explains; `known` fills in what stands in braces."""
    return {term: text.format(**known) for term, text in texts()[page].items()}


CORRECTIONS: Mapping[str, str] = {name: texts()["p"][name] for name in ("max-T", "fdr")}


def explained_terms(page: str, provenance: Mapping[str, Any], **known: Any) -> list[tuple[str, str]]:
    """What the terms of a dossier or a card mean; its adjusted p by the test and the correction behind it."""
    said, name = texts()["p"], provenance.get("correction", "max-T")
    what, absent, probes = said["all"], "", ""
    if provenance.get("chosen_on"):
        what, absent, probes = said["chosen"], ", for every head", " (probes by Holm)"
    elif provenance.get("declared"):
        what, probes = said["declared"], " (probes by Holm)"
    elif name == "max-T":
        probes = "; probes are one by task, and count as often as there are tasks"
    first_look = provenance.get("first_look", 0)
    looks = said["looks"].format(first=first_look) + " " if first_look else ""
    if most := provenance.get("max_clusters"):
        looks += said["most clusters"].format(most=most) + " "
    if any(each.get("predicted") for each in provenance.get("tasks", [])):
        looks += said["foretold"] + " "
    how = {"what": what, "correction": said[name], "absent": absent, "probes": probes, "looks": looks}
    first, *others = explained(page, **known).items()
    return [first, ("Adjusted p", said["test"].format(alpha=provenance.get("alpha", 0.05), **how)), *others]
