"""What a sweep's report says: numbers with every claim, and no claim without them."""

import numpy as np
import pytest
from synthetic_sweeps import screened, shown_of

from interp.report.sweep_cells import swept
from interp.report.sweep_sentences import audited, cautions, claims, done, evidence, nothing_changed, title, unchanged
from interp.report.words import FEWEST_CLUSTERS, MORE_CLUSTERS


def ablated_at(site, axes):
    """An ablation of a site in place of components."""
    return shown_of(axes, how={"site": site, "components": None})


def measured_by(metric, **options):
    return shown_of(how={"metric": metric}, **options)


def test_an_ablation_says_what_a_head_costs():
    first, counted = claims(shown_of())
    assert (
        first
        == "Ablating head 0.0 costs 4.00 logits [3.80, 4.20] (adjusted p = 0.0001), accuracy goes from 1.00 to 0.55."
    )
    assert counted.startswith(
        "Of 12 cells, 1 is significant after correction (adjusted p ≤ 0.05), 1 of them by at least 0.1 of the"
    )
    assert counted.endswith(" model's own logit difference.")


def test_an_ablation_of_a_site_names_it_and_its_axes():
    by_place = ablated_at("resid_mid", {"layer": range(2), "pos": ("BOS", "last")})
    assert done(by_place) == "mean ablation of resid_mid, by layer and position"
    assert claims(by_place)[0].startswith("Ablating resid_mid at layer 0, BOS costs 4.00 logits [3.80, 4.20]")
    by_key = ablated_at("pattern", {"layer": range(2), "head": range(2), "key": ("BOS", "last")})
    assert done(by_key) == "mean ablation of pattern, by layer, head and position attended to"
    one = ablated_at("z", {"layer": [1], "head": [2]})
    assert done(one) == "mean ablation of z, by layer and head"
    assert claims(one)[0].startswith("Ablating z at head 1.2 costs")


@pytest.mark.parametrize(
    ("direction", "said"),
    [("denoise", "brings back 0.80 [0.78, 0.82]"), ("noise", "takes away 0.40 [0.38, 0.42]")],
)
def test_patching_says_how_much_of_the_difference(direction, said):
    first, counted = claims(shown_of(direction=direction))
    assert first.startswith(
        f"Patching z at layer 0, BOS {said} of the difference between the runs (adjusted p = 0.0001)"
    )
    assert "1 of them by at least 0.1 of the difference between the runs." in counted


def test_each_metric_has_its_own_words():
    assert claims(measured_by("accuracy"))[0].startswith("Ablating head 0.0 costs 4.00 of accuracy [3.80, 4.20]")
    moved, *_, counted = claims(measured_by("kl_divergence", effect=0.3, low=0.2, high=0.4))
    assert moved.startswith("Ablating head 0.0 moves the prediction by 0.30 nats [0.20, 0.40]")
    assert counted.startswith("No cell is tested: a divergence is above 0 wherever anything changes")
    assert unchanged(measured_by("kl_divergence")) == ["Unablated: accuracy 1.00."]
    assert unchanged(measured_by("probability")) == [
        "Unablated: probability of the right answer 5.00 [4.70, 5.30], accuracy 1.00."
    ]


def test_where_nothing_is_beyond_the_correction_the_largest_is_named():
    assert claims(shown_of(p_adjusted=0.4)) == [
        "None of 12 cells is significant after correction (adjusted p ≤ 0.05). The largest is head 0.0: -4.00 logits "
        "[-4.20, -3.80]."
    ]
    nothing = shown_of(p_adjusted=0.4, state=dict.fromkeys(range(12), "no-op"))
    assert claims(nothing) == ["None of 12 cells is significant after correction (adjusted p ≤ 0.05)."]
    assert nothing_changed(nothing) == ["No-op in 12 cells: the intervention changed nothing."]


def test_with_few_clusters_nothing_is_decided():
    assert claims(shown_of(p_adjusted=np.nan, n_clusters=12)) == [
        f"Nothing is decided: a claim needs {FEWEST_CLUSTERS} clusters of items, and there are at most 12 in a cell: "
        f"{MORE_CLUSTERS}."
    ]


def test_the_runs_are_described_and_a_model_at_chance_is_called_so():
    shown = shown_of(direction="denoise")
    assert unchanged(shown) == [
        "Clean: logit difference 5.00 logits [4.70, 5.30], accuracy 1.00.",
        "Corrupted: logit difference -5.00 logits [-5.30, -4.70], accuracy 0.00.",
    ]
    assert cautions(shown) == ()
    (lost,) = cautions(shown_of(direction="denoise", runs={"above_chance": False}))
    assert "The clean model is not shown to be above chance" in lost
    assert cautions(shown_of(direction="denoise", runs={"above_chance": None})) == ()


def test_a_screen_says_what_it_measured_and_missed():
    sentences = " ".join(claims(swept(screened())))
    assert "Of 6 cells that were measured, 1 is at least 0.1 of the difference between the runs." in sentences
    assert "of 12 cells, the 4 with the largest estimates were measured, and 2 drawn at random" in sentences
    assert "a share of 1.00 [0.75, 1.00] is among those 4." in sentences
    assert "(adjusted p" not in sentences.split(" No cell is tested")[0]
    assert not nothing_changed(swept(screened()))


def test_a_partial_sweep_says_how_many_examples_it_holds():
    assert cautions(shown_of()) == ()
    (said,) = cautions(shown_of(complete=False))
    assert "It holds 30 of the 60 examples that were asked for" in said
    assert evidence(shown_of(complete=False)) == "30 units in 30 clusters, 30 examples"


def test_the_audit_is_one_sentence():
    assert audited(shown_of()).count(".") - audited(shown_of()).count("1.5e-07") == 1
    assert "8 prompts under 2 cells measured again" in audited(shown_of())
    assert "there is no engine to check" in audited(shown_of(how={"audit": None}))


def test_the_audit_says_which_way_and_which_model():
    said = audited(shown_of(how={"engine_model": "own copy of GPT2LMHeadModel"}))
    assert said.startswith("The engine's numbers, made on its own copy of GPT2LMHeadModel, were checked: 8 prompts")
    said = audited(shown_of(how={"audit": None, "why_plain": "somebody's hooks are on the bridge"}))
    assert "one hooked forward pass per cell (somebody's hooks are on the bridge): there is no engine" in said


def test_what_was_done_is_one_clause():
    assert done(shown_of()) == "mean ablation of each head by itself"
    assert done(shown_of({"layer": [1], "head": [2]})) == "mean ablation of one head by itself"
    assert done(shown_of({"heads": ["1.1+2.2"]})) == "mean ablation of sets of heads"
    assert (
        done(shown_of(direction="noise")) == "the corrupted run's z patched into the clean run, by layer and position"
    )
    assert title(shown_of()) == "Ablation: agreement"
