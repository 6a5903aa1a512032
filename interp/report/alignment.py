"""Where does a translator look for each word? One sentence's attention as a picture, with the truth beside it."""

import pandas as pd
import seaborn as sns
from matplotlib.patches import Rectangle

from interp.errors import InputError
from interp.report.drawing import Figure, draw_table, require_rows
from interp.report.heatmap import SEQUENTIAL

COLUMNS = ("query_pos", "target", "key_pos", "source", "weight", "gold")


def alignment_heatmap(frame: pd.DataFrame) -> Figure:
    """One sentence's alignment: target words down, source words across, from 0 to 1; a frame marks the true links.

    Args:
        frame: One row a target word and source word: ``query_pos`` and ``target``, ``key_pos`` and ``source``,
            ``weight`` from 0 to 1, and ``gold``, whether the one translates the other.

    Raises:
        InputError: A column is missing, there is no row, or two rows are of the same two words, as in a frame of
            several sentences.
    """
    _check(frame)
    table = frame.pivot(index="query_pos", columns="key_pos", values="weight").sort_index().sort_index(axis=1)
    gold = frame.pivot(index="query_pos", columns="key_pos", values="gold").reindex_like(table)
    targets, sources = (
        frame.drop_duplicates(at).set_index(at)[word] for at, word in (("query_pos", "target"), ("key_pos", "source"))
    )
    figure = Figure(figsize=(1.8 + 0.6 * table.shape[1], 1.4 + 0.42 * table.shape[0]), dpi=150, layout="constrained")
    ax = figure.subplots()
    named = table.set_axis(targets[table.index], axis=0).set_axis(sources[table.columns], axis=1)
    palette = sns.color_palette(SEQUENTIAL, as_cmap=True)
    draw_table(ax, named, cmap=palette, vmin=0.0, vmax=1.0, annotate=True, cbar=True, label="attention")
    for row, column in zip(*gold.to_numpy(dtype=bool).nonzero(), strict=True):
        ax.add_patch(Rectangle((column, row), 1, 1, fill=False, edgecolor="black", linewidth=1.6))
    ax.tick_params(axis="x", rotation=45)
    ax.set(xlabel="source word", ylabel="target word")
    ax.set_title("where each target word is looked for\n(framed: what it translates)", fontsize=9)
    return figure


def _check(frame: pd.DataFrame) -> None:
    require_rows(frame, COLUMNS, "alignment", "interp.baselines.translating.alignment_frame")
    if frame.duplicated(["query_pos", "key_pos"]).any():
        raise InputError(
            "alignment: expected the rows of one sentence, got several rows of the same two words; choose one by its "
            "number"
        )
