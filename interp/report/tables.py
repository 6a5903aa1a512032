"""Tables that a reader can sort: of each cell the text to read, and the number that it sorts by."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from interp.report.words import decimal, estimate

_CAPTIONS = {
    "name": "head",
    "pos": "position",
    "key": "attention to",
    "normalised": "share of clean",
    "normalised_low": "share, low",
    "normalised_high": "share, high",
    "low": "effect, low",
    "high": "effect, high",
    "value": "metric, changed",
    "accuracy_intervened": "accuracy, changed",
    "change_norm": "size of the change",
    "excess_p_adjusted": "attention, adjusted p",
    "baseline": "which baseline",
    "attention_baseline": "best baseline",
    "attention_value": "attention, where clearest",
    "attention_values": "attention, where shown",
    "n_attention_values": "values of the feature",
    "attention_self": "attention to the query itself",
    "attention_first": "attention to the first token",
    "effect_low": "effect, low",
    "effect_high": "effect, high",
    "effect_p_adjusted": "effect, adjusted p",
    "p_adjusted": "adjusted p",
    "mean_effect": "effect, mean in its place",
    "mean_effect_low": "effect, mean, low",
    "mean_effect_high": "effect, mean, high",
    "mean_effect_p_adjusted": "effect, mean, adjusted p",
    "mean_replacement": "which mean",
    "accuracy_base": "accuracy, whole model",
    "accuracy_ablated": "accuracy, ablated",
    "probe_control": "probe, control task",
    "probe_excess_p_adjusted": "probe, adjusted p",
    "exchange": "effect, related word exchanged",
    "exchange_low": "exchanged, low",
    "exchange_high": "exchanged, high",
    "exchange_p_adjusted": "exchanged, adjusted p",
    "exchange_minimum": "exchanged, minimum",
    "probe_low": "probe, low",
    "probe_high": "probe, high",
    "probe_baseline": "toughest control",
    "probe_baseline_score": "probe, toughest control",
    "probe_excess": "probe, excess",
    "min_probe": "minimum probe",
    "group": "ablated together",
    "group_effect": "effect, together",
    "group_low": "together, low",
    "group_high": "together, high",
    "group_share": "effect, others gone",
    "group_share_low": "others gone, low",
    "group_share_high": "others gone, high",
    "mean_together": "effect, together",
    "mean_together_low": "together, low",
    "mean_together_high": "together, high",
    "mean_share": "effect, others gone",
    "mean_share_low": "others gone, low",
    "mean_share_high": "others gone, high",
    "n_to_decide": "units to decide",
    "min_attention": "minimum attention",
    "min_effect": "minimum effect",
    "n_units": "units",
    "n_clusters": "clusters",
    "n_attention_clusters": "clusters, attention",
    "n_templates": "templates",
    "n_templates_attended": "templates attended",
    "accuracy_items": "accuracy, items alone",
    "n_excluded": "examples without attention",
    "n_untagged": "examples without relation",
    "n_examples": "examples",
    "base_low": "base, low",
    "base_high": "base, high",
    "looks": "who looks at whom",
    "best_head": "best head",
    "accuracy_baseline": "accuracy, baseline",
    "excess_low": "excess, low",
    "excess_high": "excess, high",
    "accuracy_random_head": "accuracy, random head",
    "accuracy_offset": "accuracy, offset",
    "accuracy_nearest": "accuracy, nearest",
    "nearest": "best nearest",
    "offset": "best offset",
    "n_pairs": "pairs",
    "n_scored": "pairs scored",
    "n_ahead": "ahead",
    "n_unaligned": "unaligned",
    "n_outside": "outside",
    "n_no_choice": "no choice",
    "n_no_baseline": "no baseline",
    "n_documents": "documents",
    "n_words": "words",
    "n_lemmas": "lemmas",
    "score_low": "score, low",
    "score_high": "score, high",
    "toughest": "toughest control",
    "score_toughest": "its score",
    "score_seen": "score, known words",
    "control": "control task",
    "selectivity_low": "selectivity, low",
    "selectivity_high": "selectivity, high",
    "compression_control": "compression, control task",
    "untrained": "untrained model",
    "permuted": "permuted labels",
}


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        name: Of the frame's column.
        heading: Above it; empty for the column's usual heading.
        low: The frame's column with the lower end of an interval, which stands beside the number.
        high: The upper end's.
    """

    name: str
    heading: str = ""
    low: str = ""
    high: str = ""

    @property
    def title(self) -> str:
        """What stands above it."""
        return self.heading or heading(self.name)


@dataclass(frozen=True)
class TableCell:
    """One cell: what is read, and the number that it sorts by; none of a text."""

    text: str
    key: str

    @property
    def numeric(self) -> bool:
        """Whether it is a number."""
        return bool(self.key)


def columns_of(*names: str) -> tuple[Column, ...]:
    """Columns without intervals, by their names."""
    return tuple(map(Column, names))


def rows_of(frame: pd.DataFrame, columns: Sequence[Column]) -> list[list[TableCell]]:
    """The cells of a table; what is missing is a dash and sorts last."""
    return [[_cell(column, row) for column in columns] for row in frame.to_dict("records")]


def heading(column: str) -> str:
    """What a frame's column is called above a table."""
    return _CAPTIONS.get(column, column.replace("_", " "))


def is_whole(column: str, values: pd.Series) -> bool:
    """Whether its numbers are counts, which are read without decimals."""
    return column.startswith("n_") or pd.api.types.is_integer_dtype(values)


def _cell(column: Column, row: dict[Any, Any]) -> TableCell:
    value = row[column.name]
    if pd.isna(value) or value == "":
        return TableCell("—" if column.title.strip() else "", "")
    if isinstance(value, str):
        return TableCell(value, "")
    if column.low:
        return TableCell(estimate(value, row[column.low], row[column.high], ""), repr(float(value)))
    whole = isinstance(value, int) or column.name.startswith("n_")
    return TableCell(f"{value:.0f}" if whole else _short(value), repr(float(value)))


def _short(number: float) -> str:
    """Three decimals; scientific where that would read as 0."""
    return f"{number:.1e}" if 0 < abs(number) < 0.0005 else decimal(number, 3)
