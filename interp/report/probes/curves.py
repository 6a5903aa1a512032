"""How does what can be read grow from layer to layer? A curve with its interval, and the controls as lines."""

import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from interp.report.drawing import wrapped_title
from interp.report.figure import Figure
from interp.report.probes.frames import ProbeFrames, measure_of
from interp.report.probes.styles import BLUE, EDGE, STYLES, lowest, measured, name_axis
from interp.report.probes.verdicts import VERDICTS
from interp.report.probes.words import CONTROLS, subject


def curve(frames: ProbeFrames, column: str) -> Figure:
    """A column of all layers with its 95 % interval.

    Args:
        frames: Of layers.
        column: ``score``, with the controls as lines; or ``selectivity``, with a line at 0.
    """
    figure = Figure(figsize=(6.6, 4.2), dpi=150, layout="constrained")
    ax = figure.subplots()
    layers = frames.frame["layer"]
    low = lowest(frames) if column == "score" else -1.0
    prefix = "" if column == "score" else f"{column}_"
    ends = [frames.frame[f"{prefix}{end}"].clip(lower=low) for end in ("low", "high")]
    ax.fill_between(layers, *ends, color=BLUE, alpha=0.2, linewidth=0, label="95 % interval")
    ax.plot(layers, frames.frame[column].clip(lower=low), color=BLUE, linewidth=1.8, label=column, zorder=3)
    _dots(ax, frames, column, low)
    if column == "score":
        _controls(ax, frames, low)
        name_axis(ax, frames, "y")
    else:
        ax.axhline(0, color="0.4", linewidth=0.8)
        ax.set_ylabel(f"selectivity (difference of {measure_of(frames).title})", fontsize=9)
    ax.set_xlabel("layer", fontsize=9)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.tick_params(labelsize=8)
    ax.grid(axis="y", color="0.9")
    ax.set_axisbelow(True)
    sns.despine(ax=ax)
    wrapped_title(ax, f"{subject(frames)}: {column}")
    figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=8, frameon=False)
    return figure


def _controls(ax: Axes, frames: ProbeFrames, low: float) -> None:
    """A line for each; those that are the same everywhere are one."""
    alike: dict[tuple[float, ...], list[str]] = {}
    for name in measured(frames):
        alike.setdefault(tuple(frames.frame[name].clip(lower=low).round(6)), []).append(name)
    for values, names in alike.items():
        style, label = STYLES[names[0]], ",\n".join(CONTROLS[name] for name in names)
        ax.plot(frames.frame["layer"], values, color=style.colour, linestyle=style.line, linewidth=1.2, label=label)


def _dots(ax: Axes, frames: ProbeFrames, column: str, low: float) -> None:
    """A dot for every layer; filled, hollow or small by its verdict."""
    for name, verdict in VERDICTS.items():
        rows = frames.frame[frames.frame["verdict"] == name]
        if len(rows):
            (dots,) = ax.plot(rows["layer"], rows[column].clip(lower=low), linestyle="none", marker="o", label=name)
            dots.set(markersize=7 if verdict.filled else 4, markeredgecolor=EDGE, zorder=4)
            dots.set_markerfacecolor(BLUE if verdict.symbol == "●" else "white")
