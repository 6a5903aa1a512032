"""What do probes look like? The figures that take a result itself; ``plots.py`` draws them."""

from typing import Literal, get_args

from matplotlib.figure import Figure

from interp.errors import InputError
from interp.report.given import chosen, require
from interp.report.probes.controls import cells_beside_controls
from interp.report.probes.curves import curve
from interp.report.probes.frames import ProbeFrames, check_probes, has_heads
from interp.report.probes.plots import heatmap

Measure = Literal["score", "selectivity"]


def probes(result: ProbeFrames) -> Figure:
    """The best heads, or all layers, with the 95 % intervals of their scores, beside all of their controls.

    Args:
        result: What ``interp.probe`` returns, of one site.

    Raises:
        InputError: It is something else, has no cell, or several sites.
    """
    return cells_beside_controls(_checked(result, "probes"))


def probe_map(result: ProbeFrames, measure: Measure = "score") -> Figure:
    """Every cell: heads as a map, layers as a curve with its 95 % interval.

    Args:
        result: What ``interp.probe`` returns, of one site.
        measure: ``score``, or ``selectivity`` (above the control task's).

    Raises:
        InputError: It is something else, has no cell, several sites, or cells that are no layers; an unknown measure.
    """
    frames, column = _checked(result, "probe_map"), chosen("measure", measure, get_args(Measure))
    if "layer" not in frames.frame:
        raise InputError(
            f"probe_map: expected cells by layer, got {frames.provenance['site']} alone; draw "
            "interp.plots.probes(result)"
        )
    return heatmap(frames, column) if has_heads(frames) else curve(frames, column)


def _checked(result: ProbeFrames, what: str) -> ProbeFrames:
    require(result, ("frame", "examples", "provenance"), what, "interp.probe")
    check_probes(result)
    sites = result.frame["site"].unique()
    if len(sites) > 1:
        raise InputError(
            f"{what}: a figure shows one site, got {', '.join(sites)}; choose one: result.at({sites[0]!r})"
        )
    return result
