"""What is a score the share of, and how is it written? Of words that are right, or of a number's variance."""

import math
from dataclasses import dataclass

import pandas as pd

from interp.report.amounts import counted, decimal, percent, points


@dataclass(frozen=True)
class Measure:
    """What a probe is scored by.

    Attributes:
        title: Its name for readers.
        meaning: Of what it is the share.
        ignorant: What the control called majority says.
        in_points: Whether it is written in parts of 100.
    """

    title: str
    meaning: str
    ignorant: str
    in_points: bool

    def value(self, score: float) -> str:
        """A score."""
        return percent(score) if self.in_points else decimal(score, 3)

    def difference(self, difference: float) -> str:
        """A difference of scores, with its unit."""
        return f"{self.plain(difference)} points" if self.in_points else self.plain(difference)

    def interval(self, low: float, high: float) -> str:
        """An interval of scores, or of differences; said where none is known."""
        if math.isnan(low) or math.isnan(high):
            return "(no interval)"
        return f"[{self.plain(low)}, {self.plain(high)}]"

    def reached(self, row: pd.Series) -> str:
        """What a cell reaches, on how many words."""
        words, ends = counted(int(row["n"]), "word"), self.interval(row["low"], row["high"])
        if self.in_points:
            return f"{self.value(row['score'])} of {words} right {ends}"
        return f"{self.title} {self.value(row['score'])} {ends} on {words}"

    def plain(self, number: float) -> str:
        """A score or a difference without a unit."""
        return points(number) if self.in_points else self.value(number)


MEASURES = {
    "accuracy": Measure("accuracy", "the share of the words whose class is found", "always the commonest class", True),
    "R2": Measure(
        "R²",
        "the share of the number's variance that is explained: below 0 where the mean is nearer",
        "always the mean",
        False,
    ),
}
