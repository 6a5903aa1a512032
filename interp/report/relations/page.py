"""How does a reader see heads against relations? One self-contained HTML page, as the dossier's.

1. That a causal model looks back only comes first, then the findings, heads that attend at the top; then what was
   asked.
2. The heatmap is a table with colours; hovering over a cell tells its numbers.
3. Examples show where the best heads look.
4. The tables can be sorted; of very many heads they have the first. Provenance is folded away.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from interp.report.amounts import counted
from interp.report.document import flatten, model_with_hash, render
from interp.report.embedded import attention_data
from interp.report.relations.frames import RelationFrames, check_relations, is_causal
from interp.report.relations.heatmap import relation_heatmap
from interp.report.relations.panel import panel
from interp.report.relations.pictures import pictured_heads
from interp.report.relations.reading import how_to_read
from interp.report.relations.sentences import DirectionSummary, looks_back_only, summarise
from interp.report.relations.tables import heads_table, relations_table
from interp.report.relations.verdicts import ATTENDS, NONE, UNDECIDED, UNTESTABLE, VERDICTS
from interp.report.verdicts import Verdict

_FEW = 6
"""Directions with the same verdict that are not folded away."""
_TITLES = {
    ATTENDS: "Relations that a head attends to",
    UNDECIDED: "Undecided",
    NONE: "Relations that no tested head attends to by the minimum",
    UNTESTABLE: "Not testable",
}
_CAPTION = (
    "Excess accuracy over the best rule without attention, in points of 100 pairs; blue above it; below it sand, which "
    "fades with the distance"
)


@dataclass(frozen=True)
class Findings:
    """The directions with one verdict; ``further`` are folded away."""

    verdict: Verdict
    title: str
    shown: tuple[DirectionSummary, ...]
    further: tuple[DirectionSummary, ...]


def render_relations(frames: RelationFrames, maps: pd.DataFrame | None = None, *, command: str | None = None) -> str:
    """The report as one HTML document.

    Args:
        frames: Of the scoring.
        maps: Of the examples; None without.
        command: The command line that asked for it, shown for whoever wants to repeat it.

    Raises:
        InputError: The frames are not those of a scoring; see ``frames.check_relations``.
    """
    check_relations(frames, maps)
    shown, (table, caption) = panel(frames), heads_table(frames)
    heads = () if maps is None else pictured_heads(maps, frames.frame)
    return render(
        "attend.html",
        asked=asked(frames),
        looks_back_only=looks_back_only(frames),
        findings=_findings(summarise(frames)),
        heatmap=None if shown is None else relation_heatmap(frames, shown),
        heatmap_caption=_CAPTION,
        left_out="" if shown is None else shown.left_out,
        verdicts=[each for name, each in VERDICTS.items() if name != UNTESTABLE],
        heads=heads,
        attention_data=attention_data(head.rows for head in heads),
        relations_table=relations_table(frames),
        heads_table=table,
        heads_caption=caption,
        reading=how_to_read(frames),
        command=command,
        provenance=flatten(frames.provenance),
    )


def asked(frames: RelationFrames) -> list[tuple[str, str]]:
    """The few facts that belong at the top; the rest stands under `How it was made`."""
    how = frames.provenance
    names = list(dict.fromkeys(frames.relations["relation"]))
    known = dict(flatten(how))
    facts = [
        ("Model", model_with_hash(known).get("model", "")),
        ("Looks", "back only (causal)" if is_causal(frames) else "both ways (bidirectional)"),
        ("Corpus", _corpus(how)),
        ("Relations", f"{', '.join(names)} ({counted(len(frames.relations), 'direction')})"),
        ("Baseline", _chosen_on(how)),
        ("Too long", _too_long(how["too_long"])),
        *((key.capitalize(), known.get(key, "")) for key in ("seed", "device", "dtype")),
    ]
    return [(name, text) for name, text in facts if text]


def _corpus(how: Any) -> str:
    parts = [_documents(how)] if "n_documents" in how else []
    parts += [counted(how["n_sentences"], "sentence"), counted(how["n_words"], "word")]
    return f"{_files(how.get('data', ()), ': ')}{', '.join(parts)} (hash {str(how['data_hash'])[:12]})"


def _documents(how: Any) -> str:
    joined = how["n_clusters"] < how["n_documents"]
    groups = f" in {how['n_clusters']:,} groups of neighbours, each of which counts as one document below"
    return f"{counted(how['n_documents'], 'document')}{groups if joined else ''}"


def _chosen_on(how: Any) -> str:
    halves = "the other half"
    if str(how["chosen_on"]).startswith(halves):
        return f"chosen on {halves} of the documents; every head is tested"
    where = _files(how.get("choose_on", ()), "") or "another corpus"
    return f"chosen, as one head of each relation and direction, on {where} (hash {how['chosen_on'][:12]})"


def _files(paths: Sequence[str], ending: str) -> str:
    """Files by their names; empty where the corpus came from no file."""
    return f"{', '.join(Path(path).name for path in paths)}{ending}" if paths else ""


def _too_long(sentences: Any) -> str:
    return f"{counted(len(sentences), 'sentence')}, left out: longer than the model's context" if sentences else ""


def _findings(summaries: Sequence[DirectionSummary]) -> list[Findings]:
    groups = []
    for name, title in _TITLES.items():
        own = tuple(each for each in summaries if each.verdict == name)
        most = len(own) if name == ATTENDS else _FEW
        if own:
            groups.append(Findings(VERDICTS[name], title, own[:most], own[most:]))
    return groups
