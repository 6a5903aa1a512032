"""Task: on real sentences, does a present-tense verb agree with its subject?

1. A verb is ``VBZ`` or ``VBP``; its subject is its ``nsubj``, or that of the word that it is an auxiliary or copula of.
2. The subject stands before the verb, has the verb's number, and is third person: with *I* and *you* the forms of *be*
   do not say number.
3. The verb's other form must stand somewhere in the treebank: none is made up. *am* and contracted forms are left out.
4. **Distractor**: the nearest noun between subject and verb, the *attractor*.

Linzen et al. (2016), https://aclanthology.org/Q16-1037.
"""

from collections.abc import Iterable, Mapping
from typing import Literal

from interp.tasks.example import Span
from interp.tasks.request import FileRequest, TaskInfo
from interp.tasks.task import Task
from interp.tasks.treebank import Document, Sentence, Word
from interp.tasks.treebank_pairs import Findings, Flip, documents, encode_flips

INFO = TaskInfo(
    "agreement:PATH",
    "In the sentences of a treebank (CoNLL-U), a present-tense verb agrees in number with its subject.",
    feature="number",
)
Number = Literal["singular", "plural"]
NUMBER: dict[str, Number] = {"VBZ": "singular", "VBP": "plural"}
_OF_SUBJECT: dict[str, Number] = {"Sing": "singular", "Plur": "plural"}
_HELPING = ("aux", "aux:pass", "cop")
Forms = Mapping[tuple[str, Number], str]


def load(request: FileRequest) -> Task:
    """Read a treebank's verbs as a task.

    Raises:
        TaskError: The file cannot be read, it has no verb that can be used, the metric is another, no item has only
            known words, or the tokenizer can carry none.
    """
    forms = attested(documents(request))
    found = Findings()
    for document in documents(request):
        for sentence in document.sentences:
            for number, word in enumerate(sentence.words):
                if word.xpos in NUMBER:
                    found.take(_flip(document, sentence, number, forms))
    return encode_flips(request, INFO, found, "present-tense verbs (VBZ, VBP) after their subjects")


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


def _flip(document: Document, sentence: Sentence, verb: int, forms: Forms) -> Flip | str:
    """The verb with its subject, or why it cannot be used."""
    word = sentence.words[verb]
    number = NUMBER[word.xpos]
    subject = _subject(sentence, verb)
    if subject is None or subject > verb:
        return "no subject before it"
    if not _third_person(sentence.words[subject]):
        return "first or second person"
    if _OF_SUBJECT.get(_feature(sentence.words[subject], "Number")) != number:
        return "not the number of its subject"
    wrong = forms.get((word.lemma, "plural" if number == "singular" else "singular"))
    if wrong is None or wrong == word.form.lower():
        return "its other form is not in the treebank"
    return Flip(
        document.id,
        sentence.text,
        word.span,
        wrong,
        "number",
        number,
        "subject",
        sentence.words[subject].span,
        _attractor(sentence, subject, verb),
    )


def _subject(sentence: Sentence, verb: int) -> int | None:
    word = sentence.words[verb]
    clause = word.head if word.deprel in _HELPING else verb
    found = (at for at, each in enumerate(sentence.words) if each.head == clause and each.deprel.startswith("nsubj"))
    return next(found, None)


def _third_person(word: Word) -> bool:
    return word.upos in ("NOUN", "PROPN") or (word.upos == "PRON" and _feature(word, "Person") == "3")


def _attractor(sentence: Sentence, subject: int, verb: int) -> dict[str, Span]:
    between = [each for each in sentence.words[subject + 1 : verb] if each.upos in ("NOUN", "PROPN")]
    return {"attractor": between[-1].span} if between else {}


def _feature(word: Word, name: str) -> str:
    return (word.feats or {}).get(name, "")
