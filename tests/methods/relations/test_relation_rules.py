"""Every rule names one other word in every case; which, is worked out by hand."""

import numpy as np
import pytest

from interp.methods.relations.words import MOST_DISTANT, PARTS_OF_SPEECH, rule_names, rule_picks

TAGS = ["DET", "NOUN", "VERB", "", "NOUN"]
TOKENS = np.array([1, 2, 1, 3, 2])


def pick(name, query, *, causal, tags=TAGS, tokens=TOKENS):
    return int(rule_picks(tags, tokens, causal=causal)[query, rule_names(causal=causal).index(name)])


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("n_units", [2, 3, 30])
def test_every_rule_names_another_word_that_can_be_looked_at(causal, n_units):
    generator = np.random.default_rng(n_units)
    tags = generator.choice([*PARTS_OF_SPEECH, ""], size=n_units).tolist()
    picks = rule_picks(tags, generator.integers(1, 4, size=n_units), causal=causal)
    assert picks.shape == (n_units, len(rule_names(causal=causal)))
    assert len(set(rule_names(causal=causal))) == picks.shape[1]
    for query in range(1 if causal else 0, n_units):
        assert (picks[query] != query).all()
        assert (picks[query] >= 0).all()
        assert (picks[query] < (query if causal else n_units)).all()


def test_offsets_stop_at_the_edge():
    assert [pick("offset -1", query, causal=True) for query in range(1, 5)] == [0, 1, 2, 3]
    assert pick("offset -3", 4, causal=True) == 1
    assert pick(f"offset -{MOST_DISTANT}", 4, causal=True) == 0
    assert pick("offset +2", 1, causal=False) == 3
    assert pick("offset +2", 3, causal=False) == 4
    assert pick("offset +2", 4, causal=False) == 3, "the edge is the word itself: its neighbour"
    assert pick("offset -1", 0, causal=False) == 1


def test_edges():
    assert [pick("first word", query, causal=False) for query in range(5)] == [1, 0, 0, 0, 0]
    assert [pick("last word", query, causal=False) for query in range(5)] == [4, 4, 4, 4, 3]


def test_the_nearest_word_of_a_part_of_speech():
    assert pick("nearest NOUN before", 4, causal=False) == 1
    assert pick("nearest NOUN after", 1, causal=False) == 4
    assert pick("nearest NOUN either way", 2, causal=False) == 1
    assert pick("nearest NOUN either way", 3, causal=False) == 4
    assert pick("nearest DET before", 0, causal=False) == 1, "none: the neighbour"
    assert pick("nearest ADJ before", 3, causal=True) == 2, "none: the neighbour"


def test_the_word_of_the_most_tokens():
    assert [pick("most tokens", query, causal=False) for query in range(5)] == [3, 3, 3, 4, 3]
    assert [pick("most tokens", query, causal=True) for query in range(1, 5)] == [0, 1, 1, 3]
