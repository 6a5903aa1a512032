"""How is each control drawn? The same colour in every figure; its mark, and its line."""

from dataclasses import dataclass

from matplotlib.axes import Axes

from interp.report.probes.frames import ProbeFrames, measure_of

BLUE, EDGE = "#1b6ca8", "#0d3f63"


@dataclass(frozen=True)
class Style:
    """Of one control."""

    colour: str
    marker: str
    line: str | tuple[int, tuple[int, ...]]


STYLES = {
    "majority": Style("black", "|", (0, (5, 2))),
    "embedding": Style("#9c5f00", "D", "-."),
    "position": Style("#7a4da0", "s", (0, (1, 1))),
    "untrained": Style("#1f7a5c", "^", "--"),
    "permuted": Style("#5f6670", "x", ":"),
    "control": Style("#b23a48", "P", (0, (3, 1, 1, 1))),
    "score_seen": Style(BLUE, ".", (0, (2, 1))),
}


def measured(frames: ProbeFrames) -> list[str]:
    """The controls that any cell has."""
    return [name for name in STYLES if frames.frame[name].notna().any()]


def lowest(frames: ProbeFrames) -> float:
    """Where the axis of scores begins: no further below the majority than 1 is above it; a share begins at 0."""
    own = float(frames.frame[["low", "score", *measured(frames)]].min().min())  # few units have no intervals
    majority = float(frames.frame["majority"].max())
    return max(own, 0.0 if measure_of(frames).in_points else 2 * majority - 1)


def name_axis(ax: Axes, frames: ProbeFrames, which: str) -> None:
    """Write what scores are along an axis, and how it is cut."""
    cut = ""
    if not measure_of(frames).in_points and min(frames.frame[name].min() for name in measured(frames)) < lowest(frames):
        cut = f"; what is below {lowest(frames):.2f} is drawn there"
    label = ax.set_xlabel if which == "x" else ax.set_ylabel
    label(f"{measure_of(frames).title}{cut}", fontsize=9)
