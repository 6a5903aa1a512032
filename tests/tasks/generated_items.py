"""The items of the generated tasks, and how a test reads them."""

import re

from interp.tasks import agreement, coreference, induction, ioi, reflexive
from interp.tasks.grammar.lexicon import english

N = 200
TASKS = {"agreement": agreement, "coreference": coreference, "reflexive": reflexive, "ioi": ioi, "induction": induction}


def tokens(text):
    return re.findall(r"[\w'-]+|[.,]", text)


def index_of(span, text):
    """Which word of the text begins where the span does."""
    return [match.start() for match in re.finditer(r"[\w'-]+|[.,]", text)].index(span.start)


def examples(pairs):
    return [example for pair in pairs for example in pair.examples]


def base_of(word):
    """The lemma of a name or a noun's form."""
    found = english().noun_of(word)
    return word if english().name_of(word) or found is None else found[0].singular
