"""How is a treebank read? CoNLL-U, document by document.

1. Lines are gathered up to a blank one: a sentence (``conllu_block.py``); or they are made of a row of the hub
   (``conllu_hub.py``). Each line is taken apart by itself (``conllu_node.py``), so that an error names it.
2. Words are found in the text in their order. Where there is no ``# text``, it is put together from the forms and
   ``SpaceAfter=No``. A multiword token's words are found within it where together they spell it (``don't``: ``do``,
   ``n't``); else they share its characters. Empty nodes stand in no text and are left out.
   So are sentences whose words are not said (``_``, as where a licence forbids the text); the log says how many.
3. Heads must make one tree: each word's head stands in the sentence, and every path ends at a root.
4. ``# newdoc`` begins a document. In a file without, every sentence is a document of its own; so is every row of the
   hub, which does not say where documents begin.

https://universaldependencies.org/format.html; coreference as in ``entities.py``.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from interp.errors import TaskError
from interp.tasks.readers.conllu_block import file_blocks, placed
from interp.tasks.readers.conllu_hub import hub_blocks
from interp.tasks.readers.conllu_sentence import ParsedSentence, parse_sentence
from interp.tasks.readers.entities import FIELDS, SentenceMentions
from interp.tasks.readers.hub import is_hub
from interp.tasks.readers.lines import as_path
from interp.tasks.treebank import Document, Mention, Sentence

logger = logging.getLogger(__name__)

_FIELDS_COMMENT = "global.Entity"


def read_conllu(path: str | Path) -> Iterator[Document]:
    """Read a treebank, one document at a time, in its order.

    Args:
        path: A ``.conllu`` file, or ``hub:NAME[:CONFIG[:SPLIT]]`` (``hub.py``), as
            ``hub:commul/universal_dependencies:en_gum:dev`` is.

    Raises:
        TaskError: The file is missing, a folder, a pipe, unreadable or holds no sentence or no words; or a line of it
            (named) is not UTF-8 or not CoNLL-U, a head stands outside its sentence, heads go in a circle, a word is not
            in the text, or a bracket of ``Entity`` is not closed; likewise a data set of the hub and its rows.
    """
    gathered = _Gathered()
    n_sentences = n_without_words = 0
    for block in hub_blocks(str(path)) if is_hub(path) else file_blocks(as_path(path)):
        parsed = parse_sentence(block)
        yield from gathered.before(parsed)
        gathered.add(parsed)
        n_sentences += 1
        n_without_words += parsed.sentence is None
    if n_without_words == n_sentences:
        raise TaskError(
            f"{path}: expected words, got '_' or empty nodes for all of them; if the treebank is distributed without "
            "its text, give a copy with its words"
        )
    if n_without_words:
        logger.warning(
            "%s: %d of %d sentences are left out, for they have '_' or empty nodes in place of words",
            path,
            n_without_words,
            n_sentences,
        )
    yield from gathered.rest()


@dataclass
class _Gathered:
    """The document that is being read."""

    id: str | None = None
    sentences: list[Sentence] = field(default_factory=list)
    mentions: list[Mention] = field(default_factory=list)
    fields: Sequence[str] = FIELDS

    def before(self, parsed: ParsedSentence) -> Iterator[Document]:
        """What is complete before this sentence."""
        begins = any(key == "newdoc" or key.startswith("newdoc ") for key in parsed.comments)
        if self.sentences and (begins or self.id is None):
            yield from self.rest()
        if begins:
            named = parsed.comments.get("newdoc id") or parsed.comments.get("newdoc")
            self.id = named or parsed.id
        if fields := parsed.comments.get(_FIELDS_COMMENT):
            self.fields = fields.split("-")

    def add(self, parsed: ParsedSentence) -> None:
        """Take a sentence and its mentions, if it has words."""
        if parsed.sentence is None:
            return
        found = SentenceMentions(self.fields)
        for place, covered, brackets in parsed.brackets:
            with placed(place):
                found.add(covered, brackets)
        with placed(parsed.last_place):
            self.mentions += found.mentions(len(self.sentences), parsed.sentence.words)
        self.sentences.append(parsed.sentence)

    def rest(self) -> Iterable[Document]:
        """The document, as far as there is one; another may begin."""
        if self.sentences:
            name = self.sentences[0].id if self.id is None else self.id
            yield Document(name, tuple(self.sentences), tuple(self.mentions))
        self.sentences, self.mentions = [], []
