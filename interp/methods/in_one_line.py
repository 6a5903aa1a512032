"""What does a result say of itself on a terminal? Its tables and their lengths, in a line; a notebook shows more."""

import pandas as pd


class InOneLine:
    """For dataclasses of results, made with ``repr=False``: a table of thousands of rows is not printed."""

    def __repr__(self) -> str:
        tables = [f".{name}: {len(each):,} rows" for name, each in vars(self).items() if isinstance(each, pd.DataFrame)]
        return f"{type(self).__name__}({', '.join(tables)})"


def counted_verdicts(frame: pd.DataFrame) -> str:
    """How often each verdict was given, such as ``9 none; 3 tracks``; the most frequent first."""
    return "; ".join(f"{count} {verdict}" for verdict, count in frame["verdict"].value_counts().items())
