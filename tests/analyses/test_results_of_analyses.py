"""What analyses return shows itself in a notebook, with intervals and a figure."""

import re

import numpy as np
import pandas as pd
import pytest
from synthetic_heads import synthetic_report

from analyses.coreference_heads.gap import GapResult
from analyses.coreference_heads.gap_figure import gap_figure
from analyses.development.development import Development, development_figure
from analyses.syntax_heads.parse import CHAINS, ParseResult, parse_figure
from interp.errors import InputError

pytestmark = pytest.mark.unchecked


def development():
    """A report at three steps; a fourth was not judged."""
    report = synthetic_report(tasks=("agreement",))
    frames = [
        pd.concat([each.assign(step=step) for step in (0, 100, 200)]) for each in (report.summary(), report.tasks)
    ]
    return Development(report.examples, report.provenance, *frames, report, unjudged=(300,))


def gap_result():
    """Two rules and three heads."""
    f1 = np.array([0.4, 0.35, 0.3, 0.62, 0.5])
    frame = pd.DataFrame({"name": ["nearest", "first", "0.0", "0.1", "1.0"], "f1": f1, "chosen": f1 == f1.max()})
    frame["layer"] = pd.array([None, None, 0, 0, 1], dtype="Int64")
    frame = frame.assign(head=0, f1_masculine=f1 + 0.02, f1_feminine=f1 - 0.02, bias=0.94, accuracy=f1, f1_choosing=f1)
    best = {"name": "0.1", "f1": 0.62, "low": 0.55, "high": 0.68, "baseline": "nearest", "f1_baseline": 0.4}
    best |= {"accuracy": 0.6, "accuracy_baseline": 0.41, "excess": 0.19, "excess_low": 0.1, "excess_high": 0.28}
    best |= {"p": 1e-4, "n": 200, "n_pages": 190}
    return GapResult(pd.DataFrame(), {"model": "m", "seed": 0}, frame, best, {"ahead": 12})


def parse_result():
    """Five documents of two sentences."""
    rows = [(f"d{at}", number, 6, 3 + number, 2, 1, 2) for at in range(5) for number in (0, 1)]
    frame = pd.DataFrame(rows, columns=["document", "sentence", "n", "right", *CHAINS])
    heads = pd.DataFrame({"layer": [0], "head": [1], "looks": ["dependent to head"], "accuracy": [0.6]})
    return ParseResult(frame, {"n_unaligned": 0, "too_long": {}}, heads)


RESULTS = {
    "development": (development, lambda result: development_figure(result.cells, result.tasks)),
    "gap": (gap_result, gap_figure),
    "parse": (parse_result, parse_figure),
}


@pytest.mark.parametrize("name", RESULTS)
def test_it_shows_itself_with_a_table_and_a_figure(name):
    make, draw = RESULTS[name]
    html = make()._repr_html_()
    assert "<table" in html
    assert f"{name}_figure(result" in html
    assert "data:image/png;base64," in html
    assert not re.search(r"color:|background|<script|http", html)
    assert len(draw(make()).axes) > 0


@pytest.mark.parametrize("name", ["gap", "parse"])
def test_estimates_stand_with_their_intervals(name):
    said = " ".join(re.findall(r"<(?:td|li)[^>]*>(.*?)</", RESULTS[name][0]()._repr_html_()))
    assert re.search(r"-?\d[\d.]*[^\[]{0,9} \[-?\d[\d.]*, -?\d[\d.]*\]", said)


@pytest.mark.parametrize("draw", [gap_figure, parse_figure])
def test_a_figure_of_something_else_is_refused(draw):
    with pytest.raises(InputError, match="analyses"):
        draw(pd.DataFrame({"f1": [1.0]}))
