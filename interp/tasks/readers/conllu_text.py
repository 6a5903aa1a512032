"""Where does each word of a CoNLL-U sentence stand in its text?

Nodes are as the ``conllu`` package gives them, each with its place for an error.
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

from interp.tasks.example import Span
from interp.tasks.readers.conllu_block import placed
from interp.tasks.readers.lines import shortened


def written(nodes: Sequence[tuple[str, Any]]) -> str:
    """The text that the forms and ``SpaceAfter=No`` give."""
    pieces = [node["form"] + ("" if _glued(node) else " ") for _, node in _surface(nodes)]
    return "".join(pieces).rstrip(" ")


def _glued(node: Any) -> bool:
    return bool(node["misc"]) and node["misc"].get("SpaceAfter") == "No"


def _surface(nodes: Sequence[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """The tokens that the text consists of: multiword tokens, and words outside of them."""
    covered = 0
    for place, node in nodes:
        if isinstance(node["id"], int):
            if node["id"] > covered:
                yield place, node
        elif node["id"][1] == "-":
            covered = node["id"][2]
            yield place, node


def word_spans(nodes: Sequence[tuple[str, Any]], text: str) -> list[Span]:
    """Where each word stands in the text.

    Raises:
        TaskError: It does not stand there, or multiword tokens overlap; it names the place.
    """
    forms = [node["form"] for _, node in nodes if isinstance(node["id"], int)]
    spans: list[Span] = []
    at = 0
    for place, node in _surface(nodes):
        while at < len(text) and text[at].isspace():
            at += 1
        form = node["form"]
        with placed(place):
            if not text.startswith(form, at):
                raise ValueError(f"expected the text to go on with {form!r}, got {shortened(text[at:])}")
        whole = Span(at, at + len(form))
        if isinstance(node["id"], int):
            spans.append(whole)
        else:
            first, _, last = node["id"]
            with placed(place):
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
