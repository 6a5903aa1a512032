"""What was done, in words? The same in the page, the figures and on the terminal.

What did a sweep find, in plain words? Numbers with every claim, and no claim without them.

1. How well the model does unchanged, and on how much that rests.
2. Each of the strongest findings with its estimate and interval; then how many cells are beyond the correction.
   After a screen: how many were measured, and how much was missed.
3. How many cells could not change anything, and why.
4. Whether the engine's numbers were those of the plain way.
"""

import numpy as np
import pandas as pd

from interp.report.heads_frames import FEWEST_CLUSTERS, MORE_CLUSTERS, shown_names
from interp.report.heads_sentences import accuracy_clause
from interp.report.sweep_cells import ALPHA, LARGE, MINIMUM, STATES, UNMEASURED, is_large, strongest_first
from interp.report.sweep_frames import GROWING, PATH, SweepFrames
from interp.report.words import METRICS, UNITS, counted, estimate

_COMPONENTS = {"heads": "head", "mlps": "MLP", "neurons": "neuron"}
_AXES = {"pos": "position", "key": "position attended to"}


def task_name(frames: SweepFrames) -> str:
    """The task's name for readers."""
    name = str(frames.provenance["task"])
    return shown_names([name])[name]


def title(frames: SweepFrames) -> str:
    """The page's title."""
    return f"{'Activation patching' if frames.patched else 'Ablation'}: {task_name(frames)}"


def done(frames: SweepFrames) -> str:
    """What was done to each cell, as a clause."""
    how = frames.provenance
    if frames.patched:
        run, source = ("corrupted", "clean") if how["direction"] == "denoise" else ("clean", "corrupted")
        if along_paths(frames):
            between = f"heads frozen, MLPs {how['mlps']}"
            return f"changes from the {run} to the {source} run passed on along paths ({between})"
        return f"{how['site']} of the {source} run patched into the {run} run, by {_listed(frames.labels)}"
    if frames.labels == ("heads",):
        return f"{_kind(frames)} ablation of sets of heads"
    if frames.labels == GROWING:
        return f"{_kind(frames)} ablation of one more head at each step"
    if _at_site(frames):
        return f"{_kind(frames)} ablation of {how['site']}, by {_listed(frames.labels)}"
    which = "one" if len(frames.cells) == 1 else "each"
    return f"{_kind(frames)} ablation of {which} {_COMPONENTS[how['components']]} by itself"


def doing(frames: SweepFrames, name: str) -> str:
    """The beginning of a sentence about one cell."""
    if frames.patched:
        return f"Patching along {name}" if along_paths(frames) else f"Patching {frames.provenance['site']} at {name}"
    if _at_site(frames):
        return f"Ablating {frames.provenance['site']} at {name}"
    return f"Ablating {'the MLP of ' if frames.provenance.get('components') == 'mlps' else ''}{name}"


def along_paths(frames: SweepFrames) -> bool:
    """Whether cells are paths."""
    return frames.labels == PATH


def unit(frames: SweepFrames) -> str:
    """The unit of the metric."""
    return UNITS.get(frames.metric, frames.metric)


def scale(frames: SweepFrames) -> str:
    """What the coloured numbers are."""
    if frames.patched:
        return "share of the clean run's answer: 0 corrupted, 1 clean"
    sign = "" if frames.metric == "kl_divergence" else "; a cost is negative"
    return f"effect of ablation ({unit(frames)}{sign})"


def _listed(labels: tuple[str, ...]) -> str:
    names = [_AXES.get(label, label) for label in labels]
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _at_site(frames: SweepFrames) -> bool:
    """Whether a site was ablated, by axes, in place of components."""
    return frames.provenance.get("components") is None and frames.labels != ("heads",)


def _kind(frames: SweepFrames) -> str:
    return str(frames.provenance["replacement"]).replace("_", " ")


_MOST = 5


def partial_sentence(frames: SweepFrames) -> str:
    """That an interrupted sweep holds less than was asked for; empty for a complete one."""
    if frames.complete:
        return ""
    asked = "examples" if frames.n_asked is None else counted(frames.n_asked, "example")
    return (
        f"Partial: the sweep was interrupted. It holds {frames.n_measured} of the "
        f"{asked} that were asked for; all numbers are of these alone. "
        "Prompts of one length are measured together, so these are no random sample."
    )


def unchanged(frames: SweepFrames) -> list[str]:
    """How well each run does that the cells are held against."""
    metric = METRICS.get(frames.metric, frames.metric)
    sentences = []
    for run in frames.runs.to_dict("records"):
        parts = [f"{metric} {estimate(run['mean'], run['low'], run['high'], _unit(frames))}"]
        if frames.metric == "kl_divergence":
            parts = []  # from the unchanged run itself
        if not np.isnan(run["accuracy"]) and frames.metric != "accuracy":
            parts.append(f"accuracy {run['accuracy']:.2f}")
        if parts:
            sentences.append(f"{run['run'].capitalize()}: {', '.join(parts)}.")
    return sentences


def at_chance(frames: SweepFrames) -> str:
    """That the whole model is not shown to do the task; empty where it is, or where nobody knows."""
    run = frames.runs.iloc[0]
    if pd.isna(run["above_chance"]) or run["above_chance"]:
        return ""
    return f"The {run['run']} model is not shown to be above chance on this task, so an effect says little."


def evidence(frames: SweepFrames) -> str:
    """How much was measured."""
    run = frames.runs.iloc[0]
    units, clusters = counted(int(run["n_units"]), "unit"), counted(int(run["n_clusters"]), "cluster")
    return f"{units} in {clusters}, {counted(frames.n_measured, 'example')}"


def findings(frames: SweepFrames, cells: pd.DataFrame) -> list[str]:
    """The strongest findings, and how many there are; `cells` as ``cells.described`` gives them."""
    large = cells["found"] == LARGE if frames.tested else is_large(frames, cells)
    strongest = strongest_first(cells[large]).head(_MOST)
    counted = _counted(frames, cells) if frames.estimates is None else _screened(frames, int(large.sum()))
    return [*(_finding(frames, cell) for _, cell in strongest.iterrows()), *counted]


def nothing_changed(cells: pd.DataFrame) -> list[str]:
    """How many cells could not change anything, by the reason."""
    states = cells["state"].value_counts()
    return [
        f"{name.capitalize()} in {_cells(int(states[name]))}: {state.meaning}."
        for name, state in STATES.items()
        if name in states and name != UNMEASURED
    ]


def audited(frames: SweepFrames) -> str:
    """Whether the numbers are those of the plain way, and which way and which model they are of."""
    audit, why, model = (frames.provenance.get(name) for name in ("audit", "why_plain", "engine_model"))
    if audit is None:
        because = f" ({why})" if why else ""
        return f"Measured the plain way, one hooked forward pass per cell{because}: there is no engine to check."
    numbers = f"The engine's numbers, made on its {model}," if model else "The engine's numbers"
    return (
        f"{numbers} were checked: {counted(audit['cells'], 'cell')} measured again on "
        f"{counted(audit['rows'], 'prompt')}, one hooked forward pass at a time; the largest difference is "
        f"{audit['largest_difference']:.1e} of the largest score (up to {audit['tolerance']:.0e} is rounding)."
    )


def _finding(frames: SweepFrames, cell: pd.Series) -> str:
    clause = _patched(frames, cell) if frames.patched else _ablated(frames, cell)
    accuracy = accuracy_clause(cell["accuracy_base"], cell["accuracy_intervened"])
    return f"{doing(frames, cell['name'])} {clause}{_p(cell['p_adjusted'])}{accuracy}."


def _patched(frames: SweepFrames, cell: pd.Series) -> str:
    shown = _estimate_of(cell, 1.0)
    if frames.provenance["direction"] == "denoise":
        return f"brings back {shown} of the difference between the runs"
    return f"leaves {shown} of the difference between the runs"


def _ablated(frames: SweepFrames, cell: pd.Series) -> str:
    if frames.metric == "kl_divergence":
        return f"moves the prediction by {_estimate_of(cell, 1.0, _unit(frames))}"
    verb, sign = ("costs", -1.0) if cell["effect"] < 0 else ("gains", 1.0)
    return f"{verb} {_estimate_of(cell, sign, unit(frames))}"


def _estimate_of(cell: pd.Series, sign: float, unit: str = "") -> str:
    """An estimate of what is shown, its sign turned round where a cost is spoken of."""
    low, high = sorted((sign * cell["shown_low"], sign * cell["shown_high"]))
    return estimate(sign * cell["shown"], low, high, unit)


def _counted(frames: SweepFrames, cells: pd.DataFrame) -> list[str]:
    n_cells = len(cells)
    if frames.metric == "kl_divergence":
        return ["No cell is tested: a divergence is above 0 wherever anything changes; its size is what counts."]
    if frames.cells["p_adjusted"].isna().all():
        most = int(cells["n_clusters"].max())
        return [
            f"Nothing is decided: a claim needs {FEWEST_CLUSTERS} clusters of items, and there are at most {most} in a "
            f"cell: {MORE_CLUSTERS}."
        ]
    beyond, large = int((cells["found"] != "").sum()), int((cells["found"] == LARGE).sum())
    if not beyond:
        return [
            f"None of {_cells(n_cells)} is beyond the correction (adjusted p ≤ {ALPHA:g}).{_largest(frames, cells)}"
        ]
    return [
        f"Of {_cells(n_cells)}, {beyond} {_is(beyond)} beyond the correction (adjusted p ≤ {ALPHA:g}), {large} of them "
        f"by at least {MINIMUM:g} of {_whole(frames)}."
    ]


def _screened(frames: SweepFrames, n_large: int) -> list[str]:
    screen = frames.provenance["screen"]
    recall = estimate(screen["recall"], screen["recall_low"], screen["recall_high"], "")
    n_top, n_audit = screen["top"], screen["audit"]
    by = screen["method"].replace("_", " ")
    correlation = screen["correlation"]
    agree = "" if np.isnan(correlation) else f"; on those drawn, estimates and effects correlate by {correlation:.2f}"
    return [
        f"Of {_cells(n_top + n_audit)} that were measured, {n_large} {_is(n_large)} at least {MINIMUM:g} of "
        f"{_whole(frames)}.",
        f"Screened by {by}: of {_cells(screen['cells'])}, the {n_top} with the largest estimates were measured, and "
        f"{n_audit} drawn at random from the others. Of the {n_top} largest effects, a share of {recall} is among "
        f"those {n_top}{agree}.",
        "No cell is tested, as they were chosen on the same units: patch those of interest on others, with another "
        "--seed.",
    ]


def _whole(frames: SweepFrames) -> str:
    """What sizes are shares of."""
    return "the difference between the runs" if frames.patched else f"the model's own {METRICS[frames.metric]}"


def _largest(frames: SweepFrames, cells: pd.DataFrame) -> str:
    first = strongest_first(cells).iloc[0]
    if pd.isna(first["shown"]):
        return ""
    return f" The largest is {first['name']}: {_estimate_of(first, 1.0, '' if frames.patched else _unit(frames))}."


def _unit(frames: SweepFrames) -> str:
    """The unit behind a value; a probability has none."""
    return "" if unit(frames).startswith("of ") else unit(frames)


def _p(p: float) -> str:
    if pd.isna(p):
        return ""
    return " (adjusted p < 0.001)" if p < 0.001 else f" (adjusted p = {p:.3f})"


def _cells(n: int) -> str:
    return counted(n, "cell")


def _is(n: int) -> str:
    return "is" if n == 1 else "are"
