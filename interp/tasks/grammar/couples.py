"""Which two people decide a cluster's items? Each has one partner, so that different clusters share neither.

Statistics resample clusters as if they were independent of each other. Were each pair of people a cluster, "Mary +
John" and "Mary + Paul" would not be. So within one draw of a task, the first item with a person decides who the
partner is, and in no later item does either of them decide with anybody else. (As an attractor, anybody may be there.)
"""

from typing import Generic, TypeVar

from interp.tasks.grammar.dice import Dice
from interp.tasks.grammar.splits import Split
from interp.tasks.grammar.vocabulary import Person, lemma

PersonT = TypeVar("PersonT", bound=Person)
AGAIN = 0.1
"""Share of proposals that ask for a person's partner: the more, the faster the draw, and the fewer the couples."""


class Couples(Generic[PersonT]):
    """The couples of one draw of a task; anybody may stand with anybody in ``reference``, which nobody resamples."""

    def __init__(self, split: Split) -> None:
        self._free = split == "reference"
        self._partner: dict[str, PersonT] = {}

    def partner(self, dice: Dice, one: PersonT, proposed: PersonT) -> PersonT:
        """Who is to stand with `one`: whoever is `proposed`, or now and then the partner, where there is one."""
        return self._partner.get(lemma(one), proposed) if not self._free and dice.chance(AGAIN) else proposed

    def admit(self, one: PersonT, two: PersonT) -> bool:
        """Whether the two are a couple already, or neither has a partner."""
        partners = self._partner.get(lemma(one), two), self._partner.get(lemma(two), one)
        return self._free or partners == (two, one)

    def cluster(self, one: PersonT, two: PersonT) -> str:
        """Make the two a couple, and name it."""
        self._partner |= {lemma(one): two, lemma(two): one}
        return " + ".join(sorted((lemma(one), lemma(two))))
