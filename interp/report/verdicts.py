"""How is each verdict shown? One symbol and one meaning, the same in pictures, tables and sentences."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Verdict:
    """One of the verdicts that a head can get for a task.

    Attributes:
        name: As it stands in the column ``verdict``.
        symbol: One character, for tables.
        marker: The same shape as a matplotlib marker.
        filled: Whether the shape is filled.
        meaning: What it says about a head, for the legend.
    """

    name: str
    symbol: str
    marker: str
    filled: bool
    meaning: str

    @property
    def slug(self) -> str:
        """The name as a CSS class."""
        return self.name.replace(",", "").replace(" ", "-")


VERDICTS = {
    verdict.name: verdict
    for verdict in (
        Verdict(
            "tracks",
            "★",
            "*",
            True,
            "looks at the related word, the task needs it, and what it reads there turns the answer; where the task "
            "names a feature, that can be read from what it writes",
        ),
        Verdict(
            "attends and causal",
            "●",
            "o",
            True,
            "looks at the related word, and the task needs it; something that tracking takes is not shown",
        ),
        Verdict(
            "causal, by another route",
            "◆",
            "D",
            True,
            "the task needs what it writes; it looks at the related word by less than the minimum beyond a baseline, "
            "or what it reads there does not turn the answer by the minimum",
        ),
        Verdict("causal", "■", "s", True, "the task needs what it writes; its attention is not testable"),
        Verdict(
            "redundant",
            "▲",
            "^",
            True,
            "others stand in for it: the task needs one of the set that is named, and hardly misses any of them alone",
        ),
        Verdict(
            "general",
            "✚",
            "P",
            True,
            "ablating it costs every task that the model can do, and on some it is shown not to look at the related "
            "word",
        ),
        Verdict(
            "attends, not causal",
            "○",
            "o",
            False,
            "looks at the related word; the effect of ablating it is smaller than the minimum that counts",
        ),
        Verdict("opposes", "▼", "v", True, "ablating it helps the task"),
        Verdict(
            "encodes, unused",
            "◇",
            "D",
            False,
            "the feature can be read there; ablating the head costs less than the minimum that counts, and it looks at "
            "the related word by less than the minimum beyond a baseline, or that is not testable",
        ),
        Verdict("undecided", "?", r"$\mathbf{?}$", True, "the data do not decide"),
        Verdict(
            "none",
            "·",
            ".",
            False,
            "its effect is shown to be smaller than the minimum that counts, and so is its attention, or that is not "
            "testable; smaller than the minimum is not nothing",
        ),
    )
}
FEWEST_CLUSTERS = 30
"""Clusters that a verdict needs, as ``interp.claims.bootstrap`` has it."""
MORE_CLUSTERS = "draw more units, or give each its finest lexical draw as cluster, such as subject and verb"
"""What to do where there are fewer."""
FINDINGS = tuple(VERDICTS)[: list(VERDICTS).index("encodes, unused")]
"""Verdicts that get a sentence for each head."""
