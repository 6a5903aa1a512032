"""What does a notebook show of a card? The head across the tasks, in the page's sentences, and its verdicts."""

from interp.report.cards.figures import card as figure
from interp.report.cards.frames import CardFrames, shown
from interp.report.cards.sentences import across_tasks
from interp.report.glance import Glance
from interp.report.heads_glance import evidence_table
from interp.report.left_out import left_out


def card_glance(card: CardFrames) -> Glance:
    """What a notebook shows of a head's card."""
    named = shown(card)
    return Glance(
        f"Head {card.name}",
        [*across_tasks(card), *left_out(card.provenance)],
        evidence_table(named.verdicts).drop(columns="head"),
        len(card.verdicts),
        ".verdicts",
        card.provenance,
        "interp.plots.card(card)",
        None if named.replacements.empty else lambda: figure(card),
    )
