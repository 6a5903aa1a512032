"""A small language for models of known truth, with three tasks; every word form shows its class, lemma and feature.

Nouns come in two cases, one that verbs agree with, and one that does not matter. So one head can find the subject among
attractors, by one rule, and be written down by hand.

- **agreement**: ``so noun3s of-noun7 well verb`` is followed by ``are``: the verb has the number of the noun in the
  nominative. **coreference** is the same of persons and their gender.
- **crossed**: both at once, for trained models: one of four answers is right; which values are asked for, and which of
  the two words is tagged, is up to the task.
- **induction**: ``key4 item1s key2 item9 so key4`` is followed by ``item1s``, not by ``item9``.

A word is one token. Where the two examples of a pair differ in more than the related word, each has a word
counterfactual: itself with the other form of that word.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Literal, cast, get_args

import numpy as np
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import PreTrainedTokenizerFast

from interp.tasks.encoding import encode_task
from interp.tasks.example import Example, MinimalPair, Relation
from interp.tasks.grammar.items import example, with_other_words
from interp.tasks.grammar.phrases import Word as Slotted
from interp.tasks.grammar.phrases import spans
from interp.tasks.task import Task

TaskName = Literal["agreement", "coreference", "induction"]
Crossed = Literal["agreement", "coreference"]
TASKS: tuple[TaskName, ...] = get_args(TaskName)
LEMMAS = 60
FILLERS = ("so", "then", "well", "now", "here", "thus", "too", "yet")
REFERENCES = 120
"""Pairs that replacement values come from, of each task."""
BOS = "<bos>"
LONGEST = 16
"""Tokens of the longest prompt, BOS included."""


@dataclass(frozen=True)
class Word:
    """A token."""

    text: str  # as it is written
    kind: str  # its class, which a head can look for
    lemma: int = 0  # its number in its class
    value: int = 0  # of its feature: -1 or 1; 0 without one


@dataclass(frozen=True)
class Phenomenon:
    """What a verb or a pronoun shares with the word that it is related to."""

    feature: str  # its name
    values: tuple[str, str]  # the names of -1 and 1
    noun: str  # the class of the related word; that of its attractors begins with ``of-``
    query: str  # the word that looks back
    answers: tuple[str, str]  # what follows where the value is -1, and where it is 1
    relation: str  # of the related word to the query


PHENOMENA: Mapping[TaskName, Phenomenon] = {
    "agreement": Phenomenon("number", ("singular", "plural"), "noun", "verb", ("is", "are"), "subject"),
    "coreference": Phenomenon("gender", ("masculine", "feminine"), "person", "pronoun", ("he", "she"), "antecedent"),
}
ENDINGS = ("short", "long")
"""Of an item, the values of induction's feature."""
INFLECTED = ("noun", "of-noun", "person", "of-person", "item")
DESCRIPTIONS: Mapping[TaskName, str] = {
    "agreement": "A verb has the number of the noun in the nominative.",
    "coreference": "A pronoun has the gender of the person in the nominative.",
    "induction": "A key is followed by the item that followed it before.",
}


@cache
def vocabulary() -> tuple[Word, ...]:
    """Every word; its place is its token id."""
    answers = [word for each in PHENOMENA.values() for word in each.answers]
    return (
        Word(BOS, "bos"),
        *(Word(text, "filler", number) for number, text in enumerate(FILLERS)),
        *(Word(each.query, each.query) for each in PHENOMENA.values()),
        *(Word(text, "answer") for text in answers),
        *(Word(f"key{lemma}", "key", lemma) for lemma in range(LEMMAS)),
        *(
            Word(inflected(kind, lemma, value), kind, lemma, value)
            for kind in INFLECTED
            for lemma in range(LEMMAS)
            for value in (-1, 1)
        ),
    )


def inflected(kind: str, lemma: int, value: int) -> str:
    """A word form: ``noun3``, ``noun3s``."""
    return f"{kind}{lemma}{'s' if value > 0 else ''}"


def other_form(word: str) -> str:
    """Of an inflected word: ``noun3s`` for ``noun3``."""
    return word[:-1] if word.endswith("s") else f"{word}s"


def with_other_values(example: Example) -> Example:
    """The example with the other value of every feature."""
    pairs = [*(each.values for each in PHENOMENA.values()), ENDINGS]
    others = {one: other for pair in pairs for one, other in (pair, pair[::-1])}
    return replace(example, features={name: others[value] for name, value in example.features.items()})


@cache
def tokenizer() -> PreTrainedTokenizerFast:
    """One token a word."""
    ids = {word.text: number for number, word in enumerate(vocabulary())}
    made = Tokenizer(WordLevel(ids, unk_token=BOS))
    made.pre_tokenizer = WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=made, bos_token=BOS, clean_up_tokenization_spaces=False)


Draw = Callable[[int, np.random.Generator], MinimalPair]
"""Draws a pair of a task, given the lemma of its related word."""


def load(name: TaskName, *, n: int, seed: int, correlation: float = 0.5, ordered: bool = False) -> Task:
    """One of the tasks, with `n` pairs whose lemmas come round evenly, so that there are as many clusters as can be.

    The `correlation` is how often an attractor has the value of the related word. Above .5, the counterfactual turns
    the attractors, too, so that it holds there. If `ordered`, there is one attractor, behind the related word.
    """
    feature = "ending" if name == "induction" else PHENOMENA[name].feature
    draw = pair_of(name, correlation=correlation, ordered=ordered)
    return _encoded(name, DESCRIPTIONS[name], feature, draw, n, [seed, TASKS.index(name)])


def load_told(name: TaskName, *, n: int, seed: int) -> Task:
    """A task with words and answers of agreement or coreference, of which a key tells the answer, as in ``told``."""
    what = PHENOMENA[name]
    description = "A key among the words tells the answer; no other word does."
    return _encoded(f"{name}, told", description, what.feature, partial(told, what), n, [seed, TASKS.index(name)])


def load_crossed(feature: Crossed, tagged: Crossed, *, n: int, seed: int) -> Task:
    """A task whose answer depends on two words: the value of one tells the right answer from the wrong one.

    The word of `feature` is another in the counterfactual; that of `tagged` is tagged as the related one. Where these
    differ, the tag is wrong: the word counterfactual has the tagged word's other form, the answer that this makes, and
    the same value of the feature, so that by rule nothing can be said of what a head reads there.
    """
    name = f"{PHENOMENA[feature].feature} at the {PHENOMENA[tagged].noun}"
    description = "Which of four answers is right depends on a noun's number and a person's gender."
    seeds = [seed, 7, TASKS.index(feature)]
    return _encoded(name, description, PHENOMENA[feature].feature, partial(crossed, feature, tagged), n, seeds)


def _encoded(name: str, description: str, feature: str, draw: Draw, n: int, seeds: Sequence[int]) -> Task:
    """The task of `n` pairs and their references, which have draws of their own."""
    own, references = (np.random.default_rng([seeds[0], half, *seeds[1:]]) for half in range(2))
    return encode_task(
        pairs(draw, n, own),
        tokenizer=tokenizer(),
        name=name,
        description=description,
        metric="logit_difference",
        references=pairs(draw, REFERENCES, references),
        n_ctx=LONGEST,
        feature=feature,
    )


def pairs(draw: Draw, n: int, generator: np.random.Generator) -> Iterator[MinimalPair]:
    """So many pairs, each lemma as often as the others."""
    rounds = [generator.permutation(LEMMAS) for _ in range(-(-n // LEMMAS))]
    return (draw(lemma, generator) for lemma in np.concatenate(rounds)[:n].tolist())


def pair_of(name: TaskName, *, correlation: float = 0.5, ordered: bool = False) -> Draw:
    """What draws a minimal pair of a task; see ``load``."""
    if name == "induction":
        return induction
    return partial(_phenomenon, PHENOMENA[name], correlation=correlation, ordered=ordered)


def told(what: Phenomenon, lemma: int, generator: np.random.Generator) -> MinimalPair:
    """A sentence of a phenomenon with one of two keys in a filler's place; the counterfactual has the other key.

    Who believes in the tag gives each the related word's other form for its word counterfactual, with the other answer.
    """
    plain = _phenomenon(what, lemma, generator).item
    value = int(generator.integers(2))
    place = int(generator.choice([at for at, word in enumerate(plain.prompt.split()) if word in FILLERS]))

    def with_key(value: int) -> Example:
        right, wrong = (f" {what.answers[each]}" for each in (value, 1 - value))
        key = f"key{2 * list(PHENOMENA.values()).index(what) + value}"
        features = {what.feature: what.values[value]}
        found = replace(_with_word(plain, place, key), right=right, wrong=wrong, features=features)
        before = found.prompt[: cast(Relation, found.relation).related.start].split()
        other = _with_word(found, len(before), other_form(found.prompt.split()[len(before)]))
        return with_other_words(found, [replace(with_other_values(other), right=wrong)])

    return MinimalPair(with_key(value), with_key(1 - value), f"{what.noun}{lemma}")


def _with_word(given: Example, place: int, word: str) -> Example:
    """The example with another word at a place."""
    words, old = given.prompt.split(), cast(Relation, given.relation)
    before = spans([Slotted(each) for each in words])
    words[place] = word
    moved = dict(zip(before, spans([Slotted(each) for each in words]), strict=True))
    distractors = {role: moved[span] for role, span in old.distractors.items()}
    relation = Relation(old.name, moved[old.query], moved[old.related], distractors)
    return replace(given, prompt=" ".join(words), relation=relation)


def crossed(feature: Crossed, tagged: Crossed, lemma: int, generator: np.random.Generator) -> MinimalPair:
    """Noun and person, an attractor of each, and fillers in any order, then the query; see ``load_crossed``."""
    values = dict(zip(PHENOMENA, generator.choice([-1, 1], 2).tolist(), strict=True))
    lemmas, attracting = generator.choice(LEMMAS, (2, 2)), generator.choice([-1, 1], 2).tolist()
    lemmas[0] = lemma
    fillers = generator.choice(FILLERS, generator.integers(3, LONGEST - 6)).tolist()
    order = generator.permutation(4 + len(fillers)).tolist()
    kinds = [each.noun for each in PHENOMENA.values()]
    kinds += [f"of-{each}" for each in kinds]

    def sentence(own: Mapping[TaskName, int], other: Mapping[TaskName, int]) -> Example:
        shown = zip(kinds, lemmas.ravel().tolist(), [*own.values(), *attracting], strict=True)
        forms = [Slotted(inflected(*each), each[0]) for each in shown] + [Slotted(each) for each in fillers]
        made = example(
            [*(forms[each] for each in order), Slotted("verb")],
            (_answer(own), _answer(other)),
            relation=PHENOMENA[tagged].relation,
            related=PHENOMENA[tagged].noun,
            distractors={each: each for each in kinds[2:]},
            template="crossed",
            features={each.feature: each.values[int(own[name] > 0)] for name, each in PHENOMENA.items()},
        )
        place = order.index(list(PHENOMENA).index(tagged))
        return replace(made, layout=f"{tagged} at {place} of {len(order)}")

    turned = {**values, feature: -values[feature]}
    item, counterfactual = (
        with_other_words(sentence(own, other), [sentence({**own, tagged: -own[tagged]}, own)])
        for own, other in ((values, turned), (turned, values))
    )
    return MinimalPair(item, counterfactual, f"{PHENOMENA[feature].noun}{lemma}")


def _answer(values: Mapping[TaskName, int]) -> str:
    """``is`` or ``are`` where the person is masculine, else ``he`` or ``she``."""
    number, gender = values["agreement"], values["coreference"]
    return PHENOMENA["agreement" if gender < 0 else "coreference"].answers[int(number > 0)]


def _phenomenon(
    what: Phenomenon, lemma: int, generator: np.random.Generator, *, correlation: float = 0.5, ordered: bool = False
) -> MinimalPair:
    """The related word, one or two attractors and fillers in any order, then the query."""
    value = int(generator.choice([-1, 1]))
    lemmas = [each for each in range(LEMMAS) if each != lemma]
    others = generator.choice(lemmas, 1 if ordered else generator.integers(1, 3), False).tolist()
    alike = np.where(generator.random(len(others)) < correlation, 1, -1).tolist()
    fillers = generator.choice(FILLERS, generator.integers(4, LONGEST - 4 - len(others))).tolist()
    order = generator.permutation(1 + len(others) + len(fillers)).tolist()
    if ordered:
        first = min(order.index(each) for each in range(1 + len(others)))
        order[order.index(0)], order[first] = order[first], 0
    attracting = ", ".join(str(order.index(1 + each)) for each in range(len(others)))
    layout = f"{what.noun} at {order.index(0)} of {len(order)}, of-{what.noun} at {attracting}"
    roles = ["first attractor", "second attractor"][: len(others)]

    def sentence(sign: int, turned: int) -> Example:
        forms = [Slotted(inflected(what.noun, lemma, sign * value), what.noun)]
        for role, each, same in zip(roles, others, alike, strict=True):
            forms.append(Slotted(inflected(f"of-{what.noun}", each, same * turned * value), role))
        forms += [Slotted(each) for each in fillers]
        made = example(
            [*(forms[each] for each in order), Slotted(what.query)],
            what.answers if sign * value < 0 else what.answers[::-1],
            relation=what.relation,
            related=what.noun,
            distractors={role: role for role in roles},
            template=f"{len(others)} attractors",
            features={what.feature: what.values[int(sign * value > 0)]},
        )
        return replace(made, layout=layout)

    if correlation <= 0.5:
        return MinimalPair(sentence(1, 1), sentence(-1, 1), f"{what.noun}{lemma}")
    item, counterfactual = (with_other_words(sentence(sign, sign), [sentence(-sign, sign)]) for sign in (1, -1))
    return MinimalPair(item, counterfactual, f"{what.noun}{lemma}")


def induction(lemma: int, generator: np.random.Generator) -> MinimalPair:
    """Keys with their items and fillers between them, then one of the keys again; two items change places.

    The two have different endings, and both were seen: who only knows which items were there knows nothing. The word
    counterfactual has the related item's lemma with the other ending.
    """
    n = int(generator.integers(2, 4))
    keys = generator.choice(LEMMAS, n, False).tolist()
    lemmas = [lemma, *generator.choice([each for each in range(LEMMAS) if each != lemma], n - 1, False).tolist()]
    value = int(generator.choice([-1, 1]))
    values = [value, -value, *generator.choice([-1, 1], n - 2).tolist()]
    items = [inflected("item", each, sign) for each, sign in zip(lemmas, values, strict=True)]
    order = generator.permutation(n).tolist()
    fillers = [generator.choice(FILLERS, gap).tolist() for gap in generator.integers(0, 5 - n, n + 1)]
    roles = ["related", "first other item", "second other item"][:n]

    def sentence(sign: int, *, other_ending: bool = False) -> Example:
        shown = items if sign > 0 else [items[1], items[0], *items[2:]]
        if other_ending:
            shown = [other_form(shown[0]), *shown[1:]]
        words = [Slotted(each) for each in fillers[0]]
        for place, each in enumerate(order):
            words += [Slotted(f"key{keys[each]}"), Slotted(shown[each], roles[each])]
            words += [Slotted(filler) for filler in fillers[1 + place]]
        at = {word.slot: place for place, word in enumerate(words) if word.slot}
        words.append(Slotted(f"key{keys[0]}"))
        made = example(
            words,
            (shown[0], shown[1]),
            relation="word after the previous occurrence",
            related="related",
            distractors={role: role for role in roles[1:]},
            template=f"{n} keys",
            features={"ending": ENDINGS[int((sign * value > 0) != other_ending)]},
        )
        return replace(made, layout=f"keys at {sorted(at.values())}, the item at {at['related']} of {len(words)}")

    item, counterfactual = (with_other_words(sentence(sign), [sentence(sign, other_ending=True)]) for sign in (1, -1))
    return MinimalPair(item, counterfactual, f"item{lemma}")
