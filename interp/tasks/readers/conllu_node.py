"""What does a line of CoNLL-U say of a word (``3``), a multiword token (``2-3``) or an empty node (``8.1``)?

It has ten columns between tabs. Spaces end none: a form, a lemma and MISC may hold some, several in a row as well.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from conllu.exceptions import ParseException
from conllu.parser import parse_id_value, parse_int_value

from interp.errors import shown
from interp.tasks.readers.conllu_block import Line
from interp.tasks.readers.lines import shortened

COLUMNS = 10
NOTHING = "_"
_WITH_SPACES = (2, 3, COLUMNS)
"""FORM, LEMMA and MISC."""


@dataclass(frozen=True)
class Node:
    """A line of a sentence that is no comment; what it does not say is empty.

    Attributes:
        place: Of the line, for an error.
        id: A word's number; or of a multiword token ``(2, "-", 3)``, of an empty node ``(8, ".", 1)``.
        form: As it is spelled, ``_`` where that is not said.
        lemma: Its dictionary form.
        upos: Universal part of speech.
        xpos: The treebank's own.
        feats: Morphological features.
        head: Number of the head; 0 for a root, None where it is not said.
        deprel: The relation to the head.
        misc: Names and values of all else; a name may come twice.
    """

    place: str
    id: int | tuple[int, str, int]
    form: str
    lemma: str
    upos: str
    xpos: str
    feats: Mapping[str, str]
    head: int | None
    deprel: str
    misc: tuple[tuple[str, str], ...]

    @property
    def n_words(self) -> int:
        """How many words of the sentence it is: an empty node is none."""
        if isinstance(self.id, int):
            return 1
        first, kind, last = self.id
        return last - first + 1 if kind == "-" else 0

    def said(self, name: str) -> list[str]:
        """What MISC says by a name."""
        return [value for key, value in self.misc if key == name]


def node_of(line: Line) -> Node:
    """Take a line apart.

    Raises:
        ValueError: It has other than ten columns, an empty one, a space where there is none, or no number where one is.
    """
    number, form, lemma, upos, xpos, feats, head, deprel, _, misc = _columns(line.text)
    try:
        node_id, its_head = parse_id_value(number), parse_int_value(head)
    except (ParseException, ValueError) as error:  # also a number of thousands of digits
        raise ValueError(f"expected CoNLL-U, got {shortened(line.text)} ({error})") from error
    if node_id is None:
        raise ValueError(f"expected a word's number in the first column, got '_' in {shortened(line.text)}")
    return Node(
        place=line.place,
        id=node_id,
        form=form,
        lemma=_said(lemma),
        upos=_said(upos),
        xpos=_said(xpos),
        feats=dict(_pairs(feats)),
        head=its_head,
        deprel=_said(deprel),
        misc=tuple(_pairs(misc)),
    )


def _columns(line: str) -> list[str]:
    fields = line.split("\t")
    if len(fields) != COLUMNS:
        raise ValueError(f"expected {COLUMNS} columns separated by tabs, got {len(fields)} in {shortened(line)}")
    for number, field in enumerate(fields, start=1):
        if not field.strip():
            raise ValueError(f"expected '_' where there is nothing, got an empty column {number} in {shortened(line)}")
        if number not in _WITH_SPACES and re.search(r"\s", field):
            raise ValueError(f"expected no space in column {number}, got {shown(field)}")
    return fields


def _said(field: str) -> str:
    return "" if field == NOTHING else field


def _pairs(field: str) -> Iterator[tuple[str, str]]:
    """Names and values, ``Number=Sing|Person=3``; what has no value is not said."""
    for part in field.split("|"):
        name, _, value = part.partition("=")
        if _said(value.strip()):
            yield name.strip(), value.strip()
