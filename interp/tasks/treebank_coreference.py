"""Task: on real text, does a pronoun have the gender of the person that it stands for?

1. A pronoun is *he*, *she* or another of their forms, reflexives aside. Its antecedent, the nearest earlier mention of
   its entity, is a name (its head is a proper noun).
2. The text goes from the antecedent's sentence to the pronoun; the pronoun's gender is flipped.
3. **Distractor**: the nearest mention of another person before the pronoun, the *other person*.

It takes a treebank with coreference (``Entity=``), such as GUM (Zeldes 2017, https://doi.org/10.1007/s10579-016-9343-x).
"""

from interp.tasks.example import Span
from interp.tasks.request import FileRequest, TaskInfo
from interp.tasks.task import Task
from interp.tasks.treebank import Document, Mention
from interp.tasks.treebank_pairs import Findings, Flip, before, documents, encode_flips, joined, moved

INFO = TaskInfo(
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


def load(request: FileRequest) -> Task:
    """Read a treebank's pronouns as a task.

    Raises:
        TaskError: The file cannot be read, it has no pronoun that can be used, the metric is another, no item has only
            known words, or the tokenizer can carry none.
    """
    found = Findings()
    for document in documents(request):
        for mention in document.mentions:
            word = document.sentences[mention.sentence].words[mention.head]
            if (word.form.lower(), word.xpos) in _FLIPPED:
                found.take(_flip(document, mention))
    return encode_flips(request, INFO, found, "pronouns of a gender whose antecedents are names")


def nearest(document: Document, mention: Mention) -> Mention | None:
    """The nearest earlier mention of the same entity."""
    earlier = [each for each in document.mentions if each.entity == mention.entity and before(each, mention)]
    return max(earlier, key=lambda each: (each.sentence, each.head), default=None)


def _flip(document: Document, mention: Mention) -> Flip | str:
    antecedent = nearest(document, mention)
    if antecedent is None:
        return "no antecedent"
    if document.sentences[antecedent.sentence].words[antecedent.head].upos != "PROPN":
        return "the nearest antecedent is no name"
    sentences = document.sentences[antecedent.sentence : mention.sentence + 1]
    text, begins = joined(sentences)

    def span(each: Mention) -> Span:
        at = each.sentence - antecedent.sentence
        return moved(sentences[at].words[each.head].span, begins[at])

    word = sentences[-1].words[mention.head]
    template, wrong = _FLIPPED[word.form.lower(), word.xpos]
    other = _other_person(document, mention, antecedent.sentence)
    distractors = {} if other is None else {"other person": span(other)}
    return Flip(
        document.id, text, span(mention), wrong, "gender", template, "antecedent", span(antecedent), distractors
    )


def _other_person(document: Document, mention: Mention, first: int) -> Mention | None:
    """The nearest mention of another person in the text."""
    others = [
        each
        for each in document.mentions
        if each.type == "person" and each.entity != mention.entity and each.sentence >= first and before(each, mention)
    ]
    return max(others, key=lambda each: (each.sentence, each.head), default=None)
