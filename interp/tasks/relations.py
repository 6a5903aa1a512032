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
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from interp.errors import TaskError, among
from interp.tasks.alignment import Window
from interp.tasks.treebank import ROOT, Document, Mention, Sentence

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
_TURNED: dict[Looks, Looks] = {
    "dependent to head": "head to dependent",
    "query to related": "related to query",
    "anaphor to antecedent": "antecedent to anaphor",
}
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
    def part_of_speech(self) -> str:
        """The universal part of speech that the relation is; empty where it is none."""
        kind, _, name = self.relation.partition(":")
        return name if self.looks == "any word to it" and kind == "pos" else ""


@dataclass(frozen=True)
class Found:
    """A word that looks and those that it should find, as numbers of words of a window."""

    query: int
    related: tuple[int, ...]


def occurring(document: Document) -> Counter[Direction]:
    """How often each relation occurs in a document: pairs, links, anaphors, or words of a class."""
    pairs: list[tuple[str, Looks]] = []
    classes: Counter[Direction] = Counter()
    for sentence in document.sentences:
        pairs += [(name, looks) for name, looks, _, _ in _pairs(sentence)]
        classes.update(Direction(f"pos:{word.upos}", "any word to it") for word in sentence.words if word.upos)
    classes.update(Direction(f"entity:{each.type}", "any word to it") for each in document.mentions if each.type)
    for chain in _chains(document.mentions):
        for mention in chain[1:]:
            pairs += [(name, "anaphor to antecedent") for name in _coref_names(document.head_of(mention).upos)]
    found = Counter(Direction(name, each) for name, looks in pairs for each in (looks, _TURNED[looks]))
    return found + classes


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
    name, looks = direction.relation, direction.looks
    if looks == "any word to it":
        return _to_class(name, window)
    if looks == "anaphor to antecedent":
        return _to_antecedent(name, window)
    if looks == "antecedent to anaphor":
        return _to_anaphor(name, window)
    pairs = (
        (start + query, start + related)
        for start, sentence in zip(window.starts, window.sentences, strict=True)
        for its_name, forwards, query, related in _pairs(sentence)
        if its_name == name and looks in (forwards, _TURNED[forwards])
    )
    return _gathered(pairs if looks in _TURNED else ((related, query) for query, related in pairs))


def _pairs(sentence: Sentence) -> Iterator[tuple[str, Looks, int, int]]:
    """Every relation within a sentence, by each name that it is asked for under, with the two words."""
    for number, word in enumerate(sentence.words):
        if word.head != ROOT and word.deprel:
            for name in dict.fromkeys((word.deprel, word.deprel.split(":")[0])):
                yield name, "dependent to head", number, word.head
    for link in sentence.links:
        yield link.name, "query to related", link.query, link.related


def _gathered(pairs: Iterable[tuple[int, int]]) -> Iterator[Found]:
    """Each query, in order, with all words that it should find."""
    related = defaultdict(list)
    for query, word in pairs:
        related[query].append(word)
    for query, words in sorted(related.items()):
        yield Found(query, tuple(words))


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
    pairs = list(_gathered((word, each.query) for each in _to_antecedent(name, window) for word in each.related))
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
