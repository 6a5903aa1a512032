import pandas as pd

from interp.report.heads_frames import layer_by_head


def test_layer_by_head_keeps_values_in_place_and_leaves_gaps_missing(make_report):
    frame = make_report().cells
    table = layer_by_head(frame[~((frame["layer"] == 2) & (frame["head"] == 1))], "agreement", "effect")
    assert table.shape == (3, 4)
    assert pd.isna(table.loc[2, 1])
    row = frame[(frame["task"] == "agreement") & (frame["layer"] == 1) & (frame["head"] == 3)].iloc[0]
    assert table.loc[1, 3] == row["effect"]
    assert int(table.isna().to_numpy().sum()) == 1
