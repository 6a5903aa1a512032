r"""The words of every page: numbers, units, names of metrics, and text from data that is made safe to look at.

1. **One rounding rule** (``estimate``), for sentences and tables: an estimate and the ends of its interval have two
   decimals each. Only where all of them would read as 0 do they have as many as show two digits of the largest.
2. Control characters move a terminal's cursor or wipe its screen; directional ones turn round the text beside them;
   others cannot be seen, half of a surrogate pair cannot be written, and accents upon accents cover the lines above.
   Each is shown as Python writes it: ``\x1b``.
3. Letters that run from right to left take the digits and brackets beside them along. On a page they are isolated,
   by the characters that Unicode has for that (UAX 9). Joiners stay: emoji and Persian are written with them.
"""

import math
import re
from collections.abc import Mapping
from datetime import date
from importlib.metadata import version
from typing import Any

from interp.errors import shown

FEWEST_CLUSTERS = 30
"""Clusters that a verdict needs, as ``interp.claims.bootstrap`` has it."""
MORE_CLUSTERS = "draw more units, or give each its finest lexical draw as cluster, such as subject and verb"
"""What to do where there are fewer."""


def _missing(number: Any) -> bool:
    return number is None or bool(number != number)


def counted(n: int, noun: str) -> str:
    """How many there are of a noun that takes an s, with separated thousands."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def decimal(number: float, digits: int = 2) -> str:
    """A number with so many decimals, without a minus before 0."""
    return f"{round(float(number), digits) + 0.0:.{digits}f}"


def size(number: float) -> str:
    """A size of a metric, by the rule of ``estimate``."""
    return decimal(number, _digits(number))


def percent(share: float) -> str:
    """A share of what was counted."""
    return f"{100 * share:.1f} %"


def points(share: float, digits: int = 1) -> str:
    """A difference of shares, in points of 100, without a minus before 0."""
    return decimal(100 * share, digits)


def interval(low: float, high: float) -> str:
    """An interval in points; said where none is known."""
    return "(no interval)" if math.isnan(low) or math.isnan(high) else f"[{points(low)}, {points(high)}]"


def p_value(p: float) -> str:
    """A corrected p, with as many digits as it needs; empty where there is none."""
    text = "" if math.isnan(p) else p_size(p)
    return text and f"adjusted p {text if text.startswith('<') else f'= {text}'}"


def p_size(p: float) -> str:
    """A p by itself, as a table has it."""
    digits = 4 if p < 0.001 else 3
    return f"{p:.{digits}f}" if round(p, digits) else "< 0.0001"


def listed(names: list[str], most: int = 8) -> str:
    """Names as a sentence lists them; of very many the first."""
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def estimate(
    value: float, low: float, high: float, unit: str = "", *, n_clusters: float | None = None, digits: int | None = None
) -> str:
    """An estimate with its unit and its interval, all with as many decimals; why, where there is no interval."""
    digits = _digits(value, low, high) if digits is None else digits
    text, *ends = (decimal(each, digits) for each in (value, low, high))
    missing = _missing(low) or _missing(high)
    why = "" if n_clusters is None or _missing(n_clusters) else ": a template has a single cluster"
    interval = f"(no interval{why})" if missing else f"[{', '.join(ends)}]"
    return " ".join(filter(None, (text, unit, interval)))


def _digits(*numbers: float) -> int:
    """Two decimals; more where all numbers would read as 0, unless they are smaller than 0.0001, as good as 0."""
    largest = max((abs(each) for each in numbers if not _missing(each)), default=0.0)
    return 1 - math.floor(math.log10(largest)) if 0.0001 <= largest < 0.005 else 2


def change(effect: float, low: float, high: float, unit: str, *, n_clusters: float | None = None) -> str:
    """What an effect does to a metric: ``costs 4.20 logits [3.91, 4.48]``, or ``gains``."""
    if effect < 0:
        return f"costs {estimate(-effect, -high, -low, unit, n_clusters=n_clusters)}"
    return f"gains {estimate(effect, low, high, unit, n_clusters=n_clusters)}"


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


METRICS = {
    "logit_difference": "logit difference",
    "sentence_log_probability": "log-probability difference",
    "probability_difference": "probability difference",
    "best_logit_difference": "difference of the best logits",
    "probability": "probability of the right answer",
    "kl_divergence": "KL divergence from the unchanged run",
    "accuracy": "accuracy",
}
UNITS = {
    "logit_difference": "logits",
    "sentence_log_probability": "nats",
    "probability_difference": "of probability",
    "best_logit_difference": "logits",
    "probability": "of probability",
    "kl_divergence": "nats",
    "accuracy": "of accuracy",
}


def citation() -> str:
    """The version that made the report, as an entry of BibTeX."""
    return (
        "@software{interp,\n  title = {interp: which attention heads track what},\n  author = {{The interp authors}},\n"
        f"  version = {{{version('interp')}}},\n}}"
    )


def left_out(provenance: Mapping[str, Any]) -> list[str]:
    """A sentence for each task, or kind of evidence on one, that is not in a dossier or a card."""
    return [f"Left out: {what}: {reason}." for what, reason in provenance.get("left_out", {}).items()]


def about(provenance: Mapping[str, Any], evidence: str, *, intervals: bool = True) -> tuple[str, ...]:
    """The header's facts: the model, how much was measured, the intervals' level, the version and the date."""
    model, tasks = str(provenance.get("model", "")), provenance.get("tasks", ())
    named = f"Model {model if len(model) <= 80 else shown(model)}" if model else ""
    chat = any(each.get("chat") for each in (provenance, *tasks) if isinstance(each, Mapping))
    asked = "prompts in the chat template" if chat else ""
    facts = [named, evidence, asked, "95 % intervals" if intervals else ""]
    return (*filter(None, facts), f"interp {version('interp')}", date.today().isoformat())
