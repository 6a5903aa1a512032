"""GAP's official measure on passages whose answers are planted."""

import shutil

import pytest
import torch
from banks import word_level
from gap_passages import passage, write
from planted import Planted, onto

from analyses.coreference_heads.gap import gap
from interp.errors import InputError

FORMS = ["Ann", "Bea", "Cal", "Dan", "saw", "and", "then", "she", "he", "left", "old"]


def looking(*keys, causal=True, n_ctx=64):
    """One head for each of `keys`: from everywhere it looks at that token alone."""
    tokenizer = word_level(FORMS, both_sides=not causal)

    def pattern(ids):
        return torch.stack([onto(len(ids), dict.fromkeys(range(len(ids)), key)) for key in keys])[None]

    return Planted(tokenizer, pattern, n_heads=len(keys), causal=causal, n_ctx=n_ctx)


# [CLS] Ann saw Bea and then she: tokens 1 and 3 are the names.
WOMEN, MEN = "Ann saw Bea and then she left", "Cal saw Dan and then he left"


@pytest.fixture
def file(tmp_path):
    rows = [
        passage(1, WOMEN, "she", "Ann", "Bea", "A"),
        passage(2, WOMEN, "she", "Ann", "Bea", "A"),
        passage(3, WOMEN, "she", "Ann", "Bea", "B"),
        passage(4, MEN, "he", "Cal", "Dan", "A"),
        passage(5, MEN, "he", "Cal", "Dan", None),
    ]
    return write(tmp_path / "gap.tsv", *rows)


@pytest.fixture
def copy(file, tmp_path):
    """The same passages, so that what is chosen is what is best."""
    return shutil.copy(file, tmp_path / "copy.tsv")


def test_f1_by_gender_and_its_ratio(file, copy):
    """The head that looks at A has 3 hits; 5 answers and 4 right ones make 2 * 3 / 9."""
    result = gap(looking(1, 3), file, choose_on=copy)
    a, b = (result.summary().set_index("name").loc[name] for name in ("0.0", "0.1"))
    assert a["f1"] == pytest.approx(2 * 3 / 9)
    assert a["f1_feminine"] == pytest.approx(2 * 2 / 6)
    assert a["f1_masculine"] == pytest.approx(2 * 1 / 3)
    assert a["bias"] == pytest.approx(1.0)
    assert a["accuracy"] == pytest.approx(3 / 4)
    assert b["f1"] == pytest.approx(2 * 1 / 9)
    assert b["f1_masculine"] == 0.0
    assert a["chosen"]
    assert not b["chosen"]
    assert (result.best["name"], result.best["n"], result.best["n_pages"]) == ("0.0", 5, 5)
    assert result.best["f1_random_head"] == b["f1"]


def test_rules(file, copy):
    frame = gap(looking(1), file, choose_on=copy).summary().set_index("name")
    assert frame.loc["first name", "f1"] == frame.loc["0.0", "f1"]
    assert frame.loc["nearer name", "f1"] == pytest.approx(2 * 1 / 9), "B is nearer throughout"


def test_head_and_rule_are_chosen_elsewhere(file, tmp_path):
    other = write(tmp_path / "dev.tsv", *(passage(number, WOMEN, "she", "Ann", "Bea", "B") for number in range(3)))
    best = gap(looking(1, 3), file, choose_on=other).best
    assert best["name"] == "0.1"
    assert best["f1"] == pytest.approx(2 * 1 / 9)
    assert (best["baseline"], best["excess"]) == ("nearer name", 0.0)
    assert best["p"] == 1.0


def test_the_excess_is_that_of_the_accuracies(file, tmp_path):
    """Of the four passages with an antecedent A is right in three, the nearer name in one."""
    other = write(tmp_path / "dev.tsv", *(passage(number, WOMEN, "she", "Ann", "Bea", "B") for number in range(2)))
    best = gap(looking(1), file, choose_on=other).best
    assert (best["name"], best["baseline"]) == ("0.0", "nearer name")
    assert (best["accuracy"], best["accuracy_baseline"]) == (3 / 4, 1 / 4)
    assert best["excess"] == pytest.approx(3 / 4 - 1 / 4)


def test_a_causal_model_leaves_out_names_after_the_pronoun(file, tmp_path):
    later = write(
        tmp_path / "later.tsv",
        passage(1, WOMEN, "she", "Ann", "Bea", "A"),
        passage(2, "Ann left and then she saw Bea", "she", "Ann", "Bea", "A"),
    )
    assert gap(looking(1), later, choose_on=file).left_out == {"a name after the pronoun": 1}
    assert gap(looking(1, causal=False), later, choose_on=file).left_out == {}


def test_what_does_not_fit_into_the_context_is_left_out(file, tmp_path):
    long = write(
        tmp_path / "long.tsv",
        passage(1, "old old old " + WOMEN, "she", "Ann", "Bea", "A"),
        passage(2, "Ann saw old old old Bea and then she", "she", "Ann", "Bea", "A"),
    )
    result = gap(looking(1, n_ctx=7), long, choose_on=file)
    assert result.left_out == {"longer than the context": 1}
    assert result.summary().set_index("name").loc["0.0", "f1"] == 1.0, "of the first, what fits: Ann is token 1 again"


def test_names_of_several_tokens_are_summed(tmp_path):
    """``Ann old`` has two tokens of 0.2 each, ``Bea`` one of 0.3."""
    text = "Ann old saw Bea then she"
    path = write(tmp_path / "gap.tsv", passage(1, text, "she", "Ann old", "Bea", "A"))
    weights = torch.zeros(1, 1, 7, 7)
    weights[0, 0, 6] = torch.tensor([0.3, 0.2, 0.2, 0.0, 0.3, 0.0, 0.0])
    model = Planted(word_level(FORMS), lambda ids: weights, n_heads=1, causal=True)
    assert gap(model, path, choose_on=shutil.copy(path, tmp_path / "copy.tsv")).best["f1"] == 1.0


def test_bad_input(file, tmp_path):
    late = write(tmp_path / "late.tsv", passage(1, "she saw Ann and Bea", "she", "Ann", "Bea", "A"))
    with pytest.raises(InputError, match=r"expected passages that the model can read, got none \(1 a name after"):
        gap(looking(1), late, choose_on=file)
    with pytest.raises(InputError, match="is the file that is scored"):
        gap(looking(1), file, choose_on=str(file))
    model = looking(1)
    model.tokenizer = None
    with pytest.raises(InputError, match="expected a model with a tokenizer"):
        gap(model, file, choose_on=file)
