"""One sentence of CoNLL-U, checked line by line. Every error names its line.

1. A line is a word (``3``), a multiword token (``2-3``) or an empty node (``8.1``), in ten columns between tabs. Only a
   form, a lemma and MISC may hold spaces.
2. Words are found in the text in their order. Without ``# text``, it is put together from the forms and
   ``SpaceAfter=No``. A multiword token's words are found within it where together they spell it (``don't``: ``do``,
   ``n't``); else they share its characters. Empty nodes stand in no text.
3. Heads must make one tree: each word's head stands in the sentence, and every path ends at the one root.
4. ``Entity=`` in MISC is CorefUD 1.0's notation (Nedoluzhko et al. 2022, https://aclanthology.org/2022.lrec-1.520).
   ``(7-person-new`` opens a mention, ``7)`` closes the entity's mention that was opened last, ``(7-person-new)`` does
   both; mentions nest within a sentence. ``(7[1/2]-person`` opens a part of a discontinuous mention. A mention of
   empty nodes alone is left out.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby, pairwise
from pathlib import Path

from conllu.exceptions import ParseException
from conllu.parser import parse_comment_line, parse_id_value, parse_int_value

from interp.errors import TaskError, shown
from interp.tasks.example import Span
from interp.tasks.readers.sources import located, numbered_lines, read_only_once, shortened
from interp.tasks.treebank import ROOT, Mention, Sentence, Word

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
    stop: int | None = None  # not closed yet


def mentions_of(parsed: "ParsedSentence", number: int, fields: Sequence[str] = FIELDS) -> list[Mention]:
    """All mentions of a document's sentence of this number, by their first words, the longer first."""
    opened: list[_Open] = []
    last_opened: dict[tuple[str, int], list[_Open]] = defaultdict(list)
    before = 0
    for node in parsed.nodes:
        covered = range(before, before + node.n_words)  # of an empty node none, before the next word
        before += isinstance(node.id, int)
        with located(node.place):
            for match in _matches("".join(node.said("Entity"))):
                opening, at_once, closing = match.groups()
                says = (opening or "").split("-")
                said = dict(zip(fields, says, strict=False))
                entity, part, parts = _name_and_parts(closing or said.get("eid") or said.get("GRP") or says[0])
                if opening:
                    opened.append(_Open(entity, said.get("etype", ""), part, parts, covered.start))
                    last_opened[entity, part].append(opened[-1])
                if closing or at_once:
                    if not last_opened[entity, part]:
                        raise ValueError(
                            f"expected an opening bracket of entity {closing!r} before its closing one, got none"
                        )
                    last_opened[entity, part].pop().stop = covered.stop
    with located(parsed.nodes[-1].place):
        return _mentions(opened, number, parsed.sentence.words if parsed.sentence else ())


def _mentions(opened: Sequence[_Open], number: int, words: Sequence[Word]) -> list[Mention]:
    for each in reversed(opened):
        if each.stop is None:
            raise ValueError(f"expected a closing bracket for entity {each.entity!r} before the sentence ends")
    closed = [(each, range(each.first, each.stop)) for each in opened if each.stop is not None]
    covered_words = sum(len(covered) for _, covered in closed)
    if covered_words > MOST_COVERED:
        raise ValueError(f"expected mentions of at most {MOST_COVERED:,} words in a sentence, got {covered_words:,}")
    joined = [(each, covered) for each, covered in _with_parts(closed) if covered]
    found = [Mention(each.entity, each.type, number, covered, head_of(covered, words)) for each, covered in joined]
    return sorted(found, key=lambda mention: (mention.words[0], -mention.words[-1]))


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


def _name_and_parts(name: str) -> tuple[str, int, int]:
    found = _PART.fullmatch(name)
    return (name, 1, 1) if found is None else (found[1], int(found[2]), int(found[3]))


def _with_parts(closed: Sequence[tuple[_Open, range]]) -> Iterator[tuple[_Open, tuple[int, ...]]]:
    """Each mention with the numbers of its words; the parts of a discontinuous one are joined."""
    pending: dict[tuple[str, int], dict[int, tuple[_Open, range]]] = {}
    for each, covered in closed:
        parts = pending.setdefault((each.entity, each.parts), {})
        parts[each.part] = each, covered
        if len(parts) == each.parts:
            del pending[each.entity, each.parts]
            first = next(iter(parts.values()))[0]  # which alone may say the type
            yield first, tuple(sorted({word for _, words in parts.values() for word in words}))
    if pending:
        entity, parts_wanted = next(iter(pending))
        raise ValueError(f"expected {parts_wanted} parts of the discontinuous entity {entity!r}, got fewer")


@dataclass(frozen=True)
class Block:
    """A sentence's lines."""

    name: str  # the sentence's, where no comment says it
    lines: Sequence[tuple[str, str]]  # comments and words, at least one, each behind its place: ``bank.conllu, line 3``


def file_blocks(path: Path) -> Iterator[Block]:
    """The sentences of a file: what stands between blank lines."""
    if read_only_once(path):
        raise TaskError(f"{path}: expected a CoNLL-U file, got a pipe, which can be read only once; write it to a file")
    n_blocks = 0
    numbered = numbered_lines(path, "a CoNLL-U file", "name one .conllu file in it")
    for filled, lines in groupby(numbered, key=lambda line: bool(line[1].strip())):
        if filled:
            n_blocks += 1
            yield Block(f"{path.stem}-{n_blocks}", [(f"{path}, line {number}", text) for number, text in lines])
    if not n_blocks:
        raise TaskError(f"{path}: expected sentences in CoNLL-U, got an empty file")


COLUMNS = 10
NOTHING = "_"
_WITH_SPACES = (2, 3, COLUMNS)
"""FORM, LEMMA and MISC."""


@dataclass(frozen=True)
class Node:
    """A line of a sentence that is no comment; what it does not say is empty."""

    place: str  # of the line, for an error
    # a word's number; or of a multiword token ``(2, "-", 3)``, of an empty node ``(8, ".", 1)``
    id: int | tuple[int, str, int]
    word: Word  # its columns, the form ``_`` where that is not said; where it stands is found out later
    head: int | None  # number of the head; 0 for a root, None where it is not said
    misc: tuple[tuple[str, str], ...]  # names and values of all else; a name may come twice

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


def node_of(place: str, line: str) -> Node:
    """Take a line apart."""
    number, form, lemma, upos, xpos, feats, head, deprel, _, misc = _columns(line)
    try:
        node_id, its_head = parse_id_value(number), parse_int_value(head)
    except (ParseException, ValueError) as error:  # also a number of thousands of digits
        raise ValueError(f"expected CoNLL-U, got {shortened(line)} ({error})") from error
    if node_id is None:
        raise ValueError(f"expected a word's number in the first column, got '_' in {shortened(line)}")
    lemma, upos, xpos, deprel = ("" if field == NOTHING else field for field in (lemma, upos, xpos, deprel))
    said, at = tuple(_pairs(misc)), its_head - 1 if its_head else ROOT
    sense = next((value for name, value in said if name == "Sense"), "")
    word = Word(form, Span(0, 0), lemma, upos, xpos, dict(_pairs(feats)), at, deprel, sense)
    return Node(place, node_id, word, its_head, said)


def _columns(line: str) -> list[str]:
    fields = line.split("\t")
    if len(fields) != COLUMNS:
        raise ValueError(f"expected {COLUMNS} columns separated by tabs, got {len(fields)} in {shortened(line)}")
    for number, column in enumerate(fields, start=1):
        if not column.strip():
            raise ValueError(f"expected '_' where there is nothing, got an empty column {number} in {shortened(line)}")
        if number not in _WITH_SPACES and re.search(r"\s", column):
            raise ValueError(f"expected no space in column {number}, got {shown(column)}")
    return fields


def _pairs(field: str) -> Iterator[tuple[str, str]]:
    """Names and values, ``Number=Sing|Person=3``; what has no value is not said."""
    for part in field.split("|"):
        name, _, value = part.partition("=")
        if value.strip() not in ("", NOTHING):
            yield name.strip(), value.strip()


def written(nodes: Sequence[Node]) -> str:
    """The text that the forms and ``SpaceAfter=No`` give."""
    pieces = [node.word.form + ("" if "No" in node.said("SpaceAfter") else " ") for node in _surface(nodes)]
    return "".join(pieces).rstrip(" ")


def _surface(nodes: Sequence[Node]) -> Iterator[Node]:
    """The tokens that the text consists of: multiword tokens, and words outside of them."""
    covered = 0
    for node in nodes:
        if isinstance(node.id, int):
            if node.id > covered:
                yield node
        elif node.n_words:
            covered = node.id[2]
            yield node


def word_spans(nodes: Sequence[Node], text: str) -> list[Span]:
    """Where each word stands in the text."""
    forms = [node.word.form for node in nodes if isinstance(node.id, int)]
    spans: list[Span] = []
    at = 0
    for node in _surface(nodes):
        form = node.word.form
        while text[at : at + 1].isspace() and not text.startswith(form, at):
            at += 1
        if not text.startswith(form, at):
            raise TaskError(f"{node.place}: expected the text to go on with {form!r}, got {shortened(text[at:])}")
        whole = Span(at, at + len(form))
        if isinstance(node.id, int):
            spans.append(whole)
        else:
            first, _, last = node.id
            if not len(spans) + 1 == first <= last <= len(forms):
                raise TaskError(
                    f"{node.place}: expected a multiword token of words of the sentence from {len(spans) + 1} on, got "
                    f"{first}-{last}"
                )
            parts = forms[first - 1 : last]
            ends = list(accumulate(map(len, parts), initial=at))
            spelled = "".join(parts) == form
            spans += [Span(*each) for each in pairwise(ends)] if spelled else [whole] * len(parts)
        at = whole.stop
    return spans


def check_tree(words: Sequence[Node]) -> None:
    """Refuse heads that make no tree."""
    heads: list[int] = []
    for node in words:
        head = node.head
        if head is None or not 0 <= head <= len(words):
            got = "none" if head is None else head
            raise TaskError(f"{node.place}: expected a head from 0 to {len(words)}, the sentence's words, got {got}")
        if head == 0 and 0 in heads:
            raise TaskError(
                f"{node.place}: expected one root, got a second one; the first is word {heads.index(0) + 1}"
            )
        heads.append(head)
    rooted = {0}
    for word, node in enumerate(words, start=1):
        path, above = set[int](), word
        while above not in rooted:
            if above in path:
                raise TaskError(
                    f"{node.place}: expected a tree, got a circle: from word {word} its heads lead back to word {above}"
                )
            path.add(above)
            above = heads[above - 1]
        rooted |= path


_MAY_BE_SPELLED_SO = ("PUNCT", "SYM", "X")
"""Parts of speech of an underscore that is meant."""


@dataclass(frozen=True)
class ParsedSentence:
    """A sentence and what its lines say beside it."""

    id: str  # its name
    nodes: Sequence[Node]  # its lines but for the comments; at least one
    comments: Mapping[str, str | None]  # by their names
    sentence: Sentence | None  # None where it is distributed without its words


def parse_sentence(block: Block) -> ParsedSentence:
    """Take a block apart."""
    nodes, comments = [], dict[str, str | None]()
    for place, line in block.lines:
        if line.startswith("#"):
            comments |= parse_comment_line(line)
            continue
        with located(place):
            nodes.append(node_of(place, line))
    if not nodes:
        raise TaskError(f"{block.lines[0][0]}: expected words after the comments, got a blank line")
    words = [node for node in nodes if isinstance(node.id, int)]
    for expected, node in enumerate(words, start=1):
        if node.id != expected:
            raise TaskError(f"{node.place}: expected the word number {expected}, got {node.id}")
    check_tree(words)
    name, sentence = comments.get("sent_id") or block.name, None
    if not _without_words(nodes):
        text = comments.get("text") or written(nodes)
        placed = zip(words, word_spans(nodes, text), strict=True)
        sentence = Sentence(name, text, tuple(replace(node.word, span=span) for node, span in placed))
    return ParsedSentence(name, nodes, comments, sentence)


def _without_words(nodes: Sequence[Node]) -> bool:
    """Whether a word's form is not said. ``_`` beside words is an underscore where it has a sign's part of speech."""
    unsaid = [node for node in nodes if node.n_words and node.word.form == NOTHING]
    all_words = all(node.word.form == NOTHING for node in nodes if isinstance(node.id, int))
    return all_words or any(node.word.upos not in _MAY_BE_SPELLED_SO for node in unsaid)
