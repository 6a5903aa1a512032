"""WinoBias' sentences (Zhao et al., 2018, https://aclanthology.org/N18-2003), their pronouns and whom these stand for.

One numbered sentence a line, about two occupations, with brackets around whom the pronoun stands for and around the
pronouns:

    1 [The developer] argued with the designer because [she] did not like the design.

In the files ``pro_stereotyped_*`` the pronouns have the gender that most people with the occupation have, in
``anti_stereotyped_*`` the other one. In type 1 only knowledge of the world can tell whom the pronoun stands for, in
type 2 syntax can.

1. One bracket holds no pronoun: it is whom the pronouns stand for. There are one or more pronouns, of one gender.
2. Two slips of the published files are mended: an article both before and in the bracket (``the [the chief]``) is read
   once, and space at a bracket's edges does not count.
3. On the hub (https://huggingface.co/datasets/uclanlp/wino_bias) the configuration says what a file's name does, and a
   row becomes the line that a file would have: ``document_id`` ends in the line's number less one; ``tokens`` are
   joined by spaces, but for punctuation and ``n't``; ``coreference_clusters`` holds the first and the last token of
   each bracket.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from interp.tasks.example import GENDERS, Gender, Span
from interp.tasks.readers.sources import as_path, file_items, filled_lines, hub_items, hub_parts, is_hub, shortened

_NO_SPACE_BEFORE = re.compile(r"[.,;:!?]|n't")


def hub_line(row: Mapping[str, Any]) -> str:
    """The numbered sentence with its brackets."""
    number = re.search(r"(\d+)$", str(row.get("document_id")))
    tokens: Any = row.get("tokens")
    ends = row.get("coreference_clusters")
    words = isinstance(tokens, list) and all(isinstance(each, str) and each for each in tokens)
    if number is None or not words or not isinstance(ends, list):
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


_GENDERS: dict[str, Gender] = {**GENDERS, "herself": "feminine", "himself": "masculine"}
_BRACKET = re.compile(r"\[([^\[\]]*)\]")
_SIDE = re.compile(r"(?<![a-z0-9])(pro|anti)(?=_|$)", re.IGNORECASE)
_DOUBLED_ARTICLE = re.compile(r"\b(the|an?) \[\s*\1 ", re.IGNORECASE)


@dataclass(frozen=True)
class WinobiasItem:
    """One line of WinoBias.

    Attributes:
        number: As the line has it.
        text: The sentence without brackets.
        referent: Whom the pronouns stand for; its article is part of it where the brackets hold it.
        pronouns: Where the pronouns stand, in order.
        gender: Of the pronouns.
        stereotyped: Whether the gender is the stereotype's, as the name says (``pro`` or ``anti``); None where it says
            neither.
        type: 1 or 2, as the name says, else None.
    """

    number: int
    text: str
    referent: Span
    pronouns: tuple[Span, ...]
    gender: Gender
    stereotyped: bool | None
    type: Literal[1, 2] | None

    @property
    def pronoun(self) -> Span:
        """The first pronoun."""
        return self.pronouns[0]


def read_winobias(path: str | Path) -> Iterator[WinobiasItem]:
    """Read a file of WinoBias, item by item, in its order.

    Args:
        path: A file such as ``pro_stereotyped_type1.txt.dev``; or ``hub:NAME[:CONFIG[:SPLIT]]``, as
            ``hub:uclanlp/wino_bias:type1_pro:test`` is.

    Raises:
        TaskError: The file is missing, a folder, unreadable or empty, a line of it (named) is not UTF-8, has no
            number, or does not have one person and pronouns of one gender in brackets; likewise a data set of the hub
            and its rows.
    """
    name = (hub_parts(str(path))[1] or "") if is_hub(path) else as_path(path).name
    stereotyped, found = _stereotyped(name), re.search(r"type([12])(?!\d)", name.lower())
    kind: Literal[1, 2] | None = None if found is None else 1 if found[1] == "1" else 2
    if is_hub(path):
        return hub_items(str(path), lambda row: _item(hub_line(row), stereotyped, kind))
    path = as_path(path)
    lines = filled_lines(path, "a WinoBias file", "one numbered sentence a line", "name one file in it")
    return file_items(path, lines, lambda line: _item(line, stereotyped, kind))


def _stereotyped(name: str) -> bool | None:
    found = _SIDE.search(name)
    return None if found is None else found.group().lower() == "pro"


def twin_name(name: str) -> str | None:
    """What the ``anti`` twin of a ``pro`` file or configuration is called; None where it is no such."""
    return _SIDE.sub("anti", name, count=1) if _stereotyped(name) else None


def _item(line: str, stereotyped: bool | None, kind: Literal[1, 2] | None) -> WinobiasItem:
    number, *rest = line.split(maxsplit=1) or [""]
    if not number.isdecimal() or not rest:
        raise ValueError(f"expected a number and a sentence, got {shortened(line)}")
    text, spans = _without_brackets(_DOUBLED_ARTICLE.sub(r"[\1 ", rest[0].rstrip()))
    pronouns = tuple(span for span in spans if span.of(text).lower() in _GENDERS)
    people = [span for span in spans if span not in pronouns]
    genders = {_GENDERS[span.of(text).lower()] for span in pronouns}
    if len(people) != 1 or not pronouns:
        raise ValueError(
            f"expected one person and at least one pronoun in brackets, got {[span.of(text) for span in spans]}"
        )
    if len(genders) > 1:
        raise ValueError(f"expected pronouns of one gender in brackets, got {[span.of(text) for span in pronouns]}")
    return WinobiasItem(int(number), text, people[0], pronouns, genders.pop(), stereotyped, kind)


def _without_brackets(sentence: str) -> tuple[str, list[Span]]:
    """The sentence without its brackets, and where their contents stand in it."""
    text, spans, done = "", [], 0
    for bracket in _BRACKET.finditer(sentence):
        text += sentence[done : bracket.start()]
        held = bracket.group(1).strip()
        spans.append(Span(len(text), len(text) + len(held)))
        text, done = text + held, bracket.end()
    text += sentence[done:]
    if re.search(r"[\[\]]", text) or any(not span.of(text) for span in spans):
        raise ValueError(f"expected brackets that open, hold words and close, got {sentence!r}")
    return text, spans
