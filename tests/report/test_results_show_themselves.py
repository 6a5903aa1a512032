"""Every result of a public call shows itself in a notebook, and has a figure; one without fails here."""

import dataclasses
import importlib
import inspect
import pkgutil
import re
import warnings
from html.parser import HTMLParser

import matplotlib as mpl
import pandas as pd
import pytest
from drawn_text import cut_off
from real_results import dossier, real_results
from synthetic_relations import maps_of

import interp
from interp import plots
from interp.report.drawing import Figure

pytestmark = pytest.mark.unchecked

FIGURES = {
    "heads": [plots.overview, lambda report: plots.heads(report, "agreement")],
    **{name: [plots.sweep, plots.strongest] for name in ("ablate", "mlps", "sets", "patch", "noised", "paths")},
    "screened": [plots.sweep, plots.strongest, lambda result: plots.screen(result.screen)],
    "screen": [plots.screen],
    "attend": [plots.relations, plots.relation_baselines],
    "probe": [plots.probes, plots.probe_map, lambda result: plots.probe_map(result, "selectivity")],
    "layers": [plots.probes, plots.probe_map],
    "stream": [plots.stream],
    "attributed": [plots.logit_attribution],
    "lens": [plots.logit_lens],
    "lenses": [plots.lenses],
    "circuits": [lambda result: plots.head_map(result.summary(), "copying")],
    "card": [plots.card, lambda card: plots.card_paths(card, "agreement")],
    "calibration": [
        lambda result, show=show: plots.calibration(result, show) for show in ("confusion", "false claims")
    ],
    "attention": [plots.task_attention],
    "functions": [lambda result: plots.head_map(result.summary().query("function == 'induction'"), "score")],
    "attribute": [plots.estimates],
    "pairs": [plots.pairs],
    "greedy": [plots.greedy, plots.strongest],
    "repair": [plots.self_repair],
    "replacements": [plots.replacements],
    "erase": [plots.erasure],
}
INSIDE = {"Answer", "Begun", "Compared", "Held", "Judged", "Labelled", "TaskEvidence"}
"""Frames on their way from one part of the package to another: nobody is given these."""


@pytest.fixture(scope="module")
def results():
    with pytest.MonkeyPatch.context() as patched, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return real_results(patched)


@pytest.fixture(scope="module")
def shown(results):
    """What a notebook shows of each; that figures can be drawn is tested apart, so these are placeholders."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("interp.report.notebook.picture", lambda *_: b"a placeholder")
        return {name: result._repr_html_() for name, result in results.items()}


def result_classes():
    """The public dataclasses of the rooms above the model that hold a frame."""
    found = {}
    for room in ("residual", "interventions", "methods", "calibration"):
        package = importlib.import_module(f"interp.{room}")
        for module in pkgutil.walk_packages(package.__path__, f"interp.{room}."):
            for name, each in vars(importlib.import_module(module.name)).items():
                own = inspect.isclass(each) and each.__module__ == module.name and dataclasses.is_dataclass(each)
                if own and not name.startswith("_") and _has_frame(each):
                    found[name] = each
    return found


def _has_frame(each):
    return any(field.type is pd.DataFrame for field in dataclasses.fields(each))


def test_every_result_shows_itself_or_is_none(results):
    shown = {type(result).__name__ for result in results.values()}
    assert set(result_classes()) - INSIDE - shown == set()
    assert all("_repr_html_" in dir(type(result)) for result in results.values())


def test_on_a_terminal_a_result_takes_a_line_or_two(results):
    for name, result in results.items():
        text = repr(result)
        assert text.startswith(f"{type(result).__name__}("), name
        assert len(text) < 300, text
        assert "\n" not in text


def test_every_result_has_a_figure(results):
    assert set(results) == set(FIGURES)


@pytest.mark.parametrize("name", FIGURES)
def test_figures_are_drawn_and_nothing_else_is_touched(results, name):
    before, rows = dict(mpl.rcParams), repr(results[name])
    for draw in FIGURES[name]:
        figure = draw(results[name])
        assert isinstance(figure, Figure)
        assert cut_off(figure) == []
    assert dict(mpl.rcParams) == before
    assert repr(results[name]) == rows


class Read(HTMLParser):
    """What stands in a fragment; every tag is closed in its order."""

    VOID = ("img", "br")

    def __init__(self, html):
        super().__init__()
        self.open, self.tags, self.text, self.images, self.rows = [], [], [], [], 0
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.images += [dict(attributes)["src"]] if tag == "img" else []
        self.rows += tag == "tr"
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


@pytest.mark.parametrize("name", FIGURES)
def test_a_notebook_shows_findings_and_where_the_rest_is(shown, name):
    html = shown[name]
    read = Read(html)
    text = " ".join("".join(read.text).split())
    assert {"table", "strong", "code"} <= set(read.tags)
    assert 2 <= read.rows <= 11
    assert all(each.startswith("data:image/png;base64,") for each in read.images)
    assert re.search(r"Figure: interp\.plots\.\w+\(", text)
    called = re.search(r"interp\.plots\.(\w+)", text)[1]
    assert called in plots.__all__
    assert "nan" not in re.sub(r"\w*nan\w+|\w+nan\w*", "", text.lower())
    assert not re.search(r"color:|background|<script|http", html)


WITH_INTERVALS = set(FIGURES) - {"stream", "attributed", "lens", "lenses", "circuits", "screen", "greedy"}
"""The others have none to show; and half of these few units leave a template of one cluster, so greedy has none."""


@pytest.mark.parametrize("name", sorted(WITH_INTERVALS))
def test_estimates_stand_with_their_intervals(shown, name):
    said = " ".join(re.findall(r"<(?:td|li)[^>]*>(.*?)</", shown[name]))
    assert re.search(r"-?\d[\d.]*[^\[]{0,9} \[-?\d[\d.]*, -?\d[\d.]*\]", said)


@pytest.mark.parametrize("name", ["ablate", "patch", "pairs", "repair", "greedy"])
def test_one_line_says_how_it_was_made(results, shown, name):
    text = " ".join("".join(Read(shown[name]).text).split())
    how = results[name].provenance
    assert f"model default ({how['model_hash'][:12]})" in text
    assert "seed 0" in text
    assert f"audited on {how['audit']['cells']} cells" in text


def test_a_result_that_was_interrupted_says_so(results):
    whole = results["ablate"]
    cut = dataclasses.replace(whole, provenance={**whole.provenance, "complete": False, "audit": None, "n_asked": 96})
    html = cut._repr_html_()
    assert re.search(r"Partial: the sweep was interrupted. It holds 24 of the 96 examples", html)
    assert "not audited" in html
    assert "\nPARTIAL: 24 of 96 examples" in plots.sweep(cut)._suptitle.get_text()


def test_what_is_quoted_cannot_act():
    name = "<img src=x onerror=alert(1)>"
    report = dossier(tasks=(name,))
    html = report._repr_html_()
    read = Read(html)
    assert name in "".join(read.text)
    assert "<b>tiny</b>" not in html
    assert len(read.images) == 1


def test_a_large_dossier_is_shown_without_a_figure():
    read = Read(dossier(n_layers=12, n_heads=12)._repr_html_())
    assert not read.images
    assert "422 more rows in .summary()" in " ".join("".join(read.text).split())


def test_probes_of_several_sites_are_told_apart(results):
    one = results["probe"]
    both = dataclasses.replace(one, cells=pd.concat([one.cells, one.cells.assign(site="q")], ignore_index=True))
    text = "".join(Read(both._repr_html_()).text)
    assert "interp.plots.probes(result.at('z'))" in text
    with pytest.raises(interp.errors.InputError, match=r"shows one site, got z, q; choose one: result.at\('z'\)"):
        plots.probes(both)


def test_examples_of_relations_are_shaded_words(results):
    result = results["attend"]
    html = dataclasses.replace(result, maps=maps_of(result))._repr_html_()
    Read(html)
    assert html.count("background: rgba") == 8
    assert "d0-1 — right here" in html
    assert "<script>" not in html
