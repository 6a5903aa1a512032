"""What is in a run's folder? Each file whole, and known by its hash.

===========================  =======================================================================================
``manifest.json``            what was asked, and by what program it is computed; their hash is the run's key
``parts/NAME.HASH.parquet``  what was measured, part by part; ``HASH`` begins the file's SHA-256
``NAME.parquet``             the finished tables; of a sweep one, ``frame``
``result.json``              how they were made, each one's SHA-256, and which parts there are; written last
``log.jsonl``                what happened when: begun, kept, found damaged, finished
===========================  =======================================================================================
"""

import re

MANIFEST, RESULT, PARTS, LOG, LOCK = "manifest.json", "result.json", "parts", "log.jsonl", "lock"
FRAME = "frame"
"""The table of what has one."""
TABLE = re.compile(r"[a-z][a-z0-9_]*")
KEY_DIGITS = 16
KEY = re.compile(rf"[0-9a-f]{{{KEY_DIGITS}}}")
"""What a run's folder is called."""
DIGITS = 16
"""Of a part's SHA-256, in its file's name."""
PART = re.compile(rf"([A-Za-z0-9_.-]+)\.([0-9a-f]{{{DIGITS}}})\.parquet")


def table_file(name: str) -> str:
    """What a finished table's file is called."""
    return f"{name}.parquet"
