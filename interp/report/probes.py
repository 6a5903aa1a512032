"""Which columns of the cells does a page show? One sortable table; all else is in the CSV file.

How does a reader see what probes found? One self-contained HTML page, as the dossier's.

1. What speaks against the scores comes first, then the findings in sentences; then what was asked.
2. Heatmaps are tables with colours: every head, and the best cells beside their controls. Hovering tells the numbers.
3. The table of cells can be sorted; of very many it has the first. Provenance is folded away.

Where does a report about probes go? One folder, as the dossier's: written whole or not at all.

What does a notebook show of probes? The page's headline for each site, and the cells that reach most.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from interp.report.drawing import ordinary_style, write_pictures
from interp.report.folder import PROBES, check_output, in_place_of, write_manifest
from interp.report.glance import MOST_DRAWN, Glance, numbers
from interp.report.heatmap import Heatmap
from interp.report.html import flatten, render
from interp.report.probes_figures import TOUGHEST, beside, controls_heatmap, figures, head_heatmap, probes
from interp.report.probes_sentences import asked, cautions, how_to_read, summarise, title
from interp.report.probes_words import (
    CONTROL_NAMES,
    VERDICTS,
    ProbeFrames,
    cell_kind,
    cell_name,
    check_probes,
    has_heads,
    measure_of,
    ranked,
    scale_of,
)
from interp.report.sortable import Table, sortable

MOST_ROWS = 200
_RENAMED = {"low": "score_low", "high": "score_high", "baseline": "toughest", "score_baseline": "score_toughest"}
_TABLE_COLUMNS = (
    *("verdict", "score", "score_low", "score_high", "toughest", "score_toughest"),
    *("excess", "excess_low", "excess_high", "p_adjusted", "score_seen", "control"),
    *("selectivity", "selectivity_low", "selectivity_high", "compression", "compression_control"),
    *("majority", "embedding", "position", "untrained", "permuted", "bits", "n_words", "n_documents", "n_lemmas"),
)


def cells_table(frames: ProbeFrames) -> tuple[Table, str]:
    """The first cells in the order of ``leading.py``, and the table's caption."""
    order = ranked(frames.frame) if has_heads(frames) else frames.frame
    shown = order.head(MOST_ROWS).rename(columns={**_RENAMED, "n": "n_words"})
    kind = cell_kind(frames)
    # A head is called `name` in every table.
    name = "name" if kind == "head" else kind
    shown = shown.assign(
        **{name: [cell_name(row) for _, row in shown.iterrows()]}, toughest=shown["toughest"].map(CONTROL_NAMES)
    )
    caption = f"Every {kind}" + (": those that encode the feature, then by their excess" if kind == "head" else "")
    if len(order) > MOST_ROWS:
        caption = (
            f"The first {MOST_ROWS} of {len(order):,} {kind}s, by verdict and excess; all of them are in probes.csv"
        )
    return sortable(shown, (name, *_TABLE_COLUMNS)), caption


_DENSE = 12
"""From more heads a layer on, a heatmap's cells are small."""


def render_probes(frames: ProbeFrames, *, command: str | None = None) -> str:
    """The report as one HTML document.

    Args:
        frames: Of the probing.
        command: The command line that asked for it, shown for whoever wants to repeat it.

    Raises:
        InputError: The frames are not those of a probing; see ``frames.check_probes``.
    """
    check_probes(frames)
    table, caption = cells_table(frames)
    return render(
        "probe.html",
        title=title(frames),
        cautions=cautions(frames),
        asked=asked(frames),
        summary=summarise(frames),
        heatmaps=_heatmaps(frames),
        dense="dense" if has_heads(frames) and frames.frame["head"].nunique() > _DENSE else "",
        controls=controls_heatmap(frames),
        controls_caption=_controls_caption(frames),
        toughest=TOUGHEST,
        verdicts=list(VERDICTS.values()),
        cells_table=table,
        cells_caption=caption,
        reading=how_to_read(frames),
        command=command,
        provenance=flatten(frames.provenance),
    )


def _heatmaps(frames: ProbeFrames) -> list[tuple[Heatmap, str]]:
    """Every head, with captions; none where cells are no heads, or there is one alone."""
    if not has_heads(frames) or len(frames.frame) == 1:
        return []
    name, (low, _) = measure_of(frames).title, scale_of(frames, "score")
    captions = {
        "score": f"Score ({name}); no colour up to the majority's {low:.2f}",
        "selectivity": f"Selectivity (difference of {name}); no colour up to 0",
    }
    return [(head_heatmap(frames, column), caption) for column, caption in captions.items()]


def _controls_caption(frames: ProbeFrames) -> str:
    kind, shown, n_cells = cell_kind(frames), len(beside(frames)), len(frames.frame)
    if n_cells == 1:
        which = f"The {kind}"
    elif not has_heads(frames) or shown == n_cells:
        which = f"Every {kind}"
    else:
        which = f"The best {shown} of {n_cells:,} {kind}s"
    return f"{which} beside the controls ({measure_of(frames).title})"


@ordinary_style()
def save_probes(frames: ProbeFrames, out: str | Path, command: str | None = None) -> Path:
    """Write what probes found into the folder `out`.

    These are ``probes.csv``, ``probes.parquet``, ``examples.parquet``, ``figures``, ``report.html`` and
    ``manifest.json``.

    Args:
        frames: Of the probing.
        out: The folder; made, with its parents, or replaced where it holds an older report.
        command: The command line that asked for it, for the page and the manifest.

    Returns:
        The folder, as an absolute path.

    Raises:
        OutputError: If `out` cannot be used; see ``check_output``.
        InputError: If the frames are not those of a probing.
    """
    folder = check_output(out)
    page = render_probes(frames, command=command)
    with in_place_of(folder) as draft:
        frames.frame.to_csv(draft / "probes.csv", index=False)
        frames.frame.to_parquet(draft / "probes.parquet", index=False)
        frames.examples.to_parquet(draft / "examples.parquet", index=False)
        write_pictures(figures(frames), draft / "figures")
        (draft / "report.html").write_text(page, encoding="utf-8")
        write_manifest(draft, frames.provenance, command, kind=PROBES)
    return folder


@dataclass(frozen=True)
class _Site:
    """What was found at one of several sites."""

    frame: pd.DataFrame
    examples: pd.DataFrame
    provenance: Mapping[str, Any]


def probes_glance(result: ProbeFrames) -> Glance:
    """What a notebook shows of ``interp.probe``."""
    sites = list(dict.fromkeys(result.frame["site"]))
    found = [summarise(_at(result, site)) for site in sites]
    said = [text for each in found for text in (each.headline, *each.notes, *each.findings)]
    if len(sites) > 1:
        said = [f"{site}: {each.headline}" for site, each in zip(sites, found, strict=True)]
    rows, how = ranked(result.frame), measure_of(result)

    def within(value: str, low: str, high: str) -> list[str]:
        each = rows[[value, low, high]].itertuples(index=False, name=None)
        return [f"{how.plain(number)} {how.interval(*ends)}" for number, *ends in each]

    columns = {"site": rows["site"]} if len(sites) > 1 else {}
    toughest = rows[["baseline", "score_baseline"]].itertuples(index=False, name=None)
    unit = " (%)" if how.in_points else ""
    columns |= {
        "cell": [cell_name(row) for _, row in rows.iterrows()],
        f"{how.title}{unit}": within("score", "low", "high"),
        "toughest control": [f"{CONTROL_NAMES[name]} {how.plain(score)}" for name, score in toughest],
        "excess": within("excess", "excess_low", "excess_high"),
        "selectivity": within("selectivity", "selectivity_low", "selectivity_high"),
        "adjusted p": numbers(rows["p_adjusted"], 4),
        "verdict": rows["verdict"],
    }
    alone = len(sites) == 1
    return Glance(
        f"Probes for {result.provenance['feature']} in {', '.join(sites)}",
        said,
        pd.DataFrame(columns),
        len(rows),
        ".frame",
        result.provenance,
        f"interp.plots.probes(result{'' if alone else f'.at({sites[0]!r})'})",
        (lambda: probes(result)) if alone and len(rows) <= MOST_DRAWN else None,
    )


def _at(result: ProbeFrames, site: str) -> ProbeFrames:
    rows = result.frame[result.frame["site"] == site]
    absent = [name for name in ("layer", "head") if name in rows and rows[name].isna().all()]
    rows = rows.drop(columns=absent)
    return _Site(rows, result.examples, {**result.provenance, "site": site})
