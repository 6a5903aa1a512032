import html
import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from html_page import Page, sound

from interp.report.heads import page_of
from interp.report.heads_sentences import summarise
from interp.report.html import as_page, flatten


@pytest.fixture(scope="module")
def source(make_report) -> str:
    return as_page(page_of(make_report()), "interp heads --out r")


def test_text_from_data_stays_text(source):
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in source
    assert "<script>alert" not in source
    assert "<b>tiny</b>" not in source
    assert "<b>bold</b>" not in source


def test_hostile_attributes_cannot_leave_their_quotes(make_report):
    report = make_report(tasks=('"><img src=x onerror=alert(1)>',))
    page = Page(as_page(page_of(report)))
    assert page.all("img") == []
    assert not [element for element in page.elements if "onerror" in element[1]]


def test_accents_survive(source):
    for word in ("café", "Zoë", "données/naïve_accord", "modèle"):
        assert word in source


def test_the_page_is_sound_and_asks_for_nothing(source):
    page = sound(source)
    linked = [attributes.get("src") or attributes.get("href") for _, attributes in page.elements]
    assert all(target.startswith(("#", "data:")) for target in linked if target)


def test_what_was_asked_stands_on_the_page(source):
    assert "interp heads --out r" in source
    assert "0123456789abcdef" in source
    assert "12 answers longer than one token" in source
    assert "84 % of items in the lexicon" in source


def test_every_head_of_every_task_is_in_the_table(source, make_report):
    heads = source[source.index('id="tables"') :].split("</table>")[0]
    assert heads.count("<tr>") == len(make_report().cells) + 1


def test_missing_values_are_hatched_and_never_zero(make_report):
    report = make_report()
    source = as_page(page_of(replace(report, cells=report.cells.assign(excess=np.nan))))
    excess = source[source.index('id="agreement"') :].split("</table>")[0]
    assert excess.count('class="unmeasured">—<') == 12
    assert "0.00" not in excess
    assert "nan" not in excess


def test_the_grids_come_first_then_the_tasks_then_how_to_read_them(source):
    headings = re.findall(r'<h2 id="([^"]+)"', source)
    tasks = ["agreement", "coreference", "blimp-na-ve-accord"]
    assert headings == ["verdicts", "evidence", *tasks, "how-to-read-this", "tables", "what-was-asked", "method"]
    parts = (
        'class="verdicts"',
        'class="key"',
        "What the verdicts mean",
        'class="legend"',
        "<li>agreement: ",
        'id="evidence"',
    )
    assert [source.index(each) for each in parts] == sorted(source.index(each) for each in parts)
    folded = source[: source.index('class="legend"')]
    assert folded.count("<details") == folded.count("</details>") + 1  # its meanings stand one click away


def test_the_header_says_of_which_model_how_much_and_when(source):
    header = source[source.index("<h1>") : source.index("<main>")]
    for fact in ("Model &lt;b&gt;tiny", "12 heads in 3 layers", "3 tasks, 600 units", "95 % intervals", "interp 0."):
        assert fact in header
    assert re.search(r"\d{4}-\d\d-\d\d", header)


@pytest.mark.parametrize(
    ("verdict", "reason", "said"),
    [
        ("needed", "where it looks is undecided", "(needed; where it looks is undecided)"),
        ("undecided", "why", "(undecided)"),
    ],
)
def test_the_head_with_the_largest_effect_is_always_named(make_report, verdict, reason, said):
    report = make_report(tasks=("agreement",))
    row = (report.cells["layer"] == 0) & (report.cells["head"] == 1)
    cells = report.cells.copy()
    cells.loc[row, ["verdict", "reason", "effect", "effect_low", "effect_high"]] = [verdict, reason, -9.4, -9.7, -9.1]
    report = replace(report, cells=cells)
    source = html.unescape(as_page(page_of(report)))
    (line,) = re.findall(r"<li>(agreement: .*?)</li>", source)
    assert f"Largest effect: head 0.1 {said}." in line
    assert not re.search(r"\d\.\d\d", line), "a line has no numbers"
    section = source[source.index('id="agreement"') :].split("<details>")[0]
    assert re.search(r"ead 0\.1 .*resampling it costs 9\.40 logits \[9\.10, 9\.70\]", section), (
        "they are not folded away"
    )
    evidence = source[source.index('id="evidence"') :].split("</section>")[0]
    assert "-9.40 [-9.70, -9.10]" in evidence
    assert "head 0.1" in html.unescape(report._repr_html_())
    if verdict == "needed":
        assert '<td class="needed" aria-label="needed">' in source


def test_each_task_begins_with_its_strongest_finding(make_report):
    report = make_report()
    source = as_page(page_of(report))
    verdicts = html.unescape(source[source.index('id="verdicts"') :].split("</section>")[0])
    for each in summarise(report):
        assert each.line in verdicts
        assert len(each.line) < 220
    many = summarise(make_report(n_layers=12, n_heads=12))[0].line
    assert re.fullmatch(r"agreement: heads? .* tracks?; also .* \d+ more with a finding\.( Largest effect: .*)?", many)
    assert len(many) < 220


def test_a_path_stands_in_the_provenance_alone(make_report):
    path = "blimp:/home/me/data/naïve_accord.jsonl"
    source = as_page(page_of(make_report(tasks=(path,))), f"interp heads --task {path}")
    shown, method = source.split('<h2 id="method">')
    assert path in method
    assert path not in shown
    assert shown.count("blimp:naïve_accord") >= 12


def test_a_task_says_why_its_attention_is_not_testable(make_report):
    report = make_report()
    source = as_page(
        page_of(replace(report, cells=report.cells.assign(attention=np.nan), tasks=report.tasks.assign(n_excluded=400)))
    )
    assert source.count("Attention is not testable: in all 400 examples the related word is the first token") == 3


def test_every_verdict_of_every_head_is_read_without_a_script(source, make_report):
    frame = make_report().cells
    grids = source[source.index('id="verdicts"') :].split("</section>")[0]
    for verdict, count in frame["verdict"].value_counts().items():
        assert grids.count(f'aria-label="{verdict}"') == count


def test_the_script_gets_every_number_as_it_was_measured(source, make_report):
    frame = make_report().cells
    heads = json.loads(re.findall(r'<script type="application/json" id="heads">(.*?)</script>', source)[0])
    columns = {column["name"]: column for column in heads["columns"]}
    assert heads["n_rows"] == len(frame)
    for name in ("effect", "effect_low", "attention", "probe_excess_p_adjusted", "mean_effect", "exchange"):
        assert [np.nan if each is None else each for each in columns[name]["values"]] == pytest.approx(
            frame[name].tolist(), rel=0, abs=0, nan_ok=True
        )
    verdicts = columns["verdict"]
    assert [verdicts["of"][place] for place in verdicts["at"]] == frame["verdict"].tolist()


def test_minor_findings_and_the_provenance_are_folded_away(make_report):
    report = make_report(tasks=("agreement",))
    frame = report.cells.assign(verdict="causal, by another route", reason="")
    source = as_page(page_of(replace(report, cells=frame)))
    visible = re.sub(r"<details>.*?</details>", "", source, flags=re.DOTALL)
    visible, section = (each[each.index('id="agreement"') :].split('id="tables"')[0] for each in (visible, source))
    assert section.count(" matters for agreement") == 12
    assert visible.count(" matters for agreement") == 3
    assert "Further findings and open questions (9)" in source
    assert "model_hash" not in visible


def test_a_task_on_which_nothing_is_found_shows_why(make_report):
    report = make_report(tasks=("agreement",))
    frame = report.cells.assign(verdict="undecided", reason="the base is at chance", n_to_decide=np.nan)
    visible = re.sub(r"<details>.*?</details>", "", as_page(page_of(replace(report, cells=frame))), flags=re.DOTALL)
    assert "No head has a finding for this task." in visible
    assert "Every one of the 12 heads is undecided: the base is at chance." in visible


def test_a_head_that_was_not_measured_on_a_task_is_a_gap(make_report):
    report = make_report()
    gone = (report.cells["task"] == "agreement") & (report.cells["layer"] == 0) & (report.cells["head"] == 0)
    source = as_page(page_of(replace(report, cells=pd.DataFrame(report.cells[~gone]))))
    assert source.count('<td class="unmeasured" aria-label="not measured"></td>') == 1


def test_clusters_stand_with_every_task_and_in_the_tables(source):
    assert "agreement (200 units in 90 clusters)" in source
    assert source.count('<th scope="col">clusters</th>') == 2


def test_a_baseline_that_is_a_place_is_explained_where_it_stands(make_report):
    report = make_report(tasks=("agreement",))
    cells = report.cells.assign(verdict="attends and causal", attention=0.8, baseline="position 9")
    source = as_page(page_of(replace(report, cells=cells)))
    assert source.count("“position 9” is a place in the prompt, counted from 0") == 1
    assert "is a place in the prompt" not in as_page(page_of(report))


def test_a_small_p_value_does_not_read_as_zero(make_report):
    report = make_report()
    source = as_page(page_of(replace(report, cells=report.cells.assign(effect_p_adjusted=1.3e-5))))
    assert '<td class="number" data-key="1.3e-05">&lt; 0.0001</td>' in source


def test_a_task_without_attention_maps_is_shown_without_them(make_report):
    report = make_report()
    source = as_page(page_of(replace(report, attention_maps=report.attention_maps.iloc[:0])))
    assert "Where the top heads look" not in source


def test_what_several_tasks_share_is_said_once():
    tasks = [{"task": "a", "model": "m", "hash": "1"}, {"task": "b", "model": "m", "hash": "2"}]
    assert flatten({"tasks": tasks}) == [
        ("tasks.model", "m"),
        ("tasks.a.task", "a"),
        ("tasks.a.hash", "1"),
        ("tasks.b.task", "b"),
        ("tasks.b.hash", "2"),
    ]


def test_nested_provenance_is_flattened_in_order():
    nested = {"seed": 0, "versions": {"torch": "2"}, "sizes": [1, 2], "nothing": None}
    assert flatten(nested) == [("seed", "0"), ("versions.torch", "2"), ("sizes", "1, 2"), ("nothing", "None")]
