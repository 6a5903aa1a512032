"""Patterns and arcs show the weights that they are given, and refuse what is no attention."""

import re

import numpy as np
import pytest
import torch
from drawn_text import cut_off
from hostile import TEXTS

from interp.errors import InputError
from interp.plots import attention_arcs, attention_pattern, attention_words

pytestmark = pytest.mark.unchecked

TOKENS = ["BOS", " The", " keys", " are"]
PATTERN = np.tril(np.random.default_rng(0).dirichlet(np.ones(4), size=(2, 4)))


def seen(pattern):
    """A pattern without the future, which is hatched."""
    return np.where(np.tri(4, dtype=bool), pattern, np.nan)


def drawn(ax):
    return np.ma.filled(ax.collections[0].get_array(), np.nan)


def cache(*layers):
    values = torch.from_numpy(PATTERN)[None].to(torch.bfloat16)
    return {f"blocks.{layer}.attn.hook_pattern": values for layer in layers} | {"blocks.0.hook_resid_pre": values}


def test_every_weight_has_its_place_and_its_words():
    figure = attention_pattern(PATTERN, TOKENS)
    first, second = figure.axes[:2]
    np.testing.assert_array_equal(drawn(first), seen(PATTERN[0]))
    np.testing.assert_array_equal(drawn(second), seen(PATTERN[1]))
    assert [patch.get_hatch() for patch in first.patches] == ["////"]
    assert [text.get_text() for text in first.get_yticklabels()] == ["BOS", "The", "keys", "are"]
    assert [text.get_text() for text in second.get_xticklabels()] == ["BOS", "The", "keys", "are"]
    assert [ax.get_title() for ax in (first, second)] == ["head 0", "head 1"]
    assert all(ax.yaxis_inverted() and ax.collections[0].get_clim() == (0.0, 1.0) for ax in (first, second))


def test_of_a_cache_titles_name_the_layer_and_the_head():
    figure = attention_pattern(cache(0, 3), TOKENS, heads=["3.1", (0, 0)])
    assert [ax.get_title() for ax in figure.axes[:2]] == ["L3H1", "L0H0"]
    np.testing.assert_allclose(drawn(figure.axes[0]), seen(PATTERN[1]), atol=2e-3)  # bfloat16
    assert len(attention_pattern(cache(0, 3), TOKENS).axes) == 4 + 1


def test_one_pattern_and_another_text_that_is_read():
    figure = attention_pattern(PATTERN[0][:, :2], TOKENS, key_tokens=["le", "chat"])
    assert drawn(figure.axes[0]).shape == (4, 2)
    assert [text.get_text() for text in figure.axes[0].get_xticklabels()] == ["le", "chat"]


def test_scores_diverge_from_0_and_what_the_mask_hides_is_hatched():
    scores = np.where(np.tri(4, dtype=bool), np.arange(16.0).reshape(4, 4) - 3, -np.inf)
    ax = attention_pattern(scores, TOKENS, scores=True).axes[0]
    low, high = ax.collections[0].get_clim()
    assert -low == high == 12.0
    red, green, blue, _ = ax.collections[0].to_rgba(0.0)
    assert min(red, green, blue) > 0.95
    assert np.isnan(drawn(ax)).sum() == 6
    assert [patch.get_hatch() for patch in ax.patches] == ["////"]


def test_many_heads_and_a_single_token():
    figure = attention_pattern(np.ones((40, 1, 1)), ["BOS"])
    assert len(figure.axes) == 48 + 1  # four rows of twelve, and the bar
    assert max(figure.get_size_inches()) < 25
    with pytest.raises(InputError, match="expected 144 at most in one figure, got 145; say which"):
        attention_pattern(np.ones((145, 1, 1)), ["BOS"])


def test_a_long_sentence_has_numbers_in_place_of_words():
    figure = attention_pattern(np.eye(300), [f"word{n}" for n in range(300)])
    assert cut_off(figure) == []
    labels = [text.get_text() for text in figure.axes[0].get_xticklabels()]
    assert len(labels) < 10
    assert max(figure.get_size_inches()) < 10


@pytest.mark.parametrize("draw", [attention_pattern, attention_arcs])
def test_words_are_text_whatever_stands_in_them(draw):
    words = [text for text in TEXTS if "\ud83d" not in text and text.isascii()]
    n = len(words)
    figure = draw(np.eye(n), words)
    assert cut_off(figure) == []
    assert all(len(text.get_text()) <= 16 for text in figure.axes[0].get_xticklabels())


def test_arcs_are_those_of_the_query():
    weights = np.array([[1.0, 0.0, 0.0, 0.0], [0.0] * 4, [0.0] * 4, [0.005, 0.7, 0.05, 0.245]])
    ax = attention_arcs(weights, TOKENS).axes[0]
    arcs = {round(float(line.get_xdata()[-1])): line.get_linewidth() for line in ax.lines if len(line.get_xdata()) > 1}
    assert set(arcs) == {1, 2}
    assert arcs[1] > arcs[2]
    assert sorted(text.get_text() for text in ax.texts) == ["0.24", "0.70"]
    bold = [text.get_text() for text in ax.get_xticklabels() if text.get_fontweight() == "bold"]
    assert bold == ["are"]
    assert len(attention_arcs(weights, TOKENS, query=0).axes[0].lines) == 2  # it looks at itself


@pytest.mark.parametrize(
    ("attention", "tokens", "options", "said"),
    [
        (PATTERN, TOKENS[:3], {}, "expected a text for each of 4 query and 4 key positions, got 3 and 3"),
        (PATTERN, "The keys", {}, "expected a list of texts, one a position, got the text 'The keys'"),
        (PATTERN, TOKENS, {"heads": [2]}, "expected numbers from 0 to 1, as an array has no layers, got 2"),
        (PATTERN, TOKENS, {"heads": "2.1"}, "expected numbers from 0 to 1, as an array has no layers, got '2.1'"),
        (PATTERN, TOKENS, {"heads": []}, "heads: expected one at least, got none"),
        (PATTERN[None], TOKENS, {"example": 1}, "example: expected a prompt from 0 to 0, got 1"),
        (PATTERN[None, None], TOKENS, {}, "expected \\[query key\\], \\[head query key\\] .* got 5 axes"),
        (3 * PATTERN, TOKENS, {}, "expected weights from 0 to 1, got 0 to .*give scores=True"),
        (cache(0), TOKENS, {"heads": "1.0"}, "no head 1.0 in the cache, which holds layers 0 of 2 heads"),
        (cache(0), TOKENS, {"heads": "one"}, "expected heads such as '2.1' or \\(2, 1\\), got 'one'"),
        ({"hook_embed": 1}, TOKENS, {}, "expected a cache with blocks.0.attn.hook_pattern"),
        ("no numbers", TOKENS, {}, "expected an ActivationCache or an array of numbers, got 'no numbers'"),
    ],
)
@pytest.mark.parametrize("draw", [attention_pattern, attention_arcs])
def test_what_is_no_attention_is_refused(draw, attention, tokens, options, said):
    with pytest.raises(InputError, match=said):
        draw(attention, tokens, **options)


@pytest.mark.parametrize("query", [4, -5])
def test_there_is_no_such_query(query):
    with pytest.raises(InputError, match=f"expected a position from 0 to 3, or -1 for the last, got {query}"):
        attention_arcs(PATTERN, TOKENS, query=query)


def test_arcs_of_too_much_are_refused():
    with pytest.raises(InputError, match="expected 24 heads and 120 tokens at most, got 1 and 121"):
        attention_arcs(np.eye(121), ["a"] * 121)


def test_a_notebook_shows_the_words_shaded():
    shown = attention_words(cache(0, 3), TOKENS, heads="3.1", query=2)
    html = shown._repr_html_()
    assert "layer 3, head 1" in html
    assert re.findall(r'title="attention ([\d.]+)"', html) == [f"{weight:.2f}" for weight in PATTERN[1, 2].round(2)]
    assert html.count("outline: 1px solid") == 1
    assert repr(shown).startswith("layer 3, head 1: BOS ")
    with pytest.raises(InputError, match="query: expected a position from 0 to 3"):
        attention_words(PATTERN, TOKENS, query=4)


def test_of_a_model_that_looks_both_ways_nothing_is_hatched():
    both = np.full((1, 4, 4), 0.25)
    ax = attention_pattern(both, TOKENS).axes[0]
    assert not ax.patches
    assert not np.isnan(drawn(ax)).any()
