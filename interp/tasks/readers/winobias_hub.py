"""How does a row of WinoBias on the Hugging Face hub become the line that a file would have?

1. ``document_id`` ends in the line's number less one: the rows are in another order than the lines.
2. ``tokens`` are joined as in the files: by spaces, but for punctuation and ``n't``. (The files write
   ``nurse 's`` as well, but for four sentences.)
3. ``coreference_clusters`` holds the first and the last token of each phrase in brackets, counted from 0, one after the
   other.

https://huggingface.co/datasets/uclanlp/wino_bias
"""

import re
from collections.abc import Mapping
from typing import Any, TypeGuard

_NO_SPACE_BEFORE = re.compile(r"[.,;:!?]|n't")


def hub_line(row: Mapping[str, Any]) -> str:
    """The numbered sentence with its brackets.

    Raises:
        ValueError: A column is missing, or names tokens that are not there.
    """
    number = re.search(r"(\d+)$", str(row.get("document_id")))
    tokens, ends = (row.get(column) for column in ("tokens", "coreference_clusters"))
    if number is None or not _are_texts(tokens) or not isinstance(ends, list):
        raise ValueError(
            "expected 'document_id' with a number at its end, words in 'tokens' and a list in 'coreference_clusters', "
            f"got {row.get('document_id')!r}, {tokens!r:.60} and {ends!r:.60}"
        )
    places = [int(each) if str(each).isdecimal() else len(tokens) for each in ends]
    if len(places) % 2 or any(each >= len(tokens) for each in places):
        raise ValueError(f"expected first and last tokens of {len(tokens)} in 'coreference_clusters', got {ends}")
    shown = list(tokens)
    for first, last in zip(places[::2], places[1::2], strict=True):
        shown[first], shown[last] = f"[{shown[first]}", f"{shown[last]}]" if first != last else f"[{shown[last]}]"
    spaced = [token if _NO_SPACE_BEFORE.fullmatch(token) else f" {token}" for token in shown]
    return f"{int(number.group()) + 1}{''.join(spaced)}"


def _are_texts(tokens: Any) -> TypeGuard[list[str]]:
    return isinstance(tokens, list) and all(isinstance(each, str) and each for each in tokens)
