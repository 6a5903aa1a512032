"""The items of the generated tasks, and how a test reads them."""

import re
from importlib import import_module

from interp.tasks.catalogue import TASKS as DEFAULT
from interp.tasks.catalogue import list_tasks
from interp.tasks.grammar.lexicon import english

N = 200
TASKS = {name: import_module(f"interp.tasks.{name}") for name in list_tasks()["name"] if ":" not in name}
GRAMMAR = {name: TASKS[name] for name in DEFAULT}
"""Those of the words that the embedded models know; the others are of English words, for language models."""
ENGLISH = {name: TASKS[name] for name in TASKS if name not in GRAMMAR}


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
