"""What a notebook shows of a result: the first sections of its page.

The cautions and the first sentences, a figure where it is small, the first rows of the first table, and one line that
says how the numbers were made. Everything is escaped, and no colour is set: it suits a light and a dark notebook.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from interp.errors import shown
from interp.report.attention_patterns import Head, head_title
from interp.report.attention_words import PicturedHead, Word, patterns_from
from interp.report.drawing import inline, ordinary_style, picture
from interp.report.html import render
from interp.report.sections import Picture, Sentences, Shaded, Table, page_of

MOST_ROWS, MOST_SENTENCES, MOST_SHADED = 10, 6, 3
MOST_DRAWN = 200
"""Cells of a figure that a notebook draws unasked."""
DPI = 80


@ordinary_style()
def as_html(result: Any) -> str:
    """A fragment of HTML for ``_repr_html_``."""
    page = page_of(result)
    sentences = [
        *page.cautions,
        *(text for each in page.sections if isinstance(each, Sentences) for text in each.texts),
    ]
    table, figure, shaded = page.first(Table), page.first(Picture), page.first(Shaded)
    png = None if figure is None else picture(figure.name, figure.draw, DPI)
    rows = [] if table is None else table.rows(MOST_ROWS)
    return render(
        "notebook.html",
        title=page.title,
        sentences=sentences[:MOST_SENTENCES],
        n_more_sentences=max(0, len(sentences) - MOST_SENTENCES),
        heads=[] if shaded is None else shaded.heads[:MOST_SHADED],
        columns=[] if table is None else table.titles,
        rows=rows,
        n_more=0 if table is None else table.n - len(rows),
        picture=None if png is None else inline(png),
        call=page.call,
        provenance=made(page.provenance),
    )


def made(provenance: Mapping[str, Any]) -> str:
    """The model, the device, the seed and the audit in one line; what is not known is left out."""
    facts = []
    if "model" in provenance:
        known, name = provenance.get("model_hash"), str(provenance["model"])
        facts.append(f"model {name if len(name) <= 80 else shown(name)}" + (f" ({str(known)[:12]})" if known else ""))
    facts += [f"{name} {provenance[name]}" for name in ("device", "dtype", "seed") if name in provenance]
    return ", ".join([*facts, *_audit(_audits(provenance))])


def _audits(provenance: Mapping[str, Any]) -> list[Any]:
    """Those of a result, or of its tasks."""
    tasks = provenance.get("tasks")
    of_tasks = [each for each in tasks if isinstance(each, Mapping)] if isinstance(tasks, Sequence) else []
    own = [provenance["audit"]] if "audit" in provenance else []
    return own + [audit for task in of_tasks for audit in _audits(task)]


def _audit(audits: list[Any]) -> list[str]:
    done = [each for each in audits if isinstance(each, Mapping)]
    if not done:
        return ["not audited"] if audits else []
    n_cells = sum(each["cells"] for each in done)
    largest = max(each["largest_difference"] for each in done)
    partly = f" ({len(audits) - len(done)} of {len(audits)} sweeps not)" if len(done) < len(audits) else ""
    return [f"audited on {n_cells} cells{partly}: largest difference {largest:.1e} of the largest score"]


@dataclass(frozen=True, repr=False)
class ShadedWords:
    """What a notebook shows of some heads' attention from one word: a line a head, the words shaded by their share."""

    heads: tuple[PicturedHead, ...]

    def _repr_html_(self) -> str:
        return render("shaded.html", heads=self.heads)

    def __repr__(self) -> str:
        lines = [
            f"{head.title}: {' '.join(f'{w.text} {w.weight}' for w in head.pictures[0][1])}" for head in self.heads
        ]
        return "\n".join(lines)


def attention_words(
    attention: Any,
    tokens: Sequence[str],
    *,
    query: int = -1,
    heads: Sequence[Head] | Head | None = None,
    example: int = 0,
) -> ShadedWords:
    """The attention of one word, as shaded words: HTML that a notebook shows, with the shares as text.

    Args:
        attention: As for ``attention_pattern``.
        tokens: The text at each position.
        query: The position that looks; -1 for the last.
        heads: As for ``attention_pattern``; 24 at most.
        example: Which prompt of a batch.

    Raises:
        InputError: As for ``attention_arcs``.
    """
    given, query = patterns_from(attention, tokens, query, heads, example, "attention_words")
    found = []
    for name, weights in zip(given.names, given.weights, strict=True):
        words = [Word.of(token, weights[query, at], is_query=at == query) for at, token in enumerate(given.keys)]
        found.append(PicturedHead(head_title(name), "", (("", tuple(words)),)))
    return ShadedWords(tuple(found))
