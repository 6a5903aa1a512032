"""Coreference from the ``Entity=`` of CoNLL-U's MISC.

CorefUD 1.0's notation, as GUM has it (Nedoluzhko et al. 2022, https://aclanthology.org/2022.lrec-1.520):

1. ``# global.Entity = GRP-etype-...`` names the fields of an opening bracket; ``GRP`` or ``eid`` is the entity.
2. ``(7-person-new`` opens a mention at its first word, ``7)`` closes it at its last, ``(7-person-new)`` does both;
   several follow each other without a space, and mentions nest.
3. The parts of a discontinuous mention are opened as ``(7[1/2]-person``, ``(7[2/2]-person``: one mention of all words.
4. A closing bracket closes the entity's mention that was opened last. No mention reaches beyond its sentence.
5. Mentions may begin and end at empty nodes: they have the words in between. One without any stands in no text, and is
   left out.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from interp.tasks.readers.sources import shortened
from interp.tasks.treebank import ROOT, Mention, Word

FIELDS = ("eid", "etype")
"""What an opening bracket says where the file does not."""
MOST_COVERED = 1_000_000
"""Words of all mentions of a sentence, one counted as often as it is in one: thousands that nest fill the memory."""

_BRACKET = re.compile(r"\(([^()]+)(\)?)|([^()]+)\)")
_PART = re.compile(r"(.+)\[(\d+)/(\d+)\]")


@dataclass
class _Open:
    entity: str
    type: str
    part: int
    parts: int
    first: int
    order: int


@dataclass
class SentenceMentions:
    """Gathers the mentions of one sentence, node by node; what cannot be right raises ``ValueError``."""

    fields: Sequence[str] = FIELDS
    _open: dict[tuple[str, int], list[_Open]] = field(default_factory=dict)
    _closed: list[tuple[_Open, int]] = field(default_factory=list)
    _n_opened: int = 0

    def add(self, covered: range, brackets: str) -> None:
        """Take the ``Entity=`` of a node that stands for these words; of an empty node none, before the next word."""
        for match in _matches(brackets):
            opening, at_once, closing = match.groups()
            if opening is None:
                self._close(closing, *_parts(closing)[:2], covered.stop)
                continue
            opened = self._opened(opening, covered.start)
            if at_once:
                self._close(opening, opened.entity, opened.part, covered.stop)

    def mentions(self, sentence: int, words: Sequence[Word]) -> list[Mention]:
        """All mentions, by their first words, the longer first."""
        if self._open:
            last = max((stack[-1] for stack in self._open.values()), key=lambda each: each.order)
            raise ValueError(f"expected a closing bracket for entity {last.entity!r} before the sentence ends")
        covered_words = sum(stop - each.first for each, stop in self._closed)
        if covered_words > MOST_COVERED:
            raise ValueError(
                f"expected mentions of at most {MOST_COVERED:,} words in a sentence, got {covered_words:,}"
            )
        found = [
            Mention(each.entity, each.type, sentence, covered, head_of(covered, words))
            for each, covered in _joined(self._closed)
            if covered
        ]
        return sorted(found, key=lambda mention: (mention.words[0], -mention.words[-1]))

    def _opened(self, opening: str, first: int) -> _Open:
        said = dict(zip(self.fields, opening.split("-"), strict=False))
        name = said.get("eid") or said.get("GRP") or opening.split("-")[0]
        entity, part, parts = _parts(name)
        self._n_opened += 1
        opened = _Open(entity, said.get("etype", ""), part, parts, first, self._n_opened)
        self._open.setdefault((entity, part), []).append(opened)
        return opened

    def _close(self, closing: str, entity: str, part: int, stop: int) -> None:
        """Close the mention of this entity and part that was opened last."""
        if (entity, part) not in self._open:
            raise ValueError(f"expected an opening bracket of entity {closing!r} before its closing one, got none")
        stack = self._open[entity, part]
        self._closed.append((stack.pop(), stop))
        if not stack:
            del self._open[entity, part]


def _matches(brackets: str) -> Iterator[re.Match[str]]:
    """The brackets, which follow each other without a gap: so each character is looked at once."""
    at = 0
    while at < len(brackets):
        match = _BRACKET.match(brackets, at)
        if match is None:
            raise ValueError(f"expected brackets such as '(7-person' and '7)' in Entity, got {shortened(brackets)}")
        yield match
        at = match.end()


def head_of(covered: Sequence[int], words: Sequence[Word]) -> int:
    """The first of the words `covered` whose head is none of them."""
    inside = set(covered)
    return next((word for word in covered if words[word].head == ROOT or words[word].head not in inside), covered[0])


def _parts(name: str) -> tuple[str, int, int]:
    found = _PART.fullmatch(name)
    return (name, 1, 1) if found is None else (found[1], int(found[2]), int(found[3]))


def _joined(closed: Sequence[tuple[_Open, int]]) -> Iterator[tuple[_Open, tuple[int, ...]]]:
    """Each mention with the numbers of its words; the parts of a discontinuous one are joined."""
    pending: dict[tuple[str, int], dict[int, tuple[_Open, range]]] = {}
    for each, stop in sorted(closed, key=lambda pair: pair[0].order):
        parts = pending.setdefault((each.entity, each.parts), {})
        parts[each.part] = each, range(each.first, stop)
        if len(parts) == each.parts:
            del pending[each.entity, each.parts]
            first = next(iter(parts.values()))[0]  # which alone may say the type
            yield first, tuple(sorted({word for _, covered in parts.values() for word in covered}))
    if pending:
        entity, parts_wanted = next(iter(pending))
        raise ValueError(f"expected {parts_wanted} parts of the discontinuous entity {entity!r}, got fewer")
