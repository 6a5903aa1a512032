"""How does a block of CoNLL-U become a sentence? Columns, numbers, characters and heads are checked line by line."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conllu import parse
from conllu.exceptions import ParseException

from interp.errors import TaskError
from interp.tasks.example import Span
from interp.tasks.readers.conllu_block import Block, placed
from interp.tasks.readers.conllu_text import word_spans, written
from interp.tasks.readers.conllu_tree import check_tree
from interp.tasks.readers.lines import shortened
from interp.tasks.treebank import ROOT, Sentence, Word

COLUMNS = 10


@dataclass(frozen=True)
class ParsedSentence:
    """A sentence and what its lines say beside it.

    Attributes:
        sentence: The sentence.
        comments: By their names.
        brackets: Place, word and ``Entity=`` of every word that has one.
        last_place: Of its last line.
    """

    sentence: Sentence
    comments: Mapping[str, Any]
    brackets: tuple[tuple[str, int, str], ...]
    last_place: str


def parse_sentence(block: Block) -> ParsedSentence:
    """Take a block apart.

    Raises:
        TaskError: A line of it (named) is not CoNLL-U, a head stands outside the sentence, heads go in a circle, or a
            word is not in the text.
    """
    places = []
    for line in block.words:
        with placed(line.place):
            _check_columns(line.text)
        places.append(line.place)
    if not places:
        raise TaskError(f"{block.lines[0].place}: expected words after the comments, got a blank line")
    try:
        (tokens,) = parse("\n".join(line.text for line in block.lines) + "\n\n")
    except (ParseException, ValueError) as error:  # also a number of thousands of digits
        raise _where_it_fails(block, error) from error
    nodes = list(zip(places, tokens, strict=True))
    _check_order(nodes)
    text = tokens.metadata.get("text") or written(nodes)
    spans = word_spans(nodes, text)
    plain = [(place, node) for place, node in nodes if isinstance(node["id"], int)]
    words = tuple(_word(node, span) for (_, node), span in zip(plain, spans, strict=True))
    check_tree(plain)
    brackets = tuple(
        (place, index, node["misc"]["Entity"])
        for index, (place, node) in enumerate(plain)
        if node["misc"] and node["misc"].get("Entity")
    )
    sentence = Sentence(str(tokens.metadata.get("sent_id") or block.name), text, words)
    return ParsedSentence(sentence, tokens.metadata, brackets, places[-1])


def _check_columns(line: str) -> None:
    fields = line.split("\t")
    if len(fields) != COLUMNS:
        raise ValueError(f"expected {COLUMNS} columns separated by tabs, got {len(fields)} in {shortened(line)}")
    empty = [number for number, field in enumerate(fields, start=1) if not field.strip()]
    if empty:
        raise ValueError(f"expected '_' where there is nothing, got an empty column {empty[0]} in {shortened(line)}")
    if fields[0] == "_":
        raise ValueError(f"expected a word's number in the first column, got '_' in {shortened(line)}")


def _where_it_fails(block: Block, error: Exception) -> TaskError:
    """The error of the first line that cannot be parsed by itself."""
    for line in block.words:
        try:
            parse(line.text + "\n\n")
        except (ParseException, ValueError) as own:
            return TaskError(f"{line.place}: expected CoNLL-U, got {shortened(line.text)} ({own})")
    return TaskError(f"{block.lines[0].place}: expected a sentence in CoNLL-U ({error})")


def _check_order(nodes: Sequence[tuple[str, Any]]) -> None:
    """Words are numbered from 1, each after the one before."""
    expected = 1
    for place, node in nodes:
        if isinstance(node["id"], int):
            with placed(place):
                if node["id"] != expected:
                    raise ValueError(f"expected the word number {expected}, got {node['id']}")
            expected += 1


def _word(node: Any, span: Span) -> Word:
    head = node["head"]
    return Word(
        form=node["form"],
        span=span,
        lemma=_said(node["lemma"]),
        upos=_said(node["upos"]),
        xpos=_said(node["xpos"]),
        feats=node["feats"] or {},
        head=ROOT if not head else head - 1,
        deprel=_said(node["deprel"]),
        sense=_said((node["misc"] or {}).get("Sense")),
    )


def _said(value: str | None) -> str:
    return "" if value in (None, "_") else str(value)
