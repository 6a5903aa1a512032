"""Tokenizers with vocabularies as large as real ones: two real ones, and of each other kind one trained on books."""

import lzma
import tempfile
from functools import cache
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import GPT2TokenizerFast, LlamaTokenizerFast, PreTrainedTokenizerFast

KINDS = ("gpt2", "smollm2", "llama3", "qwen", "sentencepiece")
CHARACTERS = 20_000_000
"""Of the books, read for training: all kinds take 30 seconds."""
DIGITS = {"llama3": r"\p{N}{1,3}", "qwen": r"\p{N}"}
"""Of a number, what is one piece: the two differ in this, and in the normal form and the token in front."""
PIECES = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|{digits}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
"""What Llama 3 (tiktoken) and Qwen split a text by, before any merge."""


@cache
def tokenizer_like(kind, data_dir):
    """One of ``KINDS``; trained once a session."""
    if kind == "gpt2":
        folder = data_dir / "tokenizers" / "gpt2"
        return GPT2TokenizerFast.from_pretrained(folder)
    if kind == "smollm2":
        return PreTrainedTokenizerFast.from_pretrained(data_dir / "tokenizers" / "smollm2")
    return _sentencepiece(data_dir) if kind == "sentencepiece" else _byte_level(kind, data_dir)


@cache
def _paragraphs(data_dir):
    with lzma.open(data_dir / "books" / "books.txt.xz", "rt", encoding="utf-8") as file:
        return [each for each in file.read(CHARACTERS).split("\n\n") if each.strip()]


def _byte_level(kind, data_dir):
    """64,000 tokens: Llama 3 and Qwen have twice as many, of many languages."""
    tokenizer = Tokenizer(models.BPE())
    if kind == "qwen":
        tokenizer.normalizer = normalizers.NFC()
    pieces = Regex(PIECES.format(digits=DIGITS[kind]))
    bytewise = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(pieces, "isolated"), bytewise])
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<|begin_of_text|>", "<|endoftext|>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    how = {"vocab_size": 64_000, "initial_alphabet": alphabet, "special_tokens": special, "show_progress": False}
    tokenizer.train_from_iterator(_paragraphs(data_dir), trainers.BpeTrainer(**how))
    front = {"bos_token": special[0]} if kind == "llama3" else {}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=special[1], **front)


def _sentencepiece(data_dir):
    """As Llama 2's: 32,000 tokens, ``▁`` for a space, bytes where a character is unknown."""
    import sentencepiece

    lines = (line for paragraph in _paragraphs(data_dir) for line in paragraph.split("\n"))
    with tempfile.TemporaryDirectory() as folder:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=lines,
            model_prefix=str(Path(folder) / "tokenizer"),
            vocab_size=32_000,
            model_type="bpe",
            byte_fallback=True,
            split_digits=True,
            normalization_rule_name="identity",
            remove_extra_whitespaces=False,
            minloglevel=2,
        )
        return LlamaTokenizerFast.from_pretrained(folder)
