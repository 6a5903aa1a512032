"""What can a planted head be, and which verdict is right of it? The truth, by construction.

Every head of a planted model has one role. For the tasks that the role is not about, and for idle heads, the truth is
``none``.
"""

from dataclasses import dataclass
from typing import Literal, get_args

from interp.calibration.language import PHENOMENA, TaskName
from interp.claims.rules import Verdict

Role = Literal[
    "tracker",
    "previous word",
    "by value",
    "stand-in",
    "looker",
    "carrier",
    "other route",
    "glancer",
    "amplifier",
    "loud",
    "loud tracker",
    "copier",
    "copy reader",
    "bystander",
    "idle",
]
"""
- ``tracker``: looks at the related word, reads its feature and writes the answer.
- ``by value``: a tracker that looks at the related word where that has one of its two values, and at the query itself
  where it has the other.
- ``stand-in``: one of two to four trackers, each loud enough to drown that all others are gone. One in a later layer is
  a backup: it hardly looks while an earlier one is there, whose loudness leaves LayerNorm little of the query. With the
  mean in its place none is missed; another example's answer in the place of one of two is as loud as the other.
- ``previous word``: writes beside each word which one came before it; induction's tracker looks for that.
- ``looker``: looks at the related word, holds its feature and writes nothing that is read.
- ``carrier``: looks everywhere, holds the related word's feature, and writes nothing that is read.
- ``other route``: looks at the attractors and answers by them, which are mostly as the related word is.
- ``glancer``: looks at the related word, and half as much at the attractors; it answers by these. Some read the related
  word, too: too little to count, or so much that they track it.
- ``amplifier``: looks at the query itself, in a layer behind the tracker, and writes the answer that it finds there
  once more: it is needed, and holds and uses the feature, and does not look for it.
- ``loud``: one of two heads of a layer that look everywhere, and write of the words what nothing reads, each so much
  that it would drown all else, and one the opposite of the other: without either, every task is hurt.
- ``loud tracker``: a loud head that does all that a tracker does, and lacks nothing but that it is specific; the other
  of the two looks where it looks.
- ``copier``: copies the feature to the attractors, which stand behind the related word.
- ``copy reader``: behind it; looks at the attractors, and answers by what was copied there.
- ``bystander``: an idle head that may well hold the feature: it shares the keys and values of another head, or stands
  behind one that looks by value, which makes the stream longer for one value than for the other. Whether that can be
  told is not known; that it tracks would be wrong.
- ``idle``: looks at places and words at random, and writes words where nothing reads them, with a little noise on the
  answers.
"""
TRUTH: dict[Role, Verdict] = {
    "tracker": "tracks",
    "by value": "tracks",
    "stand-in": "redundant",
    "previous word": "causal, by another route",
    "looker": "attends, not causal",
    "carrier": "encodes, unused",
    "other route": "causal, by another route",
    "glancer": "causal, by another route",
    "amplifier": "causal, by another route",
    "loud": "general",
    "loud tracker": "general",
    "copier": "causal, by another route",
    "copy reader": "causal, by another route",
    "bystander": "none",
    "idle": "none",
}
MINIMUM_SHARE = 0.131
"""Of a task's answer: where a tracker writes so much, its mean in its place costs a tenth of what the whole model does,
the minimum that the dossier asks for (LayerNorm makes up for the rest), and resampling it a little more."""
MINIMUM_GLANCE = 0.077
"""Of the related word, where a glancer reads 1 of the attractors: for what it reads so much of, exchanging the word
turns the answer by the minimum, from model to model a fifth more or less."""
ROLES: tuple[Role, ...] = get_args(Role)
DECOYS = ROLES[ROLES.index("by value") : ROLES.index("copier")]
LOUD_ROLES: tuple[Role, ...] = ("loud", "loud tracker")
"""That are about every task."""
BY_ATTRACTORS: tuple[Role, ...] = ("other route", "glancer")
"""That answer by them."""


@dataclass(frozen=True)
class Planted:
    """A head with a purpose.

    Attributes:
        layer: Its block, from 0.
        head: Its index, from 0.
        role: What it does.
        task: What for; None for a role that is about no task.
        share: Of the task's answer that a tracker writes, where several share the work. Of two loud heads, 1 and -1.
        glance: Of the related word that a glancer reads, where it reads 1 of the attractors.
    """

    layer: int
    head: int
    role: Role
    task: TaskName | None = None
    share: float = 1.0
    glance: float = 0.0

    def is_about(self, task: TaskName) -> bool:
        """Whether it does anything to a task."""
        return self.role in LOUD_ROLES or self.task == task

    def truth(self, task: TaskName) -> Verdict:
        """The right verdict about it on a task; what writes no more than the minimum that counts is not causal."""
        if not self.is_about(task):
            return "none"
        if self.role == "glancer" and self.glance > MINIMUM_GLANCE:
            return "tracks"
        return TRUTH["looker"] if self.role == "tracker" and self.share <= MINIMUM_SHARE else TRUTH[self.role]

    @property
    def source(self) -> str:
        """The class of words that it takes the answer from."""
        assert self.task is not None, "the role has a task"
        by_attractors = self.role in (*BY_ATTRACTORS, "copy reader")
        return f"of-{noun_of(self.task)}" if by_attractors else noun_of(self.task)


def noun_of(task: TaskName) -> str:
    """The class of a task's related words."""
    return PHENOMENA[task].noun if task in PHENOMENA else "item"


def queries_of(task: TaskName) -> str:
    """The class of a task's queries."""
    return PHENOMENA[task].query if task in PHENOMENA else "key"
