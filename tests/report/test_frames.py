from dataclasses import replace

import pandas as pd
import pytest

from interp.errors import InputError
from interp.report.heads_frames import check_frames, layer_by_head


def test_complete_frames_pass(make_report):
    check_frames(make_report())


def test_missing_column_is_named(make_report):
    report = make_report()
    with pytest.raises(InputError, match="called effect_low"):
        check_frames(replace(report, cells=report.cells.drop(columns="effect_low")))


def test_unknown_verdict_is_named(make_report):
    report = make_report()
    with pytest.raises(InputError, match="got splendid"):
        check_frames(replace(report, cells=report.cells.assign(verdict="splendid")))


def test_repeated_head_is_refused(make_report):
    report = make_report()
    twice = pd.concat([report.cells, report.cells.head(1)], ignore_index=True)
    with pytest.raises(InputError, match="one row per layer, head and task"):
        check_frames(replace(report, cells=twice))


def test_undescribed_task_is_named(make_report):
    report = make_report()
    with pytest.raises(InputError, match="got none for coreference"):
        check_frames(replace(report, tasks=report.tasks[report.tasks["task"] != "coreference"]))


def test_layer_by_head_keeps_values_in_place_and_leaves_gaps_missing(make_report):
    frame = make_report().cells
    table = layer_by_head(frame[~((frame["layer"] == 2) & (frame["head"] == 1))], "agreement", "effect")
    assert table.shape == (3, 4)
    assert pd.isna(table.loc[2, 1])
    row = frame[(frame["task"] == "agreement") & (frame["layer"] == 1) & (frame["head"] == 3)].iloc[0]
    assert table.loc[1, 3] == row["effect"]
    assert int(table.isna().to_numpy().sum()) == 1
