"""The page of heads against relations, as text."""

import re

import pandas as pd
import pytest
from html_page import Page
from synthetic_relations import HOSTILE, TO_DEPENDENT, TO_HEAD, maps_of, scoring, with_row

from interp.errors import InputError
from interp.methods.relations.scores import RelationResult
from interp.report.relations import asked, render_relations

ALL = {
    ("nsubj", TO_DEPENDENT): "attends",
    (HOSTILE, "query to related"): "undecided",
    ("obj", TO_HEAD): "none",
    ("det", TO_HEAD): "not testable",
}


@pytest.fixture(scope="module")
def source():
    result = scoring(ALL, causal=True)
    return render_relations(result, maps_of(result), command="interp attend --out r")


def test_every_element_is_closed_and_hostile_words_stay_text(source):
    page = Page(source)
    assert page.open == []
    assert len(page.scripts) == 1
    assert source.count("&lt;script&gt;alert(1)&lt;/script&gt;") > 5
    assert "<b>tiny" not in source


def test_the_page_asks_for_nothing_and_its_links_arrive(source):
    page = Page(source)
    assert not re.search(r"url\(|@import|https?://", source)
    names = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(names) == len(set(names))
    assert {link["href"].removeprefix("#") for link in page.all("a")} <= set(names)
    assert source.count("<caption>") == len(page.all("table"))


def test_what_was_found_comes_first_then_what_was_asked(source):
    found = re.findall(r'<h2 id="([^"]+)"', source)
    assert found == ["findings", "asked", "heatmap", "examples", "tables", "reading", "method"]
    asked = source[source.index('id="asked"') :].split("</section>")[0]
    for text in (
        "(hash 0123456789ab)",
        "bank.conllu: 40 documents, 1,464 sentences, 28,397 words (hash fedcba987654)",
        "back only (causal)",
        "(4 directions)",
        "chosen on the other half of the documents; every head is tested",
    ):
        assert text in asked
    assert "/home" not in source[: source.index('id="method"')]
    assert "/home/me/bank.conllu" in source
    assert "interp attend --out r" in source


def test_joined_documents_are_said_to_be():
    result = scoring(ALL)
    result.provenance.update(n_documents=5653, n_clusters=1000)
    text = "5,653 documents in 1,000 groups of neighbours, each of which counts as one document below, 1,464 sentences"
    assert text in dict(asked(result))["Corpus"]


def test_verdicts_are_grouped_and_not_testable_comes_last(source):
    titles = re.findall(r"<h3>([^<]+) \(1\)</h3>", source)
    assert titles == [
        "Relations that a head attends to",
        "Undecided",
        "Relations that no tested head attends to by the minimum",
        "Not testable",
    ]
    assert "<li>Head 0.1 attends to nsubj (head to dependent): it attends most to the subject in 70.0 %" in source
    assert "Not testable: det (dependent to head)." in source


def test_a_causal_model_is_marked_at_the_top_and_another_is_not(source):
    marked = '<p class="partial" role="note">Looking back only: this model is causal'
    assert marked in source
    assert source.index(marked) < source.index('class="facts"')
    both = render_relations(scoring(ALL))
    assert "ooking back only" not in both
    assert "both ways (bidirectional)" in both


def test_many_directions_of_one_verdict_are_folded_away():
    many = {(f"r{number}", TO_HEAD): "none" for number in range(9)} | {("nsubj", TO_DEPENDENT): "attends"}
    assert "<summary>Further directions (3)</summary>" in render_relations(scoring(many))


def cells(source, row):
    table = source[source.index('class="heat dense"') :].split("</table>")[0]
    (own,) = [each for each in table.split("<tr>") if f'<th scope="row">{row}' in each]
    return re.findall(r'<td style="([^"]*)" title="([^"]*)">([^<]*)<span[^>]*>([^<]*)</span>', own)


def test_a_cell_has_its_excess_verdict_and_numbers(source):
    shown = cells(source, "nsubj, head to dependent (n\u00a0=\u00a01,500)")
    assert [(text, mark) for _, _, text, mark in shown] == [("-30", "·"), ("20", "●"), ("-31", "·"), ("-31", "·")]
    assert shown[1][1] == (
        "Head 0.1, nsubj (head to dependent): right in 70.0 %, offset -2 in 50.0 %; excess 20.0 points [15.0, 25.0], "
        "adjusted p = 0.0004 (attends)"
    )
    assert "--l:#1b6ca8" in shown[1][0], "the largest excess has the strongest colour"
    assert [mark for *_, mark in cells(source, "&lt;script")][1] == "?"


def test_what_was_not_scored_has_no_row(source):
    assert len(re.findall(r'<th scope="row">det, ', source)) == 0


def test_heads_that_were_not_tested_have_numbers_and_no_verdict():
    result = scoring(chosen_on="abc", choose_on=["/home/dev.conllu"])
    result.frame["chosen"] = [False, True, False, False]
    result.frame.loc[[0, 2, 3], ["low", "high", "p", "p_adjusted"]] = None
    result.frame.loc[[0, 2, 3], "verdict"] = None
    source = render_relations(result)
    title = cells(source, "nsubj")[0][1]
    assert title.endswith("excess -30.0 points (not tested)")
    assert "chosen, as one head of each relation and direction, on dev.conllu (hash abc)" in source
    assert "another corpus, as the head of each relation is" in source


def test_of_very_many_heads_those_that_matter_are_shown():
    heads = {(layer, 3): "attends" for layer in range(5)} | {(0, 1): "undecided"}
    result = scoring({("nsubj", TO_HEAD): heads, ("obj", TO_HEAD): "none"}, shape=(12, 12))
    source = render_relations(result)
    assert "Shown are the 6 of 144 heads that are the best for a relation or attend to one." in source
    head_row = source[source.index('class="heat dense"') :].split("</thead>")[0]
    assert re.findall(r'<th scope="col">(\d+\.\d+)</th>', head_row) == ["0.1", "0.3", "1.3", "2.3", "3.3", "4.3"]
    assert "The first 200 of 288: heads that attend" in source
    assert source[source.index("The first 200 of") :].split("</table>")[0].count("<tr>") == 201
    assert "of 4 heads" not in render_relations(scoring())


def test_tables_say_what_was_left_out_and_dashes_where_nothing_was_scored(source):
    table = source[source.index('id="tables"') :].split("</table>")[0]
    for heading in ("who looks at whom", "best head", "accuracy, baseline", "pairs scored", "no choice", "chance"):
        assert f'<th scope="col">{heading}</th>' in table
    (row,) = [each for each in table.split("<tr>") if ">det<" in each]
    assert row.count("<td >—</td>") == 11
    assert 'data-key="1507.0">1507</td>' in row


def test_examples_say_right_or_wrong_and_how_often_right_at_all():
    result = scoring()
    right = render_relations(result, maps_of(result))
    assert right.count(">d0-1 — right here<") == right.count(">d1-1 — right here<") == 1
    assert "Right in 70.0 % of all 1,500 pairs that were scored." in right
    assert "Nobody picked these" in right
    assert right.count('class="token query"') == right.count('class="token related"') == 2
    wrong = render_relations(result, maps_of(result, is_right=False))
    assert "d0-1 — wrong here: it attends most to “The”" in wrong
    hidden = maps_of(result, is_right=False).assign(is_choice=False)
    assert "wrong here: it attends most to what is not shown" in render_relations(result, hidden)


def test_without_examples_there_is_no_section_of_them():
    for maps in (None, maps_of(scoring()).head(0)):
        assert 'id="examples"' not in render_relations(scoring(), maps)


def test_what_is_too_long_is_counted():
    source = render_relations(scoring(too_long={"d: 1": 300, "d: 2": 400}))
    assert "2 sentences, left out: longer than the model" in source


@pytest.mark.parametrize(
    ("excluded", "said"),
    [
        (["special", "self"], "The word itself and tokens of no word, such as BOS, are no choice."),
        (["self"], "The word itself is no choice; tokens"),
        (["special"], "no choice; the word itself is."),
        ([], "may be chosen too."),
    ],
)
def test_what_a_head_may_choose_is_explained(excluded, said):
    assert said in render_relations(scoring(excluded=excluded))


def test_an_exploratory_correction_says_so():
    assert "exploratory" in render_relations(scoring(correction="fdr"))
    assert "max-T" in render_relations(scoring())


def test_frames_that_cannot_be_drawn_are_refused():
    result = scoring()
    with pytest.raises(InputError, match=r"`frame`: expected the columns .*, got none called excess; build it with"):
        render_relations(RelationResult(result.frame.drop(columns="excess"), result.relations, result.provenance))
    with pytest.raises(InputError, match="`attention maps`: expected the columns"):
        render_relations(result, pd.DataFrame({"word": [1]}))
    with pytest.raises(InputError, match="expected attends, undecided, none, not testable, got maybe"):
        render_relations(with_row(result, verdict="maybe"))
    with pytest.raises(InputError, match="got none for nsubj head to dependent; add it"):
        render_relations(RelationResult(result.frame, result.relations.head(0), result.provenance))
