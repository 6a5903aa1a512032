from dataclasses import replace

import pandas as pd
import pytest

from interp.claims import bootstrap, rules
from interp.errors import InputError
from interp.report.heads import page_of
from interp.report.heads_frames import FINDINGS, VERDICTS, layer_by_head
from interp.report.words import FEWEST_CLUSTERS


def test_the_verdicts_are_those_of_the_rules():
    assert tuple(VERDICTS) == rules.ORDER
    assert FINDINGS == rules.FINDINGS
    assert FEWEST_CLUSTERS == bootstrap.FEWEST_CLUSTERS


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("cells", lambda rows: rows.drop(columns="excess"), r"`cells`: expected the columns layer, .* got no excess"),
        ("tasks", lambda rows: rows.drop(columns="base"), r"`tasks`: expected the columns task, .* got no base"),
        ("cells", lambda rows: rows.assign(verdict="new"), r"verdicts: expected tracks; .*; got new; add a new one"),
        ("cells", lambda rows: pd.concat([rows, rows[:1]]), r"expected one row per layer, head and task, got two for"),
        (
            "tasks",
            lambda rows: rows[1:],
            r"`tasks`: expected a row for every task of the heads, got none for agreement",
        ),
    ],
)
def test_a_dossier_that_cannot_be_shown_is_refused_by_name(make_report, name, change, said):
    report = make_report()
    with pytest.raises(InputError, match=said):
        page_of(replace(report, **{name: change(getattr(report, name))}))


def test_layer_by_head_keeps_values_in_place_and_leaves_gaps_missing(make_report):
    frame = make_report().cells
    table = layer_by_head(frame[~((frame["layer"] == 2) & (frame["head"] == 1))], "agreement", "effect")
    assert table.shape == (3, 4)
    assert pd.isna(table.loc[2, 1])
    row = frame[(frame["task"] == "agreement") & (frame["layer"] == 1) & (frame["head"] == 3)].iloc[0]
    assert table.loc[1, 3] == row["effect"]
    assert int(table.isna().to_numpy().sum()) == 1
