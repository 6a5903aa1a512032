"""What was done, in words? The same in the page, the figures and on the terminal."""

from interp.report.metrics import UNITS
from interp.report.names import shown_names
from interp.report.sweeps.frames import SweepFrames
from interp.report.sweeps.names import GROWING, PATH

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
