"""Task: on real sentences, does a reflexive pronoun have the number of its antecedent?

1. *himself*, *herself*, *itself* and *themselves* stand for the nearest earlier mention of their entity, in the same
   sentence. Emphatic ones, which are no mention of their own, are left out.
2. The number is flipped: *themselves* for the singular ones; for *themselves*, *himself* where the entity is a person
   and *itself* where it is not.
3. **Distractor**: the nearest other mention between antecedent and pronoun.

It takes a treebank with coreference (``Entity=``), such as GUM. As BLiMP's *anaphor number agreement* (Warstadt et al.,
2020), on sentences that somebody has said.
"""

from interp.tasks.example import Span
from interp.tasks.request import FileRequest, TaskInfo
from interp.tasks.task import Task
from interp.tasks.treebank import Document, Mention
from interp.tasks.treebank_coreference import nearest
from interp.tasks.treebank_pairs import Findings, Flip, before, documents, encode_flips

INFO = TaskInfo(
    "anaphora:PATH",
    "In the sentences of a treebank with coreference (CoNLL-U with Entity=), a reflexive pronoun has the number of its "
    "antecedent.",
    feature="number",
)
_SINGULAR = ("himself", "herself", "itself")
_PLURAL = "themselves"


def load(request: FileRequest) -> Task:
    """Read a treebank's reflexive pronouns as a task.

    Raises:
        TaskError: The file cannot be read, it has no pronoun that can be used, the metric is another, no item has only
            known words, or the tokenizer can carry none.
    """
    found = Findings()
    for document in documents(request):
        for mention in document.mentions:
            form = document.sentences[mention.sentence].words[mention.head].form.lower()
            if form in (*_SINGULAR, _PLURAL):
                found.take(_flip(document, mention))
    return encode_flips(request, INFO, found, "reflexive pronouns with an antecedent in their sentence")


def _flip(document: Document, mention: Mention) -> Flip | str:
    antecedent = nearest(document, mention)
    if antecedent is None or antecedent.sentence != mention.sentence:
        return "no antecedent in the sentence"
    sentence = document.sentences[mention.sentence]
    form = sentence.words[mention.head].form.lower()
    wrong = _PLURAL if form in _SINGULAR else "himself" if mention.type == "person" else "itself"
    return Flip(
        document.id,
        sentence.text,
        sentence.words[mention.head].span,
        wrong,
        "number",
        "singular" if form in _SINGULAR else "plural",
        "antecedent",
        sentence.words[antecedent.head].span,
        _between(document, antecedent, mention),
    )


def _between(document: Document, antecedent: Mention, mention: Mention) -> dict[str, Span]:
    found = [
        each
        for each in document.mentions
        if each.sentence == mention.sentence
        and each.entity != mention.entity
        and before(antecedent, each)
        and before(each, mention)
    ]
    words = document.sentences[mention.sentence].words
    return {"other mention": words[max(each.head for each in found)].span} if found else {}
