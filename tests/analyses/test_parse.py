import itertools

import numpy as np
import pandas as pd
import pytest
import torch
from banks import document, sentence, word_level
from planted import Planted, onto

from analyses.syntax_heads.parse import attention_parse, spanning_tree
from interp.errors import InputError

FORMS = [f"w{number}" for number in range(9)]
TREES = {"w0 w1 w2 w3 w4": [2, 0, -1, 4, 2], "w5 w6 w7 w8": [1, -1, 3, 1]}


def heads(*rows):
    return pd.DataFrame(rows, columns=["looks", "layer", "head", "accuracy"])


def documents():
    return [document(*(sentence(text, tree) for text, tree in TREES.items()), name=name) for name in ("a", "b", "c")]


def knowing():
    """Head 0 looks from dependents at their heads, head 1 from heads at their first dependent."""
    tokenizer = word_level(FORMS, both_sides=True)
    known = {tuple(tokenizer(text)["input_ids"]): tree for text, tree in TREES.items()}

    def pattern(ids):
        tree = known[tuple(ids)]
        up = {at + 1: head + 1 for at, head in enumerate(tree) if head >= 0}
        down = {head + 1: at + 1 for at, head in reversed(list(enumerate(tree))) if head >= 0}
        return torch.stack([onto(len(ids), up), onto(len(ids), down)])[None]

    return Planted(tokenizer, pattern)


@pytest.mark.parametrize("given", [heads().drop(columns="looks"), 5, None])
def test_heads_that_are_no_table_of_heads(given):
    with pytest.raises(
        InputError, match=r"heads: expected a table with looks, .* give attend\(model, another_corpus\)"
    ):
        attention_parse(knowing(), documents(), given)


def test_a_head_of_unknown_accuracy_says_nothing():
    """``attend(...).summary()`` holds such heads, too: those that were not tested."""
    knows, unknown = ("dependent to head", 0, 0, 1.0), ("head to dependent", 0, 1, np.nan)
    both = attention_parse(knowing(), documents(), heads(knows, unknown))
    assert both.examples.equals(attention_parse(knowing(), documents(), heads(knows)).examples)
    with pytest.raises(InputError, match="expected heads that look between dependents and their heads, got none"):
        attention_parse(knowing(), documents(), heads(unknown))


def test_a_head_that_knows_every_head_parses_everything():
    result = attention_parse(knowing(), documents(), heads(("dependent to head", 0, 0, 1.0)))
    assert result.examples["n"].tolist() == [4, 3] * 3
    assert result.examples["right"].tolist() == [4, 3] * 3
    summary = result.summary().set_index("parse")
    assert summary.loc["attention", ["uas", "low", "high"]].tolist() == [1.0, 1.0, 1.0]
    # w1 hangs on w0; the first word of each sentence, on its root: by hand
    assert result.examples["word before"].tolist()[:2] == [2, 1]
    assert summary.loc["word before", "uas"] == pytest.approx(3 / 7)
    assert summary.loc["word before", "better"] == pytest.approx(4 / 7)


def test_a_head_that_looks_down_speaks_for_the_same_arcs():
    """Of every head it knows one dependent."""
    result = attention_parse(knowing(), documents()[:1], heads(("head to dependent", 0, 1, 1.0)))
    assert result.examples["right"].tolist() == [3, 2]


def test_heads_that_speak_twice_count_once():
    twice = heads(
        ("dependent to head", 0, 0, 0.5), ("dependent to head", 0, 0, 0.9), ("anaphor to antecedent", 0, 1, 1)
    )
    assert attention_parse(knowing(), documents(), twice).heads["accuracy"].tolist() == [0.9]


@pytest.mark.parametrize("seed", range(20))
def test_the_spanning_tree_is_the_best_of_all_trees(seed):
    generator = np.random.default_rng(seed)
    weights, root = generator.random((4, 4)), int(generator.integers(4))

    def is_tree(found):
        def climbs(at):
            seen = set()
            while at != root:
                if at in seen:
                    return False
                seen.add(at)
                at = found[at]
            return True

        return all(climbs(at) for at in range(4))

    options = [[-1] if at == root else [head for head in range(4) if head != at] for at in range(4)]
    trees = [found for found in itertools.product(*options) if is_tree(found)]
    best = max(trees, key=lambda found: sum(weights[at, head] for at, head in enumerate(found) if at != root))
    assert spanning_tree(weights, root) == list(best)


def test_where_attention_says_nothing_words_hang_on_their_neighbour_towards_the_root():
    assert spanning_tree(np.zeros((5, 5)), 2) == [1, 2, -1, 2, 3]


def test_bad_input():
    with pytest.raises(InputError, match="expected heads that look between dependents"):
        attention_parse(knowing(), documents(), heads(("anaphor to antecedent", 0, 0, 1.0)))
    with pytest.raises(InputError, match="expected heads of 1 layers x 2 heads"):
        attention_parse(knowing(), documents(), heads(("dependent to head", 0, 2, 1.0)))
    with pytest.raises(InputError, match="expected sentences with trees of one root, got s with 4"):
        attention_parse(
            knowing(), [document(sentence("w5 w6 w7 w8", [-1] * 4))], heads(("dependent to head", 0, 0, 1.0))
        )
    model = knowing()
    model.tokenizer = None
    with pytest.raises(InputError, match="attention parse: expected a model with a tokenizer"):
        attention_parse(model, documents(), heads(("dependent to head", 0, 0, 1.0)))
    with pytest.raises(InputError, match="expected sentences of two words or more"):
        attention_parse(knowing(), [document(sentence("w0"))], heads(("dependent to head", 0, 0, 1.0)))
