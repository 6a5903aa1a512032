"""Where does each word of a CoNLL-U sentence stand in its text?"""

from collections.abc import Iterator, Sequence
from itertools import accumulate

from interp.tasks.example import Span
from interp.tasks.readers.conllu_block import placed
from interp.tasks.readers.conllu_node import Node
from interp.tasks.readers.lines import shortened


def written(nodes: Sequence[Node]) -> str:
    """The text that the forms and ``SpaceAfter=No`` give."""
    pieces = [node.form + ("" if "No" in node.said("SpaceAfter") else " ") for node in _surface(nodes)]
    return "".join(pieces).rstrip(" ")


def _surface(nodes: Sequence[Node]) -> Iterator[Node]:
    """The tokens that the text consists of: multiword tokens, and words outside of them."""
    covered = 0
    for node in nodes:
        if isinstance(node.id, int):
            if node.id > covered:
                yield node
        elif node.n_words:
            covered = node.id[2]
            yield node


def word_spans(nodes: Sequence[Node], text: str) -> list[Span]:
    """Where each word stands in the text.

    Raises:
        TaskError: It does not stand there, or multiword tokens overlap; it names the place.
    """
    forms = [node.form for node in nodes if isinstance(node.id, int)]
    spans: list[Span] = []
    at = 0
    for node in _surface(nodes):
        form = node.form
        while text[at : at + 1].isspace() and not text.startswith(form, at):
            at += 1
        with placed(node.place):
            if not text.startswith(form, at):
                raise ValueError(f"expected the text to go on with {form!r}, got {shortened(text[at:])}")
        whole = Span(at, at + len(form))
        if isinstance(node.id, int):
            spans.append(whole)
        else:
            first, _, last = node.id
            with placed(node.place):
                if not len(spans) + 1 == first <= last <= len(forms):
                    raise ValueError(
                        f"expected a multiword token of words of the sentence from {len(spans) + 1} on, got "
                        f"{first}-{last}"
                    )
            spans += _within(whole, form, forms[first - 1 : last])
        at = whole.stop
    return spans


def _within(whole: Span, form: str, parts: Sequence[str]) -> list[Span]:
    """Where the words of a multiword token stand: one after the other, or all where they do not spell it."""
    if "".join(parts) != form:
        return [whole] * len(parts)
    ends = accumulate(map(len, parts), initial=whole.start)
    next(ends)
    return [Span(end - len(part), end) for end, part in zip(ends, parts, strict=True)]
