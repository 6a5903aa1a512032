"""How much of a sentence's tree can be read off attention? Its UAS, beside chains of neighbours."""

from typing import Any

import pandas as pd

from interp.report.dots import Dots, dots_figure, series
from interp.report.drawing import Figure, require, require_rows
from interp.report.glance import Glance, with_interval

_MADE_BY = "interp.methods.parse.attention_parse"


def parse(result: Any) -> Figure:
    """UAS of the parse and of each chain of neighbours, with 95 % intervals.

    Args:
        result: What ``interp.methods.parse.attention_parse`` returns.

    Raises:
        InputError: It is something else, or has no row.
    """
    require(result, ("frame", "heads", "summary"), "parse", _MADE_BY)
    require_rows(result.frame, ("document", "sentence", "n", "right"), "parse", _MADE_BY)
    table = result.summary()
    title = f"trees over {len(result.frame):,} sentences: words that hang on their own head"
    return dots_figure(
        Dots(table["parse"].tolist(), {"UAS": series(table, "uas", "low", "high")}, "UAS (95 % interval)", title, None)
    )


def parse_glance(result: Any) -> Glance:
    """What a notebook shows of it."""
    table = result.summary()
    shown = pd.DataFrame(
        {
            "parse": table["parse"],
            "UAS": with_interval(table, "uas", "low", "high"),
            "attention is better by": with_interval(table, "better", "better_low", "better_high"),
        }
    )
    said = (
        f"{int(result.frame['n'].sum()):,} words of {len(result.frame):,} sentences in "
        f"{result.frame['document'].nunique():,} documents, parsed by {len(result.heads)} heads."
    )
    return Glance(
        "Trees from attention",
        [said],
        shown,
        len(table),
        ".summary()",
        {},
        "interp.plots.parse(result)",
        lambda: parse(result),
    )
