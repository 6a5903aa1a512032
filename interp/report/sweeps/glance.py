"""What does a notebook show of a sweep? The page's sentences and its strongest cells."""

import pandas as pd

from interp.report.glance import MOST_DRAWN, Glance, numbers, with_interval
from interp.report.sweeps.cells import MARKS, described, strongest_first
from interp.report.sweeps.figures import greedy, sweep
from interp.report.sweeps.names import GROWING
from interp.report.sweeps.result import SweepLike, sweep_frames
from interp.report.sweeps.sentences import evidence, findings, nothing_changed, partial
from interp.report.sweeps.words import done, title, unit


def sweep_glance(result: SweepLike) -> Glance:
    """What a notebook shows of an ablation or of patching."""
    frames = sweep_frames(result)
    cells = described(frames)
    steps = frames.labels == GROWING
    # A growing set stays in its order: each step has the ones before in it.
    first = cells if steps else strongest_first(cells)
    columns = {"cell": first["name"]}
    if frames.patched:
        columns["share of the clean run's answer"] = with_interval(first, "shown", "shown_low", "shown_high")
    columns[f"effect ({unit(frames)})"] = with_interval(first, "effect", "low", "high")
    if frames.tested:
        columns["adjusted p"] = numbers(first["p_adjusted"], 4)
        columns[""] = first["found"].map(lambda found: MARKS.get(found, ""))
    columns["what changed"] = first["status"]
    said = [f"{done(frames)[0].upper()}{done(frames)[1:]}: {evidence(frames)}."]
    return Glance(
        title(frames),
        [*filter(None, [partial(frames)]), *said, *findings(frames, cells), *nothing_changed(cells)],
        pd.DataFrame(columns),
        len(cells),
        ".summary()",
        frames.provenance,
        f"interp.plots.{'greedy' if steps else 'sweep'}(result)",
        (lambda: greedy(result) if steps else sweep(frames)) if len(cells) <= MOST_DRAWN else None,
    )
