"""Which columns of the cells does a page show? One sortable table; all else is in the CSV file."""

from interp.report.probes.frames import ProbeFrames, has_heads
from interp.report.probes.leading import ranked
from interp.report.probes.words import CONTROLS, cell_kind, cell_name
from interp.report.sortable import Table, sortable

MOST_ROWS = 200
_RENAMED = {"low": "score_low", "high": "score_high", "baseline": "toughest", "score_baseline": "score_toughest"}
_COLUMNS = (
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
        **{name: [cell_name(row) for _, row in shown.iterrows()]}, toughest=shown["toughest"].map(CONTROLS)
    )
    caption = f"Every {kind}" + (": those that encode the feature, then by their excess" if kind == "head" else "")
    if len(order) > MOST_ROWS:
        caption = (
            f"The first {MOST_ROWS} of {len(order):,} {kind}s, by verdict and excess; all of them are in probes.csv"
        )
    return sortable(shown, (name, *_COLUMNS)), caption
