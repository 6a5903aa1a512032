"""Features of a treebank that a probe can read, as labels of the words they are read at.

| name           | what it is                                             | read at                |
|----------------|--------------------------------------------------------|------------------------|
| ``upos``       | universal part of speech                               | the word               |
| ``deprel``     | dependency label without its subtype                   | the word               |
| ``distance``   | how many words on its head stands (before it: below 0) | the word               |
| ``entity``     | type of the entity that is mentioned                   | the mention's head     |
| ``sense:bank`` | sense of a word with this lemma (``Sense=`` in MISC)   | the word               |
| ``feats:Case`` | any morphological feature                              | the word               |
| ``number``     | number of a verb's subject, which stands before it     | the word before a verb |
| ``gender``     | gender of the antecedent of *he*, *she*, their forms   | the word before these  |
| ``antecedent`` | lemma of the antecedent of a pronoun                   | the pronoun            |

``number`` and ``gender`` are read where they are needed to predict the next word, as tasks read them. The antecedent is
the nearest earlier mention of the entity in the window whose head is no pronoun. The *carrier* is the word that the
feature could be known by without abstraction: the word itself, the subject or the antecedent. A probe is tested on
lemmas of carriers that it was not trained on. What is a word's identity (``antecedent``, ``sense``) has no such lemma;
and a sense no carrier: the word is the same in all of its senses.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from interp.errors import TaskError, suggest
from interp.tasks.alignment import Window
from interp.tasks.example import GENDERS
from interp.tasks.treebank import HELPING, NUMBERS, ROOT, Document, Word

NUMERIC = ("distance",)
"""Features that are numbers; the others are classes."""


@dataclass(frozen=True)
class Label:
    """What is known of a word.

    Attributes:
        value: The class, or the number as text.
        carrier: Form of the word that it is known by, in lower case: the type of a control task. Empty where no word by
            itself could say it.
        lemma: What must not be in training and test alike; empty where the feature is a word's identity.
    """

    value: str
    carrier: str
    lemma: str


Found = Iterator[tuple[int, Label]]


def labels_of(window: Window, features: Sequence[str]) -> dict[int, dict[str, Label]]:
    """The labels of a window's words, by the word's number and the feature's name."""
    labels: dict[int, dict[str, Label]] = defaultdict(dict)
    for name in features:
        for number, label in _finder(name)(window):
            labels[number][name] = label
    return dict(labels)


def features_in(documents: Iterable[Document]) -> list[str]:
    """The features that documents have anything of, in the order of the module's table."""
    found, own, has_subject = set[str](), set[str](), False
    for document in documents:
        found |= {"entity", "gender", "antecedent"} if document.mentions else set()
        for word in (word for sentence in document.sentences for word in sentence.words):
            found |= {"upos"} if word.upos else set()
            found |= {"deprel", "distance"} if word.deprel else set()
            own |= {f"feats:{name}" for name in word.feats or {}} | ({f"sense:{word.lemma}"} if word.sense else set())
            has_subject |= word.deprel.startswith("nsubj")
    found |= {"number"} if has_subject and "feats:Number" in own else set()
    names = [name for name in _FINDERS if name in found]
    at = sum(name in names for name in ("upos", "deprel", "distance", "entity"))
    return [*names[:at], *sorted(own, key=lambda name: (name.startswith("feats:"), name)), *names[at:]]


def _finder(name: str) -> Callable[[Window], Found]:
    if name in _FINDERS:
        return _FINDERS[name]
    kind, colon, rest = name.partition(":")
    if colon and rest and kind == "feats":
        return lambda window: _own(window, lambda _, word: (word.feats or {}).get(rest, ""))
    if colon and rest and kind == "sense":
        return lambda window: (
            (number, Label(word.sense, "", ""))
            for number, word in enumerate(window.words)
            if word.sense and word.lemma == rest
        )
    known = [*_FINDERS, "sense:LEMMA", "feats:NAME"]
    raise TaskError(f"feature {name!r} is not a feature of a treebank; {suggest(name, known)}")


def _own(window: Window, value: Callable[[int, Word], str]) -> Found:
    """What a word says of itself."""
    for number, word in enumerate(window.words):
        if said := value(number, word):
            yield number, _label(said, word)


def _entities(window: Window) -> Found:
    for mention in window.mentions:
        if mention.type:
            head = window.head_of(mention)
            yield head, _label(mention.type, window.words[head])


def _numbers(window: Window) -> Found:
    """A subject without conjuncts, before the first word of its verb that follows it."""
    children = defaultdict(list)
    for number, word in enumerate(window.words):
        if word.head != ROOT:
            children[window.start_of(number) + word.head].append(number)
    for number, subject in enumerate(window.words):
        value = NUMBERS.get((subject.feats or {}).get("Number", ""))
        if value is None or subject.head == ROOT or not subject.deprel.startswith("nsubj"):
            continue
        clause = window.start_of(number) + subject.head
        verbs = [clause, *(each for each in children[clause] if window.words[each].deprel in HELPING)]
        verb = min((each for each in verbs if each > number), default=None)
        joined = any(window.words[each].deprel == "conj" for each in children[number])
        if verb is not None and not joined:
            yield verb - 1, _label(value, subject)


def _genders(window: Window) -> Found:
    for pronoun, antecedent in _antecedents(window):
        gender = GENDERS.get(window.words[pronoun].form.lower())
        if gender is not None:
            yield pronoun - 1, _label(gender, window.words[antecedent])


def _identities(window: Window) -> Found:
    for pronoun, antecedent in _antecedents(window):
        word = window.words[antecedent]
        yield pronoun, Label(_lemma(word), word.form.lower(), "")


def _antecedents(window: Window) -> Iterator[tuple[int, int]]:
    """Every pronoun that stands for an entity, with the nearest earlier mention of it that is no pronoun."""
    last: dict[str, int] = {}
    heads = sorted((window.head_of(each), each.entity) for each in window.mentions)
    for head, entity in heads:
        if window.words[head].upos != "PRON":
            last[entity] = head
        elif entity in last:
            yield head, last[entity]


def _label(value: str, carrier: Word) -> Label:
    return Label(value, carrier.form.lower(), _lemma(carrier))


def _lemma(word: Word) -> str:
    return (word.lemma or word.form).lower()


_FINDERS: dict[str, Callable[[Window], Found]] = {
    "upos": lambda window: _own(window, lambda _, word: word.upos),
    "deprel": lambda window: _own(window, lambda _, word: word.deprel.split(":")[0]),
    "distance": lambda window: _own(
        window, lambda at, word: str(window.start_of(at) + word.head - at) if word.head != ROOT else ""
    ),
    "entity": _entities,
    "number": _numbers,
    "gender": _genders,
    "antecedent": _identities,
}
