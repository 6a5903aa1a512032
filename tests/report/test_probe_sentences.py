"""What is said of probes, for every verdict, of heads and layers, of classes and numbers."""

from dataclasses import replace

import numpy as np
import pytest
from synthetic_probes import probing, with_cell

from interp.report.probes_sentences import BASELINES, CONTROLS, cautions, cell_name, ranked, summarise, why_undecided
from interp.report.words import FEWEST_CLUSTERS, MORE_CLUSTERS


def test_a_head_that_encodes_is_quoted_with_all_its_numbers():
    summary = summarise(probing())
    assert summary.verdict == "encodes"
    assert summary.headline == (
        "Head 1.2 encodes number: 92.9 % of 240 words right [87.9, 97.9], beside 53.0 % (untrained model); excess 39.9 "
        "points [34.9, 44.9], adjusted p = 0.0004; selectivity 39.9 points [33.9, 45.9]; 40 clusters."
    )
    assert summary.notes == (
        "Description length: 100 bits for all 240 labels with head 1.2, a compression of 2.40 (of the control task's "
        "labels 0.95; 1 is none).",
    )
    assert summary.findings == ("Of 6 heads, 1 encodes it and 5 have less than 10 points beyond the controls.",)


def test_a_layer_and_a_place_before_the_layers_have_names():
    assert summarise(probing(heads=False)).headline.startswith("Layer 1 encodes number: ")
    alone = probing({(0, 0): "encodes"}, shape=(1, 1))
    place = alone.cells.drop(columns=["layer", "head"]).assign(site="embed")
    summary = summarise(replace(alone, cells=place))
    assert summary.headline.startswith("Embed encodes number: ")
    assert summary.findings == ()


def test_of_a_number_the_variance_is_said_without_percent_and_points():
    headline = summarise(probing(measure="R2", of_task=False, lemmas=60)).headline
    assert headline == (
        "Head 1.2 encodes number: R² 0.43 [0.38, 0.48] on 240 words, beside 0.03 (untrained model); excess 0.40 "
        "[0.35, 0.45], adjusted p = 0.0004; selectivity 0.40 [0.34, 0.46]; 40 documents and 60 lemmas."
    )
    counts = summarise(probing(measure="R2")).findings
    assert counts == ("Of 6 heads, 1 encodes it and 5 have less than 0.1 beyond the controls.",)


def test_other_heads_that_encode_it_follow_with_their_numbers_and_very_many_by_name():
    few = summarise(probing({(1, 2): "encodes", (0, 0): "encodes"})).findings
    assert few[0].startswith("Head 1.2 encodes it too: 92.9 % of 240 words right [87.9, 97.9], beside")
    assert "clusters" not in few[0]
    many = {(layer, head): "encodes" for layer in range(2) for head in range(5)}
    found = summarise(probing(many, shape=(2, 5))).findings
    assert sum("encodes it too" in each for each in found) == 5
    assert "Heads 1.1, 1.2, 1.3 and 1.4 encode it too." in found
    assert found[-1] == "All 10 heads encode it."
    seven = dict.fromkeys(list(many)[:7], "encodes")
    assert "Head 1.1 encodes it too." in summarise(probing(seven, shape=(2, 5))).findings


def test_no_head_encodes_it():
    summary = summarise(probing({}))
    assert summary.verdict == "none"
    assert summary.headline == (
        "No head encodes number by the minimum of 10 points beyond its controls: the best head, 0.0: 55.0 % of 240 "
        "words right [50.0, 60.0], beside 53.0 % (untrained model); excess 2.0 points [-3.0, 7.0], adjusted p = 1.000; "
        "selectivity 2.0 points [-4.0, 8.0]; 40 clusters."
    )
    assert summary.findings == ("All 6 heads have less than 10 points beyond the controls.",)
    alone = summarise(probing({}, shape=(1, 1))).headline
    assert alone.startswith("Head 0.0 does not encode number by the minimum of 10 points beyond its controls: 55.0 %")


def test_a_control_that_leaves_room_is_not_said_to_leave_none():
    result = with_cell(probing({(0, 0): "undecided"}), None, baseline="embedding", score_baseline=0.89)
    assert "the control leaves less" not in " ".join((summarise(result).headline, *summarise(result).findings))


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"n_documents": 12, "p_adjusted": np.nan}, f"a verdict needs {FEWEST_CLUSTERS} clusters: {MORE_CLUSTERS}"),
        ({"n_lemmas": 12, "p_adjusted": np.nan}, f"a verdict needs {FEWEST_CLUSTERS} lemmas"),
        ({"excess_low": np.nan, "excess_high": np.nan}, "it is not known how much clusters differ"),
        ({}, "neither an excess is shown, nor that it is less than the minimum of 10 points"),
        ({"score_baseline": 0.95}, "the control leaves less than the minimum of 10 points of room for improvement"),
        ({"p_adjusted": 0.01}, "its selectivity is not shown to be above 0"),
    ],
)
def test_what_is_missing_for_a_verdict_is_said(changed, why):
    result = with_cell(probing({(0, 0): "undecided"}, shape=(1, 1)), **changed)
    assert why_undecided(result, result.cells.iloc[0]) == why
    summary = summarise(result)
    assert summary.verdict == "undecided"
    assert summary.headline.startswith("Undecided: number. Head 0.0: 6")
    assert summary.headline.endswith(f"; {why}.")


def test_undecided_heads_are_told_by_their_reason():
    result = probing({(0, 0): "undecided", (0, 1): "undecided", (1, 0): "undecided"})
    findings = summarise(with_cell(result, 3, p_adjusted=0.01)).findings
    assert findings == (
        "Of 6 heads, 3 are undecided and 3 have less than 10 points beyond the controls.",
        "Heads 0.0 and 0.1 are undecided: neither an excess is shown, nor that it is less than the minimum of 10 "
        "points.",
        "Head 1.0 is undecided: its selectivity is not shown to be above 0.",
    )
    few = with_cell(probing({(0, 0): "undecided"}, shape=(2, 1), heads=False), None, verdict="undecided", n_documents=3)
    assert summarise(few).findings == (
        "All 2 layers are undecided.",
        f"All layers are undecided: a verdict needs {FEWEST_CLUSTERS} clusters: {MORE_CLUSTERS}.",
    )


def test_what_was_not_measured_or_did_not_converge_is_noted():
    result = with_cell(probing(n_unconverged=7), None, untrained=np.nan, embedding=np.nan, bits=np.nan)
    assert summarise(result).notes == (
        "Not measured: embedding of the word and untrained model. The excess is over the toughest of the other "
        "controls.",
        "7 of 1,234 probes did not converge.",
    )


def test_those_that_encode_come_first_then_the_largest_excess_then_the_more_selective():
    result = with_cell(probing({(1, 2): "encodes"}), 0, excess=0.9)
    assert cell_name(ranked(result.cells).iloc[0]) == "1.2"
    assert cell_name(ranked(result.cells).iloc[1]) == "0.0"
    equal = with_cell(with_cell(probing({}), None, excess=0.02), 4, selectivity=0.3)
    assert cell_name(ranked(equal.cells).iloc[0]) == "1.1"


def test_a_word_that_gives_the_feature_away_is_warned_of():
    assert cautions(probing()) == []
    (said,) = cautions(with_cell(probing(), None, embedding=0.88))
    assert said.startswith(
        "The word itself gives the feature away: a probe on its embedding alone reaches 88.0 %, the best score is "
        "92.9 % [87.9, 97.9] (head 1.2)."
    )
    assert cautions(with_cell(probing(), None, embedding=0.87)) == []


def test_an_embedding_that_says_nothing_gives_nothing_away():
    nothing = with_cell(probing(), None, score=0.5, low=0.45, high=0.55)
    assert cautions(nothing) == []
    assert len(cautions(with_cell(nothing, None, embedding=0.61))) == 1


def test_where_nothing_is_selective_it_is_said():
    result = probing()
    said = "Nothing is selective: no probe is shown to do better at the feature than at the control task"
    (caution,) = cautions(with_cell(result, 5, selectivity_low=-0.01))
    assert caution.startswith(said)
    assert cautions(with_cell(result, None, selectivity_low=np.nan)) == []


def test_the_report_knows_what_the_method_decides_by():
    from interp.claims import bootstrap
    from interp.methods.probes import verdicts as judging

    assert FEWEST_CLUSTERS == bootstrap.FEWEST_CLUSTERS
    assert (BASELINES, CONTROLS) == (judging.BASELINES, judging.CONTROLS)
