"""How does a word of a treebank become a minimal pair? The text before it, the word, and the same word flipped.

1. The prompt is the text before the word; *right* is the word as it stands there, *wrong* its other form. Both are
   predicted from the prompt's last word.
2. Only a word between a space and no letter can be predicted by itself: not the ``'s`` of ``he's``.
3. No counterfactual: no other sentence of the treebank differs in the feature alone. So the templates are the feature's
   values, and both values count the same: a preference for one answer is no evidence.
4. Clusters are documents. What of the treebank could be used, and what not, stands in the task's coverage.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from interp.errors import TaskError
from interp.tasks.example import Example, MinimalPair, Relation, Span
from interp.tasks.readers.conllu import read_conllu
from interp.tasks.request import FileRequest, TaskInfo, require_metric
from interp.tasks.task import Task
from interp.tasks.treebank import Document, Mention, Sentence


@dataclass(frozen=True)
class Flip:
    """A word that could stand there in another form.

    Attributes:
        document: Where.
        text: Up to the word at least.
        word: Its characters in the text.
        wrong: Its other form.
        feature: The name of what is flipped.
        template: Its value.
        relation: The name of its relation to the word that decides.
        related: That word.
        distractors: Words that could be mistaken for it, by their role.
    """

    document: str
    text: str
    word: Span
    wrong: str
    feature: str
    template: str
    relation: str
    related: Span
    distractors: Mapping[str, Span]

    @property
    def predictable(self) -> bool:
        """Whether the word can be predicted by itself."""
        right, before = self.word.of(self.text), self.text[: self.word.start]
        after = self.text[self.word.stop : self.word.stop + 1]
        return right.isalpha() and before.endswith(" ") and bool(before.strip()) and not after.isalnum()

    def pair(self) -> MinimalPair:
        """The minimal pair."""
        prompt, right = self.text[: self.word.start].rstrip(), self.word.of(self.text)
        query = Span(len(prompt) - len(prompt.split()[-1]), len(prompt))
        example = Example(
            prompt=prompt,
            right=f" {right}",
            wrong=f" {like(right, self.wrong)}",
            relation=Relation(self.relation, query, self.related, self.distractors),
            template=self.template,
            layout="",  # the sentences' words have no common meaning by position
            features={self.feature: self.template},
        )
        return MinimalPair(example, None, cluster=self.document)


@dataclass
class Findings:
    """What of a treebank was looked at, and what became of it.

    Attributes:
        flips: What can be used.
        considered: What was looked at.
        reasons: How many of these could not be used, by reason.
    """

    flips: list[Flip] = field(default_factory=list)
    considered: int = 0
    reasons: Counter[str] = field(default_factory=Counter)

    def take(self, found: Flip | str) -> None:
        """Keep a flip, or count why there is none."""
        self.considered += 1
        if isinstance(found, Flip) and not found.predictable:
            found = "cannot be predicted by itself"
        if isinstance(found, Flip):
            self.flips.append(found)
        else:
            self.reasons[found] += 1

    @property
    def coverage(self) -> dict[str, float]:
        """Shares in percent."""
        counts = {"used": len(self.flips), **self.reasons}
        return {what: 100 * count / self.considered for what, count in counts.items()}


def documents(request: FileRequest) -> Iterable[Document]:
    """The treebank that a request names.

    Raises:
        TaskError: As ``read_conllu``.
    """
    return read_conllu(request.source)


def encode_flips(request: FileRequest, info: TaskInfo, found: Findings, needed: str) -> Task:
    """Make a task of what was found.

    Args:
        request: What was asked for.
        info: What the task is.
        found: What the treebank has.
        needed: What it would have to have, for the message.

    Raises:
        TaskError: Nothing was found, the metric is another, or the tokenizer can carry nothing.
    """
    require_metric(request.name, request.metric, info)
    if not found.flips:
        reasons = ", ".join(f"{count} {why}" for why, count in found.reasons.items())
        got = (
            f"none that can be used ({reasons})"
            if reasons
            else "none (words need tags, as XPOS, and pronouns mentions, as Entity=)"
        )
        raise TaskError(f"{request.name}: expected {needed}, got {got}; give another treebank")
    chosen = request.choose([each.pair() for each in found.flips], lambda pair: [pair.item.text])
    return request.encode(chosen, info, found.coverage)


def joined(sentences: Sequence[Sentence]) -> tuple[str, list[int]]:
    """Sentences as one text, and where each begins."""
    begins, text = [], ""
    for sentence in sentences:
        text += " " * bool(text)
        begins.append(len(text))
        text += sentence.text
    return text, begins


def moved(span: Span, by: int) -> Span:
    """The span of the same characters in a text in which they stand further on."""
    return Span(span.start + by, span.stop + by)


def before(mention: Mention, other: Mention) -> bool:
    """Whether a mention's head stands before another's."""
    return (mention.sentence, mention.head) < (other.sentence, other.head)


def like(form: str, other: str) -> str:
    """`other` in the case of `form`."""
    if form.isupper() and len(form) > 1:
        return other.upper()
    return other.capitalize() if form[:1].isupper() else other
