"""What is a BLiMP item's counterfactual: the same sentence with its feature flipped?

1. Only one-prefix items have one: with two prefixes the difference is in the prompt already.
2. The feature is flipped by exchanging words one for one: the subject's number and its
   demonstrative (agreement), the demonstrative (determiners), or the antecedent for a name or noun
   of the other gender (anaphor gender). What was wrong is then right.
3. There is none where anything else in the sentence would have to change (``a``, ``every``, a
   relative clause that agrees, a pronoun), or where the wrong word is not the one that the
   flipped feature asks for.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace

from interp.tasks.blimp_tags import TaggedItem
from interp.tasks.example import Span
from interp.tasks.grammar.lexicon import english
from interp.tasks.readers.blimp import BlimpItem
from interp.tasks.tagging import Nominal, Word, verb_number, words_of

_DEMONSTRATIVES = {"this": "these", "these": "this", "that": "those", "those": "that"}
_REFLEXIVE_GENDER = {"himself": "male", "herself": "female"}
_VOWELS = tuple("aeiou")


def flip_item(item: BlimpItem, tagged: TaggedItem) -> BlimpItem | None:
    """The item with its feature flipped and its answers swapped, or None."""
    if item.prefix is None or item.word_good is None or item.word_bad is None:
        return None
    rest = item.good[len(item.prefix) + 1 + len(item.word_good) :]
    if f"{item.prefix} {item.word_bad}{rest}" != item.bad or _has_pronoun(item.prefix + " " + rest):
        return None
    if item.phenomenon == "subject_verb_agreement":
        exchanged = _flip_subject(item.word_good, item.word_bad, tagged)
    elif item.phenomenon == "determiner_noun_agreement":
        exchanged = _flip_determiner(item.word_good, item.word_bad, tagged)
    else:
        exchanged = _flip_gender(item, tagged)
    if exchanged is None:
        return None
    prefix = _exchange(item.prefix, exchanged)
    return replace(
        item,
        prefix=prefix,
        word_good=item.word_bad,
        word_bad=item.word_good,
        good=f"{prefix} {item.word_bad}{rest}",
        bad=f"{prefix} {item.word_good}{rest}",
    )


def _has_pronoun(text: str) -> bool:
    lexicon = english()
    return any(word.text.lower() in (*lexicon.pronouns, *lexicon.reflexives) for word in words_of(text))


def _flip_subject(good: str, bad: str, tagged: TaggedItem) -> dict[Span, str] | None:
    """The subject in its other number, and its determiner."""
    head, words = tagged.head, tagged.words
    if head is None or head.noun is None or head.words[0] != 1:
        return None
    asked = (verb_number(good.split()[0]), verb_number(bad.split()[0]))
    if asked not in {("singular", "plural"), ("plural", "singular")} or asked[0] != head.number:
        return None
    if not _same_in_both_numbers(words[head.words[1] + 1 :]):
        return None
    determiner = _other_determiner(words[0].text)
    if determiner is None:
        return None
    noun = head.noun.plural if head.number == "singular" else head.noun.singular
    return {words[0].span: determiner, _place(words, head): noun}


def _same_in_both_numbers(after: Sequence[Word]) -> bool:
    """Whether what follows the subject does not agree with it: no relative clause whose verb does."""
    if not after or after[0].text not in english().relatives:
        return True
    verb = after[1].text if len(after) > 1 else ""
    return verb in english().words() and verb_number(verb) is None


def _other_determiner(text: str) -> str | None:
    """The determiner that `text` becomes with a noun of the other number."""
    if text.lower() in _DEMONSTRATIVES:
        return _capitalised_as(text, _DEMONSTRATIVES[text.lower()])
    both = {determiner.text for determiner in english().determiners if determiner.number == "any"}
    return text if text.lower() in both else None


def _flip_determiner(good: str, bad: str, tagged: TaggedItem) -> dict[Span, str] | None:
    """The other demonstrative, where the wrong noun is the right one in its other number."""
    right, wrong = english().noun_of(good), english().noun_of(bad)
    if right is None or wrong is None or right[0] != wrong[0] or right[1] == wrong[1]:
        return None
    if right[1] != tagged.features["number"]:
        return None
    word = next(word for word in tagged.words if word.span == tagged.relation.related)
    return {word.span: _capitalised_as(word.text, _DEMONSTRATIVES[word.text.lower()])}


def _flip_gender(item: BlimpItem, tagged: TaggedItem) -> dict[Span, str] | None:
    """A name for a name, or a noun for a noun, of the gender that the wrong reflexive asks for."""
    right, wrong = (_REFLEXIVE_GENDER.get(word or "") for word in (item.word_good, item.word_bad))
    head = tagged.head
    if head is None or right is None or wrong is None or right == wrong or head.gender != right:
        return None
    candidates = _of_gender(wrong, head)
    if not candidates:
        return None
    # Drawn by the sentence's hash: the same for every run, and even over the candidates.
    draw = int.from_bytes(hashlib.sha256(item.good.encode()).digest()[:8], "big")
    return {_place(tagged.words, head): candidates[draw % len(candidates)]}


def _of_gender(gender: str, head: Nominal) -> list[str]:
    """What can stand for `head`: names for a name; for a singular noun those with the same article."""
    if head.name:
        return sorted(name.text for name in english().names if name.gender == gender)
    if head.noun is None or head.number != "singular" or " " in head.lemma:
        return []
    return sorted(
        noun.singular
        for noun in english().nouns
        if noun.gender == gender
        and not noun.relational
        and " " not in noun.singular
        and noun.singular.startswith(_VOWELS) == head.lemma.startswith(_VOWELS)
    )


def _place(words: Sequence[Word], nominal: Nominal) -> Span:
    first, last = nominal.words
    return Span(words[first].span.start, words[last].span.stop)


def _capitalised_as(pattern: str, text: str) -> str:
    return text.capitalize() if pattern[0].isupper() else text


def _exchange(text: str, exchanged: Mapping[Span, str]) -> str:
    for span, new in sorted(exchanged.items(), key=lambda each: each[0].start, reverse=True):
        text = text[: span.start] + new + text[span.stop :]
    return text
