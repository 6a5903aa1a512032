"""Task: is the acceptable sentence of a BLiMP paradigm more probable than the unacceptable one?

1. **Prompt.** What both sentences share at the start: the prefix of a one-prefix item, else the longest common run of
   words. The continuations are the rests, so the difference of their log-probabilities is that of the whole sentences,
   BLiMP's main method. With ``logit_difference`` they are the critical words alone; only one-prefix items can.
2. **Relation.** From the last word before the critical word to the head of the subject (agreement), the antecedent,
   which is the subject too (anaphors), or the demonstrative (determiners). All other nouns and names are distractors.
   Where the lexicon cannot tell there is none.
3. **Counterfactual.** Of one-prefix items: words are exchanged one for one, so that the feature is flipped and what was
   wrong is right. There is none where anything else would have to change (``a``, ``every``, a relative clause that
   agrees, a pronoun), or where the wrong word is not the one that the flipped feature asks for.
4. **Cluster.** The lemma of the noun or name that carries the feature; of untagged items, the pair.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from interp.errors import TaskError
from interp.tasks.encoding import TaskInfo, TaskRequest
from interp.tasks.example import Example, MinimalPair, Relation, Span
from interp.tasks.grammar.lexicon import english, vocabulary
from interp.tasks.readers.blimp import BlimpItem, read_blimp
from interp.tasks.tagging import Nominal, Word, all_known, leading_nominal, nominals_of, verb_number, words_of
from interp.tasks.task import Metric, Task, shares

DEMONSTRATIVE_NUMBER = {"this": "singular", "that": "singular", "these": "plural", "those": "plural"}
_RELATION_NAMES = {
    "subject_verb_agreement": "subject",
    "anaphor_agreement": "antecedent",
    "determiner_noun_agreement": "determiner",
}


@dataclass(frozen=True)
class TaggedItem:
    """What the lexicon can tell of an item. Spans count in the acceptable sentence."""

    relation: Relation  # from the last word before the critical one
    words: tuple[Word, ...]  # the words before the critical one
    features: Mapping[str, str]  # number and gender of the related word, as far as they are known
    # the lexical draw: the subject's, the antecedent's or, with a demonstrative, the critical noun's (there are only
    # four demonstratives)
    lemma: str
    head: Nominal | None  # the subject or antecedent; None where the related word is a demonstrative


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


_DEMONSTRATIVES = {"this": "these", "these": "this", "that": "those", "those": "that"}
_REFLEXIVE_GENDER = {"himself": "male", "herself": "female"}
_VOWELS = tuple("aeiou")


def flip_item(item: BlimpItem, tagged: TaggedItem) -> BlimpItem | None:
    """The item with its feature flipped and its answers swapped, or None."""
    if item.prefix is None or item.word_good is None or item.word_bad is None:
        return None
    rest = item.good[len(item.prefix) + 1 + len(item.word_good) :]
    pronouns = {*english().pronouns, *english().reflexives}
    has_pronoun = any(word.text.lower() in pronouns for word in words_of(f"{item.prefix} {rest}"))
    if f"{item.prefix} {item.word_bad}{rest}" != item.bad or has_pronoun:
        return None
    flip = _FLIPS.get(item.phenomenon, _flip_gender)
    if (exchanged := flip(item, tagged)) is None:
        return None
    prefix = item.prefix
    for span, new in sorted(exchanged.items(), key=lambda each: each[0].start, reverse=True):
        prefix = prefix[: span.start] + new + prefix[span.stop :]
    good, bad = f"{prefix} {item.word_bad}{rest}", f"{prefix} {item.word_good}{rest}"
    return replace(item, prefix=prefix, word_good=item.word_bad, word_bad=item.word_good, good=good, bad=bad)


def _flip_subject(item: BlimpItem, tagged: TaggedItem) -> dict[Span, str] | None:
    """The subject in its other number, and its determiner; nothing after it may agree with it, as a clause's verb."""
    head, words = tagged.head, tagged.words
    if head is None or head.noun is None or head.words[0] != 1:
        return None
    right, wrong = (verb_number(str(each).split()[0]) for each in (item.word_good, item.word_bad))
    relative, verb = [*(word.text for word in words[head.words[1] + 1 :][:2]), "", ""][:2]
    agrees = relative in english().relatives and (verb not in english().words() or verb_number(verb) is not None)
    determiner = _other_determiner(words[0].text)
    if wrong is None or wrong == right or right != head.number or agrees or determiner is None:
        return None
    return {words[0].span: determiner, _place(words, head): head.noun.form(wrong)}


def _other_determiner(text: str) -> str | None:
    """The determiner that `text` becomes with a noun of the other number."""
    if text.lower() in _DEMONSTRATIVES:
        return _capitalised_as(text, _DEMONSTRATIVES[text.lower()])
    both = {determiner.text for determiner in english().determiners if determiner.number == "any"}
    return text if text.lower() in both else None


def _flip_determiner(item: BlimpItem, tagged: TaggedItem) -> dict[Span, str] | None:
    """The other demonstrative, where the wrong noun is the right one in its other number."""
    right, wrong = (english().noun_of(str(each)) for each in (item.word_good, item.word_bad))
    if right is None or wrong is None or right[0] != wrong[0] or right[1] == wrong[1]:
        return None
    if right[1] != tagged.features["number"]:
        return None
    word = next(word for word in tagged.words if word.span == tagged.relation.related)
    return {word.span: _capitalised_as(word.text, _DEMONSTRATIVES[word.text.lower()])}


def _flip_gender(item: BlimpItem, tagged: TaggedItem) -> dict[Span, str] | None:
    """A name for a name, or a noun for a noun, of the gender that the wrong reflexive asks for."""
    right, wrong = (_REFLEXIVE_GENDER.get(str(each)) for each in (item.word_good, item.word_bad))
    head = tagged.head
    if head is None or right is None or wrong is None or right == wrong or head.gender != right:
        return None
    if not (candidates := _of_gender(wrong, head)):
        return None
    # Drawn by the sentence's hash: the same for every run, and even over the candidates.
    draw = int.from_bytes(hashlib.sha256(item.good.encode()).digest()[:8], "big")
    return {_place(tagged.words, head): candidates[draw % len(candidates)]}


_FLIPS = {"subject_verb_agreement": _flip_subject, "determiner_noun_agreement": _flip_determiner}


def _of_gender(gender: str, head: Nominal) -> list[str]:
    """What can stand for `head`: names for a name; for a singular noun those with the same article."""
    if head.name:
        return sorted(name.text for name in vocabulary().names[gender])
    if head.noun is None or head.number != "singular" or " " in head.lemma:
        return []
    nouns = (noun.singular for noun in vocabulary().gendered[gender] if not noun.preposition)
    return sorted(noun for noun in nouns if noun.startswith(_VOWELS) == head.lemma.startswith(_VOWELS))


def _place(words: Sequence[Word], nominal: Nominal) -> Span:
    first, last = nominal.words
    return Span(words[first].span.start, words[last].span.stop)


def _capitalised_as(pattern: str, text: str) -> str:
    return text.capitalize() if pattern[0].isupper() else text


def blimp_pair(item: BlimpItem, metric: Metric = "sentence_log_probability") -> MinimalPair:
    """Turn an item of BLiMP into a minimal pair."""
    tagged = tag_item(item)
    flipped = None if tagged is None else flip_item(item, tagged)
    return MinimalPair(
        item=_example(item, tagged, metric),
        counterfactual=None if flipped is None else _example(flipped, tag_item(flipped), metric),
        cluster=item.pair_id if tagged is None else tagged.lemma,
    )


def blimp_coverage(items: Sequence[BlimpItem], pairs: Sequence[MinimalPair]) -> dict[str, float]:
    """Shares of a file's items, in percent, by what is covered."""
    covered = {
        "known words": sum(all_known(item.good, item.bad) for item in items),
        "related word tagged": sum(pair.item.relation is not None for pair in pairs),
        "counterfactual": sum(pair.counterfactual is not None for pair in pairs),
    }
    return shares(covered, len(items))


def _example(item: BlimpItem, tagged: TaggedItem | None, metric: Metric) -> Example:
    relation, features = (None, {}) if tagged is None else (tagged.relation, dict(tagged.features))
    # Without a layout: the items' words have no common meaning by position.
    return Example(*_continuations(item, metric), relation, template=item.uid, layout="", features=features)


def _continuations(item: BlimpItem, metric: Metric) -> tuple[str, str, str]:
    """The prompt, and the right and the wrong continuation."""
    if metric != "sentence_log_probability":
        if item.prefix is None or not item.one_prefix:
            raise TaskError(
                f"{item.uid}, pair {item.pair_id}: logit_difference needs a critical word after a shared prefix "
                "(one_prefix_method), and this item has none",
                "give metric='sentence_log_probability'",
            )
        return item.prefix, f" {item.word_good}", f" {item.word_bad}"
    if item.prefix is not None and item.one_prefix:
        stop = len(item.prefix)
    else:  # the words that both sentences share at the start; a sentence's last word never is
        same = sum(1 for _ in takewhile(lambda each: each[0] == each[1], zip(item.good, item.bad, strict=False)))
        stop = max(0, item.good.rfind(" ", 0, same))
    return item.good[:stop], item.good[stop:], item.bad[stop:]


BLIMP = TaskInfo(
    "blimp:PATH",
    "The acceptable sentence of a published minimal pair is more probable than the unacceptable one.",
    metric="sentence_log_probability",
)


def load_blimp(request: TaskRequest) -> Task:
    """Read a paradigm as a task."""
    items = request.choose(list(read_blimp(request.source)), lambda item: (item.good, item.bad))
    pairs = [blimp_pair(item, request.metric or "sentence_log_probability") for item in items]
    return request.encode(pairs, blimp_coverage(items, pairs))
