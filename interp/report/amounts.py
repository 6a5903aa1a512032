"""How are counts, shares, sizes, estimates and p written in sentences?"""

import math
from collections.abc import Sequence

import pandas as pd


def counted(n: int, noun: str) -> str:
    """How many there are of a noun that takes an s, with separated thousands."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def decimal(number: float, digits: int = 2) -> str:
    """A number with so many decimals, without a minus before 0."""
    return f"{round(float(number), digits) + 0.0:.{digits}f}"


def or_dash(number: float | None, digits: int = 2) -> str:
    """``decimal`` of a number that is known, an em dash for none."""
    return "—" if number is None or pd.isna(number) else decimal(number, digits)


def size(number: float) -> str:
    """A size of a metric: two decimals, or as many as show that a small one is not 0."""
    return decimal(number, max(2, _digits([number])))


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
    if math.isnan(p):
        return ""
    digits = 4 if p < 0.001 else 3
    return f"adjusted p = {p:.{digits}f}" if round(p, digits) else "adjusted p < 0.0001"


def listed(names: list[str], most: int = 8) -> str:
    """Names as a sentence lists them; of very many the first."""
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def estimate(value: float, low: float, high: float, unit: str) -> str:
    """An estimate with its interval: one decimal from 1 on, two below, more where all would be 0; as many for each."""
    digits = 1 if abs(value) >= 1 else max(2, _digits([value, low, high]))
    return bounded(value, low, high, digits, unit)


def bounded(value: float, low: float, high: float, digits: int = 2, unit: str = "") -> str:
    """A number with its unit and its interval, all with so many decimals; said where no interval is known."""
    text, *ends = (decimal(each, digits) for each in (value, low, high))
    interval = "(no interval)" if pd.isna(low) or pd.isna(high) else f"[{', '.join(ends)}]"
    return " ".join(filter(None, (text, unit, interval)))


def change(effect: float, low: float, high: float, unit: str) -> str:
    """What an effect does to a metric: ``costs 4.2 logits [3.9, 4.5]``, or ``gains``."""
    if effect < 0:
        return f"costs {estimate(-effect, -high, -low, unit)}"
    return f"gains {estimate(effect, low, high, unit)}"


def _digits(numbers: Sequence[float]) -> int:
    """How many decimals two digits of the largest take; of what is smaller than 0.0001, as of 0, none."""
    largest = max((abs(each) for each in numbers if not math.isnan(each)), default=0.0)
    return 1 - math.floor(math.log10(largest)) if 0.0001 <= largest < 0.01 else 0
