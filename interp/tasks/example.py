"""What a task is made of: examples, minimal pairs and relations, as plain frozen dataclasses.

Everything here is text and character spans. How words become a tokenizer's tokens is
``tasks/alignment.py``'s concern, so that an example serves every tokenizer.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from interp.arguments import named_arguments
from interp.errors import TaskError, shown

Gender = Literal["feminine", "masculine"]

GENDERS: dict[str, Gender] = {
    **dict.fromkeys(("she", "her", "hers"), "feminine"),
    **dict.fromkeys(("he", "his", "him"), "masculine"),
}
"""Of the third person's pronouns, in lower case."""


@dataclass(frozen=True)
class Span:
    """Half-open range of characters ``[start, stop)`` of an example's ``text``.

    Attributes:
        start: The first character, counted from 0.
        stop: The character behind the last one.

    Raises:
        TaskError: ``Span.find`` finds the word nowhere, or several times.

    Examples:
        >>> interp.Span.find("keys", "The keys to the cabinet")
        Span(start=4, stop=8)
    """

    start: int
    stop: int

    @classmethod
    @named_arguments
    def find(cls, word: str, text: str, which: int | None = None) -> "Span":
        """Where the whole `word` stands in `text`.

        Args:
            word: As it stands there, capitals included.
            text: Where it is looked for.
            which: Of several such words the first (0), the second (1), the last (-1); None where there is but one.

        Returns:
            The span of its characters.

        Raises:
            TaskError: It stands nowhere, not as often, or several times where `which` does not say which is meant.
        """
        found = list(re.finditer(rf"(?<!\w){re.escape(word)}(?!\w)", text)) if word else []
        if not found:
            raise TaskError(f"expected the word {word!r} in the text, got {text!r}; words are matched whole")
        if which is None and len(found) > 1:
            raise TaskError(
                f"the word {word!r} stands {len(found)} times in {text!r}; say which is meant: which=0 for the first, "
                "-1 for the last"
            )
        if not -len(found) <= (which or 0) < len(found):
            raise TaskError(f"which: expected one of the {len(found)} places of {word!r} in {text!r}, got {which}")
        return cls(*found[which or 0].span())

    def of(self, text: str) -> str:
        """The characters that this span covers.

        Args:
            text: The example's ``text``.

        Returns:
            These characters.
        """
        return text[self.start : self.stop]


@dataclass(frozen=True)
class Relation:
    """A word and the earlier word that it is related to.

    Attributes:
        name: What relates them: ``subject``, ``antecedent``, ``indirect object``,
            ``word after the previous occurrence`` ...
        query: The word that looks back. Either the last word of the prompt (the position that
            predicts the answer) or a later word such as a pronoun; see ``Task.query``.
        related: The word that it should find.
        distractors: Words that could be mistaken for it, by their role in the template (``first attractor``,
            ``other person``): a rule of where to look that a head is held against.

    Raises:
        TaskError: Some is no span.

    Examples:
        >>> subject, verb = (interp.Span.find(word, "The keys near the cabinet") for word in ("keys", "cabinet"))
        >>> interp.Relation("subject", query=verb, related=subject).distractors
        {}
    """

    name: str
    query: Span
    related: Span
    distractors: Mapping[str, Span] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, span in {"query": self.query, "related": self.related, **self.distractors}.items():
            if not isinstance(span, Span):
                raise TaskError(f"{name}: expected a Span of characters, such as Span(4, 7), got {span!r:.60}")


@dataclass(frozen=True)
class Example:
    """One prompt with a right and a wrong continuation.

    Attributes:
        prompt: The text before the answer.
        right: The continuation that the phenomenon asks for, with its leading space; a tuple where several are right.
        wrong: The continuation that violates it, with its leading space; a tuple where several are wrong.
        relation: Spans in ``text``; None where nothing could be tagged.
        template: The structure, for example ``object relative``: a stratum of the statistics.
        layout: Equal for examples whose words have the same meaning at every position; what a
            positional mean may average over.
        features: Labels for probes, for example ``{"number": "plural"}``.
        word_counterfactuals: Each the same prompt with another related word, and with the answers that this makes; of
            several, a tokenizer has to carry one. Not needed where the minimal pair's other example is one.
        chat: Whether the prompt stands in a chat template (``interp.tasks.chat``), with the special tokens in its text.

    Raises:
        TaskError: The prompt, an answer, the template or the layout is no text; an answer is empty, or stands twice in
            the sets; a word counterfactual differs elsewhere, too, or not at all; its right answer is the same; or the
            prompt has no related word to exchange.

    Examples:
        >>> interp.Example("The keys", " are", " is", None, template="simple", layout="simple").text
        'The keys are'
        >>> later = interp.Example("From 1798 to 17", ("98", "99"), ("11", "12"), None, template="war", layout="war")
        >>> later.rights
        ('98', '99')
    """

    prompt: str
    right: str | tuple[str, ...]
    wrong: str | tuple[str, ...]
    relation: Relation | None
    template: str
    layout: str
    features: Mapping[str, str] = field(default_factory=dict)
    word_counterfactuals: tuple["Example", ...] = ()
    chat: bool = False

    def __post_init__(self) -> None:
        self._check_texts()
        if not isinstance(self.relation, Relation | None):
            raise TaskError(f"relation: expected a Relation or None, got {self.relation!r:.60}")
        if not isinstance(self.word_counterfactuals, tuple | list):
            raise TaskError(f"word_counterfactuals: expected several examples, got {self.word_counterfactuals!r:.60}")
        around = _around_word(self)
        if self.word_counterfactuals and around is None:
            raise TaskError(
                "word_counterfactuals: expected a relation whose related word stands in the prompt, since that is the "
                f"word they exchange; got {self.relation!r:.60} for {self.prompt!r}"
            )
        for each in self.word_counterfactuals:
            same = self.prompt == each.prompt or {*self.rights} == {*each.rights}
            if around != _around_word(each) or same:
                raise TaskError(
                    f"word_counterfactuals: expected the prompt {self.prompt!r} with another related word and nothing "
                    f"else changed, and another right answer than {self.right!r}; got {each.prompt!r} with "
                    f"{each.right!r}; leave it out where there is none"
                )

    @property
    def text(self) -> str:
        """The prompt with its right continuation: what the relation's spans count in."""
        return self.prompt + self.rights[0]

    @property
    def rights(self) -> tuple[str, ...]:
        """All right answers."""
        return (self.right,) if isinstance(self.right, str) else self.right

    @property
    def wrongs(self) -> tuple[str, ...]:
        """All wrong answers."""
        return (self.wrong,) if isinstance(self.wrong, str) else self.wrong

    def _check_texts(self) -> None:
        """Refuse what is no text; a tuple of one answer becomes that answer."""
        for name in ("prompt", "template", "layout"):
            if not isinstance(text := getattr(self, name), str):
                raise TaskError(f"{name}: expected a text, got {shown(text)}; give each example its own")
        for name in ("right", "wrong"):
            given = getattr(self, name)
            texts = given if isinstance(given, tuple) else (given,)
            if not texts or not all(isinstance(each, str) and each for each in texts):
                raise TaskError(
                    f"{name}: expected an answer as text, such as ' is', or several as a tuple, such as (' is', "
                    f"' was'), got {shown(given)}; give a tuple of texts where several answers are {name}"
                )
            if len(texts) == 1:
                object.__setattr__(self, name, texts[0])
        answers = (*self.rights, *self.wrongs)
        twice = [each for each, n in Counter(answers).items() if n > 1]
        if twice and len(answers) > 2:
            raise TaskError(
                f"right and wrong: expected different answers, got {twice[0]!r} twice for {self.prompt!r:.80}; leave "
                "one out"
            )


def _around_word(example: Example) -> tuple[str, str] | None:
    """The prompt before and after the related word; None where it does not hold one."""
    if example.relation is None or example.relation.related.stop > len(example.prompt):
        return None
    related = example.relation.related
    return example.prompt[: related.start], example.prompt[related.stop :]


@dataclass(frozen=True)
class MinimalPair:
    """An example and its counterfactual: the same words but for the feature under test.

    The counterfactual has the feature flipped (number, gender, the names' order), the same length
    in words, and the right and wrong answers swapped. The two form one balanced unit of the
    statistics, so that a preference for one answer cannot pass for the phenomenon.

    Attributes:
        item: The example.
        counterfactual: Its twin, or None where the source has none.
        cluster: The lexical draw, for example the subject's lemma: the unit that the statistics resample.
        counterfactuals: Others by name, of which ``load_task("FILE.jsonl#NAME")`` or ``against`` takes one in the
            place of `counterfactual`.

    Raises:
        TaskError: `cluster` is no text, or something is no example.

    Examples:
        >>> plural = interp.Example("The keys", " are", " is", None, template="simple", layout="simple")
        >>> singular = interp.Example("The key", " is", " are", None, template="simple", layout="simple")
        >>> len(interp.MinimalPair(plural, singular, cluster="key").examples)
        2
    """

    item: Example
    counterfactual: Example | None
    cluster: str
    counterfactuals: Mapping[str, Example] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.cluster, str):
            raise TaskError(f"cluster: expected the name of a lexical draw, got {self.cluster!r}; give it as text")
        others = {"counterfactual": self.counterfactual, **self.counterfactuals}
        for name, each in {"item": self.item, **others}.items():
            if not isinstance(each, Example) and (each is not None or name != "counterfactual"):
                raise TaskError(f"{name}: expected an interp.Example, got {shown(each)}")

    @property
    def examples(self) -> tuple[Example, ...]:
        """The item and, where there is one, its counterfactual."""
        return (self.item,) if self.counterfactual is None else (self.item, self.counterfactual)

    @property
    def swaps_answers(self) -> bool:
        """Whether item and counterfactual have the same answers, not all of them right in both."""
        item, other = self.item, self.counterfactual
        return other is not None and (
            {*item.rights} != {*other.rights} and {*item.rights, *item.wrongs} == {*other.rights, *other.wrongs}
        )

    def against(self, name: str) -> "MinimalPair":
        """The pair with one of its named counterfactuals in the place of its own; with none where it lacks that."""
        return replace(self, counterfactual=self.counterfactuals.get(name))
