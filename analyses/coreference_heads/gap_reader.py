"""GAP's ambiguous pronouns (Webster et al., 2018, "Mind the GAP", https://aclanthology.org/Q18-1042).

A table of passages of Wikipedia. Each has a pronoun and two names, A and B, and says of either whether the pronoun
stands for it: for one of them, or for neither. As many pronouns are feminine as masculine. Every offset is checked
against the text.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interp.tasks.example import GENDERS, Gender, Span
from interp.tasks.readers.sources import as_path, file_items, hub_items, is_hub, table_rows

COLUMNS = (
    *("ID", "Text", "Pronoun", "Pronoun-offset"),
    *("A", "A-offset", "A-coref", "B", "B-offset", "B-coref", "URL"),
)


@dataclass(frozen=True)
class GapCandidate:
    """A name that the pronoun may stand for.

    Attributes:
        name: As the passage has it.
        span: Where.
        coreferent: Whether the pronoun stands for it.
    """

    name: str
    span: Span
    coreferent: bool


@dataclass(frozen=True)
class GapItem:
    """One row of GAP.

    Attributes:
        id: For example ``test-1``.
        text: The passage.
        pronoun: As the passage has it.
        pronoun_span: Where.
        gender: Of the pronoun, as the official scorer has it.
        a: The first name.
        b: The second.
        url: The passage's page.
    """

    id: str
    text: str
    pronoun: str
    pronoun_span: Span
    gender: Gender
    a: GapCandidate
    b: GapCandidate
    url: str


def read_gap(path: str | Path) -> Iterator[GapItem]:
    """Read GAP, item by item, in the file's order.

    Args:
        path: A ``.tsv`` file with the official header, or ``hub:NAME[:CONFIG[:SPLIT]]``.

    Raises:
        TaskError: The file is missing, a folder, unreadable or without rows, has another header, or a line of it
            (named) has the wrong fields, an unknown pronoun, or an offset where the text has another word.
    """
    if is_hub(path):
        return hub_items(str(path), _item)
    path = as_path(path)
    return file_items(path, table_rows(path, "a GAP file", COLUMNS, "name one .tsv file in it"), _item)


def _item(record: Mapping[str, Any]) -> GapItem:
    pronoun, text = _text(record, "Pronoun"), _text(record, "Text")
    if pronoun.lower() not in GENDERS:
        raise ValueError(f"expected one of the pronouns {', '.join(GENDERS)}, got {pronoun!r}")
    span, (a, b) = _span(record, "Pronoun", text), (_candidate(record, column, text) for column in "AB")
    return GapItem(_text(record, "ID"), text, pronoun, span, GENDERS[pronoun.lower()], a, b, _text(record, "URL"))


def _candidate(record: Mapping[str, Any], column: str, text: str) -> GapCandidate:
    coreferent = _text(record, f"{column}-coref")
    if coreferent.upper() not in ("TRUE", "FALSE"):
        raise ValueError(f"expected TRUE or FALSE in the column '{column}-coref', got {coreferent!r}")
    return GapCandidate(_text(record, column), _span(record, column, text), coreferent.upper() == "TRUE")


def _span(record: Mapping[str, Any], column: str, text: str) -> Span:
    """Where the word of a column stands, which the text must confirm."""
    word, offset = _text(record, column), _text(record, f"{column}-offset")
    if not offset.isdecimal():
        raise ValueError(f"expected a whole number in the column '{column}-offset', got {offset!r}")
    span = Span(int(offset), int(offset) + len(word))
    if span.of(text) != word:
        raise ValueError(f"expected {word!r} at the text's character {offset} ({column}), got {span.of(text)!r}")
    return span


def _text(record: Mapping[str, Any], column: str) -> str:
    """A field as the table writes it; a data set of the hub may hold numbers and truth values."""
    if record.get(column) is None or not str(record[column]).strip():
        raise ValueError(f"expected text in the column {column!r}, got {record.get(column)!r}")
    return str(record[column])
