"""How does one read a card? The few lines that every number and word on it rests on."""

from interp.report.cards.frames import Shown
from interp.report.reading import what_q_is


def how_to_read(card: Shown) -> tuple[tuple[str, str], ...]:
    """What the page's terms mean, as (term, explanation) pairs."""
    asked = card.provenance
    return (
        (
            "Verdict",
            "the dossier's, corrected for all that the dossier tests. All else on this page is about "
            "a head that was chosen before: it describes, and is no test.",
        ),
        ("q", what_q_is(asked)),
        (
            "[low, high]",
            "the 95 % interval of the estimate before it: a bootstrap that draws whole clusters.",
        ),
        (
            "Ablation",
            "zero, mean, positional mean and resample: what is put in the head's place, on at most 100 units. A head "
            "that writes the same in every item matters under zero and mean, and not under the other two. An effect is "
            "a drop or a rise if its "
            f"corrected p (over all heads, one kind by itself) is at most {asked.get('alpha', 0.05):g} and it is at "
            f"least {asked.get('minimum_effect', 0.1):g} of what the whole model does.",
        ),
        (
            "Kendall's τ",
            "1 where two kinds of ablation order all heads of the model in the same way, -1 the other way round. The "
            "order of heads that do nothing is noise, and keeps it from 1.",
        ),
        (
            "Share of the answer",
            "patching from the clean run into the corrupted one, on at most 100 units, direct paths on fewer: 0 leaves "
            "the answer as in the corrupted run, 1 brings that of the clean run back.",
        ),
        (
            "Direct path",
            "what one component writes is patched into what another one reads, and nowhere else: a single edge, as "
            "heads and MLPs between write what they write in the corrupted run. Paths are measured one by one, and "
            "need not add up.",
        ),
        (
            "By its weights",
            "the head's QK and OV circuits on the task's own tokens: what the head would do with the bare embeddings, "
            "without what earlier layers write and without positions.",
        ),
    )
