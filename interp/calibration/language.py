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
from typing import Literal, get_args

import numpy as np
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import PreTrainedTokenizerFast

from interp.tasks.encoding import encode_task
from interp.tasks.example import Example, MinimalPair, Relation, Span
from interp.tasks.grammar.items import with_other_words
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


def load(name: TaskName, *, n: int, seed: int, correlation: float = 0.5, ordered: bool = False) -> Task:
    """One of the tasks, with `n` pairs whose lemmas come round evenly, so that there are as many clusters as can be.

    The `correlation` is how often an attractor has the value of the related word. Above .5, the counterfactual turns
    the attractors, too, so that it holds there. If `ordered`, there is one attractor, behind the related word.
    """

    def drawn(n: int, generator: np.random.Generator) -> Iterator[MinimalPair]:
        return pairs(name, n, generator, correlation, ordered)

    feature = "ending" if name == "induction" else PHENOMENA[name].feature
    return _encoded(name, DESCRIPTIONS[name], feature, drawn, n, [seed, TASKS.index(name)])


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


def _encoded(
    name: str, description: str, feature: str, drawn: Callable[..., Iterator[MinimalPair]], n: int, seeds: Sequence[int]
) -> Task:
    """The task of `n` pairs and their references, which have draws of their own."""
    own, references = (np.random.default_rng([seeds[0], half, *seeds[1:]]) for half in range(2))
    return encode_task(
        drawn(n, own),
        tokenizer=tokenizer(),
        name=name,
        description=description,
        metric="logit_difference",
        references=drawn(REFERENCES, references),
        n_ctx=LONGEST,
        feature=feature,
    )


def told(what: Phenomenon, n: int, generator: np.random.Generator) -> Iterator[MinimalPair]:
    """Sentences of a phenomenon with one of two keys in a filler's place; the counterfactual has the other key.

    Who believes in the tag gives each the related word's other form for its word counterfactual, with the other answer.
    """
    tellers = [f"key{2 * list(PHENOMENA.values()).index(what) + value}" for value in range(2)]
    for lemma in _rounds(n, generator):
        example = _phenomenon(what, lemma, generator, 0.5).item
        value = int(generator.integers(2))
        place = generator.choice([at for at, word in enumerate(example.prompt.split()) if word in FILLERS])
        item, counterfactual = (_told(example, what, int(place), tellers, each) for each in (value, 1 - value))
        yield MinimalPair(item, counterfactual, f"{what.noun}{lemma}")


def _told(example: Example, what: Phenomenon, place: int, tellers: Sequence[str], value: int) -> Example:
    right, wrong = (f" {what.answers[each]}" for each in (value, 1 - value))
    features = {what.feature: what.values[value]}
    found = replace(_with_word(example, place, tellers[value]), right=right, wrong=wrong, features=features)
    assert found.relation is not None, "the language tags every example"
    at = found.prompt[: found.relation.related.start].count(" ")
    other = _with_word(found, at, other_form(found.prompt.split()[at]))
    return with_other_words(found, [replace(with_other_values(other), right=wrong)])


def _with_word(example: Example, place: int, word: str) -> Example:
    """The example with another word at a place."""
    words, old = example.prompt.split(), example.relation
    words[place] = word
    assert old is not None, "the language tags every example"
    spans = dict(zip(_spans(example.prompt.split()), _spans(words), strict=True))
    distractors = {role: spans[span] for role, span in old.distractors.items()}
    relation = Relation(old.name, spans[old.query], spans[old.related], distractors)
    return replace(example, prompt=" ".join(words), relation=relation)


def crossed(feature: Crossed, tagged: Crossed, n: int, generator: np.random.Generator) -> Iterator[MinimalPair]:
    """Pairs of ``load_crossed``."""
    for lemma in _rounds(n, generator):
        yield _crossed(feature, tagged, lemma, generator)


def _crossed(feature: Crossed, tagged: Crossed, lemma: int, generator: np.random.Generator) -> MinimalPair:
    """Noun and person, an attractor of each, and fillers in any order, then the query."""
    values = dict(zip(PHENOMENA, generator.choice([-1, 1], 2).tolist(), strict=True))
    lemmas, attracting = generator.choice(LEMMAS, (2, 2)), generator.choice([-1, 1], 2)
    lemmas[0] = lemma
    fillers = generator.choice(FILLERS, generator.integers(3, LONGEST - 6)).tolist()
    order = generator.permutation(4 + len(fillers)).tolist()

    def example(own: Mapping[TaskName, int], other: Mapping[TaskName, int]) -> Example:
        what = list(PHENOMENA.items())
        nouns = [each.noun for _, each in what]
        forms = [inflected(each.noun, int(lemmas[0, at]), own[name]) for at, (name, each) in enumerate(what)]
        forms += [inflected(f"of-{each}", int(lemmas[1, at]), int(attracting[at])) for at, each in enumerate(nouns)]
        words = [*([*forms, *fillers][each] for each in order), "verb"]
        spans = _spans(words)
        places = {name: spans[order.index(at)] for at, name in enumerate(PHENOMENA)}
        roles = {f"of-{each}": spans[order.index(2 + at)] for at, each in enumerate(nouns)}
        return Example(
            prompt=" ".join(words),
            right=f" {_answer(own)}",
            wrong=f" {_answer(other)}",
            relation=Relation(PHENOMENA[tagged].relation, spans[-1], places[tagged], roles),
            template="crossed",
            layout=f"{tagged} at {order.index(list(PHENOMENA).index(tagged))} of {len(order)}",
            features={each.feature: each.values[int(own[name] > 0)] for name, each in PHENOMENA.items()},
        )

    turned = {**values, feature: -values[feature]}
    item, counterfactual = (
        with_other_words(example(own, other), [example({**own, tagged: -own[tagged]}, own)])
        for own, other in ((values, turned), (turned, values))
    )
    return MinimalPair(item, counterfactual, f"{PHENOMENA[feature].noun}{lemma}")


def _answer(values: Mapping[TaskName, int]) -> str:
    """``is`` or ``are`` where the person is masculine, else ``he`` or ``she``."""
    number, gender = values["agreement"], values["coreference"]
    return PHENOMENA["agreement" if gender < 0 else "coreference"].answers[int(number > 0)]


def _rounds(n: int, generator: np.random.Generator) -> list[int]:
    """Lemmas, each as often as the others."""
    return np.concatenate([generator.permutation(LEMMAS) for _ in range(-(-n // LEMMAS))])[:n].tolist()


def pairs(
    name: TaskName, n: int, generator: np.random.Generator, correlation: float, ordered: bool = False
) -> Iterator[MinimalPair]:
    """Minimal pairs of a task; see ``load``."""
    for lemma in _rounds(n, generator):
        if name == "induction":
            yield induction(lemma, generator)
        else:
            yield _phenomenon(PHENOMENA[name], lemma, generator, correlation, ordered)


def _phenomenon(
    what: Phenomenon, lemma: int, generator: np.random.Generator, correlation: float, ordered: bool = False
) -> MinimalPair:
    """The related word, one or two attractors and fillers in any order, then the query."""
    value = int(generator.choice([-1, 1]))
    others = generator.choice(
        [each for each in range(LEMMAS) if each != lemma], 1 if ordered else generator.integers(1, 3), False
    )
    alike = np.where(generator.random(len(others)) < correlation, 1, -1)
    fillers = generator.choice(FILLERS, generator.integers(4, LONGEST - 4 - len(others)))
    order = generator.permutation(1 + len(others) + len(fillers)).tolist()
    if ordered:
        first = min(order.index(each) for each in range(1 + len(others)))
        order[order.index(0)], order[first] = order[first], 0
    layout = f"{what.noun} at {order.index(0)} of {len(order)}, of-{what.noun} at " + ", ".join(
        str(order.index(1 + each)) for each in range(len(others))
    )

    def example(sign: int, turned: int) -> Example:
        signs = [int(same) * turned * value for same in alike]
        attractors = [inflected(f"of-{what.noun}", *each) for each in zip(others.tolist(), signs, strict=True)]
        forms = [inflected(what.noun, lemma, sign * value), *attractors, *fillers.tolist()]
        words = [*(forms[each] for each in order), what.query]
        spans = _spans(words)
        named = zip(range(len(others)), ("first", "second"), strict=False)
        distractors = {f"{name} attractor": spans[order.index(1 + each)] for each, name in named}
        right, wrong = what.answers[:: 1 if sign * value < 0 else -1]
        return Example(
            prompt=" ".join(words),
            right=f" {right}",
            wrong=f" {wrong}",
            relation=Relation(what.relation, spans[-1], spans[order.index(0)], distractors),
            template=f"{len(others)} attractors",
            layout=layout,
            features={what.feature: what.values[int(sign * value > 0)]},
        )

    if correlation <= 0.5:
        return MinimalPair(example(1, 1), example(-1, 1), f"{what.noun}{lemma}")
    item, counterfactual = (with_other_words(example(sign, sign), [example(-sign, sign)]) for sign in (1, -1))
    return MinimalPair(item, counterfactual, f"{what.noun}{lemma}")


def induction(lemma: int, generator: np.random.Generator) -> MinimalPair:
    """Keys with their items and fillers between them, then one of the keys again; two items change places.

    The two have different endings, and both were seen: who only knows which items were there knows nothing. The word
    counterfactual has the related item's lemma with the other ending.
    """
    n = int(generator.integers(2, 4))
    keys = generator.choice(LEMMAS, n, False)
    lemmas = [lemma, *generator.choice([each for each in range(LEMMAS) if each != lemma], n - 1, False).tolist()]
    value = int(generator.choice([-1, 1]))
    values = [value, -value, *generator.choice([-1, 1], n - 2).tolist()]
    items = [inflected("item", each, sign) for each, sign in zip(lemmas, values, strict=True)]
    order = generator.permutation(n).tolist()
    fillers = [generator.choice(FILLERS, gap).tolist() for gap in generator.integers(0, 5 - n, n + 1)]

    def example(sign: int, *, other_ending: bool = False) -> Example:
        shown = items if sign > 0 else [items[1], items[0], *items[2:]]
        if other_ending:
            first = lemmas[0] if sign > 0 else lemmas[1]
            shown = [inflected("item", first, -sign * value), *shown[1:]]
        words, at = list(fillers[0]), [0] * n
        for place, each in enumerate(order):
            at[each] = len(words) + 1
            words += [f"key{keys[each]}", shown[each], *fillers[1 + place]]
        words.append(f"key{keys[0]}")
        spans = _spans(words)
        others = {f"{name} other item": spans[each] for name, each in zip(("first", "second"), at[1:], strict=False)}
        return Example(
            prompt=" ".join(words),
            right=f" {shown[0]}",
            wrong=f" {shown[1]}",
            relation=Relation("word after the previous occurrence", spans[-1], spans[at[0]], others),
            template=f"{n} keys",
            layout=f"keys at {sorted(at)}, the item at {at[0]} of {len(words)}",
            features={"ending": ENDINGS[int((sign * value > 0) != other_ending)]},
        )

    item, counterfactual = (with_other_words(example(sign), [example(sign, other_ending=True)]) for sign in (1, -1))
    return MinimalPair(item, counterfactual, f"item{lemma}")


def _spans(words: list[str]) -> list[Span]:
    """Where each word stands in the text that they make."""
    ends = np.cumsum([len(word) + 1 for word in words]).tolist()
    return [Span(end - 1 - len(word), end - 1) for word, end in zip(words, ends, strict=True)]
