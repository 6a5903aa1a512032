"""Which word is each row of a store? ``index.parquet``, one row a word, in the order of the activations.

Which features there are is known when the last word has been read. So each shard's words are written to a part of their
own, and the parts joined at the end, one row group each.
"""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from interp.errors import LoadError, shown
from interp.runs.shards import Shard
from interp.runs.tables import read_table
from interp.tasks.passages import passage_index

INDEX = "index.parquet"
COLUMNS = ("document", "template", "sentence", "word", "token", "n_tokens", "form")
"""Of every index; what there is of features stands behind them."""
_NUMBERS = ("word", "token", "n_tokens")


def write_part(shard: Shard, path: Path) -> None:
    """Write the index of one shard's words.

    Raises:
        TaskError: As ``passage_index``.
    """
    frame = passage_index(shard.passages())
    columns = [pa.array(frame[name], type=_type(name)) for name in frame]
    pq.write_table(pa.table(columns, names=list(frame)), path)


def join_parts(parts: Sequence[Path], path: Path) -> None:
    """Write the index of all shards; features are in the order of the first word that has each."""
    columns = dict.fromkeys(name for part in parts for name in pq.read_schema(part).names)
    schema = pa.schema([(name, _type(name)) for name in columns])
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for part in parts:
            table = read_table(part)
            for name in columns:
                if name not in table.column_names:
                    table = table.append_column(name, pa.nulls(len(table), pa.string()))
            writer.write_table(table.select(list(columns)), row_group_size=len(table))


def read_index(path: Path, n_rows: int) -> pd.DataFrame:
    """The index of a store of so many rows.

    Raises:
        LoadError: It cannot be read, or is none of theirs.
    """
    try:
        n_found = pq.read_metadata(path).num_rows
        frame = read_table(path).to_pandas(ignore_metadata=True, use_threads=False) if n_found == n_rows else None
    except (OSError, ValueError, pa.ArrowException) as error:
        raise LoadError(f"{path}: cannot be read ({error}); see verify()") from error
    if frame is None:
        raise LoadError(f"{path}: expected {n_rows} words, got {n_found}; see verify()")
    missing = [name for name in COLUMNS if name not in frame.columns]
    if missing:
        raise LoadError(f"{path}: expected a column {missing[0]!r}, got {shown(list(frame.columns))}; see verify()")
    return frame


def _type(column: str) -> pa.DataType:
    return pa.int32() if column in _NUMBERS else pa.string()
