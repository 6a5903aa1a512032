"""The noisy channel: translate ``f`` into the ``e`` with the largest ``p(e)^weight p(f | e)``.

By Bayes' rule ``p(e | f)`` is proportional to ``p(e) p(f | e)``. The language model ``p(e)`` needs no translations, so
it can learn from far more text than the channel ``p(f | e)`` has pairs (Brown et al. 1993). All ``e`` cannot be tried:

1. A translator of ``f`` into ``e`` proposes its n best sentences (beam search).
2. A translator in the other direction gives ``log p(f | e)`` of each, a language model ``log p(e)``.
3. The sentence with the largest ``weight * log p(e) + log p(f | e)`` is the translation. The weight is chosen on
   sentences that are neither trained nor scored on.

Yu et al. (2017), "The neural noisy channel", is this with networks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from forerunners.language_model import Forerunner
from forerunners.seq2seq import Translator
from forerunners.toy_french import SentencePair
from forerunners.translation import ENGLISH_TO_FRENCH, PAD_ID, Languages, n_best, sentence_ids, translation_scores
from interp.errors import InputError
from interp.model.devices import documented, place_of

Sentence = tuple[str, ...]


@documented
@torch.inference_mode()
def sentence_scores(
    model: Forerunner, sentences: Sequence[Sequence[str]], words: Sequence[str]
) -> Float[Tensor, " sentence"]:
    """``log p(e)`` of each sentence in nats, the end included; on the CPU, as the translators' are.

    Args:
        model: A causal language model over the ids of `words`.
        sentences: Words, without BOS and EOS.
        words: The vocabulary, ``SPECIAL`` first.

    Raises:
        InputError: There is no sentence, or one has a word that is not in the vocabulary.
    """
    ids = sentence_ids(sentences, words).to(place_of(model)[0])
    log_p = model(ids[:, :-1]).log_softmax(-1).gather(2, ids[:, 1:, None])[..., 0]
    return log_p.masked_fill(ids[:, 1:] == PAD_ID, 0.0).sum(-1).cpu()


@dataclass(frozen=True)
class Proposals:
    """What was proposed for one source sentence, the most probable first, with what the channel's parts say of it.

    Attributes:
        sentences: The proposals ``e``.
        channel: ``log p(f | e)`` of each.
        direct: ``log p(e | f)`` of each.
        language: ``log p(e)`` of each, by language model.
    """

    sentences: Sequence[Sentence]
    channel: Float[Tensor, " proposal"]
    direct: Float[Tensor, " proposal"]
    language: Mapping[str, Float[Tensor, " proposal"]]

    def best(self, language: str, weight: float, *, times: Literal["channel", "direct"] = "channel") -> Sentence:
        """The proposal with the largest ``p(e)^weight p(f | e)``; without proposals, no words.

        With `times` ``direct``, of ``p(e)^weight p(e | f)``: what a language model gains without a channel.
        """
        if not self.sentences:
            return ()
        translation = self.channel if times == "channel" else self.direct
        return self.sentences[int((weight * self.language[language] + translation).argmax())]


@documented
def propose(
    sources: Sequence[Sentence],
    direct: Translator,
    channel: Translator,
    language_models: Mapping[str, Forerunner],
    *,
    n: int = 20,
    languages: Languages = ENGLISH_TO_FRENCH,
) -> list[Proposals]:
    """The n best translations of each source sentence, with the scores that rerank them.

    Args:
        sources: The words of each ``f``.
        direct: Translates ``f`` into ``e``.
        channel: Translates ``e`` into ``f``.
        language_models: Of ``e``, by name.
        n: Proposals for each.
        languages: Those of `direct`.

    Raises:
        InputError: There is no sentence, one has an unknown word, or there is no language model.
    """
    if not language_models:
        raise InputError("language_models: expected at least one, by its name, got none")
    found = []
    for source, given in zip(sources, n_best(direct, sources, n, languages=languages), strict=True):
        proposed = [each for each in given if each]  # of no words nothing can be said
        if not proposed:
            none = torch.zeros(0)
            found.append(Proposals([], none, none, dict.fromkeys(language_models, none)))
            continue
        forwards = translation_scores(
            direct, [SentencePair(source, sentence, ()) for sentence in proposed], languages=languages
        )
        backwards = translation_scores(
            channel, [SentencePair(sentence, source, ()) for sentence in proposed], languages=languages.reversed
        )
        scores = {name: sentence_scores(model, proposed, languages.target) for name, model in language_models.items()}
        found.append(Proposals(proposed, backwards, forwards, scores))
    return found
