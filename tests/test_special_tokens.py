"""One rule for what stands around a text, whichever way it comes in."""

from dataclasses import replace

import pytest
import torch
from bridges import booted
from foreign_models import random_foreign
from kinds_of_tokenizers import byte_level, sentencepiece, wordpiece
from tiny_models import WORDS, random_model, word_tokenizer
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BertForMaskedLM, BertTokenizer, PreTrainedTokenizerFast

import interp
from interp.errors import InputError
from interp.methods.function_heads import repeated
from interp.methods.task_arguments import as_task
from interp.model.provenance import model_provenance
from interp.residual.circuits import writes
from interp.residual.logit_lens import logit_lens
from interp.special_tokens import shown_around, special_around

PIECES = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    *(each.lower() for each in WORDS),
    *(f"w{n}" for n in range(21)),
]
CLS, SEP, MASK = 2, 3, 4
SENTENCE = "the keys to the cabinet"


def with_ends(template, *, special=("<s>", "</s>"), **names):
    """Words, between what a post-processor puts around them."""
    vocabulary = {each: at for at, each in enumerate([*special, "<unk>", *SENTENCE.split(), "a"])}
    tokenizer = Tokenizer(models.WordLevel({each: at for at, each in enumerate(dict.fromkeys(vocabulary))}, "<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    ends = [(each, at) for at, each in enumerate(special)]
    tokenizer.post_processor = processors.TemplateProcessing(single=template, special_tokens=ends)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", **names)


def without_bos():
    """As of Qwen 2: an end of text, and nothing to begin with."""
    tokenizer = word_tokenizer()
    tokenizer.bos_token = None
    return tokenizer


KINDS = {
    "GPT-2: names BOS, puts nothing": (word_tokenizer, (0,), (), "<|endoftext|> text"),
    "Qwen 2: names none": (without_bos, (), (), "text"),
    "byte-level": (byte_level, (256,), (), "<bos> text"),
    "SentencePiece": (lambda: sentencepiece("▁the"), (1,), (), "<s> text"),
    "BERT": (lambda: wordpiece("the"), (1,), (2,), "[CLS] text [SEP]"),
    "Llama": (lambda: with_ends("<s> $A", bos_token="<s>", eos_token="</s>"), (0,), (), "<s> text"),
    "Llama, an end put, too": (lambda: with_ends("<s> $A </s>", bos_token="<s>"), (0,), (1,), "<s> text </s>"),
    "T5: an end alone": (lambda: with_ends("$A </s>", eos_token="</s>"), (), (1,), "text </s>"),
    "two in front": (lambda: with_ends("<s> <s> $A"), (0, 0), (), "<s> <s> text"),
    "GPT-2, puts it itself": (lambda: with_ends("<s> $A", bos_token="<s>"), (0,), (), "<s> text"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_tokenizer_itself_puts_around_a_text(kind):
    make, before, after, shown = KINDS[kind]
    tokenizer = make()
    assert special_around(tokenizer, both_sides=True) == (before, after)
    assert shown_around(tokenizer, both_sides=True) == shown


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_continued_has_no_end(kind):
    make, before, _, _ = KINDS[kind]
    assert special_around(make(), both_sides=False) == (before, ())


def test_a_tokenizer_with_a_mask_token_reads_texts_whole():
    tokenizer = wordpiece("the")
    assert special_around(tokenizer)[1] == ()
    tokenizer.add_special_tokens({"mask_token": "[MASK]"})
    assert special_around(tokenizer)[1] == (2,)


def test_a_tokenizer_of_words_that_lacks_the_letter_it_is_tried_with():
    tokenizer = Tokenizer(models.WordLevel({"<s>": 0, "zu": 1}))  # raises on any other word
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    assert special_around(PreTrainedTokenizerFast(tokenizer_object=tokenizer)) == ((0,), ())


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    """A tiny BERT in 64 bits with its tokenizer, in a folder."""
    folder = tmp_path_factory.mktemp("bert")
    (folder / "vocab.txt").write_text("\n".join(PIECES[:41]) + "\n")
    booted(random_foreign("bert"), folder, tokenizer=BertTokenizer(vocab=str(folder / "vocab.txt")))
    return folder


@pytest.fixture(scope="module", params=["", "bridge:"], ids=["ours", "bridge"])
def encoder(request, bert):
    return interp.load_model(f"{request.param}{bert}", dtype="float64")


@pytest.fixture(scope="module")
def causal():
    return random_model(tokenizer=without_bos())


class TestAnEncoder:
    def test_every_way_in_reads_the_same_tokens(self, bert):
        model = interp.load_model(bert, dtype="float64")
        (row,) = model.to_tokens(SENTENCE).tolist()
        assert row == model.tokenizer(SENTENCE)["input_ids"]
        assert (row[0], row[-1]) == (CLS, SEP)
        assert model.tokenize([SENTENCE, "the"])[0].tolist()[0] == row
        with torch.no_grad():
            assert torch.equal(model(SENTENCE), model(torch.tensor([row])))
        task = self.task(model.tokenizer)
        example = task.examples[0]
        assert list(example.prompt + example.after) == model.tokenizer(f"{SENTENCE} [MASK]")["input_ids"]

    @staticmethod
    def task(tokenizer):
        example = interp.Example(f"{SENTENCE} [MASK]", " is", " are", None, template="a", layout="a")
        pair = interp.MinimalPair(example, None, cluster="a")
        how = {"name": "masked", "description": "A masked word.", "metric": "logit_difference"}
        return interp.encode_task([pair], tokenizer=tokenizer, **how)

    def test_a_masked_task_is_measured_as_the_model_was_trained(self, encoder, bert):
        task = self.task(encoder.tokenizer)
        base = interp.ablate(encoder, task, replacement="zero").examples["base"].iloc[0]
        theirs = BertForMaskedLM.from_pretrained(bert, dtype=torch.float64).eval()
        tokens = encoder.tokenizer(f"{SENTENCE} [MASK]", return_tensors="pt")["input_ids"]
        with torch.no_grad():
            logits = theirs(tokens).logits[0, tokens[0].tolist().index(MASK)]
            cut = theirs(tokens[:, :-1]).logits[0, -1]
        right, wrong = (PIECES.index(each) for each in ("is", "are"))
        assert base == pytest.approx(float(logits[right] - logits[wrong]), rel=1e-6)
        assert abs(base - float(cut[right] - cut[wrong])) > 1e-4

    def test_engine_and_reference_agree_where_the_answer_is_not_the_last_position(self, encoder):
        found = interp.ablate(encoder, self.task(encoder.tokenizer), replacement="zero")
        assert found.provenance["audit"]["largest_difference"] < 1e-6
        assert (found.examples["status"] == "changed").all()

    def test_random_tokens_said_twice(self, encoder):
        (row,) = repeated(encoder, 1, seed=0)
        assert (row[0], row[-1], len(row)) == (CLS, SEP, 16)

    def test_a_report_says_what_stands_around(self, encoder):
        assert model_provenance(encoder)["special_tokens"] == "[CLS] text [SEP]"

    def test_texts_of_different_lengths_need_a_mask(self, bert):
        model = interp.load_model(bert, dtype="float64")
        texts = [SENTENCE, "the keys"]
        with pytest.raises(InputError, match=r"reads both sides, and so the padding.*tokens, mask = model\.tokenize"):
            model.to_tokens(texts)
        tokens, mask = model.tokenize(texts)
        with torch.no_grad():
            short = model(tokens, attention_mask=mask)[1, :4]
            assert torch.allclose(short, model("the keys")[0])


def test_a_causal_model_with_an_encoder_s_tokenizer_reads_prompts_without_an_end():
    """As GPTs in Chinese have it: what their prompts go on with, and what their means are over, is no ``[SEP]``."""
    tokenizer = wordpiece("the", "keys", "is", "are")
    tokenizer.add_special_tokens({"mask_token": "[MASK]"})
    model = random_model(tokenizer=tokenizer)
    example = interp.Example("the keys", " is", " are", None, template="a", layout="a")
    how = {"name": "own", "description": "One.", "metric": "logit_difference", "tokenizer": tokenizer}
    task = interp.encode_task([interp.MinimalPair(example, None, cluster=each) for each in "ab"], **how)
    assert task.examples[0].after == (2,)
    assert as_task(task, model, n=None, seed=0).examples[0].after == ()
    found = interp.ablate(model, task, replacement="mean").examples["effect"]
    cut = replace(task.examples[0], after=())
    units, *references = (tuple(replace(unit, item=cut) for unit in some) for some in (task.units, *task.references))
    expected = interp.ablate(model, replace(task, units=units, references=tuple(references)), replacement="mean")
    assert found.tolist() == expected.examples["effect"].tolist()


class TestATokenizerWithoutBOS:
    def test_every_way_in_reads_the_same_tokens(self, causal):
        row = causal.tokenizer.encode("The keys to", add_special_tokens=False)
        assert causal.to_tokens("The keys to").tolist() == [row]
        with torch.no_grad():
            assert torch.equal(causal("The keys to"), causal(torch.tensor([row])))
        assert causal.generate("The keys to", 1).startswith("The keys to")
        example = interp.Example("The keys to", " is", " are", None, template="a", layout="a")
        how = {"name": "own", "description": "One.", "metric": "logit_difference", "tokenizer": causal.tokenizer}
        task = interp.encode_task([interp.MinimalPair(example, None, cluster="a")], **how)
        assert (task.examples[0].prompt, task.examples[0].n_before) == (tuple(row), 0)
        assert len(interp.ablate(causal, task, replacement="zero").examples) == 6
        assert len(repeated(causal, 1, seed=0)[0]) % 2 == 0

    def test_what_needs_none_works_without(self, causal):
        assert causal.to_str_tokens("The keys", prepend_bos=False) == [" The", " keys"]
        assert causal.to_str_tokens(torch.tensor([causal.to_single_token(" keys")])) == [" keys"]
        assert len(writes(causal, 0, 1, " keys", top=3).summary())
        (lens,) = (logit_lens(causal, given).examples for given in [causal.to_tokens("The keys to")])
        assert len(lens)

    def test_a_report_says_so(self, causal):
        assert model_provenance(causal)["special_tokens"] == "text"
