"""Write the hashes by which the training corpus avoids published sentences (``recipes/text.py``).

python analyses/blimp/hashes.py BLIMP_FOLDER
"""

import sys
from pathlib import Path

import numpy as np

import recipes.text as published
from interp.tasks.readers.blimp import read_blimp


def main() -> None:
    """Read the paradigms and write the file."""
    items = [item for paradigm in published.PARADIGMS for item in read_blimp(Path(sys.argv[1]) / f"{paradigm}.jsonl")]
    hashes = sorted({published.sentence_hash(item.good) for item in items})
    target = Path(published.__file__).parent / published.HASHES
    np.save(target, np.array(hashes, dtype=np.uint64))
    print(f"{len(items)} items, {len(hashes)} different acceptable sentences: {target}")


if __name__ == "__main__":
    main()
