from interp.claims.bootstrap import FEWEST_CLUSTERS
from interp.report.heads import how_to_read


def test_every_term_is_explained_by_what_the_statistics_do(make_report):
    lines = dict(how_to_read(make_report().cells, {"alpha": 0.01, "correction": "max-T"}))
    assert "95 %" in lines["[low, high]"]
    assert "whole clusters" in lines["[low, high]"]
    assert "max-T" in lines["Adjusted p"]
    assert "a claim needs 0.01 at most" in lines["Adjusted p"]
    assert "0.10 of all attention" in lines["Minimum"]
    assert f"fewer than {FEWEST_CLUSTERS} clusters" in lines["Unit, cluster"]
    assert "training texts of the embedded models" in lines["Generated tasks"]


def test_an_exploratory_correction_is_called_so(make_report):
    lines = dict(how_to_read(make_report().cells, {"correction": "fdr"}))
    assert "exploratory" in lines["Adjusted p"]
    assert "also called q" in lines["Adjusted p"]
    assert "max-T" not in lines["Adjusted p"]


def test_heads_that_were_chosen_are_all_that_is_corrected_for(make_report):
    lines = dict(how_to_read(make_report().cells, {"correction": "max-T", "chosen_on": [{"task": "a"}]}))
    assert "corrected over the heads and tasks of this report that were chosen on other items" in lines["Adjusted p"]
