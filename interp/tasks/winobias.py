"""Task: does a model prefer the pronoun that the stereotype of an occupation asks for?

WinoBias comes in two files of the same sentences (``readers/winobias.py``): in ``pro_stereotyped_*`` the pronouns have
the gender that the occupation's stereotype asks for, in ``anti_stereotyped_*`` the other.

1. A line of the one and the line with its number in the other are one item (``stereotypes.py``), where they are the
   same words but for the pronouns. A few lines of the published files are not; they are left out and counted.
2. **The other person.** The occupations are those that somebody is referred to by, anywhere in the file. The one that
   stands before the pronoun, beside the referent's own, is the other person; of none or of several, there is none.
3. **Counterfactual.** Lines 2k-1 and 2k are about the same two occupations. Where the one is the other with the
   occupations exchanged, and what is right there is wrong here, they are one unit. Those are lines of type 2: in
   type 1 it is the rest of the sentence that says whom the pronoun stands for. The feminine and the masculine twin
   come first in turn, since a unit counts under the template of its first.
4. **Cluster.** The two occupations. An occupation stands in many pairs, so clusters are not wholly independent.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import cycle, zip_longest
from pathlib import Path
from typing import NamedTuple

from interp.errors import TaskError
from interp.tasks.example import Example, MinimalPair, Span
from interp.tasks.readers.hub import hub_parts, is_hub
from interp.tasks.readers.lines import as_path
from interp.tasks.readers.winobias import WinobiasItem, read_winobias, twin_name
from interp.tasks.request import FileRequest, TaskInfo, require_metric
from interp.tasks.stereotypes import sentences, stereotype_example
from interp.tasks.tagging import all_known
from interp.tasks.task import Task

INFO = TaskInfo(
    "winobias:PATH",
    "The pronoun that an occupation's stereotype asks for, as WinoBias has it, is more probable than the other "
    "gender's: a preference of the model, not a right answer.",
    query="later word",
    metric="sentence_log_probability",
)


class _Line(NamedTuple):
    """A line and what it becomes.

    Attributes:
        item: As the ``pro_`` file has it.
        occupation: Where the referent's occupation stands, without its article.
        other: Where the other person's stands; None where there is not exactly one.
        example: What is measured.
    """

    item: WinobiasItem
    occupation: Span
    other: Span | None
    example: Example


def load(request: FileRequest) -> Task:
    """Read the two files of WinoBias, of which the request names the ``pro_`` one, as a task.

    Raises:
        TaskError: A file cannot be read or is not the other's twin, the metric is another, no item has only known
            words, or the tokenizer can carry none.
    """
    require_metric(request.name, request.metric, INFO)
    both = list(read_both(request.source))
    occupations = _occupations([pro for pro, _ in both])
    lines = [_line(pro, anti, occupations) for pro, anti in both if _same_words(pro, anti)]
    if 2 * len(lines) < len(both):
        raise TaskError(
            f"{request.name}: expected the same sentences with other pronouns in the anti_ file, got {len(lines)} of "
            f"{len(both)} lines; put the twin of this very file beside it"
        )
    pairs = _pairs(lines)
    covered = {
        "known words": sum(all_known(pro.text, anti.text) for pro, anti in both),
        "same words in both files": len(lines),
        "other person found": sum(line.other is not None for line in lines),
        "counterfactual": 2 * sum(pair.counterfactual is not None for pair in pairs),
    }
    coverage = {what: 100 * count / len(both) for what, count in covered.items()}
    return request.encode(request.choose(pairs, sentences), INFO, coverage)


def read_both(path: str | Path) -> Iterator[tuple[WinobiasItem, WinobiasItem]]:
    """The lines of a ``pro`` file or configuration, each with the line of its number in the ``anti`` one beside it.

    Raises:
        TaskError: One cannot be read or is not called ``pro``, or a line has no counterpart.
    """
    given = str(path) if is_hub(path) else as_path(path)
    twin = _twin(given)
    for row, (pro, anti) in enumerate(zip_longest(_in_order(given), _in_order(twin)), start=1):
        if pro is None or anti is None or pro.number != anti.number:
            ours, theirs = ("none" if each is None else each.number for each in (pro, anti))
            raise TaskError(
                f"{twin}, sentence {row}: expected the number {ours}, as in its pro twin, got {theirs}; "
                "the two must have the same sentences in the same order"
            )
        yield pro, anti


def _twin(given: str | Path) -> str | Path:
    """Where the same sentences are with the other pronouns."""
    name = twin_name(given.name if isinstance(given, Path) else hub_parts(given)[1] or "")
    if name is None:
        raise TaskError(
            f"{given}: expected a file called pro_..., with anti_... beside it, or a configuration of the hub such as "
            "type1_pro, got another name; give that"
        )
    if isinstance(given, Path):
        return given.with_name(name)
    hub, data_set, _, *split = given.split(":")
    return ":".join((hub, data_set, name, *split))


def _in_order(source: str | Path) -> Iterable[WinobiasItem]:
    """The hub's rows are not in the order of their numbers."""
    items = read_winobias(source)
    return sorted(items, key=lambda item: item.number) if is_hub(source) else items


def _same_words(pro: WinobiasItem, anti: WinobiasItem) -> bool:
    """Whether two sentences differ in the gender of their pronouns and in nothing else."""
    return pro.gender != anti.gender and _between_pronouns(pro) == _between_pronouns(anti)


def _between_pronouns(item: WinobiasItem) -> list[str]:
    starts = [0, *(span.stop for span in item.pronouns)]
    stops = [*(span.start for span in item.pronouns), len(item.text)]
    return [item.text[start:stop] for start, stop in zip(starts, stops, strict=True)]


def _occupation(item: WinobiasItem) -> Span:
    """The referent without its article."""
    article = re.match(r"(the|an?) ", item.referent.of(item.text), re.IGNORECASE)
    return Span(item.referent.start + (0 if article is None else article.end()), item.referent.stop)


def _occupations(items: Sequence[WinobiasItem]) -> re.Pattern[str]:
    """What finds the occupations that somebody in the file is referred to by; of two that match, the longer."""
    names = {re.escape(_occupation(item).of(item.text).lower()) for item in items}
    return re.compile(rf"(?<!\w)({'|'.join(sorted(names, key=len, reverse=True))})(?!\w)", re.IGNORECASE)


def _line(pro: WinobiasItem, anti: WinobiasItem, occupations: re.Pattern[str]) -> _Line:
    occupation = _occupation(pro)
    other = _other_person(pro, occupation.of(pro.text).lower(), occupations)
    example = stereotype_example(
        pro.text,
        anti.text,
        gender=pro.gender,
        pronoun=pro.pronoun,
        referent=occupation,
        other_person=other,
    )
    return _Line(pro, occupation, other, example)


def _other_person(item: WinobiasItem, own: str, occupations: re.Pattern[str]) -> Span | None:
    """The first mention before the pronoun of the only occupation that is not the referent's own."""
    found = [match for match in occupations.finditer(item.text, 0, item.pronoun.start) if match.group().lower() != own]
    if len({match.group().lower() for match in found}) != 1:
        return None
    return Span(*found[0].span())


def _pairs(lines: Sequence[_Line]) -> list[MinimalPair]:
    """The lines, twins together, in their order."""
    pairs, at, turns = [], 0, cycle(("feminine", "masculine"))
    while at < len(lines):
        found = list(lines[at : at + 2])
        if len(found) == 2 and _twins(*found):
            first = next(turns)
            found.sort(key=lambda line: line.item.gender != first)
        else:
            found = found[:1]
        item, *twin = [line.example for line in found]
        pairs.append(MinimalPair(item, twin[0] if twin else None, cluster=_cluster(found[0])))
        at += len(found)
    return pairs


def _twins(one: _Line, two: _Line) -> bool:
    """Whether lines 2k-1 and 2k are the same but for the two occupations, and so the answers, exchanged."""
    if one.other is None or one.item.number % 2 == 0 or two.item.number != one.item.number + 1:
        return False
    text, (first, second) = one.example.prompt, sorted((one.occupation, one.other), key=lambda span: span.start)
    exchanged = "".join(
        (text[: first.start], second.of(text), text[first.stop : second.start], first.of(text), text[second.stop :])
    )
    return (exchanged, one.example.right, one.example.wrong) == (
        two.example.prompt,
        two.example.wrong,
        two.example.right,
    ) and one.other.of(text) == two.occupation.of(two.item.text)


def _cluster(line: _Line) -> str:
    spans = [span for span in (line.occupation, line.other) if span is not None]
    return " + ".join(sorted(span.of(line.item.text).lower() for span in spans))
