"""Treebanks in CoNLL-U, document by document (https://universaldependencies.org/format.html).

1. Lines up to a blank one are a sentence (``conllu_sentence.py``). ``# newdoc`` begins a document; in a file without,
   every sentence is a document of its own. Coreference is read in CoNLL-U's own ``Entity`` column of MISC.
2. Sentences whose words are not said (``_``, as where a licence forbids the text) are left out; the log says how many.
3. A row of the hub (https://huggingface.co/datasets/commul/universal_dependencies) becomes the lines that a file would
   have, and a document of its own. Its columns are lists with an entry a word; ``mwt`` lists the multiword tokens,
   ``idx`` names the sentence. Only ``tokens``, ``head`` and ``deprel`` must be there. What is null, ``None`` or empty
   becomes ``_``.
4. Where ``mwt`` is missing and the words do not spell the text (*de* and *le* do not spell *du*), no text is given, so
   that one is put together from the words. The log says how often.
"""

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from interp.errors import TaskError
from interp.tasks.readers.conllu_sentence import FIELDS, Block, file_blocks, mentions_of, parse_sentence
from interp.tasks.readers.sources import as_path, hub_items, is_hub, shortened
from interp.tasks.treebank import Document, Mention, Sentence

logger = logging.getLogger(__name__)

_FIELDS_COMMENT = "global.Entity"
_COLUMNS = ("tokens", "lemmas", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
"""In the order of CoNLL-U."""
_REQUIRED = ("tokens", "head", "deprel")
_PAIRS = ("feats", "misc")
_NOT_READ = ("deps",)
_LITERAL = ("tokens", "lemmas", "text", "form")
"""Where None is a word."""
_NONE = "_"
_RANGE = re.compile(r"(\d+)-(\d+)")


def hub_blocks(source: str) -> Iterator[Block]:
    """The sentences of a data set of the hub."""
    n_put_together = 0
    for number, (name, lines) in enumerate(hub_items(source, _lines), start=1):
        n_put_together += not lines[0][1].startswith("#")
        yield Block(name or f"row {number}", [(f"{source}, row {number}{place}", line) for place, line in lines])
    if n_put_together:
        logger.warning(
            "%s: the text of %d sentences of %d was put together from their words, for want of one that these spell",
            *(source, n_put_together, number),
        )


def _lines(row: Mapping[str, Any]) -> tuple[str, list[tuple[str, str]]]:
    """A sentence's name, where it has one, and the lines that a file would have, each with its place in the row.

    Raises ``ValueError`` where the columns do not fit together.
    """
    columns = [_column(row, name) for name in _COLUMNS]
    ranges = _ranges(row.get("mwt"))
    beyond = [each[0] for first, each in ranges.items() if first > len(columns[0])]
    if beyond:
        raise ValueError(f"expected multiword tokens of {len(columns[0])} words in 'mwt', got {beyond[0]}")
    text, name = _entry("text", row.get("text")), _entry("idx", row.get("idx"))
    given = text != _NONE and (row.get("mwt") is not None or _spell(columns[0], text))
    lines = [("", f"# text = {text}")] if given else []
    for number, word in enumerate(zip(*columns, strict=True), start=1):
        if number in ranges:
            lines.append((f", words {ranges[number][0]}", "\t".join(ranges[number])))
        lines.append((f", word {number}", "\t".join([str(number), *word])))
    return "" if name == _NONE else name, lines


def _column(row: Mapping[str, Any], name: str) -> list[str]:
    """An entry for each word."""
    given, tokens = row.get(name), row.get("tokens")
    n_words = len(tokens) if isinstance(tokens, list) else 0
    if name in _NOT_READ or (given is None and name not in _REQUIRED):
        return [_NONE] * n_words
    if not isinstance(given, list) or not given or len(given) != n_words:
        shown = f"{len(given)} entries" if isinstance(given, list) else repr(given)
        raise ValueError(f"expected a list with an entry for each of {n_words} words in {name!r}, got {shown}")
    return [_entry(name, each) for each in given]


def _entry(name: str, value: Any) -> str:
    """One field of a line."""
    field = "" if value is None else str(value)
    if not field or (field == "None" and name not in _LITERAL):
        return _NONE
    if name == "upos" and not isinstance(value, str):
        raise ValueError(f"expected the names of parts of speech in 'upos', got {value!r} without a name")
    if any(each in field for each in "\t\n\r"):
        raise ValueError(f"expected one line without tabs in {name!r}, got {shortened(field)}")
    if name in _PAIRS and field.startswith("{"):
        raise ValueError(f"expected such as 'Number=Sing|Person=3' in {name!r}, got {shortened(field)}")
    return field


def _ranges(given: Any) -> dict[int, list[str]]:
    """The line of each multiword token, by its first word, of a list of records.

    Older versions of ``datasets`` give a record of lists.
    """
    if isinstance(given, Mapping) and all(isinstance(values, list) for values in given.values()):
        given = [dict(zip(given, values, strict=True)) for values in zip(*given.values(), strict=True)]
    if not isinstance(given, list | None) or not all(isinstance(each, Mapping) for each in given or ()):
        raise ValueError(f"expected a list of multiword tokens in 'mwt', got {shortened(str(given))}")
    ranges = {}
    for record in given or ():
        found, form = _RANGE.fullmatch(str(record.get("id"))), _entry("form", record.get("form"))
        if found is None or form == _NONE:
            raise ValueError(f"expected an id such as 2-3 and a form in 'mwt', got {dict(record)!r:.60}")
        ranges[int(found[1])] = [found[0], form, *[_NONE] * 7, _entry("misc", record.get("misc"))]
    return ranges


def _spell(forms: Sequence[str], text: str) -> bool:
    """Whether words follow each other in a text, with nothing but white space between them."""
    return re.fullmatch(r"\s*".join(["", *map(re.escape, forms), ""]), text) is not None


def read_conllu(path: str | Path) -> Iterator[Document]:
    """Read a treebank, one document at a time, in its order.

    Args:
        path: A ``.conllu`` file, or ``hub:NAME[:CONFIG[:SPLIT]]`` (``sources.py``), as
            ``hub:commul/universal_dependencies:en_gum:dev`` is.

    Raises:
        TaskError: The file is missing, a folder, a pipe, unreadable or holds no sentence or no words; or a line of it
            (named) is not UTF-8 or not CoNLL-U, a head stands outside its sentence, heads go in a circle, a word is not
            in the text, or a bracket of ``Entity`` is not closed; likewise a data set of the hub and its rows.
    """
    name: str | None = None
    sentences: list[Sentence] = []
    mentions: list[Mention] = []
    fields: Sequence[str] = FIELDS
    n_sentences = n_without_words = 0
    for block in hub_blocks(str(path)) if is_hub(path) else file_blocks(as_path(path)):
        parsed = parse_sentence(block)
        begins = any(key == "newdoc" or key.startswith("newdoc ") for key in parsed.comments)
        if sentences and (begins or name is None):
            yield Document(name or sentences[0].id, tuple(sentences), tuple(mentions))
            sentences, mentions = [], []
        if begins:
            name = parsed.comments.get("newdoc id") or parsed.comments.get("newdoc") or parsed.id
        if said := parsed.comments.get(_FIELDS_COMMENT):
            fields = said.split("-")
        n_sentences += 1
        if parsed.sentence is None:
            n_without_words += 1
        else:
            mentions += mentions_of(parsed, len(sentences), fields)
            sentences.append(parsed.sentence)
    if n_without_words == n_sentences:
        raise TaskError(
            f"{path}: expected words, got '_' or empty nodes for all of them; if the treebank is distributed without "
            "its text, give a copy with its words"
        )
    if n_without_words:
        logger.warning(
            "%s: %d of %d sentences are left out, for they have '_' or empty nodes in place of words",
            *(path, n_without_words, n_sentences),
        )
    if sentences:
        yield Document(name or sentences[0].id, tuple(sentences), tuple(mentions))
