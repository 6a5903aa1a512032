"""What did a look at the installation find? Something well, something to know, or something wrong and what to do."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from interp.errors import plain

State = Literal["well", "note", "wrong"]


@dataclass(frozen=True)
class Finding:
    """One of them.

    Attributes:
        what: Was looked at.
        state: ``well``; ``note``, which is no fault; or ``wrong``.
        says: What was found.
        todo: What to do about it; empty where it is well.
    """

    what: str
    state: State
    says: str
    todo: str = ""


@dataclass(frozen=True)
class Look:
    """A look that nothing breaks: what it raises is a finding.

    Attributes:
        what: Is looked at.
        at: Looks.
        todo: What to do where it cannot even be looked at.
    """

    what: str
    at: Callable[[], Iterable[Finding]]
    todo: str

    def __call__(self) -> list[Finding]:
        """What was found."""
        try:
            return list(self.at())
        except Exception as error:  # whatever is broken in other libraries, in their own words
            says = plain(f"{type(error).__name__}: {' '.join(str(error).split())}")
            return [Finding(self.what, "wrong", says, self.todo)]
