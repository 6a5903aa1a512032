"""Winogender's sentences, and where in them the pronoun and the two people stand.

Winogender (Rudinger et al., 2018, https://aclanthology.org/N18-2002) has 120 templates with an occupation, another
participant and a pronoun that can only stand for one of the two. ``all_sentences.tsv`` instantiates each with the
participant's noun or ``someone``, and with a masculine, a feminine and a neutral pronoun.

1. A sentence's id says which words these are. Each must stand in the sentence exactly once: a span is never a guess.
2. ``occupations-stats.tsv`` beside it, if it is there, says which share of those with the occupation are women
   (U.S. Bureau of Labor Statistics). The hub has none.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from interp.tasks.example import Span
from interp.tasks.readers.sources import as_path, file_items, hub_items, is_hub, table_rows

Gender = Literal["feminine", "masculine", "neutral"]

_GENDERS: dict[str, tuple[Gender, tuple[str, ...]]] = {
    "male": ("masculine", ("he", "his", "him")),
    "female": ("feminine", ("she", "her")),
    "neutral": ("neutral", ("they", "their", "them")),
}
"""By the word in the sentence's id: its name here, and its pronouns."""


@dataclass(frozen=True)
class WinogenderItem:
    """One sentence of Winogender.

    Attributes:
        sentence_id: For example ``technician.customer.1.male.txt``.
        text: The sentence.
        occupation: The occupation's noun.
        participant: The other's noun, or ``someone``.
        answer: Whom the pronoun stands for.
        gender: Of the pronoun.
        pronoun_span: Where the pronoun stands.
        occupation_span: Where the occupation's noun stands.
        participant_span: Where the other's noun stands.
        bls_pct_female: Share of women in the occupation in percent; None where it is not known.
    """

    sentence_id: str
    text: str
    occupation: str
    participant: str
    answer: Literal["occupation", "participant"]
    gender: Gender
    pronoun_span: Span
    occupation_span: Span
    participant_span: Span
    bls_pct_female: float | None


def read_winogender(path: str | Path) -> Iterator[WinogenderItem]:
    """Read Winogender, sentence by sentence, in the file's order.

    Args:
        path: ``all_sentences.tsv``, or the folder that holds it; or ``hub:NAME[:CONFIG[:SPLIT]]``, as
            ``hub:oskarvanderwal/winogender:all:test`` is.

    Raises:
        TaskError: A file is missing, unreadable or without rows, has another header, or has a line (named) that
            cannot be used; likewise a data set of the hub and its rows.
    """
    if is_hub(path):
        return hub_items(str(path), lambda row: _item(row, {}))
    path = as_path(path)
    path = path / "all_sentences.tsv" if path.is_dir() else path
    shares = _shares(path.with_name("occupations-stats.tsv"))
    rows = table_rows(path, "Winogender's sentences", ("sentid", "sentence"))
    return file_items(path, rows, lambda row: _item(row, shares))


def _shares(path: Path) -> dict[str, float]:
    """The share of women in each occupation, in percent; none where there is no such file."""
    if not path.exists():
        return {}
    columns = ("occupation", "bergsma_pct_female", "bls_pct_female", "bls_year")
    rows = table_rows(path, "the statistics of Winogender's occupations", columns)
    return dict(file_items(path, rows, _share))


def _share(row: Mapping[str, str]) -> tuple[str, float]:
    text = row["bls_pct_female"]
    if not re.fullmatch(r"\d+(\.\d+)?", text) or float(text) > 100:
        raise ValueError(f"expected a share in percent in the column 'bls_pct_female', got {text!r}")
    return row["occupation"], float(text)


def _item(row: Mapping[str, Any], shares: Mapping[str, float]) -> WinogenderItem:
    sentence_id, text = row.get("sentid"), row.get("sentence")
    if not isinstance(sentence_id, str) or not isinstance(text, str):
        raise ValueError(f"expected text in the columns 'sentid' and 'sentence', got {sentence_id!r} and {text!r}")
    parts = re.fullmatch(r"([^.]+)\.([^.]+)\.([01])\.(male|female|neutral)\.txt", sentence_id)
    if parts is None:
        raise ValueError(f"expected an id such as technician.customer.1.male.txt, got {sentence_id!r}")
    occupation, participant, answer, word = parts.groups()
    gender, pronouns = _GENDERS[word]
    who: Literal["occupation", "participant"] = "participant" if answer == "1" else "occupation"
    spans = (_only(text, *pronouns), _only(text, occupation), _only(text, participant))
    return WinogenderItem(sentence_id, text, occupation, participant, who, gender, *spans, shares.get(occupation))


def _only(text: str, *words: str) -> Span:
    """Where the one of `words` that stands in the text does."""
    any_word = "|".join(map(re.escape, words))
    found = [match.span() for match in re.finditer(rf"\b({any_word})\b", text, re.IGNORECASE)]
    if len(found) != 1:
        raise ValueError(f"expected {' or '.join(words)} once in the sentence, got {len(found)} in {text!r}")
    return Span(*found[0])
