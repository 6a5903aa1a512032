"""The page of heads against relations, as text."""

import re
from dataclasses import replace

import pytest
from html_page import sound
from synthetic_relations import HOSTILE, TO_DEPENDENT, TO_HEAD, maps_of, scoring

from interp.report.html import as_page
from interp.report.relations import asked, page_of


def page(result, maps=None, command=None):
    return as_page(page_of(replace(result, maps=maps)), command)


ALL = {
    ("nsubj", TO_DEPENDENT): "attends",
    (HOSTILE, "query to related"): "undecided",
    ("obj", TO_HEAD): "none",
    ("det", TO_HEAD): "not testable",
}


@pytest.fixture(scope="module")
def source():
    result = scoring(ALL, causal=True)
    return page(result, maps_of(result), command="interp attend --out r")


def test_the_page_is_sound_and_hostile_words_stay_text(source):
    sound(source)
    assert source.count("&lt;script&gt;alert(1)&lt;/script&gt;") > 5
    assert "<b>tiny" not in source


def test_the_grids_come_first_then_what_was_found(source):
    found = re.findall(r'<h2 id="([^"]+)"', source)
    assert found == ["heatmap", "findings", "examples", "tables", "what-was-asked", "how-to-read-this", "method"]
    asked = source[source.index('id="what-was-asked"') :].split("</section>")[0]
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


def test_heads_that_attend_come_first_and_not_testable_last(source):
    findings = source[source.index('id="findings"') :].split("</section>")[0]
    lines = re.findall(r"<li>(.*)</li>", findings)
    assert [line.split(" ")[0] for line in lines] == ["Head", "Undecided:", "No", "Not"]
    assert lines[0].startswith(
        "Head 0.1 attends to nsubj (head to dependent): it attends most to the subject in 70.0 %"
    )
    assert lines[3].startswith("Not testable: det (dependent to head).")


def test_a_causal_model_is_marked_at_the_top_and_another_is_not(source):
    marked = '<p class="partial" role="note">Looking back only: this model is causal'
    assert marked in source
    assert source.index(marked) < source.index('class="facts"')
    both = page(scoring(ALL))
    assert "ooking back only" not in both
    assert "both ways (bidirectional)" in both


def test_many_directions_of_one_verdict_are_folded_away():
    many = {(f"r{number}", TO_HEAD): "none" for number in range(9)} | {("nsubj", TO_DEPENDENT): "attends"}
    assert "<summary>Further findings and open questions (4)</summary>" in page(scoring(many))


def cells(source, name):
    """The cells of the grid of one direction."""
    (own,) = [each for each in source.split('<table class="heat') if f"<caption>{name}" in each]
    return re.findall(r'<td style="([^"]*)" title="([^"]*)">([^<]*)<span[^>]*>([^<]*)</span>', own.split("</table>")[0])


def test_a_cell_has_its_excess_verdict_and_numbers(source):
    shown = cells(source, "nsubj, head to dependent (n\u00a0=\u00a01,500)")
    assert [(text, mark) for _, _, text, mark in shown] == [("-30", "·"), ("20", "●"), ("-31", "·"), ("-31", "·")]
    assert shown[1][1] == (
        "Head 0.1, nsubj (head to dependent): right in 70.0 %, offset -2 in 50.0 %; excess 20.0 points [15.0, 25.0], "
        "adjusted p = 0.0004 (attends)"
    )
    assert "--l:#1b6ca8" in shown[1][0], "the largest excess has the strongest colour"
    assert [mark for *_, mark in cells(source, "&lt;script")][1] == "?"


def test_a_grid_has_layers_down_and_heads_across(source):
    own = source.split('<table class="heat')[1].split("</table>")[0]
    assert re.findall(r'<th scope="col">(.*)</th>', own) == ["Layer", "head 0", "head 1"]
    assert re.findall(r'<th scope="row">(.*)</th>', own) == ["0", "1"]


def test_what_was_not_scored_has_no_grid(source):
    assert "<caption>det, " not in source


def test_heads_that_were_not_tested_have_numbers_and_no_verdict():
    result = scoring(chosen_on="abc", choose_on=["/home/dev.conllu"])
    result.cells["chosen"] = [False, True, False, False]
    result.cells.loc[[0, 2, 3], ["low", "high", "p", "p_adjusted"]] = None
    result.cells.loc[[0, 2, 3], "verdict"] = None
    source = page(result)
    title = cells(source, "nsubj")[0][1]
    assert title.endswith("excess -30.0 points (not tested)")
    assert "chosen, as one head of each relation and direction, on dev.conllu (hash abc)" in source
    assert "another corpus, as the head of each relation is" in source


def test_of_very_many_directions_the_first_have_grids():
    many = {(f"r{number}", TO_HEAD): {(number % 12, number % 7): "attends"} for number in range(14)}
    source = page(scoring(many, shape=(12, 12)))
    assert source.count('<table class="heat') == 12
    assert "Shown are the first 12 of 14 directions." in source
    table = source[source.index("<caption>Every head and relation") :].split("</table>")[0]
    assert table.count("<tr>") == 201
    assert "All 2,016 rows are in <code>heads.csv</code>" in source
    assert "Shown are" not in page(scoring())


def test_tables_say_what_was_left_out_and_dashes_where_nothing_was_scored(source):
    tables = source[source.index('id="tables"') :].split("</section>")[0].split("</table>")
    for heading in ("who looks at whom", "head", "best rule, %", "excess, points", "adjusted p", "documents"):
        assert f'<th scope="col">{heading}</th>' in tables[0]
    assert ">20.0 [15.0, 25.0]</td>" in tables[0]
    for heading in ("pairs scored", "no choice", "chance, %", "best offset"):
        assert f'<th scope="col">{heading}</th>' in tables[1]
    (row,) = [each for each in tables[1].split("<tr>") if ">det<" in each]
    assert 'data-key="1507.0">1,507</td>' in row
    assert 'data-key="0.0">0</td>' in row


def test_examples_say_right_or_wrong_and_how_often_right_at_all():
    result = scoring()
    right = page(result, maps_of(result))
    assert right.count(">d0-1 — right here<") == right.count(">d1-1 — right here<") == 1
    assert "Right in 70.0 % of all 1,500 pairs that were scored." in right
    assert "Nobody picked these" in right
    assert right.count('class="token query"') == right.count('class="token related"') == 2
    wrong = page(result, maps_of(result, is_right=False))
    assert "d0-1 — wrong here: it attends most to “The”" in wrong
    hidden = maps_of(result, is_right=False).assign(is_choice=False)
    assert "wrong here: it attends most to what is not shown" in page(result, hidden)


def test_without_examples_there_is_no_section_of_them():
    for maps in (None, maps_of(scoring()).head(0)):
        assert 'id="examples"' not in page(scoring(), maps)


def test_what_is_too_long_is_counted():
    source = page(scoring(too_long={"d: 1": 300, "d: 2": 400}))
    assert "2 sentences, left out: longer than the model" in source


@pytest.mark.parametrize(
    ("excluded", "said"),
    [
        (["special", "self"], "The word itself and tokens of no word, such as BOS, are not among the choices."),
        (["self"], "The word itself is not among the choices; tokens"),
        (["special"], "not among the choices; the word itself is."),
        ([], "may be chosen too."),
    ],
)
def test_what_a_head_may_choose_is_explained(excluded, said):
    assert said in page(scoring(exclude=excluded))


def test_an_exploratory_correction_says_so():
    assert "exploratory" in page(scoring(correction="fdr"))
    assert "max-T" in page(scoring())
