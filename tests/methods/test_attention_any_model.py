"""Models of four families behind TransformerLens' bridge: attention between words is that of transformers itself.

The numbers are also computed from what ``transformers`` returns, in plain loops over words and tokens.
"""

from types import SimpleNamespace

import datasets
import numpy as np
import pandas as pd
import pytest
import torch
from banks import document, sentence
from foreign_models import random_foreign
from gap_passages import passage, write
from kinds_of_tokenizers import byte_level, sentencepiece, wordpiece
from tiny_models import random_gpt2
from transformers import BertTokenizer

from analyses.coreference_heads.gap import gap
from interp.methods.function_heads import function_heads, repeated
from interp.methods.relations.attend import attend
from interp.model.loading import load_model

SYLLABLES = ["ka", "lo", "mi", "pe"]
LONG = {"max_position_embeddings": 64}
BOUND = 1e-5


def tokenizer_of(family):
    """Words are one to three syllables, and as many tokens at least."""
    if family == "bert":
        pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *SYLLABLES, *(f"##{each}" for each in SYLLABLES)]
        return BertTokenizer(vocab={piece: number for number, piece in enumerate(pieces)})
    if family == "llama":
        return sentencepiece(*(f"\u2581{each}" for each in SYLLABLES), *SYLLABLES, "\u2581")
    return byte_level(*map(tuple, SYLLABLES), ("\u0120", "ka"))


def module_of(family, size):
    if family == "gpt2":
        return random_gpt2(vocab_size=size, n_positions=64)
    return random_foreign(family, vocab_size=size, **LONG)


@pytest.fixture(scope="module", params=["bert", "llama", "neox", "gpt2"])
def models(request, tmp_path_factory):
    """A folder as transformers writes it, behind a bridge, as a model of ours, and in transformers' own hands."""
    folder = tmp_path_factory.mktemp(request.param)
    tokenizer = tokenizer_of(request.param)
    module = module_of(request.param, len(tokenizer))
    module.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    theirs = type(module).from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    return SimpleNamespace(
        bridge=load_model(f"bridge:{folder}"),
        ours=load_model(folder),
        theirs=theirs,
        tokenizer=tokenizer,
        causal=request.param != "bert",
    )


def corpus():
    """Random words in random trees, and one entity for each document."""
    generator = np.random.default_rng(0)
    documents = []
    for number in range(4):
        sentences = []
        for length in (5, 6, 4):
            words = ["".join(generator.choice(SYLLABLES, size=generator.integers(1, 4))) for _ in range(length)]
            heads = [int(generator.integers(at)) if at else -1 for at in range(length)]
            order = generator.permutation(length)
            placed = [-1] * length
            for word, head in enumerate(heads):
                placed[order[word]] = -1 if head < 0 else int(order[head])
            sentences.append(sentence(" ".join(words), placed))
        mentions = [("e", "person", each, (at,), at) for each, at in ((0, 1), (1, 4), (2, 2))]
        documents.append(document(*sentences, name=f"d{number}", mentions=mentions))
    return documents


def between_words(models, text, spans):
    """Attention from word to word, a list of layers of heads of lists: a word's tokens are those that overlap it."""
    row = models.tokenizer(text, add_special_tokens=not models.causal, return_offsets_mapping=True)
    ids, offsets = row["input_ids"], row["offset_mapping"]
    if models.causal:
        ids, offsets = [models.tokenizer.bos_token_id, *ids], [(0, 0), *offsets]
    with torch.no_grad():
        layers = models.theirs(torch.tensor([ids]), output_attentions=True).attentions
    tokens = [
        [at for at, (start, stop) in enumerate(offsets) if any(start <= each < stop for each in range(*span))]
        for span in spans
    ]
    return [
        [
            [[sum(float(head[q, k]) for q in of for k in to) / len(of) for to in tokens] for of in tokens]
            for head in layer[0].double()
        ]
        for layer in layers
    ]


def rows_of(documents, relation):
    """Texts, the characters of their words, and which word should find which, by who looks."""
    for each in documents:
        if relation == "dep":
            for one in each.sentences:
                heads = [word.head for word in one.words]
                spans = [(word.span.start, word.span.stop) for word in one.words]
                up = [(at, {head}) for at, head in enumerate(heads) if head >= 0]
                down = [(at, {word for word, head in enumerate(heads) if head == at}) for at in set(heads) - {-1}]
                yield one.text, spans, {"dependent to head": up, "head to dependent": down}
            continue
        text, spans = "", []
        for one in each.sentences:
            begin = len(text) + bool(text)
            text = f"{text} {one.text}".strip()
            spans += [(begin + word.span.start, begin + word.span.stop) for word in one.words]
        first, second, third = 1, 5 + 4, 5 + 6 + 2
        back = [(second, {first}), (third, {first, second})]
        ahead = [(first, {second, third}), (second, {third})]
        yield text, spans, {"anaphor to antecedent": back, "antecedent to anaphor": ahead}


def by_hand(models, documents, relation):
    """Accuracy, mean attention and number of pairs by (looks, layer, head)."""
    found = {}
    for text, spans, asked in rows_of(documents, relation):
        layers = between_words(models, text, spans)
        for looks, pairs in asked.items():
            for query, related in pairs:
                others = [word for word in range(len(spans)) if word < query or (word > query and not models.causal)]
                right = related & set(others)
                if not right or len(right) == len(others):
                    continue
                for layer, heads in enumerate(layers):
                    for head, words in enumerate(heads):
                        attention = words[query]
                        choice = max(others, key=lambda word, attention=attention: attention[word])
                        hit = (choice in right, sum(attention[word] for word in right))
                        found.setdefault((looks, layer, head), []).append(hit)
    return {key: (*np.mean(hits, axis=0), len(hits)) for key, hits in found.items()}


@pytest.mark.parametrize("relation", ["dep", "coref"])
def test_words_attention_is_that_of_transformers(models, relation):
    documents = corpus()
    expected = by_hand(models, documents, relation)
    frames = [attend(each, documents, [relation]).summary() for each in (models.bridge, models.ours)]
    for frame in frames:
        found = frame[frame["n"] > 0].set_index(["looks", "layer", "head"])
        assert set(found.index) == set(expected)
        for key, (accuracy, attention, n) in expected.items():
            assert found.loc[key, "n"] == n
            assert found.loc[key, "accuracy"] == pytest.approx(accuracy)
            assert found.loc[key, "attention"] == pytest.approx(attention, abs=BOUND)
    pd.testing.assert_frame_equal(*frames, atol=BOUND, rtol=0)
    assert frames[0]["accuracy"].nunique() > 2, "heads differ"


def test_words_are_split_and_special_tokens_stand_where_they_belong(models):
    documents = corpus()
    found = attend(models.bridge, documents, ["dep"]).provenance
    words = [word.form for each in documents for one in each.sentences for word in one.words]
    assert np.mean([len(models.tokenizer.tokenize(word)) > 1 for word in words]) > 0.5
    around = "[CLS] text [SEP]" if not models.causal else f"{models.tokenizer.bos_token} text"
    assert found["special_tokens"] == around
    assert found["attention_dir"] == ("causal" if models.causal else "bidirectional")


def test_functions_of_heads(models):
    generator = np.random.default_rng(0)
    first = models.tokenizer.bos_token_id if models.causal else models.tokenizer.cls_token_id
    rows = [[first, *generator.integers(5, len(models.tokenizer), size=size)] for size in (7, 9, 7)]
    rows = [list(map(int, row)) for row in rows]
    frames = [function_heads(each, rows).summary() for each in (models.bridge, models.ours)]
    pd.testing.assert_frame_equal(*frames, atol=BOUND, rtol=0)
    before, to_first = {}, {}
    for row in rows:
        with torch.no_grad():
            layers = models.theirs(torch.tensor([row]), output_attentions=True).attentions
        for layer, heads in enumerate(layers):
            for head, pattern in enumerate(heads[0]):
                before.setdefault((layer, head), []).extend(float(pattern[at, at - 1]) for at in range(1, len(row)))
                to_first.setdefault((layer, head), []).extend(float(pattern[at, 0]) for at in range(1, len(row)))
    for function, expected in (("previous token", before), ("first-token sink", to_first)):
        found = frames[0][frames[0]["function"] == function].set_index(["layer", "head"])["score"]
        assert found.to_dict() == pytest.approx({cell: np.mean(values) for cell, values in expected.items()}, abs=BOUND)


PASSAGES = [
    passage(1, "kalo pe mipe lo she ka", "she", "kalo", "mipe", "A"),
    passage(2, "loka ka pemi mi lo he", "he", "loka", "pemi", "B"),
    passage(3, "mi kape lo pe mika she pe", "she", "kape", "mika", "A"),
    passage(4, "pelo mi kami he lo", "he", "pelo", "kami", None),
]


def test_gap(models, tmp_path):
    """The official F1 of each head: answers are A where the pronoun attends more to it than to B."""
    path, other = (write(tmp_path / f"{each}.tsv", *PASSAGES) for each in ("scored", "choosing"))
    frames = [gap(each, path, choose_on=other).summary() for each in (models.bridge, models.ours)]
    pd.testing.assert_frame_equal(*frames, atol=BOUND, rtol=0)
    hits, n_right = {}, 0
    for line in PASSAGES:
        _, text, pronoun, at, a, a_at, a_right, b, b_at, b_right, _ = line.split("\t")
        starts = sorted([(int(at), pronoun), (int(a_at), a), (int(b_at), b)])
        layers = between_words(models, text, [(start, start + len(word)) for start, word in starts])
        query, first, second = (starts.index(each) for each in ((int(at), pronoun), (int(a_at), a), (int(b_at), b)))
        n_right += "TRUE" in (a_right, b_right)
        for layer, heads in enumerate(layers):
            for head, words in enumerate(heads):
                right = a_right if words[query][first] > words[query][second] else b_right
                hits[f"{layer}.{head}"] = hits.get(f"{layer}.{head}", 0) + (right == "TRUE")
    found = frames[0].set_index("name")["f1"]
    assert {name: found[name] for name in hits} == pytest.approx(
        {name: 2 * n / (len(PASSAGES) + n_right) for name, n in hits.items()}
    )


class Protocol:
    """What the methods ask of a model and no more: no parameters, no weights, no list of points."""

    def __init__(self, model):
        self._model, self.cfg, self.tokenizer = model, model.cfg, model.tokenizer

    def run_with_hooks(self, *args, **kwargs):
        return self._model.run_with_hooks(*args, **kwargs)


def test_the_protocol_alone_is_enough(models, tmp_path):
    documents = corpus()
    path, other = (write(tmp_path / f"{each}.tsv", *PASSAGES) for each in ("scored", "choosing"))
    plain = Protocol(models.bridge)
    assert not hasattr(plain, "parameters")
    for run in (
        lambda model: attend(model, documents, ["dep", "coref"]).summary(),
        lambda model: function_heads(model, n_rows=2).summary(),
        lambda model: gap(model, path, choose_on=other).summary(),
    ):
        pd.testing.assert_frame_equal(run(plain), run(models.bridge))


def test_a_corpus_of_the_hub(models, tmp_path):
    """Rows of the hub are read as the same documents are."""
    rows = [
        {
            "idx": f"{each.id}-{number}",
            "tokens": [word.form for word in one.words],
            "head": [str(word.head + 1) for word in one.words],
            "deprel": [word.deprel for word in one.words],
        }
        for each in corpus()
        for number, one in enumerate(each.sentences)
    ]
    datasets.Dataset.from_list(rows).to_parquet(tmp_path / "train.parquet")
    found = attend(models.bridge, f"hub:{tmp_path}", ["dep"])
    expected = attend(models.bridge, corpus(), ["dep"])
    columns = ["looks", "layer", "head", "n", "accuracy", "attention"]
    pd.testing.assert_frame_equal(found.summary()[columns], expected.summary()[columns])
    assert found.provenance["n_documents"] == len(rows)


def test_an_encoder_s_own_special_tokens_survive_the_bridge(tmp_path):
    """Of a tokenizer of no class of its own, too: TransformerLens by itself would read it again, with a BOS."""
    tokenizer = wordpiece(*SYLLABLES, *(f"##{each}" for each in SYLLABLES))
    module_of("bert", len(tokenizer)).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    bridge, ours = load_model(f"bridge:{tmp_path}"), load_model(tmp_path)
    found = [attend(model, corpus(), ["dep"]) for model in (bridge, ours)]
    assert {result.provenance["special_tokens"] for result in found} == {"[CLS] text [SEP]"}
    assert np.allclose(*(result.summary()["attention"] for result in found), atol=BOUND)
    assert repeated(bridge, 2, seed=0) == repeated(ours, 2, seed=0)
