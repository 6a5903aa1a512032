"""Tasks: does a model prefer the pronoun that the stereotype of an occupation asks for?

1. Two sentences are the same but for the gender of the pronouns. The prompt is what comes before the first pronoun;
   *right* goes on with the stereotype's pronoun, *wrong* with the other gender's. Neither is a right answer: the
   preference is measured. Whole rests are compared, since they often say whom the pronoun stands for.
2. The relation looks from the pronoun to the head noun of whom it stands for; the other person is the distractor. The
   template is the stereotype's gender, so either gender counts the same.
3. **WinoBias**: a line of the ``pro_`` file and the line of its number in the ``anti_`` file are one item, where they
   are the same words but for the pronouns. The cluster is the two occupations, those that anybody in the file is
   referred to by. Lines 2k-1 and 2k are one unit where one is the other with the occupations exchanged (type 2). The
   feminine and the masculine twin come first in turn, since a unit counts under the template of its first.
4. **Winogender**: the stereotype is the gender of most people with the occupation (``bls_pct_female``), for sentences
   whose pronoun stands for it. There is no counterfactual. The cluster is the occupation.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import cycle, zip_longest
from pathlib import Path
from typing import NamedTuple

from interp.errors import TaskError
from interp.tasks.encoding import TaskInfo, TaskRequest
from interp.tasks.example import Example, Gender, MinimalPair, Relation, Span
from interp.tasks.readers.sources import as_path, hub_parts, is_hub
from interp.tasks.readers.winobias import WinobiasItem, read_winobias, twin_name
from interp.tasks.readers.winogender import WinogenderItem, read_winogender
from interp.tasks.tagging import all_known
from interp.tasks.task import Task, shares


def stereotype_example(
    asked: str, other: str, *, gender: Gender, pronoun: Span, referent: Span, other_person: Span | None
) -> Example:
    """Make an example of two sentences that are the same before their first pronoun."""
    prompt = asked[: pronoun.start].rstrip()
    related = head_noun(asked, referent)
    others = {} if other_person is None else {"other person": head_noun(asked, other_person)}
    relation, features = Relation("antecedent", pronoun, related, others), {"antecedent": related.of(asked).lower()}
    # Without a layout: the sentences' words have no common meaning by position.
    answers = asked[len(prompt) :], other[len(prompt) :]
    return Example(prompt, *answers, relation, template=gender, layout="", features={"gender": gender, **features})


def sentences(pair: MinimalPair) -> list[str]:
    """The texts of a pair: of each example the whole sentence, in either version."""
    return [text for example in pair.examples for text in (example.text, example.prompt + example.wrongs[0])]


def head_noun(text: str, phrase: Span) -> Span:
    """The last word of a noun phrase."""
    return Span(phrase.start + phrase.of(text).rfind(" ") + 1, phrase.stop)


WINOBIAS = TaskInfo(
    "winobias:PATH",
    "The pronoun that an occupation's stereotype asks for, as WinoBias has it, is more probable than the other "
    "gender's: a preference of the model, not a right answer.",
    query="later word",
    metric="sentence_log_probability",
)


class _Line(NamedTuple):
    """A line and what it becomes."""

    item: WinobiasItem  # as the ``pro_`` file has it
    occupation: Span  # where the referent's occupation stands, without its article
    other: Span | None  # where the other person's stands; None where there is not exactly one
    example: Example  # what is measured


def load_winobias(request: TaskRequest) -> Task:
    """Read the two files of WinoBias, of which the request names the ``pro_`` one, as a task."""
    both = list(read_both(request.source))
    occupations = _occupations([pro for pro, _ in both])
    same = [each for each in both if each[0].gender != each[1].gender and len({*map(_between_pronouns, each)}) == 1]
    lines = [_line(pro, anti, occupations) for pro, anti in same]
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
    return request.encode(request.choose(pairs, sentences), shares(covered, len(both)))


def read_both(path: str | Path) -> Iterator[tuple[WinobiasItem, WinobiasItem]]:
    """The lines of a ``pro`` file or configuration, each with the line of its number in the ``anti`` one beside it."""
    given = str(path) if is_hub(path) else as_path(path)
    twin = _twin(given)
    items: Iterable[Iterable[WinobiasItem]] = map(read_winobias, (given, twin))
    if is_hub(given):  # whose rows are not in the order of their numbers
        items = [sorted(each, key=lambda item: item.number) for each in items]
    for row, (pro, anti) in enumerate(zip_longest(*items), start=1):
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


def _between_pronouns(item: WinobiasItem) -> tuple[str, ...]:
    edges = [0, *(edge for span in item.pronouns for edge in (span.start, span.stop)), len(item.text)]
    return tuple(item.text[start:stop] for start, stop in zip(edges[::2], edges[1::2], strict=True))


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
    own, before = occupation.of(pro.text).lower(), occupations.finditer(pro.text, 0, pro.pronoun.start)
    # The other person is the only other occupation before the pronoun, at its first mention.
    others = [match for match in before if match.group().lower() != own]
    other = Span(*others[0].span()) if len({match.group().lower() for match in others}) == 1 else None
    example = stereotype_example(
        pro.text, anti.text, gender=pro.gender, pronoun=pro.pronoun, referent=occupation, other_person=other
    )
    return _Line(pro, occupation, other, example)


def _pairs(lines: Sequence[_Line]) -> list[MinimalPair]:
    """The lines, twins together, in their order."""
    pairs, left, turns = [], list(reversed(lines)), cycle(("feminine", "masculine"))
    while left:
        line = left.pop()
        twin = left.pop() if left and _twins(line, left[-1]) else None
        if twin is not None and line.item.gender != next(turns):
            line, twin = twin, line
        spans = [span for span in (line.occupation, line.other) if span is not None]
        occupations = sorted(span.of(line.item.text).lower() for span in spans)
        counterfactual = None if twin is None else twin.example
        pairs.append(MinimalPair(line.example, counterfactual, cluster=" + ".join(occupations)))
    return pairs


def _twins(one: _Line, two: _Line) -> bool:
    """Whether lines 2k-1 and 2k are the same but for the two occupations, and so the answers, exchanged."""
    if one.other is None or one.item.number % 2 == 0 or two.item.number != one.item.number + 1:
        return False
    text, (first, second) = one.example.prompt, sorted((one.occupation, one.other), key=lambda span: span.start)
    between = text[first.stop : second.start]
    exchanged = text[: first.start] + second.of(text) + between + first.of(text) + text[second.stop :]
    theirs = two.example.prompt, two.example.wrong, two.example.right
    same_person = one.other.of(text) == two.occupation.of(two.item.text)
    return (exchanged, one.example.right, one.example.wrong) == theirs and same_person


WINOGENDER = TaskInfo(
    "winogender:PATH",
    "The pronoun that an occupation's stereotype asks for is more probable than the other gender's: "
    "a preference of the model, not a right answer.",
    query="later word",
    metric="sentence_log_probability",
)


def load_winogender(request: TaskRequest) -> Task:
    """Read Winogender as a task."""
    if is_hub(request.source):
        raise TaskError(
            f"{request.name}: expected a folder with all_sentences.tsv and occupations-stats.tsv, got a data set of "
            "the hub, which does not say how many women have an occupation; give a path"
        )
    both = _both_genders(read_winogender(request.source))
    pairs = [pair for each in both if (pair := _pair(*each)) is not None]
    if not pairs:
        raise TaskError(
            f"{request.name}: expected sentences in both genders whose pronoun stands for an occupation of more women "
            "than men, or of fewer, got none; put occupations-stats.tsv beside all_sentences.tsv"
        )
    covered = {
        "known words": sum(all_known(feminine.text, masculine.text) for feminine, masculine in both),
        "pronoun stands for the occupation": sum(feminine.answer == "occupation" for feminine, _ in both),
        "stereotype known": len(pairs),
    }
    return request.encode(request.choose(pairs, sentences), shares(covered, len(both)))


def _both_genders(items: Iterable[WinogenderItem]) -> list[tuple[WinogenderItem, WinogenderItem]]:
    """The feminine and the masculine version of each sentence that has both, in their order."""
    versions: dict[tuple[str, str, str], dict[str, WinogenderItem]] = {}
    for item in items:
        versions.setdefault((item.occupation, item.participant, item.answer), {})[item.gender] = item
    both = ((each.get("feminine"), each.get("masculine")) for each in versions.values())
    return [(feminine, masculine) for feminine, masculine in both if feminine and masculine]


def _pair(feminine: WinogenderItem, masculine: WinogenderItem) -> MinimalPair | None:
    """The two versions as an item, where there is a stereotype."""
    share = feminine.bls_pct_female
    if feminine.answer != "occupation" or share is None or share == 50:
        return None
    gender: Gender = "feminine" if share > 50 else "masculine"
    asked, other = (feminine, masculine) if gender == "feminine" else (masculine, feminine)
    people = {"referent": asked.occupation_span, "other_person": asked.participant_span}
    example = stereotype_example(asked.text, other.text, gender=gender, pronoun=asked.pronoun_span, **people)
    return MinimalPair(example, None, cluster=asked.occupation)
