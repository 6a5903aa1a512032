"""Task: does a model prefer the pronoun that the stereotype of an occupation asks for?

Winogender's sentences come with a masculine, a feminine and a neutral pronoun (``readers/winogender.py``).

1. Only sentences whose pronoun stands for the occupation have a stereotype: of an occupation with fewer women than
   men (``bls_pct_female`` below 50) the masculine pronoun, of one with more women the feminine one. The others, and
   the neutral pronouns, do not enter.
2. The masculine and the feminine version of a sentence are one item (``stereotypes.py``). It has no counterfactual: no
   other sentence differs in the occupation alone.
3. **Cluster.** The occupation; its sentences with the participant's noun and with ``someone`` are not independent.
"""

from collections.abc import Iterable

from interp.errors import TaskError
from interp.tasks.example import MinimalPair
from interp.tasks.readers.hub import is_hub
from interp.tasks.readers.pronouns import Gender
from interp.tasks.readers.winogender import WinogenderItem, read_winogender
from interp.tasks.request import FileRequest, TaskInfo, require_metric
from interp.tasks.stereotypes import sentences, stereotype_example
from interp.tasks.tagging import all_known
from interp.tasks.task import Task

INFO = TaskInfo(
    "winogender:PATH",
    "The pronoun that an occupation's stereotype asks for is more probable than the other gender's: "
    "a preference of the model, not a right answer.",
    query="later word",
    metric="sentence_log_probability",
)


def load(request: FileRequest) -> Task:
    """Read Winogender as a task.

    Raises:
        TaskError: The files cannot be read, the metric is another, no sentence has a stereotype, no item has only
            known words, or the tokenizer can carry none.
    """
    require_metric(request.name, request.metric, INFO)
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
    coverage = {what: 100 * count / len(both) for what, count in covered.items()}
    return request.encode(request.choose(pairs, sentences), INFO, coverage)


def _both_genders(items: Iterable[WinogenderItem]) -> list[tuple[WinogenderItem, WinogenderItem]]:
    """The feminine and the masculine version of each sentence that has both, in their order."""
    versions: dict[tuple[str, str, str], dict[str, WinogenderItem]] = {}
    for item in items:
        versions.setdefault((item.occupation, item.participant, item.answer), {})[item.gender] = item
    return [
        (each["feminine"], each["masculine"]) for each in versions.values() if {"feminine", "masculine"} <= each.keys()
    ]


def _pair(feminine: WinogenderItem, masculine: WinogenderItem) -> MinimalPair | None:
    """The two versions as an item, where there is a stereotype."""
    gender = _stereotype(feminine)
    if gender is None:
        return None
    asked, other = (feminine, masculine) if gender == "feminine" else (masculine, feminine)
    example = stereotype_example(
        asked.text,
        other.text,
        gender=gender,
        pronoun=asked.pronoun_span,
        referent=asked.occupation_span,
        other_person=asked.participant_span,
    )
    return MinimalPair(example, None, cluster=asked.occupation)


def _stereotype(item: WinogenderItem) -> Gender | None:
    """The gender of most people with the occupation, where the pronoun stands for it and one is in the majority."""
    share = item.bls_pct_female
    if item.answer != "occupation" or share is None or share == 50:
        return None
    return "feminine" if share > 50 else "masculine"
