"""Which treebanks may a command read? Different ones, which have what is asked of them."""

from collections.abc import Sequence
from pathlib import Path

from interp.errors import InputError, among
from interp.tasks.corpus import Corpus, is_named
from interp.tasks.features import features_in

_MOST_NAMED = 40


def require_different(sources: Sequence[str], options: str) -> None:
    """Refuse a file that is named twice: documents would count twice, or choose what is tested on themselves.

    Args:
        sources: Files, or names of texts that are in none.
        options: Where they are named, for the message.

    Raises:
        InputError: One is.
    """
    seen = set()
    for source in sources:
        place = source if is_named(source) else Path(source).expanduser().resolve()
        if place in seen:
            raise InputError(f"{source}: expected different files for {options}, got it twice; leave one out")
        seen.add(place)


def with_feature(data: Sequence[str], feature: str) -> Corpus:
    """The corpus, counted before a model is loaded, so that what is wrong with it is told at once.

    Args:
        data: Files, or names of texts that are in none, of ``--data``.
        feature: What is to be known of its words.

    Raises:
        InputError: A file is named twice, or no word has the feature; what there is is told.
        TaskError: A file cannot be read.
    """
    require_different(data, "--data")
    corpus = Corpus.of(data)
    n_documents = len(corpus.contents.documents)
    if any(feature in features_in([document]) for document in corpus):
        return corpus
    raise InputError(
        f"feature {feature!r} does not occur in the {n_documents} documents of --data"
        f"{among(feature, features_in(corpus), _MOST_NAMED)}"
    )
