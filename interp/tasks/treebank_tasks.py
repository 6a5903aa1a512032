"""Tasks on real sentences of a treebank: subject-verb agreement, gender of pronouns, number of reflexives.

1. The prompt is the text before a word; *right* is the word, *wrong* its other form. Only a word between a space and no
   letter can be predicted by itself: not the ``'s`` of ``he's``. There is no counterfactual, so the templates are the
   feature's values, and both count the same. Clusters are documents. The task's coverage says what could be used.
2. **Agreement** (Linzen et al., 2016, https://aclanthology.org/Q16-1037): a verb in ``VBZ`` or ``VBP`` after its
   third-person ``nsubj``. Its other form must stand in the treebank. The distractor is the nearest noun between them.
3. **Coreference**: *he*, *she* and their forms, whose nearest antecedent is a name. The text begins with the
   antecedent's sentence. The distractor is the nearest mention of another person.
4. **Anaphora** (as BLiMP's *anaphor number agreement*): a reflexive with an antecedent in its sentence. The number is
   flipped: *themselves* for the singular ones; for *themselves*, *himself* of a person, else *itself*. The distractor
   is the nearest other mention in between.

The last two need coreference (``Entity=``), as GUM has it (Zeldes 2017, https://doi.org/10.1007/s10579-016-9343-x).
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from interp.errors import TaskError
from interp.tasks.encoding import TaskInfo, TaskRequest
from interp.tasks.example import Example, MinimalPair, Relation, Span
from interp.tasks.readers.conllu import read_conllu
from interp.tasks.task import Task
from interp.tasks.treebank import Document, Mention, Sentence, Word


@dataclass(frozen=True)
class Flip:
    """A word that could stand there in another form."""

    document: str
    text: str  # up to the word at least
    word: Span
    wrong: str  # its other form
    value: str  # of the feature that is flipped
    related: Span  # the word that decides
    distractors: Mapping[str, Span]

    @property
    def predictable(self) -> bool:
        """Whether the word can be predicted by itself."""
        right, before = self.word.of(self.text), self.text[: self.word.start]
        after = self.text[self.word.stop : self.word.stop + 1]
        return right.isalpha() and before.endswith(" ") and bool(before.strip()) and not after.isalnum()

    def pair(self, feature: str, relation: str) -> MinimalPair:
        """The minimal pair."""
        prompt, right = self.text[: self.word.start].rstrip(), self.word.of(self.text)
        query = Span(len(prompt) - len(prompt.split()[-1]), len(prompt))
        found = Relation(relation, query, self.related, self.distractors)
        answers = f" {right}", f" {like(right, self.wrong)}"
        # Without a layout: the sentences' words have no common meaning by position.
        example = Example(prompt, *answers, found, self.value, "", {feature: self.value})
        return MinimalPair(example, None, cluster=self.document)


def like(form: str, other: str) -> str:
    """`other` in the case of `form`."""
    if form.isupper() and len(form) > 1:
        return other.upper()
    return other.capitalize() if form[:1].isupper() else other


def _task(request: TaskRequest, found: Iterable[Flip | str], relation: str, needed: str) -> Task:
    """Make a task of what was found: words that can be flipped, or why one cannot be used."""
    flips, reasons = list[Flip](), Counter[str]()
    for each in found:
        if isinstance(each, Flip) and each.predictable:
            flips.append(each)
        else:
            reasons["cannot be predicted by itself" if isinstance(each, Flip) else each] += 1
    if not flips:
        got = "none (words need tags, as XPOS, and pronouns mentions, as Entity=)"
        if reasons:
            got = f"none that can be used ({', '.join(f'{count} {reason}' for reason, count in reasons.items())})"
        raise TaskError(f"{request.name}: expected {needed}, got {got}; give another treebank")
    considered = len(flips) + reasons.total()
    coverage = {what: 100 * count / considered for what, count in {"used": len(flips), **reasons}.items()}
    pairs = [each.pair(str(request.info.feature), relation) for each in flips]
    return request.encode(request.choose(pairs, lambda pair: [pair.item.text]), coverage)


def _place(mention: Mention) -> tuple[int, int]:
    """Where in the document a mention's head stands."""
    return mention.sentence, mention.head


def nearest(document: Document, mention: Mention) -> Mention | None:
    """The nearest earlier mention of the same entity."""
    earlier = [each for each in document.mentions if each.entity == mention.entity and _place(each) < _place(mention)]
    return max(earlier, key=_place, default=None)


AGREEMENT = TaskInfo(
    "agreement:PATH",
    "In the sentences of a treebank (CoNLL-U), a present-tense verb agrees in number with its subject.",
    feature="number",
)
Number = Literal["singular", "plural"]
NUMBER: dict[str, Number] = {"VBZ": "singular", "VBP": "plural"}
_OF_SUBJECT: dict[str, Number] = {"Sing": "singular", "Plur": "plural"}
_HELPING = ("aux", "aux:pass", "cop")
Forms = Mapping[tuple[str, Number], str]


def load_agreement(request: TaskRequest) -> Task:
    """Read a treebank's verbs as a task."""
    forms = attested(read_conllu(request.source))
    found = (
        _verb(document, sentence, number, forms)
        for document in read_conllu(request.source)
        for sentence in document.sentences
        for number, word in enumerate(sentence.words)
        if word.xpos in NUMBER
    )
    return _task(request, found, "subject", "present-tense verbs (VBZ, VBP) after their subjects")


def attested(treebank: Iterable[Document]) -> Forms:
    """The form of each verb's lemma in each number, as it is written most often."""
    counts: dict[tuple[str, Number], dict[str, int]] = {}
    for document in treebank:
        for sentence in document.sentences:
            for word in sentence.words:
                if word.xpos in NUMBER and word.form.isalpha() and word.form.lower() != "am":
                    of_form = counts.setdefault((word.lemma, NUMBER[word.xpos]), {})
                    of_form[word.form.lower()] = of_form.get(word.form.lower(), 0) + 1
    return {key: max(of_form, key=lambda form: (of_form[form], form)) for key, of_form in counts.items()}


def _verb(document: Document, sentence: Sentence, verb: int, forms: Forms) -> Flip | str:
    """The verb with its subject, or why it cannot be used."""
    word = sentence.words[verb]
    number = NUMBER[word.xpos]
    subject = _subject(sentence, verb)
    if subject is None or subject > verb:
        return "no subject before it"
    decides = sentence.words[subject]
    feats = decides.feats or {}
    if decides.upos not in ("NOUN", "PROPN") and (decides.upos != "PRON" or feats.get("Person") != "3"):
        return "first or second person"
    if _OF_SUBJECT.get(feats.get("Number", "")) != number:
        return "not the number of its subject"
    wrong = forms.get((word.lemma, "plural" if number == "singular" else "singular"))
    if wrong is None or wrong == word.form.lower():
        return "its other form is not in the treebank"
    between = [each for each in sentence.words[subject + 1 : verb] if each.upos in ("NOUN", "PROPN")]
    attractor = {"attractor": between[-1].span} if between else {}
    return Flip(document.id, sentence.text, word.span, wrong, number, decides.span, attractor)


def _subject(sentence: Sentence, verb: int) -> int | None:
    word = sentence.words[verb]
    clause = word.head if word.deprel in _HELPING else verb
    found = (at for at, each in enumerate(sentence.words) if each.head == clause and each.deprel.startswith("nsubj"))
    return next(found, None)


COREFERENCE = TaskInfo(
    "coreference:PATH",
    "In the documents of a treebank with coreference (CoNLL-U with Entity=), a pronoun has the gender of its "
    "antecedent, a name.",
    feature="gender",
)
_FLIPPED = {
    ("he", "PRP"): ("masculine", "she"),
    ("him", "PRP"): ("masculine", "her"),
    ("his", "PRP$"): ("masculine", "her"),
    ("his", "PRP"): ("masculine", "hers"),
    ("she", "PRP"): ("feminine", "he"),
    ("her", "PRP"): ("feminine", "him"),
    ("her", "PRP$"): ("feminine", "his"),
    ("hers", "PRP"): ("feminine", "his"),
}


def load_coreference(request: TaskRequest) -> Task:
    """Read a treebank's pronouns as a task."""
    found = (
        _pronoun(document, mention)
        for document in read_conllu(request.source)
        for mention in document.mentions
        if _form_and_tag(document, mention) in _FLIPPED
    )
    return _task(request, found, "antecedent", "pronouns of a gender whose antecedents are names")


def _word(document: Document, mention: Mention) -> Word:
    return document.sentences[mention.sentence].words[mention.head]


def _form_and_tag(document: Document, mention: Mention) -> tuple[str, str]:
    return _word(document, mention).form.lower(), _word(document, mention).xpos


def _pronoun(document: Document, mention: Mention) -> Flip | str:
    antecedent = nearest(document, mention)
    if antecedent is None:
        return "no antecedent"
    if _word(document, antecedent).upos != "PROPN":
        return "the nearest antecedent is no name"
    sentences = document.sentences[antecedent.sentence : mention.sentence + 1]
    begins = list(accumulate((len(each.text) + 1 for each in sentences[:-1]), initial=0))

    def span(each: Mention) -> Span:
        begin, of_word = begins[each.sentence - antecedent.sentence], _word(document, each).span
        return Span(begin + of_word.start, begin + of_word.stop)

    others = [
        each
        for each in document.mentions
        if each.type == "person" and each.entity != mention.entity
        if each.sentence >= antecedent.sentence and _place(each) < _place(mention)
    ]
    other_person = {"other person": span(max(others, key=_place))} if others else {}
    gender, wrong = _FLIPPED[_form_and_tag(document, mention)]
    text = " ".join(each.text for each in sentences)
    return Flip(document.id, text, span(mention), wrong, gender, span(antecedent), other_person)


ANAPHORA = TaskInfo(
    "anaphora:PATH",
    "In the sentences of a treebank with coreference (CoNLL-U with Entity=), a reflexive pronoun has the number of its "
    "antecedent.",
    feature="number",
)
_SINGULAR = ("himself", "herself", "itself")
_PLURAL = "themselves"


def load_anaphora(request: TaskRequest) -> Task:
    """Read a treebank's reflexive pronouns as a task."""
    found = (
        _reflexive(document, mention)
        for document in read_conllu(request.source)
        for mention in document.mentions
        if _word(document, mention).form.lower() in (*_SINGULAR, _PLURAL)
    )
    return _task(request, found, "antecedent", "reflexive pronouns with an antecedent in their sentence")


def _reflexive(document: Document, mention: Mention) -> Flip | str:
    antecedent = nearest(document, mention)
    if antecedent is None or antecedent.sentence != mention.sentence:
        return "no antecedent in the sentence"
    sentence, word = document.sentences[mention.sentence], _word(document, mention)
    number, wrong = "singular", _PLURAL
    if word.form.lower() == _PLURAL:
        number, wrong = "plural", "himself" if mention.type == "person" else "itself"
    between = [
        each.head
        for each in document.mentions
        if each.entity != mention.entity and _place(antecedent) < _place(each) < _place(mention)
    ]
    other_mention = {"other mention": sentence.words[max(between)].span} if between else {}
    related = _word(document, antecedent).span
    return Flip(document.id, sentence.text, word.span, wrong, number, related, other_mention)
