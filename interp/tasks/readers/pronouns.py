"""Which gender does an English personal pronoun have?

As the official scorer of GAP (https://aclanthology.org/Q18-1042) has it; reflexives are the reader's concern.
"""

from typing import Literal

Gender = Literal["feminine", "masculine"]

GENDERS: dict[str, Gender] = {
    **dict.fromkeys(("she", "her", "hers"), "feminine"),
    **dict.fromkeys(("he", "his", "him"), "masculine"),
}
"""By the pronoun in lower case."""
