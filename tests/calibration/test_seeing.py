"""Models of which one head alone can find words by their class: the others are blind however long they are trained."""

import pytest
import torch

from interp.calibration import controls as trained
from interp.calibration.controls import SEEING, seeing_head, seeing_model
from interp.calibration.language import load_crossed, vocabulary
from interp.methods.word_exchange import SAME_VALUE, against_other_words


@pytest.mark.parametrize(("grouped", "is_crossed"), [(False, False), (True, False), (False, True)])
def test_only_the_head_that_sees_tells_classes_of_words_apart(grouped, is_crossed, monkeypatch):
    monkeypatch.setattr(trained, "SEEING_STEPS", 30)
    model, sees = seeing_model(5, is_crossed=is_crossed, grouped=grouped), seeing_head(5)
    kinds = [word.kind for word in vocabulary()]
    tokens = torch.tensor([[0, *([kinds.index("filler")] * 6), kinds.index("verb")]] * 2)
    tokens[1, 3] = kinds.index("noun")
    with torch.no_grad():
        one, other = model.run_with_cache(tokens)[1]["blocks.0.attn.hook_pattern"]
    differ = (one[:, -1] - other[:, -1]).abs().amax(dim=-1)
    blind = [head for head in range(SEEING.n_heads) if head != sees]
    assert differ[blind].max() < 1e-5
    assert differ[sees] > 1e-3


def test_all_words_and_places_are_as_long_as_each_other_and_apart(monkeypatch):
    monkeypatch.setattr(trained, "SEEING_STEPS", 0)
    model = seeing_model(0, is_crossed=False, grouped=False)
    for embedded in (model.embed.W_E, model.pos_embed.W_pos):
        lengths = embedded.norm(dim=-1)
        torch.testing.assert_close(lengths, torch.ones_like(lengths))
    assert (model.embed.W_E @ model.pos_embed.W_pos.T).abs().max() < 1e-5


def test_a_wrong_tag_has_no_word_counterfactual_that_decides_the_feature():
    right, wrong = (load_crossed("agreement", tagged, n=20, seed=0) for tagged in ("agreement", "coreference"))
    assert len(against_other_words(right).units) == 20
    assert not against_other_words(wrong).units
    assert against_other_words(wrong).dropped[SAME_VALUE] == 20
    for unit in wrong.units:
        item, other = unit.item, unit.item.word_counterfactual
        differs = [at for at, (one, two) in enumerate(zip(item.prompt, other.prompt, strict=True)) if one != two]
        assert differs == list(item.related)
        assert other.right != item.right
