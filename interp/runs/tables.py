"""How is a table read from a file? By the thread that asks: where memory is short, Arrow waits for others for ever."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


def read_table(path: Path) -> pa.Table:
    """The table in a Parquet file.

    Raises:
        OSError: There is none, or it cannot be read.
        pa.ArrowException: It is damaged.
    """
    with pq.ParquetFile(path) as file:
        return file.read(use_threads=False)
