"""Reader of minimal pairs that somebody wrote: a JSON object a line, with ``prompt``, ``right`` and ``wrong`` at least.

``{"prompt": "The keys", "right": " are", "wrong": " is", "counterfactual": "The key", "related": "keys"}``

1. An answer is a text, or a list of texts where several are right or wrong.
2. A counterfactual is a prompt, whose answers are those of the item the other way round, or an object with fields of
   its own. ``counterfactuals`` has more of them, by name.
3. A word is a text that stands once in the prompt (or, if not there, in the prompt with its answer), ``[TEXT, WHICH]``
   with 0 for the first of several and -1 for the last, or ``[START, STOP]`` in characters. The query is the prompt's
   last word unless ``query`` says otherwise. In a counterfactual with as many words all stand at the same ones.
4. Without a ``cluster`` lines with the same related word are one, and one without such a word is one by itself.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from interp.errors import TaskError, shown, suggest
from interp.tasks.example import Example, MinimalPair, Relation, Span
from interp.tasks.readers.sources import filled_lines, json_object, located

ANSWERS, LABELS = ("right", "wrong"), ("template", "layout")
WORDS = ("related", "query", "distractors", "relation")
OF_EXAMPLE = ("prompt", *ANSWERS, *WORDS, *LABELS, "features")
OF_PAIR = (*OF_EXAMPLE, "counterfactual", "counterfactuals", "cluster")
ONE_TEMPLATE = "all"
"""The template of what names none."""


def read_pairs(path: Path) -> Iterator[MinimalPair]:
    """Read minimal pairs, line by line.

    Args:
        path: A ``.jsonl`` file, in UTF-8.

    Yields:
        The pairs, in the file's order.

    Raises:
        TaskError: The file is missing, a folder, unreadable or empty, or a line of it (named) is not JSON, has an
            unknown field or lacks one, or says something that cannot be.

    Examples:
        >>> from pathlib import Path
        >>> from interp.tasks.readers.minimal_pairs import read_pairs
        >>> line = '{"prompt": "The keys", "right": " are", "wrong": " is", "counterfactual": "The key"}'
        >>> _ = Path("pairs.jsonl").write_text(line)
        >>> next(read_pairs(Path("pairs.jsonl"))).counterfactual.right
        ' is'
    """
    for number, line in filled_lines(path, "minimal pairs", "one minimal pair a line, as a JSON object"):
        with located(f"{path}, line {number}"):
            try:
                pair = _pair(json_object(line), number)
            except TaskError as error:
                raise ValueError(error.fault) from error
        yield pair


def _pair(record: Mapping[str, Any], number: int) -> MinimalPair:
    _require_fields(record, OF_PAIR)
    item = _example(record, None)
    named = record.get("counterfactuals") or {}
    if not isinstance(named, dict):
        raise ValueError(f"expected 'counterfactuals' by name, {{NAME: PROMPT or object}}, got {shown(named)}")
    others = {name: _counterfactual(given, name, item) for name, given in named.items()}
    own = record.get("counterfactual")
    other = None if own is None else _counterfactual(own, "counterfactual", item)
    word = None if item.relation is None else item.relation.related.of(item.text).lower()
    cluster = record.get("cluster", f"line {number}" if word is None else word)
    return MinimalPair(item, other, str(cluster) if type(cluster) is int else cluster, others)


def _counterfactual(given: Any, name: str, item: Example) -> Example:
    """With the item's answers the other way round and its words at the same places, unless it says otherwise."""
    record = {"prompt": given} if isinstance(given, str) else given
    if not isinstance(record, dict):
        raise ValueError(f"{name}: expected a prompt, or an object with one, got {shown(given)}")
    _require_fields(record, OF_EXAMPLE, f"{name}: ")
    labels = {each: getattr(item, each) for each in LABELS}
    return _example({"right": item.wrong, "wrong": item.right, **labels, **record}, item, f"{name}: ")


def _require_fields(record: Mapping[str, Any], known: tuple[str, ...], where: str = "") -> None:
    for field in record:
        if field not in known:
            raise ValueError(f"{where}no field is called {field!r}; {suggest(field, known)}")
    needed = ("prompt", *ANSWERS) if "counterfactual" in known else ("prompt",)
    if missing := [field for field in needed if field not in record]:
        raise ValueError(f"{where}expected a field {missing[0]!r}, got {', '.join(map(repr, record)) or 'none'}")


def _example(record: Mapping[str, Any], item: Example | None, where: str = "") -> Example:
    prompt, (right, wrong) = record["prompt"], (_answers(record[name]) for name in ANSWERS)
    features = record.get("features") or {}
    if not isinstance(features, dict) or not all(isinstance(each, str) for each in features.values()):
        raise ValueError(f"{where}expected 'features' as {{NAME: VALUE}} in texts, got {shown(features)}")
    labels = record.get("template", ONE_TEMPLATE), record.get("layout", "")
    bare = Example(prompt, right, wrong, None, *labels, features)
    own = item is None or any(name in record for name in WORDS)
    relation = _relation(record, bare) if own or item is None else _same_words(item, bare, where)
    return Example(prompt, right, wrong, relation, *labels, features)


def _answers(given: Any) -> Any:
    return tuple(given) if isinstance(given, list) else given


def _relation(record: Mapping[str, Any], example: Example) -> Relation | None:
    if record.get("related") is None:
        if named := [name for name in WORDS if record.get(name) is not None]:
            raise ValueError(f"expected the word 'related' beside {named[0]!r}, got none")
        return None
    distractors = record.get("distractors") or {}
    if not isinstance(distractors, dict):
        raise ValueError(f"expected 'distractors' by role, {{ROLE: WORD}}, got {shown(distractors)}")
    query = record.get("query")
    words = _words(example.prompt)
    return Relation(
        str(record.get("relation", "related")),
        query=words[-1] if query is None and words else _word("query", query, example),
        related=_word("related", record["related"], example),
        distractors={role: _word(role, given, example) for role, given in distractors.items()},
    )


def _word(name: str, given: Any, example: Example) -> Span:
    """The span of a word as the file names it."""
    if isinstance(given, list) and len(given) == 2 and all(type(each) is int for each in given):
        if not 0 <= given[0] < given[1] <= len(example.text):
            raise ValueError(f"{name}: expected [START, STOP] within {len(example.text)} characters, got {given}")
        return Span(*given)
    word, which = given if isinstance(given, list) and len(given) == 2 else (given, None)
    if not isinstance(word, str) or not (which is None or type(which) is int):
        raise ValueError(f"{name}: expected a word, [WORD, WHICH] or [START, STOP], got {shown(given)}")
    there = re.search(rf"(?<!\w){re.escape(word)}(?!\w)", example.prompt) if word else None
    return Span.find(word, example.text if there is None else example.prompt, which)


def _same_words(item: Example, example: Example, where: str) -> Relation | None:
    """The item's relation, at the same words of another example."""
    if item.relation is None:
        return None

    def moved(span: Span) -> Span:
        texts = (item.prompt, example.prompt) if span.stop <= len(item.prompt) else (item.text, example.text)
        here, there = map(_words, texts)
        starts = {word.start: number for number, word in enumerate(here)}
        stops = {word.stop: number for number, word in enumerate(here)}
        if len(here) != len(there) or span.start not in starts or span.stop not in stops:
            raise ValueError(
                f"{where}expected as many words as in {texts[0]!r:.80}, got {texts[1]!r:.80}: nothing says "
                "where its related word stands; give the counterfactual a 'related' of its own"
            )
        return Span(there[starts[span.start]].start, there[stops[span.stop]].stop)

    given = item.relation
    distractors = {role: moved(span) for role, span in given.distractors.items()}
    return Relation(given.name, moved(given.query), moved(given.related), distractors)


def _words(text: str) -> list[Span]:
    return [Span(*found.span()) for found in re.finditer(r"\w+|[^\w\s]", text)]
