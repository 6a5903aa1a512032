"""How does one read a card? The few lines that every number and word on it rests on."""

from interp.report.cards.frames import Shown
from interp.report.reading import what_p_is


def how_to_read(card: Shown) -> tuple[tuple[str, str], ...]:
    """What the page's terms mean, as (term, explanation) pairs."""
    asked = card.provenance
    return (
        (
            "Verdict",
            "the dossier's, corrected for all that the dossier tests. All else on this page is about "
            "a head that was chosen before: it describes, and is no test.",
        ),
        ("Adjusted p", what_p_is(asked)),
        (
            "[low, high]",
            "the 95 % interval of the estimate before it: a bootstrap that draws whole clusters.",
        ),
        (
            "Ablation",
            "zero, mean, positional mean, template mean and resample: what is put in the head's place, on at most "
            "100 units. A head that writes the same in every item, but not at every position, matters under zero and "
            "mean, and not under positional mean and resample. An effect is a drop or a rise if “no more than the "
            f"minimum”, {asked.get('minimum_effect', 0.1):g} of what the whole model does, is rejected at "
            f"{asked.get('alpha', 0.05):g}, and below the minimum if “the minimum at least” is; both are corrected "
            "over all heads, one kind by itself.",
        ),
        (
            "Kendall's τ",
            "1 where two kinds of ablation order all heads of the model in the same way, -1 the other way round. The "
            "order of heads whose effects are all too small to count is noise, and keeps it from 1.",
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
            "Taken out",
            "at one place of the head, all else as it is, on at most 100 units. Its values at the related word "
            "become their mean over the reference sentences, whichever word reads them; how much it looks where stays. "
            "Where a probe reads the task's feature, LEACE erases from what the head writes all that a linear probe "
            "could read of it; as many random directions are the control, as any damage has some effect.",
        ),
        (
            "By its weights",
            "the head's QK and OV circuits on the task's own tokens: what the head would do with the bare embeddings, "
            "without what earlier layers write and without positions.",
        ),
    )
