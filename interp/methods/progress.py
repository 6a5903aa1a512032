"""How far is the whole, when one of its parts says how far that part is?"""

from interp.interventions.sweep import Progress


def part_of(progress: Progress | None, number: int, n_parts: int, steps: int | None = None) -> Progress | None:
    """What a part is to call, so that the whole goes on evenly.

    Args:
        progress: Of the whole; None for nobody who wants to know.
        number: Of the part, from 0.
        n_parts: How many there are.
        steps: That every part counts, however many it has of its own; None where all have as many.
    """
    if progress is None:
        return None

    def step(done: int, total: int) -> None:
        each = total if steps is None else steps
        progress(number * each + done * each // max(1, total), n_parts * each)

    return step
