import numpy as np

from interp.report.heatmap import heatmap, paint


def cells(shown):
    return [cell for _, row in shown.rows for cell in row]


def test_every_head_is_in_its_place(make_report):
    frame = make_report().cells
    shown = heatmap(frame, "coreference", "effect", "effect")
    assert shown.columns == ("head 0", "head 1", "head 2", "head 3")
    for layer, row in shown.rows:
        for head, cell in enumerate(row):
            here = (frame["task"] == "coreference") & (frame["layer"] == int(layer)) & (frame["head"] == head)
            expected = frame[here].iloc[0]
            assert float(cell.text) == round(expected["effect"], 2)
            assert cell.title == f"Head {layer}.{head}: {cell.text} ({expected['verdict']})"


def test_missing_is_no_colour_and_no_number(make_report):
    shown = heatmap(make_report().cells.assign(effect=np.nan), "agreement", "effect", "effect")
    assert shown.hatched == (("—", "not testable"),)
    assert {(cell.text, cell.style, cell.measured) for cell in cells(shown)} == {("—", "", False)}


def test_noise_around_zero_stays_pale(make_report):
    frame = make_report().cells
    quiet = heatmap(frame.assign(effect=1e-4), "agreement", "effect", "effect")
    assert {cell.style for cell in cells(quiet)} == {paint(1e-4, "effect").style}
    assert {cell.text for cell in cells(quiet)} == {"0.00"}
