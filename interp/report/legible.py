r"""Which characters act where they should be read? Text from data, made safe to look at.

1. Control characters move a terminal's cursor or wipe its screen; directional ones turn round the text beside them;
   others cannot be seen, half of a surrogate pair cannot be written, and accents upon accents cover the lines above.
   Each is shown as Python writes it: ``\x1b``.
2. Letters that run from right to left take the digits and brackets beside them along. On a page they are isolated,
   by the characters that Unicode has for that (UAX 9). Joiners stay: emoji and Persian are written with them.
"""

import re

_ACCENT = r"[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]"
_MOST_ACCENTS = 4
ACTING = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff"
    rf"\ufff9-\ufffb\U000e0000-\U000e007f]|(?<={_ACCENT}{{{_MOST_ACCENTS}}}){_ACCENT}"
)
"""A character that acts, or that cannot be seen."""
_LEFTWARD = r"[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]"
_LEFTWARD_RUN = re.compile(rf"{_LEFTWARD}+(?:[\W\d_]+{_LEFTWARD}+)*")
_ISOLATE, _END = "\u2068", "\u2069"


def legible(text: str) -> str:
    r"""The text with every character that acts, or that cannot be seen, as Python writes it; tabs and ``\n`` stay."""
    return ACTING.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def visible(token: object) -> str:
    """A token as a word of a sentence: without the spaces around it; one that is nothing else can be seen."""
    return str(token).strip() or "␣"


def isolated(text: str) -> str:
    """The text, legible, in which what runs from right to left turns nothing round but itself."""
    return _LEFTWARD_RUN.sub(rf"{_ISOLATE}\g<0>{_END}", legible(text))
