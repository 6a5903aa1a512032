"""The dense n-gram model against nltk's own scores, by hand, and at its bottom."""

import itertools
import math
from fractions import Fraction

import nltk.lm
import numpy as np
import pytest
import torch
from language_models import remembering_rows, small_ngram
from safetensors.torch import load_file, save_file

from forerunners.ngram import NGramConfig, fit_ngram, fitted_by_nltk, ngrams
from forerunners.saved import load_forerunner, save_forerunner
from interp.errors import ConfigError, HookError, InputError, LoadError

BOS, D_VOCAB = 0, 7


def random_rows(n=30, seed=0):
    """Rows of several documents; word 6 never occurs."""
    rng = np.random.default_rng(seed)
    return [[BOS, *rng.integers(0, D_VOCAB - 1, size=9).tolist()] for _ in range(n)]


def distribution(model, context):
    """Of the next word behind `context`, which holds no BOS but in front."""
    return model(torch.tensor(context))[0, -1].exp()


def unigrams_of(nltks):
    return torch.tensor([nltks.unmasked_score(word) for word in range(D_VOCAB)], dtype=torch.float64)


@pytest.mark.parametrize("order", [2, 3, 4])
@pytest.mark.parametrize("discount", [0.1, 0.75])
class TestAgainstNltk:
    def test_all_but_the_bottom_is_nltks(self, order, discount):
        """With nltk's unigrams in place of ours, every score, of seen and of unseen contexts."""
        config = NGramConfig(order, D_VOCAB, discount=discount)
        model, nltks = fit_ngram(random_rows(), config), fitted_by_nltk(random_rows(), config)
        with torch.no_grad():
            model.unigram.copy_(unigrams_of(nltks))
        seen = 0
        for words in itertools.product(range(1, D_VOCAB), repeat=order - 1):
            seen += bool(nltks.counts[words])
            got = distribution(model, [BOS, *words])
            expected = [nltks.unmasked_score(word, words) for word in range(D_VOCAB)]
            assert got.tolist() == pytest.approx(expected, abs=1e-12)
        assert 0 < seen < (D_VOCAB - 1) ** (order - 1)

    def test_the_beginning_of_a_document_is_a_context_of_bos(self, order, discount):
        config = NGramConfig(order, D_VOCAB, discount=discount)
        model, nltks = fit_ngram(random_rows(), config), fitted_by_nltk(random_rows(), config)
        with torch.no_grad():
            model.unigram.copy_(unigrams_of(nltks))
        for row, begun in (([BOS], [BOS]), ([3, BOS], [BOS]), ([3, 2, BOS, 4], [BOS, 4]), ([4], [BOS, 4])):
            context = tuple([BOS] * order + begun)[-(order - 1) :]
            expected = [nltks.unmasked_score(word, context) for word in range(D_VOCAB)]
            assert distribution(model, row).tolist() == pytest.approx(expected, abs=1e-12)

    def test_nltk_by_its_front_door(self, order, discount):
        """Fitted and asked as nltk's own documentation says: on strings, with a vocabulary."""
        config = NGramConfig(order, D_VOCAB, discount=discount)
        front = nltk.lm.KneserNeyInterpolated(order, discount=discount)
        text = [[tuple(map(str, ngram)) for ngram in ngrams(row, config)] for row in random_rows()]
        front.fit(text, vocabulary_text=[str(word) for word in range(D_VOCAB)])
        ours = fitted_by_nltk(random_rows(), config)
        for words in itertools.product(range(1, 4), repeat=order):
            expected = front.score(str(words[-1]), tuple(map(str, words[:-1])))
            assert ours.unmasked_score(words[-1], words[:-1]) == pytest.approx(expected, abs=1e-15)

    def test_it_is_a_distribution_and_no_word_is_impossible(self, order, discount):
        model = fit_ngram(random_rows(), NGramConfig(order, D_VOCAB, discount=discount))
        p = model(torch.tensor(random_rows(n=20, seed=5))).exp()
        assert torch.allclose(p.sum(-1), torch.ones(20, 10, dtype=torch.float64), atol=1e-12)
        assert p.min() > 0
        nltks = fitted_by_nltk(random_rows(), model.config)
        assert nltks.unmasked_score(6, (1,) * (order - 1)) == 0


class TestByHand:
    """Rows ``0 1 2`` and ``0 1 3`` and ``0 2``, order 2, discount 1/2, four words.

    Different words in front: of 1, one (0); of 2, two (1 and 0); of 3, one (1); together 4.
    Unigrams: ``p(1) = p(3) = (1 - d) / 4 + 3 d / 4 / 4``, ``p(2) = (2 - d) / 4 + ...``, ``p(0) = 3 d / 4 / 4``.
    """

    ROWS = ((0, 1, 2), (0, 1, 3), (0, 2))
    D = Fraction(1, 2)

    def model(self):
        return fit_ngram(self.ROWS, NGramConfig(2, 4, discount=0.5))

    def unigrams(self):
        below = 3 * self.D / 4 / 4
        return [below, (1 - self.D) / 4 + below, (2 - self.D) / 4 + below, (1 - self.D) / 4 + below]

    def test_the_unigrams(self):
        assert sum(self.unigrams()) == 1
        assert self.model().unigram.tolist() == pytest.approx(list(map(float, self.unigrams())), abs=1e-15)

    def test_the_bigrams(self):
        p = self.unigrams()
        behind_bos = [2 * self.D / 3 * each for each in p]  # 1 twice, 2 once
        behind_bos[1] += (2 - self.D) / 3
        behind_bos[2] += (1 - self.D) / 3
        got = distribution(self.model(), [0])
        assert got.tolist() == pytest.approx(list(map(float, behind_bos)), abs=1e-15)

    def test_an_unseen_context_has_the_unigrams(self):
        assert torch.allclose(distribution(self.model(), [0, 3]), self.model().unigram, atol=1e-15)

    def test_the_loss_is_in_nats(self):
        loss = self.model()(torch.tensor([0, 2]), return_type="loss")
        p = self.unigrams()[2] * 2 * self.D / 3 + (1 - self.D) / 3
        assert float(loss) == pytest.approx(-math.log(p))


def test_it_learns_a_toy_language():
    rows = list(itertools.islice(remembering_rows(), 10))
    loss = float(small_ngram(rows * 20)(torch.tensor(rows), return_type="loss"))
    # The first word is any of ten. Behind one pair of five it is the first word again, and only a longer memory knows.
    assert loss == pytest.approx((math.log(10) + 4 * math.log(5 / 4) + math.log(5)) / 7, abs=0.02)


def test_ngrams_of_a_row():
    grams = list(ngrams([0, 5, 0, 6], NGramConfig(3, 7)))
    assert grams == [(0, 0, 5), (0, 5), (5,), (0, 5, 0), (5, 0), (0,), (0, 0, 6), (0, 6), (6,)]


def test_another_bos():
    shifted = [[(each + 3) % D_VOCAB for each in row] for row in random_rows()]
    model, moved = (
        fit_ngram(rows, NGramConfig(3, D_VOCAB, bos=bos)) for rows, bos in ((random_rows(), 0), (shifted, 3))
    )
    a, b = model(torch.tensor(random_rows(5, seed=1))), moved((torch.tensor(random_rows(5, seed=1)) + 3) % D_VOCAB)
    assert torch.allclose(a, b.roll(-3, dims=-1), atol=1e-12)


def test_a_saved_model_comes_back(tmp_path):
    model = fit_ngram(random_rows(), NGramConfig(3, D_VOCAB))
    again = load_forerunner(save_forerunner(model, tmp_path))
    tokens = torch.tensor(random_rows(5, seed=1))
    assert torch.equal(again(tokens), model(tokens))
    assert (again.config, again.hash) == (model.config, model.hash)
    config = tmp_path / "config.json"
    config.write_text(config.read_text().replace('"order": 3', '"order": 4'))
    with pytest.raises(LoadError, match=r"tensor 'orders.2.contexts' is missing"):
        load_forerunner(tmp_path)


@pytest.mark.parametrize(
    ("name", "change", "match"),
    [
        ("unigram", lambda kept: kept[1:], r"tensor 'unigram': expected shape \(7,\), got \(6,\)"),
        ("unigram", lambda kept: kept * torch.nan, "tensor 'unigram': 7 of its 7 values are NaN or infinite"),
        ("orders.0.alpha", lambda kept: kept * torch.nan, "the table of order 2 is none of 7 words"),
        ("orders.1.gamma", lambda kept: kept + 1, "the table of order 3 is none of 7 words"),
        ("orders.1.words", lambda kept: kept + 7, "the table of order 3 is none of 7 words"),
        ("orders.1.words", lambda kept: kept.float(), "the table of order 3 is none of 7 words"),
        ("orders.0.contexts", lambda kept: kept.flip(0), "the table of order 2 is none of 7 words"),
        ("orders.0.starts", lambda kept: kept + 1, "the table of order 2 is none of 7 words"),
        ("orders.0.starts", lambda kept: kept[1:], "the table of order 2 is none of 7 words"),
    ],
)
def test_damaged_tables_are_refused(name, change, match, tmp_path):
    save_forerunner(fit_ngram(random_rows(), NGramConfig(3, D_VOCAB)), tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    tensors[name] = change(tensors[name]).contiguous()
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(LoadError, match=match):
        load_forerunner(tmp_path)


class TestRefusals:
    @pytest.mark.parametrize(
        ("fields", "match"),
        [
            ({"order": 1}, "order: expected at least 2"),
            ({"bos": 7}, "bos: expected a token id from 0 to 6, got 7"),
            ({"discount": 0.0}, "discount: expected a number above 0 and at most 1, got 0.0"),
            ({"d_vocab": 50_257, "order": 5}, "n-grams of 5 words out of 50257 cannot be numbered in 64 bits"),
        ],
    )
    def test_no_model(self, fields, match):
        with pytest.raises(ConfigError, match=match):
            NGramConfig(**{"order": 2, "d_vocab": D_VOCAB} | fields)

    @pytest.mark.parametrize(
        ("rows", "match"),
        [
            ([[1, 2]], r"expected each to begin with BOS \(0\), got \[1, 2\]"),
            ([[]], r"expected each to begin with BOS \(0\), got \[\]"),
            ([[0, 7]], "expected ids from 0 to 6, got 0 to 7"),
            ([], "got nothing to count"),
            ([[0]], "got nothing to count"),
        ],
    )
    def test_no_rows(self, rows, match):
        with pytest.raises(InputError, match=match):
            fit_ngram(rows, NGramConfig(2, D_VOCAB))

    def test_more_than_nltk_counts(self, monkeypatch):
        monkeypatch.setattr("nltk.lm.counter.MAX_NGRAMS", 10)
        with pytest.raises(InputError, match=r"nltk counts no more n-grams .*; take fewer rows, or a lower order"):
            fit_ngram(random_rows(), NGramConfig(2, D_VOCAB))

    def test_text_and_hooks(self):
        model = fit_ngram(random_rows(), NGramConfig(2, D_VOCAB))
        with pytest.raises(InputError, match="NGram takes token ids, got 'The keys'; encode the text"):
            model("The keys")
        with pytest.raises(HookError, match="no hook point is called 'hook_embed'"):
            model.run_with_hooks(torch.tensor([0]), fwd_hooks=[("hook_embed", print)])
