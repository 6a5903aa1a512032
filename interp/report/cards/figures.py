"""What does a card look like? The figures that take a card itself; ``plots.py`` draws them."""

from matplotlib.figure import Figure

from interp.errors import InputError
from interp.report.cards.frames import CardFrames, shown
from interp.report.cards.plots import paths_figure, shares_figure
from interp.report.given import chosen, require
from interp.report.names import shown_names

_MADE_BY = "interp.methods.head_card.head_card"
_ATTRIBUTES = ("name", "verdicts", "tasks", "shares", "replacements", "feeds", "readers")


def card(card: CardFrames) -> Figure:
    """What each task loses without the head, under every kind of ablation, with 95 % intervals.

    Args:
        card: What ``interp.methods.head_card.head_card`` returns.

    Raises:
        InputError: It is something else.
    """
    require(card, _ATTRIBUTES, "card", _MADE_BY)
    return shares_figure(shown(card))


def card_paths(card: CardFrames, task: str | None = None) -> Figure:
    """The largest direct paths into the head and from it, as shares of a task's answer, with 95 % intervals.

    Args:
        card: What ``interp.methods.head_card.head_card`` returns.
        task: One of its tasks; None where it has only one.

    Raises:
        InputError: It is something else, has no such task, or no path was patched on it.
    """
    require(card, _ATTRIBUTES, "card_paths", _MADE_BY)
    tasks = [str(each) for each in card.tasks["task"]]
    which = chosen("task", task, tasks)
    own = shown(card).of(shown_names(tasks)[which])
    if own.feeds.empty and own.readers.empty:
        raise InputError(
            f"card_paths: no path was patched on {which!r}; card.left_out says why, or draw interp.plots.card(card)"
        )
    return paths_figure(own)
