"""The page of probes, as text."""

import re
from dataclasses import replace

import numpy as np
import pytest
from html_page import sound
from synthetic_probes import HOSTILE, probing, with_cell

from interp.report.html import as_page
from interp.report.probes import asked, page_of

THREE = {(1, 2): "encodes", (0, 1): "undecided"}


def rendered(result, command=None):
    return as_page(page_of(result), command)


@pytest.fixture(scope="module")
def source():
    return rendered(probing(THREE), command="interp probe --out r")


def test_the_page_is_sound_and_hostile_words_stay_text(source):
    sound(source)
    assert "&lt;script&gt;alert(1)&lt;/script&gt; (120)" in source
    assert "<b>tiny" not in source
    assert HOSTILE not in source


def test_the_map_and_what_was_found_come_first_then_what_was_asked(source):
    found = re.findall(r'<h2 id="([^"]+)"', source)
    assert found == [*("heatmap", "findings", "controls", "cells", "what-was-asked", "how-to-read-this", "method")]
    assert "<title>Probes: number in z</title>" in source
    assert "<li>Head 1.2 encodes number: 92.9 % of 240 words right" in source
    assert (
        "<li>Of 6 heads, 1 encodes it, 1 is undecided and 4 have less than 10 points beyond the controls.</li>"
        in source
    )
    assert "Description length: 100 bits" in source
    assert "interp probe --out r" in source


def test_the_facts_of_a_task():
    facts = dict(asked(probing()))
    assert facts["Model"] == "<b>tiny</b> (hash 0123456789ab)"
    assert facts["Feature"] == "number, as the task's examples have it"
    assert facts["Site"] == "z (what each head reads off the words that it attends to)"
    assert facts["Data"] == "task agreement (hash fedcba987654)"
    assert facts["Words"] == "240 words with a label, in 40 clusters"
    assert facts["Labels"] == f"plural (120) and {HOSTILE} (120)"
    assert facts["Read at"] == "the position that predicts the answer, last token of a word"
    assert facts["Held out"] == (
        "templates and lemmas: no word is tested that shares one of these with a word of the training (5 folds of each)"
    )
    assert facts["Probe"] == (
        "logistic regression (linear), penalised by L2; of 3 strengths of the penalty, one is chosen within each "
        "training set; 1,234 fitted"
    )


def test_the_facts_of_a_treebank():
    how = {"data": ["/home/me/bank.conllu"], "penalties": [1.0], "pooling": "mean"}
    facts = dict(asked(probing(measure="R2", of_task=False, lemmas=60, **how)))
    assert facts["Data"] == "bank.conllu: 40 documents (hash fedcba987654)"
    assert facts["Feature"] == "number: number of a verb's subject, read at the word before the verb"
    assert facts["Words"] == "240 words with a label, in 40 documents and 60 lemmas"
    assert facts["Labels"] == "numbers from -3 to 3, on average -0.02"
    assert facts["Read at"] == "mean over a word's tokens, in windows of documents"
    assert facts["Held out"].startswith("documents and lemmas: no word")
    assert facts["Probe"] == "least squares (linear), penalised by L2; 1,234 fitted"
    assert facts["Score"].startswith("R²: the share of the number's variance")


@pytest.mark.parametrize(
    ("feature", "said"),
    [
        ("feats:Case", "feats:Case: morphological feature Case of the word that is read"),
        ("sense:bank", "sense:bank: sense of “bank” of the word that is read"),
        ("mine", "mine"),
    ],
)
def test_features_of_a_treebank_are_explained(feature, said):
    assert dict(asked(probing(of_task=False, feature=feature)))["Feature"] == said


def test_the_facts_of_a_store_and_of_many_classes():
    result = probing(of_task=False, store="/home/me/acts")
    del result.provenance["n_documents"]
    result.words["value"] = [f"class{number % 8}" for number in range(240)]
    facts = dict(asked(result))
    assert facts["Data"] == "stored activations, acts (hash fedcba987654)"
    assert facts["Labels"] == "8 classes, from class0 (30) to class7 (30)"
    assert dict(asked(probing(of_task=False, store=True)))["Data"] == "stored activations (hash fedcba987654)"


def test_what_speaks_against_the_scores_stands_in_a_box_at_the_top(source):
    assert 'class="partial"' not in source
    warned = rendered(with_cell(with_cell(probing(), None, embedding=0.95), None, selectivity_low=-0.1))
    boxes = re.findall(r'<p class="partial" role="note">([^<]+)</p>', warned)
    assert [text.split(":")[0] for text in boxes] == ["The word itself gives the feature away", "Nothing is selective"]
    assert warned.index('class="partial"') < warned.index('class="facts"')


def cells(source, section, row, map_number=0):
    part = source[source.index(f'id="{section}"') :].split("</section>")[0].split('class="heat')[1 + map_number]
    (own,) = [each for each in part.split("</table>")[0].split("<tr>") if f'<th scope="row">{row}<' in each]
    return re.findall(r'<td (?:style="([^"]*)"|class="unmeasured") title="([^"]*)">([^<]*)<span[^>]*>([^<]*)<', own)


def test_heatmaps_have_the_scores_and_the_selectivities_of_every_head(source):
    shown = cells(source, "heatmap", "1")
    assert [(text, mark) for _, _, text, mark in shown] == [("0.55", "·"), ("0.55", "·"), ("0.93", "●")]
    assert [mark for *_, mark in cells(source, "heatmap", "0")] == ["·", "?", "·"]
    assert shown[2][1] == "Head 1.2, score: 92.9 % [87.9, 97.9] (encodes)"
    selective = cells(source, "heatmap", "1", map_number=1)
    assert [text for _, _, text, _ in selective] == ["0.02", "0.02", "0.40"]
    assert selective[2][1] == "Head 1.2, selectivity: 39.9 points [33.9, 45.9] (encodes)"
    assert "Score (accuracy); no colour up to the majority&#39;s 0.50" in source


def test_colours_run_from_the_majority_to_1_and_selectivity_as_far_from_0():
    ends = with_cell(with_cell(probing(), 5, score=1.0, selectivity=0.5), 3, score=0.5, selectivity=0.0)
    source = rendered(ends)
    for number in (0, 1):
        styles = [style for style, *_ in cells(source, "heatmap", "1", map_number=number)]
        assert "--l:#1b6ca8" in styles[2]
        assert "--l:#f0f1f3" in styles[0]
    below = rendered(with_cell(ends, 3, score=0.2))
    assert cells(below, "heatmap", "1")[0][0] == cells(source, "heatmap", "1")[0][0]


def test_a_cell_stands_beside_all_of_its_controls(source):
    headings = re.findall(r'<th scope="col">([^<]+)</th>', source[source.index('id="controls"') :].split("</thead>")[0])
    assert headings == [
        *("Head", "score", "majority", "embedding of the word", "position", "untrained model", "permuted labels"),
        *("control task", "score, known words"),
    ]
    shown = cells(source, "controls", "1.2")
    assert [text for _, _, text, _ in shown] == ["0.93", "0.50", "0.50", "0.50", "0.53", "0.48", "0.55", "0.95"]
    assert [mark for *_, mark in shown] == ["●", "", "", "", "▲", "", "", ""]
    assert shown[4][1] == "Head 1.2, untrained model: 53.0 % (the toughest)"
    assert "Every head beside the controls (accuracy)" in source


def test_what_was_not_measured_is_hatched():
    source = rendered(with_cell(probing(), None, untrained=np.nan, baseline="majority"))
    shown = cells(source, "controls", "1.2")
    assert shown[4] == ("", "Head 1.2, untrained model: not measured", "—", "")
    part = source[source.index('id="controls"') :].split("</section>")[0]
    assert "Hatched: not measured." in part
    some = probing()
    absent = replace(some, cells=some.cells.drop(index=[1]))
    assert cells(rendered(absent), "heatmap", "0")[1] == ("", "not measured", "—", "")


def test_of_very_many_heads_the_best_stand_beside_their_controls():
    source = rendered(probing({(3, 5): "encodes"}, shape=(20, 16)))
    assert "The best 12 of 320 heads beside the controls (accuracy)" in source
    assert cells(source, "controls", "3.5")
    assert "The first 200 of 320 heads, by verdict and excess; all of them are in probes.csv" in source
    assert source[source.index("The first 200 of 320") :].split("</table>")[0].count("<tr>") == 201
    assert 'class="heat dense"' in source


def test_layers_stand_in_their_order_with_verdicts_beside_their_controls():
    source = rendered(probing(heads=False, shape=(14, 1)))
    assert 'id="heatmap"' not in source
    assert "Every layer beside the controls (accuracy)" in source
    part = source[source.index('id="controls"') :].split("</table>")[0]
    assert re.findall(r'<th scope="row">(\d+)</th>', part) == [str(layer) for layer in range(14)]
    assert next(mark for *_, mark in cells(source, "controls", "1")) == "●"
    assert "● encodes: " in source
    table = source[source.index('id="cells"') :].split("</table>")[0]
    assert '<th scope="col">layer</th>' in table


def test_a_single_head_has_no_heatmap_of_all():
    source = rendered(probing({(0, 0): "encodes"}, shape=(1, 1)))
    assert 'id="heatmap"' not in source
    assert "The head beside the controls (accuracy)" in source
    assert "<ul>\n</ul>" not in source


def test_the_table_has_every_number(source):
    table = source[source.index('id="cells"') :].split("</section>")[0]
    for heading in (
        *(
            "head",
            "verdict",
            "score, %",
            "toughest control",
            "its score, %",
            "excess, points",
            "adjusted p",
            "control task, %",
        ),
        *(
            "selectivity, points",
            "compression",
            "compression, control task",
            "words",
            "documents",
            "lemmas",
        ),
    ):
        assert f'<th scope="col">{heading}</th>' in table
    first = table.split("<tr>")[2]
    assert '<th scope="row">1.2</th>' in first
    assert ">92.9 [87.9, 97.9]</td>" in first
    assert "untrained model</td>" in first
    assert 'data-key="240.0">240</td>' in table


def test_it_is_said_how_to_read_the_numbers(source):
    part = source[source.index('id="how-to-read-this"') :].split("</section>")[0]
    terms = re.findall(r"<dt>([^<]+)</dt>", part)
    assert terms == ["Score", "Controls", "Excess", "Selectivity", "Compression", "Adjusted p", "Verdict", "Cluster"]
    assert "draws whole clusters. It tells" in part
    assert "“encodes” needs an excess that is shown to be above 10 points (adjusted p ≤ 0.05) and a" in part
    assert "max-T" in part
    other = rendered(probing(of_task=False, lemmas=60, measure="R2", correction="fdr", min_effect=0.2))
    assert "draws whole documents and lemmas; of the two the wider counts." in other
    assert "whole documents and lemmas; of the two the larger counts." in other
    assert "an excess that is shown to be above 0.2 (" in other
    assert "exploratory" in other
    assert "<dt>Cluster</dt>" not in other
