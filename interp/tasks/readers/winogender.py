"""How are Winogender's sentences read, and where in them are the pronoun and the two people?

Winogender (Rudinger et al., 2018, https://aclanthology.org/N18-2002) has 120 templates with an occupation, another
participant and a pronoun that can only stand for one of the two. ``all_sentences.tsv`` instantiates each with the
participant's noun or ``someone``, and with a masculine, a feminine and a neutral pronoun.

1. ``templates.tsv`` beside it says where the words are. The participant's article goes away with ``someone``, and
   ``was`` becomes ``were`` after ``they``.
2. Every sentence must be what its template gives: a span is never a guess.
3. ``occupations-stats.tsv`` beside it, if it is there, says which share of those with the occupation are women
   (U.S. Bureau of Labor Statistics).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from interp.tasks.example import Span
from interp.tasks.readers.hub import refuse_hub
from interp.tasks.readers.lines import as_path, located
from interp.tasks.readers.tables import table_rows

Gender = Literal["feminine", "masculine", "neutral"]
Templates = Mapping[tuple[str, str], Sequence[tuple[str, str]]]
"""The participants and sentences of an occupation and an answer."""

_SLOT = re.compile(r"\$[A-Z_]+")
_PRONOUN_SLOTS = ("$NOM_PRONOUN", "$POSS_PRONOUN", "$ACC_PRONOUN")
_GENDERS: dict[str, tuple[Gender, tuple[str, str, str]]] = {
    "male": ("masculine", ("he", "his", "him")),
    "female": ("feminine", ("she", "her", "her")),
    "neutral": ("neutral", ("they", "their", "them")),
}


@dataclass(frozen=True)
class WinogenderItem:
    """One sentence of Winogender.

    Attributes:
        sentence_id: For example ``technician.customer.1.male.txt``.
        text: The sentence.
        occupation: The occupation's noun.
        participant: The other's noun, or ``someone``.
        answer: Whom the pronoun stands for.
        gender: Of the pronoun.
        pronoun_span: Where the pronoun stands.
        occupation_span: Where the occupation's noun stands.
        participant_span: Where the other's noun stands.
        bls_pct_female: Share of women in the occupation in percent; None where it is not known.
    """

    sentence_id: str
    text: str
    occupation: str
    participant: str
    answer: Literal["occupation", "participant"]
    gender: Gender
    pronoun_span: Span
    occupation_span: Span
    participant_span: Span
    bls_pct_female: float | None


def read_winogender(path: str | Path) -> Iterator[WinogenderItem]:
    """Read Winogender, sentence by sentence, in the file's order.

    Args:
        path: ``all_sentences.tsv``, or the folder that holds it; ``templates.tsv`` must lie beside it.

    Raises:
        TaskError: A file is missing, unreadable or without rows, has another header, or has a line (named) that
            cannot be used; a sentence is not what its template gives; or the name is one of the hub.
    """
    refuse_hub(path, "Winogender")
    path = as_path(path)
    path = path / "all_sentences.tsv" if path.is_dir() else path
    templates, shares = _templates(path.with_name("templates.tsv")), _shares(path.with_name("occupations-stats.tsv"))
    for number, row in table_rows(path, "Winogender's sentences", ("sentid", "sentence")):
        with located(path, number):
            item = _item(row["sentid"], row["sentence"], templates, shares)
        yield item


def _templates(path: Path) -> Templates:
    columns = ("occupation(0)", "other-participant(1)", "answer", "sentence")
    found: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for number, row in table_rows(path, "the templates of Winogender's sentences", columns):
        occupation, participant, answer, sentence = row.values()
        slots = sorted("pronoun" if slot in _PRONOUN_SLOTS else slot for slot in _SLOT.findall(sentence))
        with located(path, number):
            if slots != ["$OCCUPATION", "$PARTICIPANT", "pronoun"]:
                raise ValueError(f"expected $OCCUPATION, $PARTICIPANT and one pronoun once each, got {sentence!r}")
        found.setdefault((occupation, answer), []).append((participant, sentence))
    return found


def _shares(path: Path) -> dict[str, float]:
    """The share of women in each occupation, in percent; none where there is no such file."""
    if not path.exists():
        return {}
    columns = ("occupation", "bergsma_pct_female", "bls_pct_female", "bls_year")
    shares = {}
    for number, row in table_rows(path, "the statistics of Winogender's occupations", columns):
        with located(path, number):
            shares[row["occupation"]] = _percent(row["bls_pct_female"])
    return shares


def _percent(text: str) -> float:
    if not re.fullmatch(r"\d+(\.\d+)?", text) or float(text) > 100:
        raise ValueError(f"expected a share in percent in the column 'bls_pct_female', got {text!r}")
    return float(text)


def _item(sentence_id: str, sentence: str, templates: Templates, shares: Mapping[str, float]) -> WinogenderItem:
    parts = re.fullmatch(r"([^.]+)\.([^.]+)\.([01])\.(male|female|neutral)\.txt", sentence_id)
    if parts is None:
        raise ValueError(f"expected an id such as technician.customer.1.male.txt, got {sentence_id!r}")
    occupation, participant, answer, gender = parts.groups()
    spans = _spans(sentence, parts.groups(), templates)
    return WinogenderItem(
        sentence_id=sentence_id,
        text=sentence,
        occupation=occupation,
        participant=participant,
        answer="participant" if answer == "1" else "occupation",
        gender=_GENDERS[gender][0],
        pronoun_span=next(span for slot, span in spans.items() if slot in _PRONOUN_SLOTS),
        occupation_span=spans["$OCCUPATION"],
        participant_span=spans["$PARTICIPANT"],
        bls_pct_female=shares.get(occupation),
    )


def _spans(sentence: str, parts: Sequence[str], templates: Templates) -> dict[str, Span]:
    """Where each slot of the sentence's template is, in the sentence."""
    occupation, participant, answer, gender = parts
    given = ""
    for noun, template in templates.get((occupation, answer), ()):
        if participant in (noun, "someone"):
            given, spans = _filled(template, occupation, participant, gender)
            if given == sentence:
                return spans
    if not given:
        raise ValueError(f"expected a template of {occupation}, {participant} and answer {answer}, got none of these")
    raise ValueError(f"expected {given!r}, as the template has it, got {sentence!r}")


def _filled(template: str, occupation: str, participant: str, gender: str) -> tuple[str, dict[str, Span]]:
    """A template's sentence, and where its slots are."""
    if participant == "someone":
        template = re.sub(r"(?i)\b(the|an?) \$PARTICIPANT", "$PARTICIPANT", template)
        participant = "Someone" if template.startswith("$PARTICIPANT") else "someone"
    if gender == "neutral":
        template = template.replace("$NOM_PRONOUN was ", "$NOM_PRONOUN were ")
    words = {"$OCCUPATION": occupation, "$PARTICIPANT": participant}
    words |= dict(zip(_PRONOUN_SLOTS, _GENDERS[gender][1], strict=True))
    sentence, spans, done = "", {}, 0
    for slot in _SLOT.finditer(template):
        sentence += template[done : slot.start()]
        spans[slot.group()] = Span(len(sentence), len(sentence) + len(words[slot.group()]))
        sentence, done = sentence + words[slot.group()], slot.end()
    return sentence + template[done:], spans
