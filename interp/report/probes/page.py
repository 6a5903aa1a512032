"""How does a reader see what probes found? One self-contained HTML page, as the dossier's.

1. What speaks against the scores comes first, then the findings in sentences; then what was asked.
2. Heatmaps are tables with colours: every head, and the best cells beside their controls. Hovering tells the numbers.
3. The table of cells can be sorted; of very many it has the first. Provenance is folded away.
"""

from interp.report.document import flatten, render
from interp.report.heatmap import Heatmap
from interp.report.probes.asked import asked, title
from interp.report.probes.cautions import cautions
from interp.report.probes.frames import ProbeFrames, check_probes, has_heads, measure_of, scale_of
from interp.report.probes.heatmap import TOUGHEST, beside, controls_heatmap, head_heatmap
from interp.report.probes.reading import how_to_read
from interp.report.probes.sentences import summarise
from interp.report.probes.tables import cells_table
from interp.report.probes.verdicts import VERDICTS
from interp.report.probes.words import cell_kind

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
