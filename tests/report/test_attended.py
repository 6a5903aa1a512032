import pandas as pd

from interp.report.attention_words import attending_heads, scored


def test_words_stand_in_the_order_of_the_sentence_whatever_the_order_of_the_rows(make_report):
    maps = scored(make_report().attention_maps)
    shuffled = maps.sample(frac=1.0, random_state=0)
    assert not shuffled["key_pos"].is_monotonic_increasing
    assert attending_heads(shuffled, "agreement") == attending_heads(maps, "agreement")
    expected = maps[(maps["task"] == "agreement") & (maps["rank"] == 0) & (maps["example"] == 0)]
    best = attending_heads(shuffled, "agreement")[0]
    assert best.title == "Head 1.3"
    assert [word.text for word in best.pictures[0][1]] == [token.strip() for token in expected["token"]]


def test_a_weight_that_is_not_known_has_no_colour(make_report):
    maps = scored(make_report().attention_maps).assign(weight=float("nan"))
    words = attending_heads(pd.DataFrame(maps), "agreement")[0].pictures[0][1]
    assert {(word.weight, word.style) for word in words} == {("—", "")}
