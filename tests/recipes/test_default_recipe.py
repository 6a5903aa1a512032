"""`interp train default` in small: its model can be loaded, and its seed decides it."""

import torch

from interp.model.loading import load_model
from interp.recipes.default import default_config, train_default


def test_a_seed_gives_one_model_that_loads(tmp_path):
    threads, told = torch.get_num_threads(), []
    first = train_default(tmp_path / "mine", seed=5, steps=2, progress=lambda *step: told.append(step))
    again = train_default(tmp_path / "again", seed=5, steps=2)
    other = train_default(tmp_path / "other", seed=6, steps=2)
    assert first.hash == again.hash != other.hash
    assert (first.tokens, first.seed, torch.get_num_threads()) == (2 * 16 * 64, 5, threads)
    model = load_model(tmp_path / "mine")
    assert (model.name, model.hash) == ("mine", first.hash)
    assert model.config == default_config(len(model.tokenizer))
    assert len(model.generate("The keys", max_new_tokens=3)) == 1
