"""What a refusal advises is done, in the state that was refused; then it works."""

import pytest
import torch
from foreign_models import random_foreign
from kinds_of_tokenizers import wordpiece
from random_tasks import random_task
from refusals import change_config, refused
from safetensors.torch import load_file, save_file
from tiny_models import random_gpt2
from transformers import (
    BertForPreTraining,
    GPT2ForSequenceClassification,
    LlamaForCausalLM,
    LlamaForSequenceClassification,
    MarianMTModel,
)

import interp
from interp.errors import InputError, LoadError
from interp.methods.behaviour import behaviour
from interp.methods.replacements_compared import compare_replacements
from interp.model.loading import load_model
from interp.model.loading.bridge import why_no_head

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
    with pytest.warns(RuntimeWarning, match="no head that predicts tokens .nothing was saved for .*: attend"):
        bridge = load_model(f"bridge:{folder}", dtype="float64")
    assert bridge(torch.tensor([[4, 5]])).isnan().all()
    found = interp.attend(bridge, treebank, ["nsubj"])
    expected = interp.attend(load_model(whole, dtype="float64", tokenizer=tokenizer), treebank, ["nsubj"])
    got, wanted = (each.summary()["attention"].dropna().to_numpy() for each in (found, expected))
    assert len(got) > 0
    assert got == pytest.approx(wanted, abs=1e-5)
    for measure in (interp.ablate, interp.patch, behaviour, interp.heads, compare_replacements):
        with pytest.raises(InputError, match=r"no head that predicts tokens .*, or use interp\.attend"):
            measure(bridge, random_task(d_vocab=len(tokenizer)))
    with pytest.raises(LoadError, match="no head that predicts tokens"):
        load_model(bridge)


@pytest.mark.parametrize("kind", [GPT2ForSequenceClassification, LlamaForSequenceClassification])
def test_a_head_that_classifies(tmp_path, kind):
    """The embedding could stand in for the head that predicts tokens; nobody has trained it for that."""
    tokenizer = wordpiece("the")
    size = {"hidden_size": 12, "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": len(tokenizer)}
    kind(kind.config_class(**size, tie_word_embeddings=True, pad_token_id=0)).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    refused(tmp_path, "tensor 'score.weight' is of another head: .* takes it as 'bridge:FOLDER'")
    with pytest.warns(RuntimeWarning, match="it was saved by .*ForSequenceClassification"):
        bridge = load_model(f"bridge:{tmp_path}")
    with pytest.raises(InputError, match=r"has no head that predicts tokens \(it was saved by "):
        interp.ablate(bridge, random_task(d_vocab=len(tokenizer)))
    with pytest.raises(LoadError, match=r"has no head that predicts tokens \(it was saved by "):
        load_model(bridge)


@pytest.mark.parametrize("kind", [LlamaForCausalLM, MarianMTModel, BertForPreTraining])
def test_what_is_not_saved_because_it_need_not_be(tmp_path, recwarn, kind):
    """Tied heads; of Marian, positions that are computed; of BERT, a second head that nothing here asks for."""
    tokenizer = wordpiece("the")
    size = {"hidden_size": 12, "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": len(tokenizer)}
    ids = {"pad_token_id": 0, "decoder_start_token_id": 0}
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2}
    config = kind.config_class(
        **size, d_model=12, encoder_layers=1, decoder_layers=1, **heads, tie_word_embeddings=True, **ids
    )
    config.architectures = [kind.__name__, "LlamaForSequenceClassification"]
    kind(config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    bridge = load_model(f"bridge:{tmp_path}")
    assert why_no_head(bridge) is None
    assert not [each for each in recwarn if "bridge:" in str(each.message)]
    assert all(value.isfinite().all() for value in bridge.original_model.state_dict().values())


def test_weights_under_other_names_are_not_read_at_all(tmp_path):
    tokenizer = wordpiece("the")
    tokenizer.save_pretrained(tmp_path)
    random_foreign("llama", vocab_size=len(tokenizer)).save_pretrained(tmp_path)
    state = load_file(tmp_path / "model.safetensors")
    save_file({f"x.{name}": each for name, each in state.items()}, tmp_path / "model.safetensors", {"format": "pt"})
    with pytest.raises(LoadError, match=r"tensor 'model\.embed_tokens\.weight' is missing, one of \d\d"):
        load_model(f"bridge:{tmp_path}")


@pytest.mark.parametrize("name", ["model.embed_tokens.weight", "model.norm.weight"])
def test_a_tensor_that_everything_depends_on(tmp_path, name):
    tokenizer = wordpiece("the")
    tokenizer.save_pretrained(tmp_path)
    random_foreign("llama", vocab_size=len(tokenizer), tie_word_embeddings=False).save_pretrained(tmp_path)
    state = load_file(tmp_path / "model.safetensors")
    save_file({**state, name: state[name] * torch.nan}, tmp_path / "model.safetensors", {"format": "pt"})
    with pytest.raises(LoadError, match=f"tensor '{name}' has values that are NaN or infinite"):
        load_model(f"bridge:{tmp_path}")
    del state[name]
    save_file(state, tmp_path / "model.safetensors", {"format": "pt"})
    with pytest.raises(LoadError, match=f"tensor '{name}' is missing, one of 1;"):
        load_model(f"bridge:{tmp_path}")


@pytest.mark.filterwarnings("ignore:bridge")
def test_a_body_in_pieces_is_no_body(tmp_path):
    """transformers would draw what is missing at random, where the head is whole as where it is not."""
    tokenizer = wordpiece("the")
    tokenizer.save_pretrained(tmp_path)
    whole = random_foreign("llama", vocab_size=len(tokenizer), tie_word_embeddings=False)
    for saved_part in (whole, whole.model):
        saved_part.save_pretrained(tmp_path)
        state = load_file(tmp_path / "model.safetensors")
        (name,) = [each for each in state if each.endswith("layers.1.mlp.up_proj.weight")]
        del state[name]
        save_file(state, tmp_path / "model.safetensors", metadata={"format": "pt"})
        with pytest.raises(LoadError, match=r"layers\.1\.mlp\.up_proj\.weight' is missing, one of [12];"):
            load_model(f"bridge:{tmp_path}")


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
