"""Relations of a corpus, as words that look and the words that they should find.

| name                 | what it is                                                        | who looks at whom      |
|----------------------|-------------------------------------------------------------------|------------------------|
| ``nsubj``, ``obj`` … | a dependency label, with all of its subtypes                      | dependent and head     |
| ``nsubj:pass`` …     | a label with its subtype                                          | dependent and head     |
| ``coref``            | mentions of one entity: any earlier one counts as found           | anaphor and antecedent |
| ``coref:nearest``    | the nearest earlier mention alone                                 | anaphor and antecedent |
| ``coref:pronoun``    | ``coref`` of anaphors whose head is a pronoun                     | anaphor and antecedent |
| ``coref:proper``     | or a proper noun                                                  | anaphor and antecedent |
| ``coref:nominal``    | or neither                                                        | anaphor and antecedent |
| ``pos:NOUN`` …       | words of a universal part of speech (``pos:PROPN``: proper nouns) | any other word at them |
| ``entity:person`` …  | heads of mentions of an entity type                               | any other word at them |
| any other            | links that a corpus of one's own names                            | query and related word |

Of a mention, its head looks and is looked at. Each relation has two directions, but for the classes of words. Where
several words would be right (two objects, several earlier mentions), each of them is.

Clark et al. (2019), "What does BERT look at?", sections 4.2 and 4.3.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from interp.errors import TaskError, among
from interp.tasks.treebank import ROOT, Document, Mention, Word
from interp.tasks.windows import Window

Context = Literal["sentence", "document"]
Looks = Literal[
    "dependent to head",
    "head to dependent",
    "anaphor to antecedent",
    "antecedent to anaphor",
    "any word to it",
    "query to related",
    "related to query",
]
_KIND = {"PRON": "pronoun", "PROPN": "proper"}


@dataclass(frozen=True, order=True)
class Direction:
    """One direction of a relation: what one hypothesis about a head is about.

    Attributes:
        relation: Its name.
        looks: Who looks at whom.
    """

    relation: str
    looks: Looks

    @property
    def context(self) -> Context:
        """What a word can look at: its sentence, or as much of its document as a window holds."""
        return "document" if self.relation.split(":")[0] == "coref" else "sentence"

    @property
    def names_a_class(self) -> bool:
        """Whether every word looks, at words of a class."""
        return self.looks == "any word to it"

    @property
    def part_of_speech(self) -> str:
        """The universal part of speech that the relation is; empty where it is none."""
        return self.relation.removeprefix("pos:") if self.names_a_class and self.relation.startswith("pos:") else ""


@dataclass(frozen=True)
class Found:
    """A word that looks and those that it should find, as numbers of words of a window."""

    query: int
    related: tuple[int, ...]


def occurring(document: Document) -> Counter[Direction]:
    """How often each relation occurs in a document: pairs, links, anaphors, or words of a class."""
    found: Counter[Direction] = Counter()
    for sentence in document.sentences:
        for word in sentence.words:
            for label in _labels(word):
                found.update([Direction(label, "dependent to head"), Direction(label, "head to dependent")])
            if word.upos:
                found[Direction(f"pos:{word.upos}", "any word to it")] += 1
        for link in sentence.links:
            found.update([Direction(link.name, "query to related"), Direction(link.name, "related to query")])
    for mention in document.mentions:
        if mention.type:
            found[Direction(f"entity:{mention.type}", "any word to it")] += 1
    for chain in _chains(document.mentions):
        for mention in chain[1:]:
            for name in _coref_names(document.sentences[mention.sentence].words[mention.head].upos):
                found.update([Direction(name, "anaphor to antecedent"), Direction(name, "antecedent to anaphor")])
    return found


def directions(names: Sequence[str], there: Counter[Direction], where: str = "the corpus") -> list[Direction]:
    """Both directions, as far as there are two, of the relations `names`.

    Args:
        names: As in the module's table.
        there: What occurs in the corpus.
        where: The corpus, for the message.

    Raises:
        TaskError: One does not occur, or stands twice.
    """
    known = {each.relation for each in there}
    if not known:
        raise TaskError(
            f"relations: expected words that depend on others, or mentions, got none in {where}; give a treebank"
        )
    if len(set(names)) != len(names) or not names:
        raise TaskError(
            f"relations: expected names of relations, each once, got {list(names)}; name some, or give none at all for "
            "every dependency label"
        )
    has_mentions = any(each.split(":")[0] in ("coref", "entity") for each in known)
    for name in names:
        if name not in known:
            why = among(name, sorted(known))
            if name.split(":")[0] in ("coref", "entity") and not has_mentions:
                why = f", which has no mentions (Entity= in CoNLL-U). There are: {', '.join(sorted(known))}"
            raise TaskError(f"relation {name!r} does not occur in {where}{why}")
    return [each for name in names for each in there if each.relation == name]


def found(direction: Direction, window: Window) -> Iterator[Found]:
    """Every word of a window that looks along `direction`, with the words to be found.

    A word whose related words all stand outside of the window has none.
    """
    return _FINDERS[direction.looks](direction.relation, window)


def _labels(word: Word) -> Iterator[str]:
    """The names under which a word's relation to its head is asked for."""
    if word.head != ROOT and word.deprel:
        yield word.deprel
        if ":" in word.deprel:
            yield word.deprel.split(":")[0]


def _to_head(name: str, window: Window) -> Iterator[Found]:
    for number, word in enumerate(window.words):
        if name in _labels(word):
            yield Found(number, (window.start_of(number) + word.head,))


def _gathered(pairs: Iterable[tuple[int, int]]) -> Iterator[Found]:
    """Each query, in order, with all words that it should find."""
    related = defaultdict(list)
    for query, word in pairs:
        related[query].append(word)
    for query, words in sorted(related.items()):
        yield Found(query, tuple(words))


def _turned(found: Iterable[Found]) -> Iterator[Found]:
    """The same pairs, looked at from the other side."""
    return _gathered((word, each.query) for each in found for word in each.related)


def _to_related(name: str, window: Window) -> Iterator[Found]:
    sentences = zip(window.starts, window.sentences, strict=True)
    links = ((start, link) for start, sentence in sentences for link in sentence.links if link.name == name)
    return _gathered((start + link.query, start + link.related) for start, link in links)


def _to_class(name: str, window: Window) -> Iterator[Found]:
    kind, wanted = name.split(":", 1)
    if kind == "pos":
        members = {number for number, word in enumerate(window.words) if word.upos == wanted}
    else:
        members = {window.head_of(mention) for mention in window.mentions if mention.type == wanted}
    for query in range(len(window.words)) if members else ():
        yield Found(query, tuple(sorted(members - {query})))


def _to_antecedent(name: str, window: Window) -> Iterator[Found]:
    """Each mention's head, with the heads of its entity's earlier mentions, the nearest last."""
    for chain in _chains(window.mentions):
        heads = [window.head_of(mention) for mention in chain]
        for number, query in enumerate(heads):
            if query in heads[:number]:
                continue  # a mention within another one, with the same head
            earlier = tuple(dict.fromkeys(head for head in heads[:number] if head != query))
            if name in _coref_names(window.words[query].upos) and (earlier or chain[0].entity in window.spoken_of):
                yield Found(query, earlier[-1:] if name == "coref:nearest" else earlier)


def _to_anaphor(name: str, window: Window) -> Iterator[Found]:
    pairs = list(_turned(_to_antecedent(name, window)))
    yield from pairs
    paired = {pair.query for pair in pairs}
    for mention in window.mentions:
        head = window.head_of(mention)
        later = (upos for entity, upos in window.to_come if entity == mention.entity)
        if head not in paired and any(name in _coref_names(upos) for upos in later):
            paired.add(head)
            yield Found(head, ())


def _chains(mentions: Iterable[Mention]) -> list[list[Mention]]:
    """The mentions of each entity, in order."""
    chains = defaultdict(list)
    for mention in mentions:
        chains[mention.entity].append(mention)
    return list(chains.values())


def _coref_names(upos: str) -> tuple[str, ...]:
    """The names under which an anaphor is asked for whose head is of this part of speech."""
    return ("coref", "coref:nearest", f"coref:{_KIND.get(upos, 'nominal')}")


_FINDERS: dict[str, Callable[[str, Window], Iterator[Found]]] = {
    "dependent to head": _to_head,
    "head to dependent": lambda name, window: _turned(_to_head(name, window)),
    "anaphor to antecedent": _to_antecedent,
    "antecedent to anaphor": _to_anaphor,
    "any word to it": _to_class,
    "query to related": _to_related,
    "related to query": lambda name, window: _turned(_to_related(name, window)),
}
