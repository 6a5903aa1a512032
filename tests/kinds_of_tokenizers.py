"""Small tokenizers of every kind that there is: byte-level, WordPiece, SentencePiece."""

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast


def wordpiece(*pieces):
    vocabulary = {each: at for at, each in enumerate(["[UNK]", "[CLS]", "[SEP]", *pieces])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ends = [("[CLS]", 1), ("[SEP]", 2)]
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]")


def sentencepiece(*pieces):
    scored = [("<unk>", -10.0), ("<s>", -10.0), *((each, -len(each) * 0.1) for each in pieces)]
    tokenizer = Tokenizer(models.Unigram(scored, unk_id=0))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", unk_token="<unk>")


def byte_level(*merges):
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    joined = [left + right for left, right in merges]
    vocabulary = {each: at for at, each in enumerate([*alphabet, *joined, "<bos>"])}
    tokenizer = Tokenizer(models.BPE(vocabulary, list(merges)))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<bos>")
