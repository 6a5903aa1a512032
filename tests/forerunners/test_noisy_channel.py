"""The n best translations, what they are scored by, and what a language model makes of them."""

import itertools
import math

import pytest
import torch

from forerunners.language_model import Forerunner, ForerunnerConfig
from forerunners.ngram import NGramConfig, fit_ngram
from forerunners.noisy_channel import Proposals, propose, sentence_scores
from forerunners.seq2seq import Translator, TranslatorConfig
from forerunners.toy_french import SPECIAL, SentencePair, sentence_pairs
from forerunners.translation import (
    BOS_ID,
    ENGLISH_TO_FRENCH,
    EOS_ID,
    Languages,
    n_best,
    source_ids,
    target_ids,
    train_translator,
    translate,
    translation_scores,
)
from interp.errors import InputError
from interp.model.training import TrainingConfig

TINY = Languages((*SPECIAL, "a", "b"), (*SPECIAL, "x", "y"))
PAIRS = sentence_pairs(20, seed=0)


def translator(languages=ENGLISH_TO_FRENCH, seed=0):
    config = TranslatorConfig(len(languages.source), len(languages.target), 8, "dot", "luong")
    return Translator(config, seed=seed).requires_grad_(False)


class TestNBest:
    def test_a_wide_beam_finds_the_most_probable_of_all_sentences(self):
        """Two words, up to three a sentence: all that there are can be scored one by one."""
        model, source = translator(TINY), ("a", "b", "a")
        with torch.no_grad():
            model.unembed.b_U[:2] = -100.0  # never padding, never a second beginning
        found = n_best(model, [source], 60, most=3, languages=TINY)[0]
        every = [each for n in (1, 2, 3) for each in itertools.product("xy", repeat=n)]
        scores = translation_scores(model, [SentencePair(source, each, ()) for each in every], languages=TINY)
        expected = [every[at] for at in scores.argsort(descending=True)]
        assert [each for each in found if each and set(each) <= {"x", "y"}] == expected

    def test_one_beam_is_the_greedy_translation(self):
        model = translator()
        with torch.no_grad():
            model.unembed.b_U[EOS_ID] = 1.5
        sources = [pair.source for pair in PAIRS]
        greedy = translate(model, sources, most=12)
        ended = [(found, each) for found, each in zip(n_best(model, sources, 1, most=12), greedy, strict=True) if found]
        assert ended
        assert all(found == [each] for found, each in ended)

    def test_the_most_probable_comes_first_and_none_twice(self):
        model = translator()
        with torch.no_grad():
            model.unembed.b_U[EOS_ID] = 1.5
        for pair, found in zip(PAIRS[:3], n_best(model, [pair.source for pair in PAIRS[:3]], 5, most=6), strict=True):
            proposed = [each for each in found if each]
            assert len(proposed) > 1
            assert len(set(found)) == len(found) <= 5
            scores = translation_scores(model, [SentencePair(pair.source, each, ()) for each in proposed])
            assert scores.tolist() == sorted(scores.tolist(), reverse=True)


def test_the_score_of_a_translation_is_the_sum_over_its_words_and_its_end():
    model = translator()
    logits = model(source_ids(PAIRS[:1]), source_ids(PAIRS[:1]) != 0, target_ids(PAIRS[:1])[:, :-1]).log_softmax(-1)
    expected = sum(float(logits[0, at, word]) for at, word in enumerate(target_ids(PAIRS[:1])[0, 1:]))
    alone, *_ = translation_scores(model, PAIRS[:1])
    among, *_ = translation_scores(model, PAIRS)  # padded
    assert float(alone) == pytest.approx(expected, rel=1e-5)
    assert float(among) == pytest.approx(expected, rel=1e-5)


def test_the_score_of_a_sentence_is_the_language_models():
    words = TINY.target
    rows = [[BOS_ID, 3, 4, EOS_ID], [BOS_ID, 3, EOS_ID]]
    model = fit_ngram(rows, NGramConfig(2, len(words), bos=BOS_ID))
    log_p = model(torch.tensor([BOS_ID, 3]))[0]
    expected = float(log_p[0, 3] + log_p[1, EOS_ID])
    short, long = sentence_scores(model, [("x",), ("x", "y", "y")], words).tolist()
    assert short == pytest.approx(expected)
    assert long < short


def test_the_best_by_hand():
    """``p(f|e)`` prefers the first by 1 nat, ``p(e)`` the second by 2: a weight of a half makes them equal."""
    said = Proposals(
        [("a",), ("b",)], torch.tensor([-1.0, -2.0]), torch.tensor([-3.0, -1.0]), {"m": torch.tensor([-4.0, -2.0])}
    )
    assert said.best("m", 0.0) == said.best("m", 0.49) == ("a",)
    assert said.best("m", 0.51) == said.best("m", 5.0) == ("b",)
    assert said.best("m", 0.0, times="direct") == ("b",)
    nothing = torch.zeros(0)
    assert Proposals([], nothing, nothing, {"m": nothing}).best("m", 1.0) == ()


class Uniform(Forerunner):
    """Every word is as probable as any other."""

    def predict(self, tokens, mask):
        return torch.zeros(*tokens.shape, len(TINY.target)) + 0 * self.nothing


def uniform():
    model = Uniform(ForerunnerConfig.__new__(ForerunnerConfig), None, "uniform")
    model.config.d_vocab = len(TINY.target)
    model.nothing = torch.nn.Parameter(torch.zeros(()))
    model.setup()
    return model


def test_proposals_have_the_scores_of_their_own_models():
    direct, channel = translator(TINY), translator(TINY.reversed, seed=1)
    with torch.no_grad():
        direct.unembed.b_U[:2] = -100.0
    (said,) = propose([("a", "b")], direct, channel, {"uniform": uniform()}, n=4, languages=TINY)
    assert said.sentences
    for at, sentence in enumerate(said.sentences):
        backwards = translation_scores(channel, [SentencePair(sentence, ("a", "b"), ())], languages=TINY.reversed)
        forwards = translation_scores(direct, [SentencePair(("a", "b"), sentence, ())], languages=TINY)
        assert float(said.channel[at]) == pytest.approx(float(backwards), rel=1e-4)
        assert float(said.direct[at]) == pytest.approx(float(forwards), rel=1e-4)
        assert float(said.language["uniform"][at]) == pytest.approx(-(len(sentence) + 1) * math.log(5), rel=1e-5)


def test_a_translator_of_the_other_direction_is_trained_on_swapped_pairs():
    languages = ENGLISH_TO_FRENCH.reversed
    model = Translator(TranslatorConfig(len(languages.source), len(languages.target), 8, "dot", "luong"))
    swapped = [SentencePair(pair.target, pair.source, ()) for pair in PAIRS]
    config = TrainingConfig(steps=30, batch_size=10, adamw_lr=0.02, warmup_steps=2)
    losses = train_translator(model, swapped, config, languages=languages)
    assert losses[-1] < 0.8 * losses[0]
    with pytest.raises(InputError, match="of the toy languages' words, got the unknown words"):
        train_translator(model, PAIRS, config, languages=languages)


def test_without_a_language_model():
    with pytest.raises(InputError, match="language_models: expected at least one"):
        propose([("a",)], translator(TINY), translator(TINY.reversed), {}, languages=TINY)
