"""How is a tokenizer made that gives each known word one token, and still encodes any text?

1. The text gets a leading space unless it has one, so that its first word is encoded like any other.
2. GPT-2's regular expression (Radford et al., 2019) splits it into words with their leading space,
   numbers, punctuation and white space; but ``n't`` stays with its verb.
3. A piece in the vocabulary is one token. Any other becomes its UTF-8 bytes, in GPT-2's printable
   alphabet: nothing is unknown, and decoding gives the text back.

This is byte-level BPE whose merges are looked up whole (``ignore_merges``, as in Llama 3). Spelling
the words out in binary merges would add more than half as many tokens again for word fragments
that never occur in a text.
"""

from collections.abc import Iterable

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from interp.errors import InputError

BOS = "<|endoftext|>"
POSSESSIVE = "'s"
PIECES = r"'s|'re|'ve|'m|'ll|'d| ?\p{L}+'t| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def build_tokenizer(words: Iterable[str]) -> PreTrainedTokenizerFast:
    """Make a tokenizer in which every one of `words`, with its leading space, is one token.

    The ids are: 0 for ``<|endoftext|>`` (beginning and end of a text; never added by itself), 1 to
    256 for the bytes, then ``'s`` and the words in alphabetical order. So the same words give the
    same ids, in whatever order they come.

    ``decode(encode(text)) == text`` for every text that does not begin with a space (a text
    that does comes back without the first one). Offsets include the leading space, as GPT-2's do:
    in ``The keys`` the tokens have offsets (0, 3) and (3, 8).

    Args:
        words: Words as they are written inside a sentence, without spaces.

    Returns:
        A tokenizer with 258 entries more than there are words; ``save_pretrained`` writes it and
        ``AutoTokenizer.from_pretrained`` reads it back.

    Raises:
        InputError: When a word is not one piece for the regular expression, and so could never
            be found in a text: it has a space, a hyphen or digits among its letters, or none.
    """
    pre_tokenizer = _pieces()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    known = [_one_piece(word, pre_tokenizer) for word in sorted(set(words))]
    entries = [BOS, *alphabet, POSSESSIVE, *known]
    vocabulary = {entry: index for index, entry in enumerate(entries)}
    return _finished(Tokenizer(models.BPE(vocab=vocabulary, merges=[], ignore_merges=True)))


def learn_tokenizer(texts: Iterable[str], size: int) -> PreTrainedTokenizerFast:
    """Learn a byte-level byte-pair encoding (Sennrich et al. 2016; Radford et al. 2019) of `size` entries from `texts`.

    Ids and decoding are as in ``build_tokenizer``: 0 is ``<|endoftext|>``, and every text can be encoded.

    Raises:
        InputError: The texts have too few different pieces for a vocabulary of this size.
    """
    tokenizer = _prepared(Tokenizer(models.BPE()))
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        min_frequency=2,
        special_tokens=[BOS],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    if tokenizer.get_vocab_size() != size:
        raise InputError(
            f"the text gives {tokenizer.get_vocab_size()} of the {size} entries that the vocabulary is to have; "
            "give more text, or a smaller vocabulary"
        )
    return _finished(tokenizer)


def _pieces() -> pre_tokenizers.PreTokenizer:
    split = pre_tokenizers.Split(Regex(PIECES), behavior="isolated")
    return pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def _prepared(tokenizer: Tokenizer) -> Tokenizer:
    """`tokenizer` with what comes before and after its vocabulary."""
    tokenizer.normalizer = normalizers.Sequence(
        # A space is put before every text, and taken away again where that makes two.
        [normalizers.Prepend(" "), normalizers.Replace(Regex(r"\A  "), " ")]
    )
    tokenizer.pre_tokenizer = _pieces()
    tokenizer.decoder = decoders.Sequence([decoders.ByteLevel(), decoders.Strip(" ", 1, 0)])
    return tokenizer


def _finished(tokenizer: Tokenizer) -> PreTrainedTokenizerFast:
    return PreTrainedTokenizerFast(
        tokenizer_object=_prepared(tokenizer),
        bos_token=BOS,
        eos_token=BOS,
        clean_up_tokenization_spaces=False,
    )


def _one_piece(word: str, pre_tokenizer: pre_tokenizers.PreTokenizer) -> str:
    """The vocabulary entry for `word` with its leading space."""
    pieces = [piece for piece, _ in pre_tokenizer.pre_tokenize_str(f" {word}")]
    if not word.strip() or len(pieces) != 1:
        raise InputError(
            f"no token can be made for the word {word!r}: expected one piece of text, "
            f"got {pieces}; give its parts as words of their own"
        )
    return pieces[0]
