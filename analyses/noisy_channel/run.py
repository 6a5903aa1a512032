"""What does a noisy channel gain on a toy translator? See README.md.

python analyses/noisy_channel/run.py --out DIR
"""

import argparse
from collections.abc import Iterable
from itertools import chain, cycle
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
import torch

from forerunners.language_model import Forerunner
from forerunners.ngram import NGramConfig, fit_ngram
from forerunners.noisy_channel import Proposals, propose
from forerunners.recurrent import Recurrent, RecurrentConfig
from forerunners.seq2seq import Translator, TranslatorConfig
from forerunners.toy_french import SentencePair, sentence_pairs
from forerunners.translation import BOS_ID, ENGLISH_TO_FRENCH, EOS_ID, Languages, train_translator
from interp.model.training import TrainingConfig, packed_rows, train

WEIGHTS = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0)
"""Of the language model: one of them is chosen on the development sentences."""
ORDER = 4
Times = Literal["channel", "direct"]
TIMES: tuple[Times, ...] = ("channel", "direct")
"""What a language model's probability is multiplied with: ``p(f | e)``, or as a control ``p(e | f)``."""


def translator(languages: Languages, pairs: list[SentencePair], steps: int, seed: int) -> Translator:
    """A translator of these languages, trained on the pairs."""
    config = TranslatorConfig(len(languages.source), len(languages.target), 64, "bilinear", "luong")
    made = Translator(config, seed=seed)
    training = TrainingConfig(steps=steps, batch_size=32, adamw_lr=0.005, weight_decay=0.01, warmup_steps=40)
    train_translator(made, pairs, training, seed=seed, languages=languages)
    return made


def language_models(sentences: list[tuple[str, ...]], steps: int, seed: int) -> dict[str, Forerunner]:
    """An n-gram model and an LSTM with peepholes of the target language."""
    words = ENGLISH_TO_FRENCH.target
    number = {word: at for at, word in enumerate(words)}
    ids = [[*(number[word] for word in sentence), EOS_ID] for sentence in sentences]
    ngram = fit_ngram([[BOS_ID, *row] for row in ids], NGramConfig(ORDER, len(words), bos=BOS_ID))
    lstm = Recurrent(RecurrentConfig(1, 64, len(words), cell="peephole"), seed=seed)
    rows = packed_rows(cycle(ids), bos=BOS_ID, n_ctx=32)
    train(lstm, rows, TrainingConfig(steps=steps, batch_size=32, adamw_lr=0.005, warmup_steps=40))
    return {f"{ORDER}-gram": ngram, "LSTM": lstm}


def right(translated: Iterable[tuple[str, ...]], pairs: list[SentencePair]) -> np.ndarray:
    """1 for each sentence that is translated word for word as the grammar does, else 0."""
    return np.array([got == pair.target for got, pair in zip(translated, pairs, strict=True)], dtype=float)


def reranked(system: tuple[Times, str], weight: float, proposals: list[Proposals]) -> list[tuple[str, ...]]:
    """The best proposal for each sentence, by what a language model's probability is multiplied with."""
    times, language = system
    return [each.best(language, weight, times=times) for each in proposals]


def chosen_weight(system: tuple[Times, str], proposals: list[Proposals], pairs: list[SentencePair]) -> float:
    """The weight by which most sentences come out right; of equal ones the smallest."""
    return max(WEIGHTS, key=lambda weight: right(reranked(system, weight, proposals), pairs).mean())


def one_seed(seed: int, options: argparse.Namespace) -> list[dict[str, object]]:
    """Which test sentences each system translates right: one row a system and sentence."""
    n_held_out = options.develop + options.test
    everything = sentence_pairs(n_held_out + options.pairs + options.monolingual, seed=seed)
    develop, test = everything[: options.develop], everything[options.develop : n_held_out]
    pairs = everything[n_held_out : n_held_out + options.pairs]
    text = [pair.target for pair in everything[n_held_out:]]
    swapped = [SentencePair(pair.target, pair.source, ()) for pair in pairs]
    direct = translator(ENGLISH_TO_FRENCH, pairs, options.steps, seed)
    channel = translator(ENGLISH_TO_FRENCH.reversed, swapped, options.steps, seed)
    models = language_models(text, options.language_steps, seed)
    tuned, scored = (
        propose([pair.source for pair in each], direct, channel, models, n=options.n) for each in (develop, test)
    )
    found = {
        "direct": right((next(iter(each.sentences), ()) for each in scored), test),
        "channel alone": right(reranked(("channel", "LSTM"), 0.0, scored), test),
        "among the proposals": np.array(
            [float(pair.target in each.sentences) for pair, each in zip(test, scored, strict=True)]
        ),
    }
    systems: dict[str, tuple[Times, str]] = {f"{times} x {name}": (times, name) for times in TIMES for name in models}
    weights = {name: chosen_weight(system, tuned, develop) for name, system in systems.items()}
    found |= {name: right(reranked(system, weights[name], scored), test) for name, system in systems.items()}
    return [
        {
            "seed": seed,
            "system": name,
            "weight": weights.get(name),
            "sentence": at,
            "right": hit,
        }
        for name, hits in found.items()
        for at, hit in enumerate(hits)
    ]


def summary(frame: pd.DataFrame, draws: int = 2_000) -> pd.DataFrame:
    """Each system's accuracy and what it gains over the direct translator, with 95 % intervals.

    Sentences are resampled within seeds, so the intervals are for these trained models.
    """
    wide = frame.pivot(index=["seed", "sentence"], columns="system", values="right")
    rng = np.random.default_rng(0)
    blocks = [np.flatnonzero(wide.index.get_level_values("seed") == seed) for seed in frame["seed"].unique()]
    drawn = [np.concatenate([rng.choice(block, len(block)) for block in blocks]) for _ in range(draws)]
    rows = []
    for name in frame["system"].unique():
        gain = (wide[name] - wide["direct"]).to_numpy()
        low, high = np.percentile([gain[each].mean() for each in drawn], [2.5, 97.5])
        rows.append({"system": name, "accuracy": wide[name].mean(), "gain": gain.mean(), "low": low, "high": high})
    return pd.DataFrame(rows)


def main() -> None:
    """Train, propose, rerank and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--pairs", type=int, default=300, help="translated sentences")
    parser.add_argument("--monolingual", type=int, default=20_000, help="further sentences of the target language")
    parser.add_argument("--develop", type=int, default=200)
    parser.add_argument("--test", type=int, default=400)
    parser.add_argument("--n", type=int, default=20, help="proposals for each sentence")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=400, help="of each translator")
    parser.add_argument("--language-steps", type=int, default=1_000, help="of the LSTM")
    options = parser.parse_args()
    torch.set_num_threads(1)
    options.out.mkdir(parents=True, exist_ok=True)
    frame = pd.DataFrame(list(chain.from_iterable(one_seed(seed, options) for seed in range(options.seeds))))
    frame.to_csv(options.out / "sentences.csv", index=False)
    found = summary(frame)
    found.to_csv(options.out / "summary.csv", index=False)
    print(f"{options.pairs} pairs, {options.monolingual:,} more sentences of the target language\n")
    print(found.round(3).to_string(index=False))
    weights = frame.dropna(subset="weight").drop_duplicates(["seed", "system"])
    print(f"\nWeights of the language model\n\n{weights.pivot(index='seed', columns='system', values='weight')}")


if __name__ == "__main__":
    main()
