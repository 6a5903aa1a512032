"""What a refusal advises is done, in the state that was refused; then it works."""

import pytest
import torch
from foreign_models import random_foreign
from kinds_of_tokenizers import wordpiece
from refusals import change_config, refused
from safetensors.torch import load_file, save_file
from tiny_models import random_gpt2

import interp
from interp.model.loading import load_model

ROWS = (("the", "DET", 2, "det"), ("cat", "NOUN", 3, "nsubj"), ("sat", "VERB", 0, "root"))
WORDS = "".join(
    f"{number}\t{word}\t{word}\t{tag}\t_\t_\t{head}\t{relation}\t_\t_\n"
    for number, (word, tag, head, relation) in enumerate(ROWS, 1)
)


@pytest.fixture
def treebank(tmp_path):
    path = tmp_path / "sat.conllu"
    path.write_text("".join(f"# newdoc id = {number}\n# sent_id = {number}\n{WORDS}\n" for number in range(4)))
    return path


@pytest.mark.parametrize("family", ["bert", "llama", "neox"])
def test_the_attention_of_a_body_without_a_head(tmp_path, treebank, family):
    """It is that of the whole model, which has the same body."""
    tokenizer = wordpiece("the", "cat", "sat")
    tokenizer.bos_token = None if family == "bert" else "[CLS]"
    whole = random_foreign(family, vocab_size=len(tokenizer), tie_word_embeddings=False)
    folder = tmp_path / "body"
    getattr(whole, whole.base_model_prefix).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    refused(folder, "so it has no logits; .*; interp attend, which reads no logits, takes it as 'bridge:FOLDER'")
    found = interp.attend(load_model(f"bridge:{folder}", dtype="float64"), treebank, ["nsubj"])
    expected = interp.attend(load_model(whole, dtype="float64", tokenizer=tokenizer), treebank, ["nsubj"])
    got, wanted = (each.frame["attention"].dropna().to_numpy() for each in (found, expected))
    assert len(got) > 0
    assert got == pytest.approx(wanted, abs=1e-5)


def saved(folder, state):
    torch.save(state, folder / "pytorch_model.bin")


@pytest.mark.parametrize(
    ("spoil", "message", "mend"),
    [
        (lambda state, name: state[name][:1].expand(10**4, -1), r"save each with \.contiguous", None),
        (lambda state, name: state[name].to_sparse(), r"save it dense, with \.to_dense", torch.Tensor.to_dense),
    ],
)
def test_tensors_of_another_kind(gpt2, spoil, message, mend):
    state = load_file(gpt2 / "model.safetensors")
    expected = load_model(gpt2).hash
    (gpt2 / "model.safetensors").unlink()
    name = "transformer.wte.weight"
    spoilt = spoil(state, name)
    saved(gpt2, state | {name: spoilt})
    refused(gpt2, message)
    if mend is None:  # its shape is another one, and that is what is said then
        saved(gpt2, state | {name: spoilt.contiguous()})
        refused(gpt2, r"wte.weight': expected shape \(40, 12\), got \(10000, 12\)")
    else:
        saved(gpt2, state | {name: mend(spoilt)})
        assert load_model(gpt2).hash == expected


def test_weights_among_other_things(gpt2):
    state = load_file(gpt2 / "model.safetensors")
    expected = load_model(gpt2).hash
    (gpt2 / "model.safetensors").unlink()
    saved(gpt2, {"model": state, "step": 3})
    refused(gpt2, "'model' is dict; if it holds the weights, save it alone")
    saved(gpt2, torch.load(gpt2 / "pytorch_model.bin")["model"])
    assert load_model(gpt2).hash == expected


def test_more_than_tensors_is_saved_as_safetensors(gpt2):
    state = load_file(gpt2 / "model.safetensors")
    (gpt2 / "model.safetensors").unlink()
    saved(gpt2, {**state, "made by": pytest.raises})
    refused(gpt2, "could run code when opened, so it is refused; save the weights as safetensors")
    save_file(state, gpt2 / "model.safetensors")
    assert load_model(gpt2).hash == load_model(random_gpt2(tie_word_embeddings=False)).hash


def test_embeddings_that_are_said_to_be_one(gpt2):
    expected = load_model(gpt2).hash
    change_config(gpt2, tie_word_embeddings=True)
    refused(gpt2, "set tie_word_embeddings to false in the config")
    change_config(gpt2, tie_word_embeddings=False)
    assert load_model(gpt2).hash == expected
