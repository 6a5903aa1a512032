"""Which word of a BLiMP item is related to its critical word?

1. The query is the last word before the critical word, where the model has to know the answer.
2. It is related to the head of the subject (agreement), to the antecedent, which is the subject
   too (anaphors), or to the demonstrative (determiners). All other nouns and names before the
   query are distractors.
3. Other phenomena, items without a critical word and sentences that the lexicon cannot tag have
   no relation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from interp.tasks.example import Relation, Span
from interp.tasks.grammar.lexicon import english
from interp.tasks.readers.blimp import BlimpItem
from interp.tasks.tagging import Nominal, Word, leading_nominal, nominals_of, words_of

DEMONSTRATIVE_NUMBER = {"this": "singular", "that": "singular", "these": "plural", "those": "plural"}
_RELATION_NAMES = {
    "subject_verb_agreement": "subject",
    "anaphor_agreement": "antecedent",
    "determiner_noun_agreement": "determiner",
}


@dataclass(frozen=True)
class TaggedItem:
    """What the lexicon can tell of an item. Spans count in the acceptable sentence.

    Attributes:
        relation: From the last word before the critical one.
        words: The words before the critical one.
        features: Number and gender of the related word, as far as they are known.
        lemma: The lexical draw: the subject's, the antecedent's or, with a demonstrative, the
            critical noun's (there are only four demonstratives).
        head: The subject or antecedent; None where the related word is a demonstrative.
    """

    relation: Relation
    words: tuple[Word, ...]
    features: Mapping[str, str]
    lemma: str
    head: Nominal | None


def tag_item(item: BlimpItem) -> TaggedItem | None:
    """Find the related word of `item`; None where the lexicon cannot tell."""
    if item.prefix is None or item.phenomenon not in _RELATION_NAMES:
        return None
    words = tuple(words_of(item.prefix))
    if item.phenomenon == "determiner_noun_agreement":
        return _tag_demonstrative(item, words)
    head = leading_nominal(words)
    if head is None:
        return None
    features = {name: value for name, value in (("number", head.number), ("gender", head.gender)) if value}
    relation = _relation(item, words, words[head.words[1]].span)
    return TaggedItem(relation, words, features, head.lemma, head)


def _tag_demonstrative(item: BlimpItem, words: tuple[Word, ...]) -> TaggedItem | None:
    """The demonstrative before the critical noun, with nothing but adjectives in between."""
    noun = english().noun_of(item.word_good or "")
    for word in reversed(words):
        if word.text.lower() in DEMONSTRATIVE_NUMBER:
            features = {"number": DEMONSTRATIVE_NUMBER[word.text.lower()]}
            lemma = item.pair_id if noun is None else noun[0].singular
            return TaggedItem(_relation(item, words, word.span), words, features, lemma, None)
        if word.text not in english().adjectives:
            return None
    return None


def _relation(item: BlimpItem, words: Sequence[Word], related: Span) -> Relation:
    query = words[-1].span
    nominals = [words[nominal.words[1]].span for nominal in nominals_of(words)]
    others = [span for span in nominals if span != related and span.stop <= query.start]
    distractors = {f"distractor {number}": span for number, span in enumerate(others, start=1)}
    return Relation(_RELATION_NAMES[item.phenomenon], query, related, distractors)
