"""What pages that judge cells (heads, layers, places) share: the order of rows, and pieces of their sentences."""

import pandas as pd

from interp.report.words import p_value


def descending(cells: pd.DataFrame, *keys: str | pd.Series) -> pd.DataFrame:
    """The rows by one key after the other, a column's name or a value for each row: the largest first, NaN last."""
    values = pd.DataFrame({n: cells[key] if isinstance(key, str) else key for n, key in enumerate(keys)})
    order = values.reset_index(drop=True).sort_values(list(values), ascending=False, kind="stable").index
    return cells.iloc[order]


def capital(text: str) -> str:
    """A sentence's beginning."""
    return f"{text[:1].upper()}{text[1:]}"


def is_are(n: int) -> str:
    """The verb of so many cells."""
    return "is" if n == 1 else "are"


def and_p(p: float) -> str:
    """A corrected p as it goes on after an interval; empty where there is none."""
    return f", {p_value(p)}" if pd.notna(p) else ""
