"""What does a result say of itself on a terminal? Its tables and their lengths, in a line; a notebook shows more."""

from dataclasses import fields
from typing import Any

import pandas as pd


class InOneLine:
    """For dataclasses of results, made with ``repr=False``: a table of thousands of rows is not printed."""

    def __repr__(self) -> str:
        described: Any = self
        values = {field.name: getattr(self, field.name) for field in fields(described)}
        tables = [f".{name}: {len(each):,} rows" for name, each in values.items() if isinstance(each, pd.DataFrame)]
        return f"{type(self).__name__}({', '.join(tables)})"
