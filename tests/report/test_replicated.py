import dataclasses

import pandas as pd

from interp.report.heads import page_of, replication_sentence, replication_table
from interp.report.html import as_page

ROWS = [
    *(("agreement", "general", model, heads) for model, heads in (("a", "0.0"), ("b", "0.1"), ("c", ""))),
    *(("agreement", "tracks", model, heads) for model, heads in (("a", "2.2"), ("b", "2.0 2.1"), ("c", "1.1"))),
    *(("ioi", "causal", model, heads) for model, heads in (("a", ""), ("b", "0.3"), ("c", ""))),
    *(("ioi", "opposes", model, heads) for model, heads in (("a", "0.3"), ("b", ""), ("c", ""))),
]
FRAME = pd.DataFrame(ROWS, columns=["task", "verdict", "model", "heads"]).assign(n_undecided=0, judged=True)


def test_the_strongest_verdicts_of_a_task_come_first():
    table = replication_table(FRAME)
    assert list(table.columns) == ["task", "verdict", "a", "b", "c", "replicates"]
    assert table["verdict"].tolist() == ["tracks", "general", "causal", "opposes"]
    assert table["replicates"].tolist() == ["yes", "in 1 of 2", "not here", "no"]
    assert table.loc[0, ["a", "b", "c"]].tolist() == ["2.2", "2.0, 2.1", "1.1"]


def test_what_does_not_replicate_is_named():
    assert replication_sentence(replication_table(FRAME)) == (
        "Of 3 verdicts on tasks, 1 replicates in both other seeds. Not so agreement: “general” in 1 of 2; ioi: "
        "“opposes” in none."
    )
    one = replication_table(FRAME[FRAME["model"].isin(["a", "b"]) & (FRAME["task"] == "agreement")])
    assert replication_sentence(one) == "Of 2 verdicts on tasks, 2 replicate in the other seed."


def test_what_is_undecided_elsewhere_is_no_no():
    lost = FRAME["heads"] == ""
    table = replication_table(FRAME.assign(n_undecided=lost * 3))
    assert table["replicates"].tolist() == ["yes", "in 1 of 2", "not here", "open"]
    assert table.loc[3, ["a", "b", "c"]].tolist() == ["0.3", "3 undecided", "3 undecided"]
    assert "“opposes” in none, where heads are undecided." in replication_sentence(table)


def test_a_model_that_is_not_judged_does_not_count():
    table = replication_table(FRAME.assign(judged=(FRAME["model"] != "c") | (FRAME["heads"] != "")))
    assert table["replicates"].tolist() == ["yes", "in 1 of 1 judged", "not here", "no"]
    assert "Not so agreement: “general” in 1 of 1 judged;" in replication_sentence(table)
    assert table.loc[1, "c"] == "not judged"
    alone = replication_table(FRAME.assign(judged=FRAME["model"] == "a"))
    assert alone["replicates"].tolist() == ["not judged", "not judged", "not here", "not judged"]
    assert "Not so agreement: “tracks” where no other seed is judged" in replication_sentence(alone)


def test_the_page_has_them_where_there_are_any(make_report):
    report = make_report()
    assert "Other seeds" not in as_page(page_of(report))
    page = as_page(page_of(dataclasses.replace(report, replication=FRAME.assign(n_heads=1))))
    assert 'id="other-seeds"' in page
    assert "in both other seeds" in page


def test_heads_with_a_card_are_linked(make_report):
    page = as_page(page_of(make_report(), cards={"0.1": "card"}))
    assert '<a href="cards/0.1.html">head 0.1</a>' in page
    assert 'href="cards/0.2.html"' not in page
