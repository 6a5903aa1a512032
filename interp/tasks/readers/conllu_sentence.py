"""How does a block of CoNLL-U become a sentence? Columns, numbers, characters and heads are checked line by line."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from conllu.parser import parse_comment_line

from interp.errors import TaskError
from interp.tasks.example import Span
from interp.tasks.readers.conllu_block import Block, placed
from interp.tasks.readers.conllu_node import NOTHING, Node, node_of
from interp.tasks.readers.conllu_text import word_spans, written
from interp.tasks.readers.conllu_tree import check_tree
from interp.tasks.treebank import ROOT, Sentence, Word

_MAY_BE_SPELLED_SO = ("PUNCT", "SYM", "X")
"""Parts of speech of an underscore that is meant."""


@dataclass(frozen=True)
class ParsedSentence:
    """A sentence and what its lines say beside it.

    Attributes:
        id: Its name.
        sentence: The sentence; None where it is distributed without its words.
        comments: By their names.
        brackets: ``Entity=`` of every node that has one: its place, and the words that the node stands for (of an empty
            node none, before the next word).
        last_place: Of its last line.
    """

    id: str
    sentence: Sentence | None
    comments: Mapping[str, str | None]
    brackets: tuple[tuple[str, range, str], ...]
    last_place: str


def parse_sentence(block: Block) -> ParsedSentence:
    """Take a block apart.

    Raises:
        TaskError: A line of it (named) is not CoNLL-U, a head stands outside the sentence, heads go in a circle, or a
            word is not in the text.
    """
    nodes = []
    for line in block.words:
        with placed(line.place):
            nodes.append(node_of(line))
    if not nodes:
        raise TaskError(f"{block.lines[0].place}: expected words after the comments, got a blank line")
    comments = dict(pair for line in block.comments for pair in parse_comment_line(line.text))
    _check_order(nodes)
    words = [node for node in nodes if isinstance(node.id, int)]
    check_tree(words)
    name, sentence = comments.get("sent_id") or block.name, None
    if not _without_words(nodes):
        text = comments.get("text") or written(nodes)
        spans = word_spans(nodes, text)
        sentence = Sentence(name, text, tuple(map(_word, words, spans)))
    return ParsedSentence(name, sentence, comments, tuple(_brackets(nodes)), nodes[-1].place)


def _check_order(nodes: Sequence[Node]) -> None:
    """Words are numbered from 1, each after the one before."""
    expected = 1
    for node in nodes:
        if isinstance(node.id, int):
            with placed(node.place):
                if node.id != expected:
                    raise ValueError(f"expected the word number {expected}, got {node.id}")
            expected += 1


def _without_words(nodes: Sequence[Node]) -> bool:
    """Whether a word's form is not said. ``_`` beside words is an underscore where it has a sign's part of speech."""
    unsaid = [node for node in nodes if node.n_words and node.form == NOTHING]
    all_words = all(node.form == NOTHING for node in nodes if isinstance(node.id, int))
    return all_words or any(node.upos not in _MAY_BE_SPELLED_SO for node in unsaid)


def _brackets(nodes: Sequence[Node]) -> Iterator[tuple[str, range, str]]:
    before = 0
    for node in nodes:
        if brackets := "".join(node.said("Entity")):
            yield node.place, range(before, before + node.n_words), brackets
        before += isinstance(node.id, int)


def _word(node: Node, span: Span) -> Word:
    return Word(
        form=node.form,
        span=span,
        lemma=node.lemma,
        upos=node.upos,
        xpos=node.xpos,
        feats=node.feats,
        head=node.head - 1 if node.head else ROOT,
        deprel=node.deprel,
        sense="".join(node.said("Sense")[:1]),
    )
