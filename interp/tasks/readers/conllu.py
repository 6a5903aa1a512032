"""How is a treebank read? CoNLL-U, document by document, through the ``conllu`` package.

1. Lines are gathered up to a blank one: a sentence. Its columns and numbers are checked line by line, so that an error
   names the line; ``conllu`` takes the fields apart.
2. Words are found in the text in their order. Where there is no ``# text``, it is put together from the forms and
   ``SpaceAfter=No``. A multiword token's words are found within it where together they spell it (``don't``: ``do``,
   ``n't``); else they share its characters. Empty nodes stand in no text and are left out.
3. Heads must make one tree: each word's head stands in the sentence, and every path ends at a root.
4. ``# newdoc`` begins a document. In a file without, every sentence is a document of its own.

https://universaldependencies.org/format.html; coreference as in ``entities.py``.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conllu import parse
from conllu.exceptions import ParseException

from interp.errors import TaskError
from interp.tasks.example import Span
from interp.tasks.readers.conllu_text import word_spans, written
from interp.tasks.readers.conllu_tree import check_tree
from interp.tasks.readers.entities import FIELDS, SentenceMentions
from interp.tasks.readers.lines import as_path, located, numbered_lines, shortened
from interp.tasks.treebank import ROOT, Document, Mention, Sentence, Word

COLUMNS = 10
_FIELDS_COMMENT = "global.Entity"


def read_conllu(path: str | Path) -> Iterator[Document]:
    """Read a treebank, one document at a time, in the file's order.

    Args:
        path: A ``.conllu`` file.

    Raises:
        TaskError: The file is missing, a folder, unreadable or holds no sentence; or a line of it (named) is not UTF-8
            or not CoNLL-U, a head stands outside its sentence, heads go in a circle, a word is not in the text, or a
            bracket of ``Entity`` is not closed.
    """
    path, gathered, n_sentences = as_path(path), _Gathered(), 0
    for block in _blocks(path):
        sentence = _sentence(path, block, f"{path.stem}-{n_sentences + 1}")
        n_sentences += 1
        yield from gathered.before(sentence)
        gathered.add(path, sentence)
    if not n_sentences:
        raise TaskError(f"{path}: expected sentences in CoNLL-U, got an empty file")
    yield from gathered.rest()


@dataclass(frozen=True)
class _Block:
    """A sentence's lines, and the number of each."""

    lines: tuple[tuple[int, str], ...]

    @property
    def words(self) -> list[tuple[int, str]]:
        return [(number, line) for number, line in self.lines if not line.startswith("#")]

    @property
    def first(self) -> int:
        return self.lines[0][0]


@dataclass(frozen=True)
class _Parsed:
    """A sentence, what its comments say, and the brackets of its words with their lines."""

    sentence: Sentence
    comments: Mapping[str, Any]
    brackets: tuple[tuple[int, int, str], ...]
    last_line: int


def _blocks(path: Path) -> Iterator[_Block]:
    lines: list[tuple[int, str]] = []
    for number, line in numbered_lines(path, "a CoNLL-U file", "name one .conllu file in it"):
        if line.strip():
            lines.append((number, line))
        elif lines:
            yield _Block(tuple(lines))
            lines = []
    if lines:
        yield _Block(tuple(lines))


def _sentence(path: Path, block: _Block, fallback: str) -> _Parsed:
    """One sentence; `fallback` is its name where it has none."""
    numbers = []
    for number, line in block.words:
        with located(path, number):
            _check_columns(line)
            numbers.append(number)
    if not numbers:
        raise TaskError(f"{path}, line {block.first}: expected words after the comments, got a blank line")
    try:
        (tokens,) = parse("\n".join(line for _, line in block.lines) + "\n\n")
    except ParseException as error:
        raise _where_it_fails(path, block, error) from error
    nodes = list(zip(numbers, tokens, strict=True))
    _check_order(path, nodes)
    text = tokens.metadata.get("text") or written(nodes)
    spans = word_spans(path, nodes, text)
    plain = [(number, node) for number, node in nodes if isinstance(node["id"], int)]
    words = tuple(_word(node, span) for (_, node), span in zip(plain, spans, strict=True))
    check_tree(path, plain)
    brackets = tuple(
        (number, index, node["misc"]["Entity"])
        for index, (number, node) in enumerate(plain)
        if node["misc"] and node["misc"].get("Entity")
    )
    sentence = Sentence(str(tokens.metadata.get("sent_id") or fallback), text, words)
    return _Parsed(sentence, tokens.metadata, brackets, numbers[-1])


def _check_columns(line: str) -> None:
    found = line.count("\t") + 1
    if found != COLUMNS:
        raise ValueError(f"expected {COLUMNS} columns separated by tabs, got {found} in {shortened(line)}")


def _where_it_fails(path: Path, block: _Block, error: ParseException) -> TaskError:
    """The error of the first line that cannot be parsed by itself."""
    for number, line in block.words:
        try:
            parse(line + "\n\n")
        except ParseException as own:
            return TaskError(f"{path}, line {number}: expected CoNLL-U, got {shortened(line)} ({own})")
    return TaskError(f"{path}, line {block.first}: expected a sentence in CoNLL-U ({error})")


def _check_order(path: Path, nodes: Sequence[tuple[int, Any]]) -> None:
    """Words are numbered from 1, each after the one before."""
    expected = 1
    for number, node in nodes:
        if isinstance(node["id"], int):
            with located(path, number):
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
    )


def _said(value: str | None) -> str:
    return "" if value in (None, "_") else str(value)


@dataclass
class _Gathered:
    """The document that is being read."""

    id: str | None = None
    sentences: list[Sentence] = field(default_factory=list)
    mentions: list[Mention] = field(default_factory=list)
    fields: Sequence[str] = FIELDS

    def before(self, parsed: _Parsed) -> Iterator[Document]:
        """What is complete before this sentence."""
        begins = any(key == "newdoc" or key.startswith("newdoc ") for key in parsed.comments)
        if self.sentences and (begins or self.id is None):
            yield from self.rest()
        if begins:
            named = parsed.comments.get("newdoc id") or parsed.comments.get("newdoc")
            self.id = str(named or parsed.sentence.id)
        if _FIELDS_COMMENT in parsed.comments:
            self.fields = str(parsed.comments[_FIELDS_COMMENT]).split("-")

    def add(self, path: Path, parsed: _Parsed) -> None:
        """Take a sentence and its mentions."""
        found = SentenceMentions(self.fields)
        for number, word, brackets in parsed.brackets:
            with located(path, number):
                found.add(word, brackets)
        with located(path, parsed.last_line):
            self.mentions += found.mentions(len(self.sentences), parsed.sentence.words)
        self.sentences.append(parsed.sentence)

    def rest(self) -> Iterable[Document]:
        """The document, as far as there is one; another may begin."""
        if self.sentences:
            name = self.sentences[0].id if self.id is None else self.id
            yield Document(name, tuple(self.sentences), tuple(self.mentions))
        self.sentences, self.mentions = [], []
