"""What does a notebook show of heads against relations? The page's finding for each direction, and its best heads."""

import pandas as pd

from interp.report.amounts import counted, interval, percent, points
from interp.report.glance import MOST_DRAWN, Glance, numbers
from interp.report.relations.figures import relations
from interp.report.relations.frames import RelationFrames, is_causal
from interp.report.relations.leading import ranked
from interp.report.relations.sentences import summarise
from interp.report.relations.words import head_name


def relations_glance(result: RelationFrames) -> Glance:
    """What a notebook shows of ``interp.attend``."""
    first = ranked(result.frame[result.frame["chosen"].astype(bool)])
    excess = [f"{points(row['excess'])} {interval(row['low'], row['high'])}" for _, row in first.iterrows()]
    shown = pd.DataFrame(
        {
            "relation": first["relation"],
            "who looks at whom": first["looks"],
            "head": [head_name(row) for _, row in first.iterrows()],
            "accuracy": first["accuracy"].map(percent),
            "best rule": first["accuracy_baseline"].map(percent),
            "excess (points)": excess,
            "adjusted p": numbers(first["p_adjusted"], 4),
            "verdict": first["verdict"],
        }
    )
    looks = ", looking back only" if is_causal(result) else ""
    n_drawn = result.frame[["relation", "looks", "layer", "head"]].drop_duplicates()
    return Glance(
        f"Heads against relations: {counted(int(result.provenance['n_sentences']), 'sentence')}{looks}",
        [each.finding for each in summarise(result)],
        shown,
        len(result.frame),
        ".frame",
        result.provenance,
        "interp.plots.relations(result)",
        (lambda: relations(result)) if len(n_drawn) <= MOST_DRAWN else None,
    )
