"""The figures of results hold the results' numbers: dots at the estimates, lines over the intervals, bars that sum."""

from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from synthetic_probes import probing
from synthetic_relations import scoring
from synthetic_sweeps import sweep as made_up

import interp
from interp import plots
from interp.errors import InputError
from interp.interventions.sweep import SweepResult
from interp.report.dots import dots_figure
from interp.report.drawing import MOST, style
from interp.residual.logit_lens import LensReading
from interp.residual.stream import LogitAttribution

pytestmark = pytest.mark.unchecked


ENDS = ("estimate", "low", "high")


def by_position(direction=None):
    """A sweep over two layers and three numbered positions, of 24 clusters."""
    rows = [(layer, pos, unit) for layer in (0, 1) for pos in range(3) for unit in range(24)]
    frame = pd.DataFrame(rows, columns=["layer", "pos", "unit"])
    frame = frame.assign(example=frame["unit"], cluster=frame["unit"].map("c{}".format), template="t")
    effect = -(frame["layer"] + 1.0) * frame["pos"] + 0.01 * frame["unit"]
    frame = frame.assign(base=5.0, value=5.0 + effect, effect=effect, base_correct=1.0, value_correct=1.0)
    frame = frame.assign(fired=1, change_norm=1.0, status="changed")
    how = {"task": "t", "metric": "logit_difference", "seed": 0, "site": "z", "replacement": "mean", "components": None}
    return SweepResult(frame, how | {"audit": None}, ("layer", "pos"))


def test_a_sweep_by_position_is_called_by_its_tokens():
    result = by_position()
    ax = plots.sweep(result, tokens=["BOS", " The", " $x$"]).axes[0]
    assert [text.get_text() for text in ax.get_xticklabels()] == ["BOS", "The", "$x$"]
    cells = result.summary().pivot(index="layer", columns="pos", values="effect")
    np.testing.assert_allclose(np.ma.filled(ax.collections[0].get_array()).reshape(2, 3), cells)
    low, high = ax.collections[0].get_clim()
    assert -low == high == pytest.approx(-cells.to_numpy().min())


@pytest.mark.parametrize(
    ("result", "tokens", "said"),
    [
        (by_position(), ["BOS"], "expected a text for each position up to 2, got 1"),
        ("no sweep", None, "expected what interp.ablate or interp.patch returns, got a str without .examples"),
        (SweepResult(by_position().examples.head(0), {}), None, "got an empty frame"),
    ],
)
def test_what_is_no_sweep_is_refused(result, tokens, said):
    with pytest.raises(InputError, match=said):
        plots.sweep(result, tokens=tokens)


def test_tokens_do_not_name_positions_that_have_names():
    named = by_position()
    frame = named.examples.assign(pos=named.examples["pos"].map("p{}".format))
    with pytest.raises(InputError, match="whose positions have numbers, got cells called 'p0'"):
        plots.sweep(SweepResult(frame, named.provenance, named.labels), tokens=["a", "b", "c"])


def test_frames_of_a_sweep_are_drawn_as_they_are():
    assert plots.sweep(made_up()).axes[0].get_xlabel() == "head"
    assert plots.strongest(made_up(direction="denoise")).axes[0].get_xlabel().startswith("share of the clean")


def test_dots_stand_at_the_estimates_and_lines_over_the_intervals():
    one = pd.DataFrame({"estimate": [1.0, np.nan], "low": [0.5, np.nan], "high": [2.0, np.nan]})
    other = one.assign(estimate=[-1.0, np.nan], low=[-1.5, np.nan], high=[-0.5, np.nan])
    ax = dots_figure(["a", "$b"], {"x": one, "y": other}, "effect", "title", ignored=0.25).axes[0]
    spans = [tuple(segment[:, 0]) for lines in ax.collections for segment in lines.get_segments() if len(segment) == 2]
    assert {(0.5, 2.0), (-1.5, -0.5)} <= set(spans)
    dots = {
        line.get_label(): (line.get_xdata()[0], line.get_marker()) for line in ax.lines if line.get_marker() != "None"
    }
    assert dots == {"x": (1.0, "o"), "y": (-1.0, "s")}
    assert [text.get_text() for text in ax.texts] == [" not measured"]
    assert ax.yaxis_inverted()


def test_a_notebook_shows_a_figure_at_its_size():
    picture, size = dots_figure(["a"], {"x": pd.DataFrame({name: [1.0] for name in ENDS})}, "", "")._repr_png_()
    assert picture.startswith(b"\x89PNG")
    assert size == {"width": 672, "height": 189}


def test_each_series_has_a_shape_of_its_own():
    styles = [style(number) for number in range(MOST)]
    assert len({each["marker"] for each in styles}) == len({to_hex(each["color"]) for each in styles}) == MOST


def attributions(values):
    """By example, the values of components."""
    frames = [
        pd.DataFrame({"label": [f"L{n}" for n in range(len(own))], "kind": "head", "example": at, "attribution": own})
        for at, own in enumerate(values)
    ]
    return LogitAttribution(pd.concat(frames, ignore_index=True), {})


def test_bars_sum_to_the_logit():
    values = np.random.default_rng(0).normal(size=(2, 30))
    figure = plots.logit_attribution(attributions(values), most=5)
    bars = [patch.get_width() for patch in figure.axes[0].patches]
    assert len(bars) == 6
    assert sum(bars) == pytest.approx(values.mean(axis=0).sum())
    assert figure.axes[0].get_yticklabels()[-1].get_text() == "the other 25"
    assert f"{values.mean(axis=0).sum():.2f}" in figure.axes[0].get_title(loc="left")


@pytest.mark.parametrize(
    ("result", "most", "said"),
    [
        (attributions([[1.0]]), 0, "most: expected a whole number from 1, got 0"),
        (LogitAttribution(pd.DataFrame(), {}), 5, "got none called"),
    ],
)
def test_what_is_no_attribution_is_refused(result, most, said):
    with pytest.raises(InputError, match=said):
        plots.logit_attribution(result, most=most)


def reading(text="yes"):
    """Two depths, two positions; right at the last depth of the first."""
    places = pd.DataFrame([(0, 0, 0), (0, 0, 1), (1, 0, 0), (1, 0, 1)], columns=["depth", "example", "pos"])
    rank = pd.array([3, None, 0, None], dtype="Int64")
    frame = places.assign(token=1, next_token=2, rank=rank, log_prob=-1.0, entropy=1.0, kl=[2.0, 2.0, 0.0, 0.0])
    return LensReading(frame, {}, places.assign(place=0, token=7, text=text, log_prob=np.log([0.1, 0.2, 0.3, 0.4])))


def test_a_lens_shows_its_first_guess_with_its_probability():
    ax = plots.logit_lens(reading(), tokens=["BOS", " a"]).axes[0]
    np.testing.assert_allclose(ax.collections[0].get_array().ravel(), [0.3, 0.4, 0.1, 0.2])  # the last depth on top
    assert [text.get_text() for text in ax.texts] == ["yes"] * 4
    framed = [patch.get_xy() for patch in ax.patches if not patch.get_fill()]
    assert framed == [(0, 0)]
    assert [text.get_text() for text in plots.logit_lens(reading(None)).axes[0].texts] == ["#7"] * 4
    assert [text.get_text() for text in plots.logit_lens(reading()).axes[0].get_xticklabels()] == ["0", "1"]
    own = replace(reading(), examples=reading().examples.assign(text=["BOS", " The"] * 2))
    assert [text.get_text() for text in plots.logit_lens(own).axes[0].get_xticklabels()] == ["BOS", "The"]


@pytest.mark.parametrize(
    ("options", "said"),
    [({"example": 3}, "expected a prompt from 0 to 0, got 3"), ({"tokens": ["a"]}, "each position up to 1, got 1")],
)
def test_a_lens_refuses_other_prompts(options, said):
    with pytest.raises(InputError, match=said):
        plots.logit_lens(reading(), **options)


@dataclass
class Pairs:
    """Three heads, two of which hide each other."""

    provenance: dict = field(default_factory=lambda: {"task": "t", "metric": "logit_difference"})

    @property
    def examples(self):
        return self.summary()

    def summary(self):
        frame = pd.DataFrame({"first": ["0.0", "0.0", "1.0"], "second": ["1.0", "2.0", "2.0"]})
        frame = frame.assign(interaction=[-2.0, 0.1, 1.0], low=-3.0, high=3.0, minimum=0.5, effect=-1.0)
        return frame.assign(relation=["redundant", "additive", "in series"])


def test_a_pair_has_both_of_its_places_and_its_mark():
    ax = plots.pairs(Pairs()).axes[0]
    table = np.ma.filled(ax.collections[0].get_array(), np.nan).reshape(3, 3)
    np.testing.assert_array_equal(table, table.T)
    assert table[0, 1] == -2.0
    assert np.isnan(np.diag(table)).all()
    assert ax.collections[0].get_clim() == (-2.0, 2.0)
    assert {line.get_marker(): len(line.get_xdata()) for line in ax.lines} == {"v": 2, "^": 2}


def test_norms_are_those_of_the_components():
    model = interp.load_model()
    stream = interp.residual_stream(model, ["The keys", "The keys to the cabinet"])
    norms = stream.examples
    assert len(norms) == len(stream.labels) * int(stream.mask.sum())
    one = norms[(norms["label"] == "L1H2") & (norms["example"] == 1)].set_index("pos")["norm"]
    np.testing.assert_allclose(one, stream["L1H2"][1].norm(dim=-1), rtol=1e-5)
    shown = np.ma.filled(plots.stream(stream, example=1).axes[0].collections[0].get_array()).reshape(-1, len(one))
    np.testing.assert_allclose(shown[list(stream.labels["label"]).index("L1H2")], one, rtol=1e-6)
    with pytest.raises(InputError, match="example: expected a prompt from 0 to 1, got 2"):
        plots.stream(stream, example=2)


@pytest.mark.parametrize("name", plots.__all__)
def test_every_figure_refuses_what_it_is_not_of(name):
    more = {f"attention_{kind}": (["a"],) for kind in ("pattern", "arcs", "words")} | {"head_map": ("score",)}
    for wrong in (SimpleNamespace(), "text", None):
        with pytest.raises(InputError):
            getattr(plots, name)(wrong, *more.get(name, ()))


def test_figures_of_layers_alone_and_of_nothing_that_can_be_scored():
    assert plots.probe_map(probing(heads=False)).axes[0].get_xlabel() == "layer"
    untestable = scoring({("nsubj", "head to dependent"): "not testable"})
    assert "no pair can be scored" in plots.relations(untestable).axes[0].get_title(loc="left")
