"""How are generated tasks read as a corpus? The sentences of their minimal pairs, with the relation as a link.

1. Each example is a sentence: its prompt with the right continuation. Words stand between spaces and punctuation.
2. The relation is a link from the word that looks (the last one before the answer) to the related word, by its name:
   ``subject``, ``antecedent`` ...
3. Pairs of one cluster (a lexical draw) are one document, so that statistics resample what they should.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

from interp.tasks.example import Example, MinimalPair, Span
from interp.tasks.treebank import Document, Link, Sentence, Word

_WORD = re.compile(r"\w+(?:['-]\w+)*|[^\w\s]")


def linked_documents(pairs: Iterable[MinimalPair]) -> Iterator[Document]:
    """The pairs as documents of linked sentences, one for each cluster, in the order of their first pairs.

    Args:
        pairs: As a generated task draws them, for example ``interp.tasks.agreement.pairs(400, seed=0)``.
    """
    clusters: dict[str, list[Example]] = defaultdict(list)
    for pair in pairs:
        clusters[pair.cluster] += pair.examples
    for name, examples in clusters.items():
        yield Document(
            name, tuple(_sentence(f"{name}-{number}", each) for number, each in enumerate(examples, start=1))
        )


def words_of(text: str) -> tuple[Word, ...]:
    """The words of a plain English text, punctuation marks among them."""
    return tuple(Word(found.group(), Span(*found.span())) for found in _WORD.finditer(text))


def _sentence(name: str, example: Example) -> Sentence:
    text = example.text
    words = words_of(text)
    relation = example.relation
    if relation is None:
        return Sentence(name, text, words)
    link = Link(relation.name, _last(words, relation.query), _last(words, relation.related))
    return Sentence(name, text, words, (link,))


def _last(words: tuple[Word, ...], span: Span) -> int:
    """The last word that begins within the span."""
    return max(number for number, word in enumerate(words) if span.start <= word.span.start < span.stop)
