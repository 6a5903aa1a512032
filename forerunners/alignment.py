"""Does a translator look where it should? Its attention held against the truth, as numbers and as a picture.

The alignment is read with the true target words given. A word is aligned right when its largest weight lies on the
source word that it translates. Each word has one link in both, so the rest is the alignment error rate (Och & Ney
2003). A decoder that only counts along scores the share of words that stand at their own position.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
import seaborn as sns
import torch
from matplotlib.patches import Rectangle

from forerunners.seq2seq import Translator
from forerunners.toy_french import SentencePair
from forerunners.translation import PAD_ID, source_ids, target_ids
from interp.errors import InputError
from interp.model.devices import documented
from interp.report.drawing import Figure, draw_table, require_rows
from interp.report.heatmap import SEQUENTIAL

COLUMNS = ("query_pos", "target", "key_pos", "source", "weight", "gold")


@dataclass(frozen=True)
class AlignmentQuality:
    """How well attention finds the source words.

    Attributes:
        right: Share of target words whose largest weight lies on the word that they translate.
        diagonal: Share that a decoder would get that looks at source position ``i`` for target word ``i``.
        n_words: Target words that were looked at.
    """

    right: float
    diagonal: float
    n_words: int

    @property
    def error_rate(self) -> float:
        """Och & Ney's (2003) alignment error rate."""
        return 1 - self.right


@documented
@torch.inference_mode()
def alignment_frame(translator: Translator, pairs: Sequence[SentencePair]) -> pd.DataFrame:
    """Where each target word of `pairs` is looked for, with the true words before it given.

    Returns:
        One row a sentence, target word and source word: ``sentence``, ``query_pos`` and ``target``, ``key_pos`` and
        ``source``, ``weight`` (they sum to 1 over a target word's rows), and ``gold``: whether it translates that word.

    Raises:
        InputError: There are no pairs, or one has an unknown word.
    """
    source, read = source_ids(pairs), target_ids(pairs)[:, :-1]
    _, cache = translator.run_with_cache(source, source != PAD_ID, read, names_filter="hook_alignment")
    weights = cache["hook_alignment"].double().cpu().numpy()
    return pd.DataFrame(
        [
            {
                "sentence": number,
                "query_pos": query_pos,
                "target": target,
                "key_pos": key_pos,
                "source": word,
                "weight": weights[number, query_pos, key_pos],
                "gold": pair.alignment[query_pos] == key_pos,
            }
            for number, pair in enumerate(pairs)
            for query_pos, target in enumerate(pair.target)
            for key_pos, word in enumerate(pair.source)
        ]
    )


def alignment_quality(frame: pd.DataFrame) -> AlignmentQuality:
    """Hold alignments against the truth.

    Args:
        frame: From ``alignment_frame``.
    """
    words = frame.groupby(["sentence", "query_pos"])
    found = frame.loc[words["weight"].idxmax()]
    own = frame[frame["gold"] & (frame["query_pos"] == frame["key_pos"])]
    return AlignmentQuality(float(found["gold"].mean()), len(own) / words.ngroups, words.ngroups)


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
    require_rows(frame, COLUMNS, "alignment", "forerunners.alignment.alignment_frame")
    if frame.duplicated(["query_pos", "key_pos"]).any():
        raise InputError(
            "alignment: expected the rows of one sentence, got several rows of the same two words; choose one by its "
            "number"
        )
