"""Documents of plain words, and a tokenizer that has a token for each of them."""

from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from interp.tasks.example import Span
from interp.tasks.treebank import ROOT, Document, Link, Mention, Sentence, Word


def word_level(words, *, both_sides=False):
    """A token for every word; with `both_sides`, ``[CLS]`` and ``[SEP]`` around a text, else BOS is lent by them."""
    vocabulary = {each: at for at, each in enumerate(dict.fromkeys(["[CLS]", "[SEP]", "[UNK]", *words]))}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    if both_sides:
        ends = [("[CLS]", 0), ("[SEP]", 1)]
        tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="[UNK]", bos_token="[CLS]", cls_token="[CLS]", sep_token="[SEP]"
    )


def sentence(text, heads=None, labels=None, *, upos=None, links=(), name="s"):
    """A sentence of words between spaces."""
    forms, at, words = text.split(" "), 0, []
    heads = heads or [ROOT] * len(forms)
    labels = labels or ["root" if head == ROOT else "dep" for head in heads]
    for number, form in enumerate(forms):
        tag = (upos or ["X"] * len(forms))[number]
        words.append(Word(form, Span(at, at + len(form)), upos=tag, head=heads[number], deprel=labels[number]))
        at += len(form) + 1
    return Sentence(name, text, tuple(words), tuple(Link(*each) for each in links))


def document(*sentences, name="d", mentions=()):
    """Mentions are (entity, type, sentence, words, head)."""
    return Document(name, tuple(sentences), tuple(Mention(*each) for each in mentions))
