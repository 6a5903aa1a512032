"""What a sweep found, in plain words: numbers with every claim, and no claim without them.

1. What was done, and how well the model does unchanged.
2. Each of the strongest findings with its estimate and interval; then how many cells are significant after correction.
   After a screen: how many were measured, and how much was missed.
3. How many cells could not change anything, and why.
4. Whether the engine's numbers were those of the plain way.
"""

import numpy as np
import pandas as pd

from interp.report import sweep_cells
from interp.report.cells import capital, is_are
from interp.report.heads_sentences import accuracy_clause
from interp.report.results.one_table import task_of
from interp.report.sweep_cells import Swept
from interp.report.words import FEWEST_CLUSTERS, METRICS, MORE_CLUSTERS, change, counted, estimate, listed, p_value

_MOST = 5
_COMPONENTS = {"heads": "head", "mlps": "MLP", "neurons": "neuron"}
_AXES = {"pos": "position", "key": "position attended to"}
_DONE = {
    "paths": "changes from the {run} to the {source} run passed on along paths (heads frozen, MLPs {mlps})",
    "patched": "the {source} run's {site} patched into the {run} run, by {axes}",
    "sets": "{replacement} ablation of sets of heads",
    "growing": "{replacement} ablation of one more head at each step",
    "site": "{replacement} ablation of {site}, by {axes}",
    "components": "{replacement} ablation of {which} {component} by itself",
}
_DOING = {"paths": "Patching along", "patched": "Patching {site} at", "site": "Ablating {site} at"}


def _kind(sweep: Swept) -> str:
    """Which of ``_DONE`` was done."""
    if sweep.patched:
        return "paths" if sweep.labels == sweep_cells.PATH else "patched"
    if sweep.labels in (sweep_cells.GROWING, ("heads",)):
        return "growing" if sweep.labels == sweep_cells.GROWING else "sets"
    return "components" if sweep.provenance.get("components") else "site"


def done(sweep: Swept) -> str:
    """What was done to each cell, as a clause."""
    how = sweep.provenance
    run, source = ("clean", "corrupted") if how.get("direction") == "noise" else ("corrupted", "clean")
    return _DONE[_kind(sweep)].format(
        run=run,
        source=source,
        mlps=how.get("mlps"),
        site=how.get("site"),
        axes=listed([_AXES.get(label, label) for label in sweep.labels]),
        replacement=str(how.get("replacement")).replace("_", " "),
        which="one" if len(sweep.summary) == 1 else "each",
        component=_COMPONENTS.get(str(how.get("components"))),
    )


def _doing(sweep: Swept) -> str:
    """The beginning of a sentence about one cell."""
    of_mlps = sweep.provenance.get("components") == "mlps"
    usual = "Ablating the MLP of" if of_mlps else "Ablating"
    return _DOING.get(_kind(sweep), usual).format(site=sweep.provenance.get("site"))


def title(sweep: Swept) -> str:
    """The page's title."""
    return f"{'Activation patching' if sweep.patched else 'Ablation'}: {task_of(sweep.provenance)}"


def scale(sweep: Swept) -> str:
    """What the coloured numbers are."""
    if sweep.patched:
        if sweep.origin:
            return "change from the clean run: 0 none, -1 corrupted"
        return "share of the clean run's answer: 0 corrupted, 1 clean"
    sign = "" if sweep.metric == "kl_divergence" else "; a cost is negative"
    return f"effect of ablation ({sweep.unit}{sign})"


def cautions(sweep: Swept) -> tuple[str, ...]:
    """That it was interrupted, and that the whole model is not shown to do the task; neither where nobody knows."""
    said = []
    if not sweep.complete:
        n_asked = sweep.provenance.get("n_asked")
        asked = "examples" if n_asked is None else counted(n_asked, "example")
        said.append(
            f"Partial: the sweep was interrupted. It holds {sweep.n_measured} of the {asked} that were asked for; all "
            "numbers are of these alone. Prompts of one length are measured together, so these are not a random sample."
        )
    run = sweep.runs.iloc[0]
    if pd.notna(run["above_chance"]) and not run["above_chance"]:
        said.append(f"The {run['run']} model is not shown to be above chance on this task, so an effect says little.")
    return tuple(said)


def unchanged(sweep: Swept) -> list[str]:
    """How well each run does that the cells are held against."""
    sentences = []
    for run in sweep.runs.to_dict("records"):
        parts = []
        if sweep.metric != "kl_divergence":  # that is from the unchanged run itself
            name = METRICS.get(sweep.metric, sweep.metric)
            numbers = run["mean"], run["low"], run["high"]
            parts.append(f"{name} {estimate(*numbers, _unit(sweep), n_clusters=run['n_clusters'])}")
        if not np.isnan(run["accuracy"]) and sweep.metric != "accuracy":
            parts.append(f"accuracy {run['accuracy']:.2f}")
        if parts:
            sentences.append(f"{run['run'].capitalize()}: {', '.join(parts)}.")
    return sentences


def evidence(sweep: Swept) -> str:
    """How much was measured."""
    run = sweep.runs.iloc[0]
    units, clusters = counted(int(run["n_units"]), "unit"), counted(int(run["n_clusters"]), "cluster")
    return f"{units} in {clusters}, {counted(sweep.n_measured, 'example')}"


def findings(sweep: Swept) -> list[str]:
    """What was done, how well the runs do, what was found, and what could not change anything."""
    return [f"{capital(done(sweep))}: {evidence(sweep)}.", *unchanged(sweep), *claims(sweep), *nothing_changed(sweep)]


def claims(sweep: Swept) -> list[str]:
    """The strongest findings, and how many there are."""
    large = sweep.cells["found"] == sweep_cells.LARGE if sweep.tested else sweep_cells.is_large(sweep, sweep.cells)
    said = [_finding(sweep, cell) for _, cell in sweep_cells.strongest_first(sweep.cells[large]).head(_MOST).iterrows()]
    return [*said, *(_how_many(sweep) if sweep.estimates is None else _screened(sweep, int(large.sum())))]


def nothing_changed(sweep: Swept) -> list[str]:
    """How many cells could not change anything, by the reason."""
    states = sweep.cells["state"].value_counts()
    return [
        f"{name.capitalize()} in {counted(int(states[name]), 'cell')}: {state.meaning}."
        for name, state in sweep_cells.STATES.items()
        if name in states and name != sweep_cells.UNMEASURED
    ]


def audited(sweep: Swept) -> str:
    """Whether the numbers are those of the plain way, and which way and which model they are of."""
    audit, why, model = (sweep.provenance.get(name) for name in ("audit", "why_plain", "engine_model"))
    if audit is None:
        because = f" ({why})" if why else ""
        return f"Measured the plain way, one hooked forward pass per cell{because}: there is no engine to check."
    numbers = f"The engine's numbers, made on its {model}," if model else "The engine's numbers"
    return (
        f"{numbers} were checked: {counted(audit['rows'], 'prompt')} under {counted(audit['cells'], 'cell')} measured "
        f"again by hooked forward passes; the largest difference is {audit['largest_difference']:.1e} of the largest "
        f"score (up to {audit['tolerance']:.0e} is rounding)."
    )


def whole(sweep: Swept) -> str:
    """What sizes are shares of."""
    own = f"the model's own {METRICS.get(sweep.metric, sweep.metric)}"
    return "the difference between the runs" if sweep.patched else own


def _finding(sweep: Swept, cell: pd.Series) -> str:
    numbers = cell["shown"], cell["shown_low"], cell["shown_high"]
    if sweep.patched:
        if sweep.origin:
            clause = f"takes away {estimate(-numbers[0], -numbers[2], -numbers[1], '')}"
        else:
            clause = f"brings back {estimate(*numbers, '')}"
        clause += " of the difference between the runs"
    elif sweep.metric == "kl_divergence":
        clause = f"moves the prediction by {estimate(*numbers, sweep.unit)}"
    else:
        clause = change(*numbers, sweep.unit, n_clusters=cell["n_clusters"])
    p = p_value(cell["p_adjusted"])
    accuracy = accuracy_clause(cell["accuracy_base"], cell["accuracy_intervened"])
    return f"{_doing(sweep)} {cell['name']} {clause}{f' ({p})' if p else ''}{accuracy}."


def _how_many(sweep: Swept) -> list[str]:
    rows, n_cells = sweep.cells, counted(len(sweep.cells), "cell")
    if sweep.metric == "kl_divergence":
        return ["No cell is tested: a divergence is above 0 wherever anything changes; its size is what counts."]
    if sweep.summary["p_adjusted"].isna().all():
        n_clusters = int(rows["n_clusters"].max())
        why = f"a claim needs {FEWEST_CLUSTERS} clusters of items, and there are at most {n_clusters} in a cell"
        why = why if n_clusters < FEWEST_CLUSTERS else "a template has a single cluster, so no interval is known"
        return [f"Nothing is decided: {why}: {MORE_CLUSTERS}."]
    beyond, large = int((rows["found"] != "").sum()), int((rows["found"] == sweep_cells.LARGE).sum())
    significant = f"significant after correction (adjusted p ≤ {sweep_cells.ALPHA:g})"
    if not beyond:
        return [f"None of {n_cells} is {significant}.{_largest(sweep)}"]
    return [
        f"Of {n_cells}, {beyond} {is_are(beyond)} {significant}, {large} of them by at least "
        f"{sweep_cells.MINIMUM:g} of {whole(sweep)}."
    ]


def _screened(sweep: Swept, n_large: int) -> list[str]:
    screen = sweep.provenance["screen"]
    recall = estimate(screen["recall"], screen["recall_low"], screen["recall_high"], "")
    n_top, n_audit, correlation = screen["top"], screen["audit"], screen["correlation"]
    agree = "" if np.isnan(correlation) else f"; on those drawn, estimates and effects correlate by {correlation:.2f}"
    return [
        f"Of {counted(n_top + n_audit, 'cell')} that were measured, {n_large} {is_are(n_large)} at least "
        f"{sweep_cells.MINIMUM:g} of {whole(sweep)}.",
        f"Screened by {screen['method'].replace('_', ' ')}: of {counted(screen['cells'], 'cell')}, the {n_top} with "
        f"the largest estimates were measured, and {n_audit} drawn at random from the others. Of the {n_top} largest "
        f"effects, a share of {recall} is among those {n_top}{agree}.",
        "No cell is tested, as they were chosen on the same units: patch those of interest on others, with another "
        "--seed.",
    ]


def _largest(sweep: Swept) -> str:
    first = sweep_cells.strongest_first(sweep.cells).iloc[0]
    if pd.isna(first["shown"]):
        return ""
    unit = "" if sweep.patched else _unit(sweep)
    numbers = first["shown"], first["shown_low"], first["shown_high"]
    return f" The largest is {first['name']}: {estimate(*numbers, unit, n_clusters=first['n_clusters'])}."


def _unit(sweep: Swept) -> str:
    """The unit behind a value; a probability has none."""
    return "" if sweep.unit.startswith("of ") else sweep.unit
