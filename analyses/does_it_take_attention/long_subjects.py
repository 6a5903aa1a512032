"""Sentences whose subject is as far from its verb as one likes: nouns behind each other, the last in another number."""

from collections.abc import Iterator
from dataclasses import dataclass

from interp.tasks.agreement import DETERMINERS
from interp.tasks.example import Example, MinimalPair
from interp.tasks.grammar.items import example
from interp.tasks.grammar.lexicon import KINDS, NUMBERS, SUBJECT_KINDS, Noun, Number, other
from interp.tasks.grammar.phrases import NEARNESS, Predicate, Word, Words, Writer, noun_phrase, sentence_start, split_of


def long_subjects(n: int, n_nouns: int, *, seed: int = 0) -> Iterator[MinimalPair]:
    """Draw `n` items with `n_nouns` nouns between subject and verb; the counterfactual has all in the other number.

    The last of these nouns has the number that the subject has not, each other one or the other number. No training
    text has the subject together with any of them. Subject and verb do stand together in training texts, so that a
    model of few words can know them where nothing stands between.
    """
    dice = Writer("long subjects", seed, n_nouns)
    for _ in range(n):
        drawn, number = _drawn(dice, n_nouns), dice.pick(NUMBERS)
        yield MinimalPair(drawn.spelled(number), drawn.spelled(other(number)), cluster=drawn.subject.singular)


@dataclass(frozen=True)
class _Drawn:
    """Words of one sentence; ``alike`` says which nouns have the subject's number."""

    subject: Noun
    verb: Predicate
    nouns: tuple[Noun, ...]
    alike: tuple[bool, ...]
    steps: tuple[str, ...]
    determiners: tuple[str, ...]

    def spelled(self, number: Number) -> Example:
        phrase: Words = noun_phrase(self.determiners[0], self.subject.form(number), "subject", "")
        further = zip(self.nouns, self.alike, self.steps, self.determiners[1:], strict=True)
        for place, (noun, alike, step, determiner) in enumerate(further):
            shown = noun.form(number if alike else other(number))
            phrase = [*phrase, Word(step, "preposition"), *noun_phrase(determiner, shown, f"noun-{place}", "")]
        return example(
            sentence_start(phrase),
            (self.verb.agreeing(number), self.verb.agreeing(other(number))),
            relation="subject",
            related="subject",
            distractors={},
            template=f"{len(self.nouns)} nouns",
            features={"attractors": str(self.alike.count(False))},
        )


def _drawn(dice: Writer, n_nouns: int) -> _Drawn:
    """A subject, a verb that training has with it, and different nouns that it never has with it."""
    every = [noun for kind in KINDS for noun in dice.words.nouns[kind]]
    while True:
        kind = dice.pick(SUBJECT_KINDS)
        subject, verb = dice.noun(kind), dice.predicate(kind)
        apart = [noun for noun in every if noun != subject and split_of(subject.singular, noun.singular) == "test"]
        if split_of(subject.singular, verb.lemma) != "train" or len(apart) < n_nouns:
            continue
        nouns = {noun.singular: noun for noun in (dice.pick(apart) for _ in range(n_nouns))}
        if len(nouns) == n_nouns:
            return _Drawn(
                subject=subject,
                verb=verb,
                nouns=tuple(nouns.values()),
                alike=tuple(dice.chance(0.5) for _ in range(n_nouns - 1)) + (False,) * (n_nouns > 0),
                steps=tuple(dice.pick(NEARNESS) for _ in range(n_nouns)),
                determiners=tuple(dice.pick(DETERMINERS) for _ in range(n_nouns + 1)),
            )
