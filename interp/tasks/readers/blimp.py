"""BLiMP's files of minimal pairs.

BLiMP (Warstadt et al., 2020, https://aclanthology.org/2020.tacl-1.25) is one JSON object a line: an acceptable and an
unacceptable sentence that differ in as little as possible, and how they are to be compared:

* *one prefix*: the same prefix, then one word that is right or wrong;
* *two prefixes*: a right or a wrong prefix, then the same word;
* neither: only the whole sentences.

A file is read line by line, and the first line that cannot be used is named.

1. Space around a text does not count: two of the published paradigms have it before ``two_prefix_word``.
2. On the Hugging Face hub (``nyu-mll/blimp``), and in copies of it, the pair's number is called ``pair_id``, and the
   prefixes are missing: such items have only their whole sentences. A pair without a number is its own.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interp.errors import shown
from interp.tasks.readers.sources import as_path, file_items, filled_lines, hub_items, is_hub, json_object

_FLAGS = {"true": True, "1": True, "false": False, "0": False, "none": False}
"""A truth value as JSON, a table or nothing has it."""
_CRITICAL = {
    "one_prefix": {"prefix": "_prefix", "word_good": "_word_good", "word_bad": "_word_bad"},
    "two_prefix": {"prefix": "_prefix_good", "word_good": "_word"},
}
"""The prefix and the critical words, by how an item is compared, and the ends of their keys."""


@dataclass(frozen=True)
class BlimpItem:
    """One line of a BLiMP file.

    Attributes:
        uid: The paradigm.
        pair_id: The item's number in the paradigm.
        phenomenon: BLiMP's ``linguistics_term``, for example ``subject_verb_agreement``.
        good: The acceptable sentence.
        bad: The unacceptable sentence.
        prefix: What comes before the critical word in the acceptable sentence; None for items
            that have no critical word.
        word_good: The critical word that follows ``prefix``, or None as above.
        word_bad: The word that violates the phenomenon after the same prefix; None unless this is a one-prefix item.
    """

    uid: str
    pair_id: str
    phenomenon: str
    good: str
    bad: str
    prefix: str | None = None
    word_good: str | None = None
    word_bad: str | None = None

    @property
    def one_prefix(self) -> bool:
        """Whether both sentences go on from the same prefix."""
        return self.word_bad is not None


def read_blimp(path: str | Path) -> Iterator[BlimpItem]:
    """Read a BLiMP paradigm, item by item, in the file's order.

    Args:
        path: A ``.jsonl`` file, or ``hub:NAME[:CONFIG[:SPLIT]]`` (``sources.py``).

    Yields:
        The items.

    Raises:
        TaskError: The file is missing, a folder, unreadable or empty, or a line of it (named) is
            not UTF-8, not JSON, lacks a key, or contradicts itself; likewise a data set of the hub and its rows.

    Examples:
        >>> from interp.tasks.readers.blimp import read_blimp
        >>> items = read_blimp("anaphor_gender_agreement.jsonl")
        >>> next(items).good  # doctest: +SKIP
        "Katherine can't help herself."
    """
    if is_hub(path):
        return hub_items(str(path), _item)
    path = as_path(path)
    lines = filled_lines(path, "a BLiMP file", "one JSON object a line", "name one .jsonl file in it")
    return file_items(path, lines, lambda line: _item(json_object(line)))


def _item(record: Mapping[str, Any]) -> BlimpItem:
    # A pair without a number is known by its right sentence, which no other pair has.
    number = next((key for key in ("pairID", "pair_id") if record.get(key) is not None), "sentence_good")
    method = next((method for method in _CRITICAL if _compared_by(record, method)), "")
    item = BlimpItem(
        uid=_name(record, "UID"),
        pair_id=_name(record, number),
        phenomenon=_text(record, "linguistics_term"),
        good=_text(record, "sentence_good"),
        bad=_text(record, "sentence_bad"),
        **{field: _text(record, method + end) for field, end in _CRITICAL.get(method, {}).items()},
    )
    if item.prefix is None:
        return item
    # Both sentences must begin with their prefix and critical word, the whole word.
    bad = item.prefix if item.one_prefix else _text(record, "two_prefix_prefix_bad"), item.word_bad or item.word_good
    for sentence, (prefix, word) in ((item.good, (item.prefix, item.word_good)), (item.bad, bad)):
        if not re.match(re.escape(f"{prefix} {word}") + r"(?![\w'])", sentence):
            raise ValueError(f"expected a sentence that begins with {prefix!r} {word!r}, got {sentence!r}")
    return item


def _compared_by(record: Mapping[str, Any], method: str) -> bool:
    """Whether a method is to compare the item, and any of what it needs is there."""
    said = record.get(f"{method}_method")
    if str(said).lower() not in _FLAGS:
        raise ValueError(f"expected true or false for '{method}_method', got {shown(said)}")
    needed = (value for key, value in record.items() if key.startswith((f"{method}_prefix", f"{method}_word")))
    return _FLAGS[str(said).lower()] and any(value not in (None, "") for value in needed)


def _name(record: Mapping[str, Any], key: str) -> str:
    """A text, or a whole number."""
    value = record.get(key)
    return str(value) if type(value) is int else _text(record, key)


def _text(record: Mapping[str, Any], key: str) -> str:
    if key not in record:
        raise ValueError(f"expected a key {key!r}, got {sorted(record)}")
    value = record[key]
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"expected text for {key!r}, got {value!r}")
    try:
        value.encode()
    except UnicodeEncodeError as error:  # JSON can write down half of a character as \\ud800
        raise ValueError(f"expected Unicode text for {key!r}, got half of a surrogate pair in {value!r}") from error
    return value.strip()
