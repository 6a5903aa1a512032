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

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from interp.errors import TaskError
from interp.tasks.encoding import TaskInfo, TaskRequest
from interp.tasks.example import Example, MinimalPair, Relation, Span
from interp.tasks.readers.conllu import read_conllu
from interp.tasks.task import Task, shares
from interp.tasks.treebank import HELPING, NUMBERS, Document, Mention, Number, Sentence, joined


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


@dataclass(frozen=True, kw_only=True)
class TreebankTask(TaskInfo):
    """A task that is read from a treebank."""

    relation: str  # of the word before to the one that decides
    needed: str  # what the treebank must have
    find: Callable[[str | Path], Iterator[Flip | str]]  # a treebank's words, or why one of them cannot be used

    def load(self, request: TaskRequest) -> Task:
        """Read a treebank as the task."""
        flips, reasons = list[Flip](), Counter[str]()
        for each in self.find(request.source):
            if isinstance(each, Flip) and each.predictable:
                flips.append(each)
            else:
                reasons["cannot be predicted by itself" if isinstance(each, Flip) else each] += 1
        if not flips:
            got = "none (words need tags, as XPOS, and pronouns mentions, as Entity=)"
            if reasons:
                got = f"none that can be used ({', '.join(f'{count} {reason}' for reason, count in reasons.items())})"
            raise TaskError(f"{request.name}: expected {self.needed}, got {got}; give another treebank")
        coverage = shares({"used": len(flips), **reasons}, len(flips) + reasons.total())
        pairs = [each.pair(str(self.feature), self.relation) for each in flips]
        return request.encode(request.choose(pairs, lambda pair: [pair.item.text]), coverage)


NUMBER: dict[str, Number] = {"VBZ": "singular", "VBP": "plural"}
Forms = Mapping[tuple[str, Number], str]


def _verbs(source: str | Path) -> Iterator[Flip | str]:
    forms = attested(read_conllu(source))
    for document in read_conllu(source):
        for sentence in document.sentences:
            for number, word in enumerate(sentence.words):
                if word.xpos in NUMBER:
                    yield _verb(document, sentence, number, forms)


def attested(treebank: Iterable[Document]) -> Forms:
    """The form of each verb's lemma in each number, as it is written most often."""
    counts = defaultdict[tuple[str, Number], Counter[str]](Counter)
    for document in treebank:
        for word in (word for sentence in document.sentences for word in sentence.words):
            if word.xpos in NUMBER and word.form.isalpha() and word.form.lower() != "am":
                counts[word.lemma, NUMBER[word.xpos]][word.form.lower()] += 1
    return {key: max(of_form, key=lambda form: (of_form[form], form)) for key, of_form in counts.items()}


def _verb(document: Document, sentence: Sentence, verb: int, forms: Forms) -> Flip | str:
    """The verb with its subject, or why it cannot be used."""
    word = sentence.words[verb]
    number = NUMBER[word.xpos]
    clause = word.head if word.deprel in HELPING else verb
    subjects = (at for at, each in enumerate(sentence.words) if each.head == clause and each.deprel[:5] == "nsubj")
    subject = next(subjects, None)
    if subject is None or subject > verb:
        return "no subject before it"
    decides = sentence.words[subject]
    feats = decides.feats or {}
    if decides.upos not in ("NOUN", "PROPN") and (decides.upos != "PRON" or feats.get("Person") != "3"):
        return "first or second person"
    if NUMBERS.get(feats.get("Number", "")) != number:
        return "not the number of its subject"
    wrong = forms.get((word.lemma, "plural" if number == "singular" else "singular"))
    if wrong is None or wrong == word.form.lower():
        return "its other form is not in the treebank"
    between = [each for each in sentence.words[subject + 1 : verb] if each.upos in ("NOUN", "PROPN")]
    attractor = {"attractor": between[-1].span} if between else {}
    return Flip(document.id, sentence.text, word.span, wrong, number, decides.span, attractor)


def _place(mention: Mention) -> tuple[int, int]:
    """Where in the document a mention's head stands."""
    return mention.sentence, mention.head


def _last_before(document: Document, mention: Mention, which: Callable[[Mention], bool]) -> Mention | None:
    """The nearest earlier mention of those that are meant."""
    earlier = (each for each in document.mentions if which(each) and _place(each) < _place(mention))
    return max(earlier, key=_place, default=None)


def nearest(document: Document, mention: Mention) -> Mention | None:
    """The nearest earlier mention of the same entity."""
    return _last_before(document, mention, lambda each: each.entity == mention.entity)


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


def _mentioned(find: Callable[[Document, Mention], Flip | str | None], source: str | Path) -> Iterator[Flip | str]:
    for document in read_conllu(source):
        yield from filter(None, (find(document, mention) for mention in document.mentions))


def _pronoun(document: Document, mention: Mention) -> Flip | str | None:
    word, antecedent = document.head_of(mention), nearest(document, mention)
    if (word.form.lower(), word.xpos) not in _FLIPPED:
        return None
    if antecedent is None:
        return "no antecedent"
    if document.head_of(antecedent).upos != "PROPN":
        return "the nearest antecedent is not a name"
    first = antecedent.sentence
    text, spans = joined(document.sentences[first : mention.sentence + 1])
    gender, wrong = _FLIPPED[word.form.lower(), word.xpos]

    def is_other_person(each: Mention) -> bool:
        return each.type == "person" and each.entity != mention.entity and each.sentence >= first

    other = _last_before(document, mention, is_other_person)
    meant = {"word": mention, "related": antecedent} | ({"other person": other} if other else {})
    found = {name: spans[each.sentence - first][each.head] for name, each in meant.items()}
    return Flip(document.id, text, found.pop("word"), wrong, gender, found.pop("related"), found)


_SINGULAR = ("himself", "herself", "itself")
_PLURAL = "themselves"


def _reflexive(document: Document, mention: Mention) -> Flip | str | None:
    word, antecedent = document.head_of(mention), nearest(document, mention)
    if word.form.lower() not in (*_SINGULAR, _PLURAL):
        return None
    if antecedent is None or antecedent.sentence != mention.sentence:
        return "no antecedent in the sentence"
    sentence = document.sentences[mention.sentence]
    number, wrong = "singular", _PLURAL
    if word.form.lower() == _PLURAL:
        number, wrong = "plural", "himself" if mention.type == "person" else "itself"
    between = _last_before(
        document, mention, lambda each: each.entity != mention.entity and _place(each) > _place(antecedent)
    )
    other_mention = {"other mention": document.head_of(between).span} if between else {}
    related = document.head_of(antecedent).span
    return Flip(document.id, sentence.text, word.span, wrong, number, related, other_mention)


AGREEMENT = TreebankTask(
    "agreement:PATH",
    "In the sentences of a treebank (CoNLL-U), a present-tense verb agrees in number with its subject.",
    feature="number",
    relation="subject",
    needed="present-tense verbs (VBZ, VBP) after their subjects",
    find=_verbs,
)
COREFERENCE = TreebankTask(
    "coreference:PATH",
    "In the documents of a treebank with coreference (CoNLL-U with Entity=), a pronoun has the gender of its "
    "antecedent, a name.",
    feature="gender",
    relation="antecedent",
    needed="pronouns of a gender whose antecedents are names",
    find=partial(_mentioned, _pronoun),
)
ANAPHORA = TreebankTask(
    "anaphora:PATH",
    "In the sentences of a treebank with coreference (CoNLL-U with Entity=), a reflexive pronoun has the number of its "
    "antecedent.",
    feature="number",
    relation="antecedent",
    needed="reflexive pronouns with an antecedent in their sentence",
    find=partial(_mentioned, _reflexive),
)
